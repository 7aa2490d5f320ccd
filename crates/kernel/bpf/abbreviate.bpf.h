/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Abbreviated quanta: who wakes may end the turn of who runs.
 */
#ifndef PRORATA_ABBREVIATE_BPF_H
#define PRORATA_ABBREVIATE_BPF_H

/* Whether turns are cut short for those who wake. */
bool abbreviated;
#define WORTH_A_SWITCH_NS 1000000ULL

/*
 * Who wakes ends the turn of who runs on its CPU, if it deserves to run more by
 * now: both have used what they are charged for. A turn is not cut short for
 * less than `WORTH_A_SWITCH_NS` of the waking one's service.
 */
static void abbreviate_turn(s32 cpu, const struct task *task)
{
	struct task_struct *runs = __COMPAT_scx_bpf_cpu_curr(cpu);
	struct task *other = runs ? task_of(runs) : NULL;
	const struct rights *node, *its_node;
	u64 used_ns, least, pass;

	if (!other || !other->competes)
		return;
	used_ns = used_by(runs, other);
	node = node_at(task->node);
	its_node = node_at(other->node);
	if (node == its_node) {
		least = task->progress + progress_of(WORTH_A_SWITCH_NS, task->held);
		pass = other->progress + progress_of(used_ns, other->held);
	} else {
		least = node->pass + wait(node->stride, WORTH_A_SWITCH_NS);
		pass = its_node->pass + wait(its_node->stride, used_ns);
	}
	if (before(least, pass))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

#endif
