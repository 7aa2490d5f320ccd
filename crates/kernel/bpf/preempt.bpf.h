/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Abbreviated quanta: a waiting task may end the turn of the running task, if it would
 * precede that task even after another millisecond of its own service. Both were charged
 * for what they used, so shares do not change.
 *
 * The comparison happens when a task wakes. It also happens when a task begins to run that
 * the kernel took from the CPU's own queue without a `dispatch`, because a task of another
 * class had interrupted it (next.bpf.h lists other cases). Kernel threads are of another
 * class in partial mode, and they wake the tasks that wait for a disk.
 */
#ifndef PRORATA_PREEMPT_BPF_H
#define PRORATA_PREEMPT_BPF_H

/* A turn does not end early for less service of the other task than this. */
#define WORTH_A_SWITCH_NS 1000000ULL

/* Whether the task that begins to run next on each CPU comes straight from `dispatch`. */
static bool chosen[MAX_CPUS];

static bool *chosen_on(s32 cpu)
{
	return &chosen[cpu & (MAX_CPUS - 1)];
}

static bool may_preempt(struct task *task, struct task *running_task)
{
	u64 uncharged_ns = running_task->dispensed_ns - running_task->charged_ns;
	struct rank later = rank_after(task, WORTH_A_SWITCH_NS);
	struct rank present = rank_after(running_task, uncharged_ns);

	return precedes(&later, &present);
}

/* A waking task ends the turn on its CPU, if it may. */
static void preempt_on(s32 cpu, struct task *task)
{
	struct task_struct *current = scx_bpf_cpu_curr(cpu);
	struct task *running_task = current ? task_of(current) : NULL;

	if (running_task && running_task->competes && may_preempt(task, running_task))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Whether the first task of a queue may preempt the running one. */
static bool first_may_preempt(u32 queue, struct task *running_task)
{
	struct task_struct *p = first_in(queue);
	struct task *first = p ? task_of(p) : NULL;

	return first && first->competes && may_preempt(first, running_task);
}

/* Whether a task that waits where a CPU looks may preempt the running one. */
static bool any_may_preempt(s32 cpu, struct task *running_task)
{
	if (vacant || first_may_preempt(queue_of(cpu), running_task))
		return true;
	return !one_cpu && (first_may_preempt(residents_of(cpu), running_task) ||
			    first_may_preempt(ROAMERS, running_task));
}

/* A task begins to run or continues, perhaps without a `dispatch`. NULL if it is not ours. */
static void look_again(s32 cpu, struct task *running_task)
{
	bool *is_chosen = chosen_on(cpu);

	if (running_task && !*is_chosen && any_may_preempt(cpu, running_task))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	*is_chosen = false;
}

#endif
