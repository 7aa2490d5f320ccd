/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * prorata: CPU time in proportion to tickets, inside the kernel.
 *
 * What does a task deserve? Tickets are issued in currencies, which form a graph down from
 * the base currency (rights.h). Control groups are currencies, too (cgroup.bpf.h). Each task
 * belongs to one node of the graph and holds tickets there by its nice value. While it
 * competes, its tickets are active, and so are those that back them. What the tasks of a
 * node are worth together, in base tickets, follows their nice values if they are a client's
 * (nice.h), and is cut to what they can use (feasible.h). It
 * determines how fast the node's pass moves with the time that they use (entity.bpf.h,
 * pass.h).
 *
 * What runs now? The task that precedes all others (rank.bpf.h): that of the entity with
 * the smallest pass, and inside a node the task that has used least for its tickets
 * (task.bpf.h). An entity is the unbound tasks of a node together, or one bound task, which
 * waits at a home (home.bpf.h). What a task used is charged (charge.bpf.h). A node's tasks wait
 * in a queue or in the node's line (queue.bpf.h, line.bpf.h). A CPU looks at the head of each
 * queue (head.bpf.h, take.bpf.h).
 * A change of tickets reorders waiting tasks (order.bpf.h). A task that wakes and received less
 * than it deserved goes before all that only compete (window.h, lead.bpf.h, early.bpf.h). In
 * abbreviated quanta a waking task may preempt a running one (preempt.bpf.h). A client that has
 * exhausted its allowance pauses (allowance.h, limits.bpf.h, held.bpf.h). In a claimed slot of the
 * timetable its schedulee precedes all others (timetable.bpf.h, boundary.bpf.h, claim.bpf.h).
 *
 *	a task wakes	select_cpu  on several CPUs it joins, and an idle one takes it at once
 *			enqueue	    it joins; it waits in the queue, in its node's line, or
 *				    in the CPU's own queue (next.bpf.h)
 *	a turn ends	dispatch    charges the task, which continues unless another one
 *				    precedes it
 *			stopping    charges the task, which leaves if it sleeps
 *
 * A switch on one CPU costs no more than `enqueue`, `dispatch` and `stopping`. They also do what other
 * schedulers do in `runnable` and `quiescent`.
 */
/* Leaves out functions for sets of CPUs: the loader would relocate all of them. */
#define __SCX_CID_BPF_H
#include <scx/common.bpf.h>
#include <bpf_experimental.h>

#include "constants.bpf.h"
#include "kernel.bpf.h"
#include "exit.bpf.h"
#include "window.h"
#include "abi.h"
#include "arithmetic.h"
#include "word.h"
#include "histogram.h"
#include "settings.bpf.h"
#include "pass.h"
#include "rights.h"
#include "nice.h"
#include "feasible.h"
#include "timetable.bpf.h"
#include "trace.bpf.h"
#include "home.bpf.h"
#include "head.bpf.h"
#include "entity.bpf.h"
#include "lead.bpf.h"
#include "limits.bpf.h"
#include "task.bpf.h"
#include "charge.bpf.h"
#include "rank.bpf.h"
#include "queue.bpf.h"
#include "next.bpf.h"
#include "line.bpf.h"
#include "held.bpf.h"
#include "early.bpf.h"
#include "order.bpf.h"
#include "take.bpf.h"
#include "claim.bpf.h"
#include "boundary.bpf.h"
#include "preempt.bpf.h"
#include "cgroup.bpf.h"
#include "requests.bpf.h"

char _license[] SEC("license") = "GPL";

struct exit_record exit_record;

/* A task becomes runnable. */
static void wake(struct task_struct *p, struct task *task, bool slept)
{
	u64 now = scx_bpf_now();

	join(p, task, now);
	if (hybrid && slept)
		consider_early(p, task, now);
}

s32 BPF_STRUCT_OPS(prorata_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	struct task *task;
	s32 cpu;

	if (one_cpu)
		return prev_cpu;
	task = task_of(p);
	if (task && pauses(node_at(task->assigned)) && !is_ending(p))
		return prev_cpu;
	if (claims && task) {
		cpu = free_slot_for(p, task, false);
		if (cpu >= 0)
			return cpu;
	}
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	if (abbreviated && task)
		task->waker = wake_flags & WAKE_SYNC ? bpf_get_smp_processor_id() + 1 : 0;
	if (!idle || !task)
		return cpu;
	if (!task->competes)
		wake(p, task, wake_flags & WAKE_TTWU);
	__sync_fetch_and_add(&totals.direct, 1);
	insert(p, DSQ_LOCAL, slice_until(cpu, entity_of(task)), 0);
	return cpu;
}

