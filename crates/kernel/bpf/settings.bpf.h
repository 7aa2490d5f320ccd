/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings that the loader fixes before it loads the scheduler. The verifier knows their
 * values and drops the code that they exclude.
 */
#ifndef PRORATA_SETTINGS_BPF_H
#define PRORATA_SETTINGS_BPF_H

/* CPUs that could be online. */
const volatile u32 cpus = 1;

/* Whether all tasks are scheduled here, or only those that the loader gave. */
const volatile bool all_tasks;

/* Whether a waking task may end a turn, see preempt.bpf.h. */
const volatile bool abbreviated;

/* Whether a task that wakes from a sleep in the kernel is early, see early.bpf.h. */
const volatile bool kernel_priorities;

/* Whether a task that wakes and received less than it deserved is early. */
const volatile bool ticket_boost;

/* Whether a client's base tickets follow the nice values of its tasks, see nice.h. */
const volatile bool nice_counts;

#define hybrid (kernel_priorities || ticket_boost)

/* Whether the kernel has the timer that limits need, see limits.bpf.h. */
const volatile bool timed;

/* Whether decisions are traced, see trace.bpf.h. */
const volatile bool traced;

/* Queues of unbound tasks, and the queue of each CPU. */
const volatile u32 queues = 1;
const volatile u32 queue_by_cpu[MAX_CPUS];

#endif
