/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * prorata: CPU time in proportion to tickets, inside the kernel.
 *
 * Rights are tickets in currencies, which form a graph down from the base
 * currency (rights.bpf.h); control groups are currencies, too (cgroup.bpf.h).
 * Each task is in one node of the graph and holds tickets there, by its nice
 * value. When it is to run it joins: its tickets become active, and with them
 * those that back them. What the tasks of a node are worth together, in base
 * tickets, says how fast the node's pass moves with what they use (client.bpf.h,
 * pass.bpf.h). The node with the smallest pass runs next, and of its tasks the one
 * that has used least for its tickets (queue.bpf.h, line.bpf.h, task.bpf.h).
 *
 *	wakes	  select_cpu  joins; a CPU that is idle takes it at once
 *		  enqueue     joins; waits in the queue, or in line inside its node,
 *			      or goes to the CPU's own queue (next.bpf.h)
 *	turn ends dispatch    charges who ran, who goes on if nobody deserves more
 *		  stopping    charges who ran; who sleeps leaves
 *
 * These four are all that a switch costs on one CPU. There is no `runnable` and no
 * `quiescent`: what they would tell is known by then.
 */
#include <scx/common.bpf.h>
#include <bpf_experimental.h>

#include "constants.bpf.h"
#include "exit.bpf.h"
#include "abi.h"
#include "arithmetic.h"
#include "rights.bpf.h"
#include "pass.bpf.h"
#include "feasible.bpf.h"
#include "trace.bpf.h"
#include "resident.bpf.h"
#include "head.bpf.h"
#include "client.bpf.h"
#include "alone.bpf.h"
#include "task.bpf.h"
#include "queue.bpf.h"
#include "next.bpf.h"
#include "line.bpf.h"
#include "order.bpf.h"
#include "abbreviate.bpf.h"
#include "take.bpf.h"
#include "cgroup.bpf.h"
#include "requests.bpf.h"

char _license[] SEC("license") = "GPL";

struct exit_record exit_record;

s32 BPF_STRUCT_OPS(prorata_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = prev_cpu;
	struct task *task;

	if (one_cpu)
		idle = scx_bpf_test_and_clear_cpu_idle(cpu);
	else
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	if (!idle)
		return cpu;
	task = task_of(p);
	if (!task)
		return cpu;
	if (!task->competes)
		join(p, task, scx_bpf_now());
	__sync_fetch_and_add(&totals.direct, 1);
	scx_bpf_dsq_insert(p, DSQ_LOCAL, turn_of(node_at(task->node)), 0);
	return cpu;
}

void BPF_STRUCT_OPS(prorata_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task *task = task_of(p), *runs;

	if (!task) {
		/* Here by a will of its own: it has no tickets. */
		scx_bpf_dsq_insert_vtime(p,
					 queue_of(scx_bpf_task_cpu(p)),
					 quantum_ns,
					 present() + longest,
					 enq_flags);
		return;
	}
	runs = one_cpu ? who_runs_beside(p) : NULL;
	if (!task->competes) {
		if (runs)
			dispense_turn(bpf_get_current_task_btf(), runs, 0);
		else if (!one_cpu)
			dispense_turn_on(scx_bpf_task_cpu(p));
		join(p, task, scx_bpf_now());
	} else if (is_bound_anew(p, task)) {
		follow_assignment(p, task, scx_bpf_now());
	}
	if (!one_cpu || !goes_next(p, task, runs, enq_flags)) {
		if ((one_cpu && steps_back(p, task)) || waits_in_line(task))
			wait_in_line(p, task, enq_flags);
		else
			wait_in_queue(p, task, enq_flags);
	}
	if (abbreviated && (enq_flags & ENQ_WAKEUP))
		abbreviate_turn(scx_bpf_task_cpu(p), task);
}

void BPF_STRUCT_OPS(prorata_dispatch, s32 cpu, struct task_struct *prev)
{
	bool goes_on = prev && (prev->scx.flags & TASK_QUEUED);
	struct rival rival = {.nobody = true};
	struct task *task = NULL;
	u64 now = scx_bpf_now();
	bool other;

	if (goes_on)
		task = task_of(prev);
	/* Who came while it ran was not enqueued. */
	if (task && !task->competes)
		join(prev, task, now);
	/* First, so that its node's others wait where it stands now. */
	if (task)
		charge(prev, task, now);
	fill_vacancies();
	reorder_if_due(task, now);
	next_here.known = false;
	if (task) {
		rival.nobody = hand_over(task);
		rival.node = rivals_node(task);
		rival.pass = key_for(task, pass_for(task));
		rival.progress = task->progress;
	}
	other = next_here.known || take(cpu, &rival);
	compared = other && goes_on;
	if (!one_cpu && !other && !goes_on)
		catch_up(cpu);
	if (abbreviated && other)
		*chosen_on(cpu) = true;
	if (other || !goes_on) {
		fill_vacancies();
		return;
	}
	if (task && is_alone(task) && nobody_waits_for(cpu))
		forgive_lead(&task->alone, node_at(task->node));
	scx_bpf_task_set_slice(prev, task ? turn_of(node_at(task->node)) : quantum_ns);
	__sync_fetch_and_add(&totals.prolonged, 1);
}

/*
 * Only on several CPUs, or if quanta are abbreviated or decisions traced: else the loader
 * leaves it out.
 */
void BPF_STRUCT_OPS(prorata_running, struct task_struct *p)
{
	struct task *task = task_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	bool competes = task && task->competes;

	if (abbreviated)
		look_again(cpu, competes ? task : NULL);
	if (!competes)
		return;
	if (!one_cpu)
		*running_on(cpu) = is_alone(task) ? 0 : task->node;
	trace(DECISION_PICK, task->node, p->pid, 0);
}

