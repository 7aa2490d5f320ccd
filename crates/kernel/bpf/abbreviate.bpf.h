/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Abbreviated quanta: who waits may end the turn of who runs, if it deserves to run more
 * by now. Both have used what they are charged for, so shares stay what they are.
 *
 * It is looked at when somebody wakes, and when somebody begins to run whom the kernel took
 * from the CPU's own queue without asking: who was interrupted by a task of another kind
 * (next.bpf.h says who else). Threads of the kernel are of another kind unless all tasks
 * are scheduled here, and it is they who wake those that wait for a disk.
 */
#ifndef PRORATA_ABBREVIATE_BPF_H
#define PRORATA_ABBREVIATE_BPF_H

/* Whether turns are cut short. */
const volatile bool abbreviated;
/* A turn is not cut short for less of the other one's service. */
#define WORTH_A_SWITCH_NS 1000000ULL

/* Whether who begins to run next on each CPU was chosen just now. */
static bool chosen[MAX_CPUS];

static bool *chosen_on(s32 cpu)
{
	return &chosen[cpu & (MAX_CPUS - 1)];
}

static struct stride stride_for(const struct task *task)
{
	return is_alone(task) ? task->alone.stride : node_at(task->node)->stride;
}

/* How far its pass is from the present one where it waits. */
static u64 remain_of(const struct task *task)
{
	return pass_for(task) - (is_alone(task) ? present_at(task->alone.home) : present());
}

/* Whether a task deserves to run more than the one whose turn it is. */
static bool deserves_more(const struct task *task, const struct task *runs)
{
	u64 used_ns = runs->dispensed_ns - runs->charged_ns, least, pass;

	if (task->node == runs->node && !is_alone(task) && !is_alone(runs)) {
		least = task->progress + progress_of(WORTH_A_SWITCH_NS, task->held);
		pass = runs->progress + progress_of(used_ns, runs->held);
	} else {
		least = remain_of(task) + wait(stride_for(task), WORTH_A_SWITCH_NS);
		pass = remain_of(runs) + wait(stride_for(runs), used_ns);
	}
	return before(least, pass);
}

/* Who wakes ends the turn of who runs on its CPU, if it deserves to run more. */
static void abbreviate_turn(s32 cpu, const struct task *task)
{
	struct task_struct *current = __COMPAT_scx_bpf_cpu_curr(cpu);
	struct task *runs = current ? task_of(current) : NULL;

	if (runs && runs->competes && deserves_more(task, runs))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Whether who waits first in a queue deserves to run more. */
static bool first_deserves_more(u32 queue, const struct task *runs)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(queue);
	struct task *first = p ? task_of(p) : NULL;

	return first && first->competes && deserves_more(first, runs);
}

/* Whether somebody who waits where a CPU looks deserves to run more. */
static bool anybody_deserves_more(s32 cpu, const struct task *runs)
{
	if (vacant || first_deserves_more(queue_of(cpu), runs))
		return true;
	return !one_cpu &&
	       (first_deserves_more(residents_of(cpu), runs) || first_deserves_more(ROAMERS, runs));
}

/* A task begins to run or goes on, and it may be that nobody was asked; null if not ours. */
static void look_again(s32 cpu, const struct task *runs)
{
	bool *is_chosen = chosen_on(cpu);

	if (runs && !*is_chosen && anybody_deserves_more(cpu, runs))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	*is_chosen = false;
}

#endif
