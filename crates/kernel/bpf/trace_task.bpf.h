/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the trace tells of tasks in the queues of several CPUs. What one CPU does to a queue
 * and what it tells of that are not one step, but nothing comes between them on that CPU:
 *
 * - that a task waits is told before it is put into the queue, so it is there for certain
 *   once its CPU tells anything else;
 * - that it was taken is told after; it had been there when the CPU began to look.
 *
 * The ring has one order for all CPUs. On one CPU nothing of this is told: there the order
 * of decisions says it all (trace.bpf.h).
 */
#ifndef PRORATA_TRACE_TASK_BPF_H
#define PRORATA_TRACE_TASK_BPF_H

static __noinline int tell_of_task(u32 kind, u32 tid, const struct task *task, u32 queue, u64 key)
{
	const struct rights *node = node_at(task->node);
	struct decision decision = {
		.kind = kind,
		.node = task->node,
		.tid = tid,
		.pass = is_alone(task) ? task->alone.pass : node->pass,
		.worth = is_alone(task) ? task->alone.worth : node->worth,
		.present = present(),
		.queue = queue,
		.key = key,
		.alone = is_alone(task),
	};

	return put(&decision);
}

static __always_inline void trace_task(u32 kind, const struct task_struct *p,
				       const struct task *task, u32 queue, u64 key)
{
	if (traced && !one_cpu)
		tell_of_task(kind, p->pid, task, queue, key);
}

/* One that the kernel holds on its CPU for a moment is passed over by the others. */
static __always_inline void trace_wait(const struct task_struct *p, const struct task *task,
				       u32 queue, u64 key)
{
	if (traced)
		trace_task(p->migration_disabled ? TASK_GOES : TASK_WAITS, p, task, queue, key);
}

static __always_inline void trace_look(void)
{
	if (traced)
		tell(CPU_LOOKS, BASE, 0, 0);
}

#endif