/*
 * Only on several CPUs: what runs on the others is too much to ask for when somebody
 * joins, so the present pass is right but for what was used on them since their last ticks.
 */
void BPF_STRUCT_OPS(prorata_tick, struct task_struct *p)
{
	struct task *task = task_of(p);

	if (task && task->competes)
		dispense_for(task, p->se.sum_exec_runtime);
}

void BPF_STRUCT_OPS(prorata_stopping, struct task_struct *p, bool runnable)
{
	struct task *task = task_of(p);

	if (task && task->competes) {
		charge(p, task, scx_bpf_now());
		count_turn(p, task);
		if (!runnable)
			leave(p, task);
	}
	/* It comes before who was to be next: another kind of task runs meanwhile. */
	if (one_cpu && runnable && p->scx.slice)
		next_here.known = false;
	/* Not before it was charged: until then it counts among those that run. */
	if (!one_cpu)
		*running_on(scx_bpf_task_cpu(p)) = 0;
}

/* Its nice value has changed. */
void BPF_STRUCT_OPS(prorata_set_weight, struct task_struct *p, u32 weight)
{
	struct task *task = task_of(p);

	if (task && task->competes)
		follow_assignment(p, task, scx_bpf_now());
}

void BPF_STRUCT_OPS(prorata_enable, struct task_struct *p)
{
	struct task *task = task_of(p);

	if (!task)
		return;
	begin_clocks(p, task);
}

void BPF_STRUCT_OPS(prorata_disable, struct task_struct *p)
{
	struct task *task = task_of(p);

	if (task && task->competes)
		leave(p, task);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(prorata_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct task *parent = NULL, *task;
	bool given;
	u32 group = ROOT_CGROUP;

	if (args->fork)
		parent = task_of(bpf_get_current_task_btf());
	given = parent && parent->given;
	if (!given && !all_tasks)
		return 0;
	if (all_tasks)
		group = node_of_group_by_id(args->cgroup->kn->id);
	task = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task)
		return -ENOMEM;
	task->given = given;
	task->group = group;
	task->present = true;
	belong(task, given ? parent->assigned : group);
	return 0;
}

void BPF_STRUCT_OPS(prorata_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task *task = task_of(p);

	if (task && task->present) {
		task->present = false;
		end(p, task);
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(prorata_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	bool idle = false;

	if (!all_tasks)
		return 0;
	if (bpf_core_field_exists(args->sched_idle))
		idle = args->sched_idle;
	return begin_group(cgrp, args->weight, idle);
}

void BPF_STRUCT_OPS_SLEEPABLE(prorata_cgroup_exit, struct cgroup *cgrp)
{
	if (all_tasks)
		end_group(cgrp);
}

void BPF_STRUCT_OPS(prorata_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task *task = task_of(p);

	if (!task || !all_tasks)
		return;
	task->group = node_of_group(to);
	if (task->given)
		return;
	belong_elsewhere(task, task->group);
	if (task->competes)
		follow_assignment(p, task, scx_bpf_now());
}

void BPF_STRUCT_OPS(prorata_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct group *group = group_of(cgrp);

	if (!group)
		return;
	group->weight = weight;
	change_group(cgrp);
}

void BPF_STRUCT_OPS(prorata_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	struct group *group = group_of(cgrp);

	if (!group)
		return;
	group->idle = idle;
	change_group(cgrp);
}

/* CPUs come and go: without these two the kernel would unload the scheduler. */
void BPF_STRUCT_OPS(prorata_cpu_online, s32 cpu)
{
	__sync_fetch_and_add(&online, 1);
}

void BPF_STRUCT_OPS(prorata_cpu_offline, s32 cpu)
{
	__sync_fetch_and_add(&online, -1);
	if (!one_cpu)
		evict_residents(cpu);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(prorata_init)
{
	u32 queue;

	bpf_for(queue, 0, queues) {
		s32 error = scx_bpf_create_dsq(queue, -1);

		if (error)
			return error;
	}
	return one_cpu ? 0 : create_residents();
}

void BPF_STRUCT_OPS(prorata_exit, struct scx_exit_info *info)
{
	record_exit(&exit_record, info);
}

/* clang-format off */
SCX_OPS_DEFINE(prorata_ops,
	       .select_cpu = (void *)prorata_select_cpu,
	       .enqueue = (void *)prorata_enqueue,
	       .dispatch = (void *)prorata_dispatch,
	       .running = (void *)prorata_running,
	       .tick = (void *)prorata_tick,
	       .stopping = (void *)prorata_stopping,
	       .set_weight = (void *)prorata_set_weight,
	       .enable = (void *)prorata_enable,
	       .disable = (void *)prorata_disable,
	       .init_task = (void *)prorata_init_task,
	       .exit_task = (void *)prorata_exit_task,
	       .cgroup_init = (void *)prorata_cgroup_init,
	       .cgroup_exit = (void *)prorata_cgroup_exit,
	       .cgroup_move = (void *)prorata_cgroup_move,
	       .cgroup_set_weight = (void *)prorata_cgroup_set_weight,
	       .cgroup_set_idle = (void *)prorata_cgroup_set_idle,
	       .cpu_online = (void *)prorata_cpu_online,
	       .cpu_offline = (void *)prorata_cpu_offline,
	       .init = (void *)prorata_init,
	       .exit = (void *)prorata_exit,
	       .name = "prorata");
/* clang-format on */