void BPF_STRUCT_OPS(prorata_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task *task = task_of(p), *running_task;
	s32 cpu = one_cpu ? 0 : scx_bpf_task_cpu(p);
	u64 slice, aside;
	bool goes_on = task && task->competes;

	if (!task) {
		/* It chose this scheduling class by itself, and holds no tickets. */
		note_use(&queue_in_use);
		insert_by_key(p, queue_of(cpu), quantum_ns, present() + longest, enq_flags);
		return;
	}
	running_task = one_cpu ? running_beside(p) : NULL;
	task->in_slot = NO_SLOT;
	if (!task->competes) {
		if (running_task)
			dispense_turn(bpf_get_current_task_btf(), running_task, 0);
		else if (!one_cpu)
			dispense_turn_on(cpu);
		wake(p, task, enq_flags & ENQ_WAKEUP);
	} else if (is_changed(p, task)) {
		follow_changes(p, task, scx_bpf_now());
	}
	if (pausing && pauses(node_at(task->node))) {
		/* What was compared is not what runs next. */
		if ((void *)bpf_get_current_task_btf() == p)
			compared = false;
		aside = is_bound(task) ? queue_set_aside(node_at(task->node)) : LINES;
		if (!is_ending(p) && aside) {
			wait_for_allowance(p, task, aside, enq_flags);
			return;
		}
		trace_early(LIMIT_SPARES, p, task, 0);
	}
	if (claims) {
		s32 slot_cpu = free_slot_for(p, task, false);

		/* If its own turn ends here although the slot is its own, it is the turn of others. */
		if (slot_cpu >= 0 && (slot_cpu != cpu || (void *)bpf_get_current_task_btf() != p)) {
			run_in_slot(p, task, slot_cpu, enq_flags);
			return;
		}
	}
	/* On several CPUs, the CPU that takes the task sets the slice anew. */
	slice = slice_until(cpu, entity_of(task));
	if (hybrid && goes_on && !is_reconsidered(p))
		reconsider_early(p, task, scx_bpf_now());
	if (is_early(task)) {
		/* What was compared is not what runs next. */
		if ((void *)bpf_get_current_task_btf() == p)
			compared = false;
		if (!one_cpu || !goes_next_early(p, task, slice, enq_flags))
			wait_among_early(p, task, slice, enq_flags);
	} else if (!one_cpu || !goes_next(p, task, running_task, slice, enq_flags)) {
		begin_to_wait(p, task);
		if ((one_cpu && steps_back(p, task)) || waits_in_line(task))
			wait_in_line(p, task, slice, enq_flags);
		else
			wait_in_queue(p, task, slice, enq_flags);
	}
	/* It was held, and its pause has just ended: this CPU would idle. */
	if (!one_cpu && enq_flags & ENQ_LAST)
		scx_bpf_kick_cpu(cpu, 0);
	if (!abbreviated || !(enq_flags & ENQ_WAKEUP))
		return;
	if (one_cpu)
		preempt_by(task, running_task);
	else if (!waker_sleeps(p, task))
		preempt_for(p, task);
	/* It may be woken next without `select_cpu`, once it is bound to one CPU. */
	task->waker = 0;
}

void BPF_STRUCT_OPS(prorata_dispatch, s32 cpu, struct task_struct *prev)
{
	bool is_queued = prev && (prev->scx.flags & TASK_QUEUED);
	struct rank rival = {};
	struct task *task = NULL;
	u64 now = scx_bpf_now();
	bool other, was_early, goes_on_early, overdue, held;

	if (is_queued)
		task = task_of(prev);
	/* A task that came here while it ran was never enqueued. */
	if (task && !task->competes)
		join(prev, task, now);
	/* Charged first, so that the others of its node stand where the node stands now. */
	if (task) {
		charge(prev, task, now);
		if (is_changed(prev, task))
			follow_changes(prev, task, now);
	}
	held = pausing && task && is_held(prev, task);
	if (held && is_early(task))
		cease_to_be_early(task);
	next_here.exists = false;
	other = look_at_held && look_after_held(cpu);
	/* Tasks that end, or waited too long, run in claimed slots, too. */
	if (claims && !other) {
		int by_claim = ask_timetable(prev, task, cpu, now);

		if (by_claim == DECIDED) {
			compared = false;
			reconsidered = false;
			*chosen_on(cpu) = true;
			return;
		}
		if (by_claim == LEAVES)
			held = true;
	}
	fill_vacancies();
	reorder_if_due(task, now);
	/* If the same task continues, `running` is not called. */
	if (abbreviated && !one_cpu)
		*is_kicked_on(cpu) = false;
	was_early = task && is_early(task);
	if (hybrid)
		trace_look();
	goes_on_early = was_early && reconsider_early(prev, task, now);
	if (goes_on_early && gives_way(task, cpu)) {
		cease_to_be_early(task);
		goes_on_early = false;
	}
	overdue = hybrid && (goes_on_early || early_waits()) && is_overdue(cpu, now);
	if (overdue)
		goes_on_early = false;
	else if (!other)
		other = early_waits() && take_early(cpu, goes_on_early ? task->early : NOT_EARLY);
	compared = false;
	if (!other && !goes_on_early) {
		if (task && !held) {
			bool is_replaced = hand_over(task);

			rival = rank_at(task, key_of(entity_of(task), pass_for(task)));
			rival.exists =
				!is_replaced && !overdue &&
				!((was_early || is_in_slot(task)) && waits_for_its_node(task));
		}
		other = next_here.exists || take(cpu, &rival);
		compared = other && is_queued;
		/* Another CPU has taken the overdue task. */
		if (overdue && !other)
			other = take_early(cpu, NOT_EARLY);
	}
	reconsidered = one_cpu && other && was_early;
	if (!one_cpu && !other && !is_queued)
		catch_up(cpu);
	if (abbreviated && other)
		*chosen_on(cpu) = true;
	/* A held task leaves the CPU even if that idles. */
	if (other || !is_queued || held) {
		fill_vacancies();
		return;
	}
	if (task && is_bound(task) && is_idle_beside(cpu))
		forgive_lead(&task->own);
	scx_bpf_task_set_slice(prev, task ? slice_after_slot(cpu, task) : quantum_ns);
	if (task)
		task->in_slot = NO_SLOT;
	__sync_fetch_and_add(&totals.prolonged, 1);
}

