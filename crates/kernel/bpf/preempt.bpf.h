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

/* The rank of a running task by what it has used so far. */
static __always_inline struct rank present_rank(struct task *running_task)
{
	return rank_after(running_task, running_task->dispensed_ns - running_task->charged_ns);
}

/* CPUs among which a waking task finds one. */
#define CPUS_SEARCHED 8

/* Whether a turn on each CPU is about to end for a task that woke. */
static bool kicked[MAX_CPUS];

static bool *is_kicked_on(s32 cpu)
{
	return &kicked[cpu & (MAX_CPUS - 1)];
}

/*
 * Whether the running task ends its turn for no other one: it has a slot, or is early. An early task runs for
 * a short time, and tasks that wake one another shall sleep in between: a task that never sleeps
 * is not early again. Only a task that may hold a lock of the kernel does not wait.
 */
static bool is_left_alone(const struct task *running_task, const struct task *task)
{
	if (is_in_slot(running_task))
		return true;
	return is_early(running_task) &&
	       (task->early >> (ARRIVAL_BITS + FRACTION_BITS) >= WAKE_USER ||
		running_task->early >> (ARRIVAL_BITS + FRACTION_BITS) < WAKE_USER);
}

static bool may_preempt(struct task *task, struct task *running_task)
{
	struct rank later, present;

	if (is_left_alone(running_task, task))
		return false;
	if (is_early(task) && !is_early(running_task))
		return true;
	later = rank_after(task, WORTH_A_SWITCH_NS);
	present = present_rank(running_task);
	return precedes(&later, &present);
}

/*
 * Whether an early task was woken by a task that is about to sleep (WAKE_SYNC). It then runs on
 * the waker's CPU soon, so no other turn need end.
 */
static bool waker_sleeps(const struct task_struct *p, const struct task *task)
{
	s32 cpu = (s32)task->waker - 1;

	return cpu >= 0 && is_early(task) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       running_task_on(cpu);
}

/*
 * A waking task ends the turn of the task that deserves least, on one of the CPUs that may run
 * it. The search begins at the task's CPU.
 */
__noinline int preempt_for(struct task_struct *p __arg_trusted, struct task *task __arg_nonnull)
{
	struct rank later = rank_after(task, WORTH_A_SWITCH_NS), last = {};
	s32 first = scx_bpf_task_cpu(p), victim = -1;
	u32 turn;

	bpf_for(turn, 0, CPUS_SEARCHED) {
		s32 cpu = (first + turn) % cpus;
		struct task *running_task;
		struct rank rank;

		if (turn >= cpus)
			break;
		if (*is_kicked_on(cpu) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		running_task = running_task_on(cpu);
		if (!running_task || is_left_alone(running_task, task))
			continue;
		rank = present_rank(running_task);
		if (!precedes(&later, &rank) || (victim >= 0 && !precedes(&last, &rank)))
			continue;
		last = rank;
		victim = cpu;
	}
	if (victim < 0)
		return 0;
	*is_kicked_on(victim) = true;
	scx_bpf_kick_cpu(victim, KICK_PREEMPT);
	return 0;
}

/*
 * On one CPU. A task of another class may run between a `dispatch` and the turn of the chosen
 * task. A task that wakes then is compared when that turn begins.
 */
static void preempt_by(struct task *task, struct task *running_task)
{
	if (!running_task)
		*chosen_on(0) = false;
	else if (may_preempt(task, running_task))
		scx_bpf_kick_cpu(0, KICK_PREEMPT);
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
	if (vacant)
		return true;
	if ((!one_cpu || queue_waits()) && first_may_preempt(queue_of(cpu), running_task))
		return true;
	if (early_waits() && first_may_preempt(EARLY, running_task))
		return true;
	return !one_cpu && (first_may_preempt(residents_of(cpu), running_task) ||
			    first_may_preempt(ROAMERS, running_task));
}

/*
 * A task begins to run or continues. Whether it may have done so without a `dispatch`, while
 * other tasks may wait where this CPU looks.
 */
static bool is_unseen(s32 cpu)
{
	bool *is_chosen = chosen_on(cpu), was_chosen = *is_chosen;

	*is_chosen = false;
	return !was_chosen && (!one_cpu || vacant || queue_in_use || early_in_use);
}

static void look_again(s32 cpu, struct task *running_task)
{
	if (any_may_preempt(cpu, running_task))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

#endif
