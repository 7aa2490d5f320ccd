/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Abbreviated quanta: who wakes may end the turn of who runs.
 */
#ifndef PRORATA_ABBREVIATE_BPF_H
#define PRORATA_ABBREVIATE_BPF_H

/* Whether turns are cut short for those who wake. */
bool abbreviated;
#define WORTH_A_SWITCH_NS 1000000ULL

static struct stride stride_for(const struct task *task)
{
	return is_alone(task) ? task->alone.stride : node_at(task->node)->stride;
}

/* How far its pass is from the present one where it waits. */
static u64 remain_of(const struct task *task)
{
	return pass_for(task) - (is_alone(task) ? present_at(task->alone.home) : present());
}

/*
 * Who wakes ends the turn of who runs on its CPU, if it deserves to run more by
 * now: both have used what they are charged for. A turn is not cut short for
 * less than `WORTH_A_SWITCH_NS` of the waking one's service.
 */
static void abbreviate_turn(s32 cpu, const struct task *task)
{
	struct task_struct *runs = __COMPAT_scx_bpf_cpu_curr(cpu);
	struct task *other = runs ? task_of(runs) : NULL;
	u64 used_ns, least, pass;

	if (!other || !other->competes)
		return;
	used_ns = other->dispensed_ns - other->charged_ns;
	if (task->node == other->node && !is_alone(task) && !is_alone(other)) {
		least = task->progress + progress_of(WORTH_A_SWITCH_NS, task->held);
		pass = other->progress + progress_of(used_ns, other->held);
	} else {
		least = remain_of(task) + wait(stride_for(task), WORTH_A_SWITCH_NS);
		pass = remain_of(other) + wait(stride_for(other), used_ns);
	}
	if (before(least, pass))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

#endif