void BPF_STRUCT_OPS(prorata_running, struct task_struct *p)
{
	s32 cpu = one_cpu ? 0 : scx_bpf_task_cpu(p);
	bool looks = abbreviated && is_unseen(cpu);
	bool is_over = false;
	struct task *task;

	if (one_cpu && !traced && !looks && !claims)
		return;
	if (abbreviated && !one_cpu)
		*is_kicked_on(cpu) = false;
	task = task_of(p);
	if (!task || !task->competes)
		return;
	if (!one_cpu && all_tasks && hybrid && have_siblings_changed(task->node)) {
		forget_price(task->node);
		revalue(entity_of(task), scx_bpf_now());
	}
	if (looks)
		look_again(cpu, task);
	/* Its client's pause began after it was taken, or it is spared (held.bpf.h). */
	if (pausing && is_held(p, task))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	if (claims)
		is_over = begin_turn_in_slot(p, task, cpu);
	if (!one_cpu)
		*running_on(cpu) = is_bound(task) ? 0 : task->node;
	trace_pick(p, task);
	/* No slot pays for what it uses from now on. */
	if (is_over)
		task->in_slot = NO_SLOT;
}

/*
 * The loader leaves this out on one CPU. On several, a joining task would have to ask all of
 * them what runs there. So the present pass lacks what the others used since their last tick.
 */
void BPF_STRUCT_OPS(prorata_tick, struct task_struct *p)
{
	struct task *task = task_of(p);

	if (!task || !task->competes)
		return;
	if (!is_in_slot(task))
		dispense_for(task, p->se.sum_exec_runtime);
	if (pausing && is_held(p, task))
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), KICK_PREEMPT);
}

void BPF_STRUCT_OPS(prorata_stopping, struct task_struct *p, bool runnable)
{
	struct task *task = task_of(p);

	if (task && task->competes) {
		charge(p, task, scx_bpf_now());
		count_turn(p, task);
		if (!runnable) {
			task->sleeps_on = kind_of_sleep(p);
			if (!one_cpu && in_claimed_slots)
				await_no_more(p, task);
			task->in_slot = NO_SLOT;
			leave(p, task);
		} else if (pausing && is_held(p, task)) {
			stop_held(p);
		} else if (is_in_slot(task)) {
			stop_in_slot(one_cpu ? 0 : scx_bpf_task_cpu(p));
		}
	}
	/* It goes ahead of the next task: a task of another class interrupts its turn. */
	if (one_cpu && runnable && p->scx.slice)
		next_here.exists = false;
	/* After the charge: until then it counts among the running tasks. */
	if (!one_cpu)
		*running_on(scx_bpf_task_cpu(p)) = 0;
}

void BPF_STRUCT_OPS(prorata_enable, struct task_struct *p)
{
	struct task *task = task_of(p);

	if (task)
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
	begin_window(task, parent);
	belong(task, given ? parent->assigned : group);
	return 0;
}

/* The kernel has disabled the task before, so it does not compete. */
void BPF_STRUCT_OPS(prorata_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task *task = task_of(p);

	if (task && task->present) {
		task->present = false;
		lose_task(task->assigned);
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

/* A waiting task moves when the kernel queues it again, right after this call. */
void BPF_STRUCT_OPS(prorata_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task *task = task_of(p);

	if (!task || !all_tasks)
		return;
	task->group = node_of_group(to);
	if (!task->given)
		belong_elsewhere(task, task->group);
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

/* Without these two the kernel would unload the scheduler when a CPU comes or goes. */
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
	if (hybrid) {
		s32 error = scx_bpf_create_dsq(EARLY, -1);

		if (error)
			return error;
	}
	if (timed) {
		s32 error = create_alarm();

		if (!error)
			error = create_boundaries();
		if (error)
			return error;
	}
	return one_cpu ? 0 : create_homes();
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
