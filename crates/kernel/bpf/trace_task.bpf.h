/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records about tasks in the queues of several CPUs. An operation on a queue and its record
 * are not one step, but nothing else happens between them on that CPU:
 *
 * - The record that a task waits precedes its insertion. So the task is in the queue by the
 *   time of the next record of that CPU.
 * - The record that a task was taken follows. The task was in the queue when that CPU began
 *   to look.
 *
 * The ring orders the records of all CPUs. On one CPU there are no such records: the order
 * of decisions suffices (trace.bpf.h).
 */
#ifndef PRORATA_TRACE_TASK_BPF_H
#define PRORATA_TRACE_TASK_BPF_H

static __always_inline struct decision record_of(u32 kind, u32 tid, struct task *task, u32 queue)
{
	const struct entity *entity = entity_of(task);

	return (struct decision){
		.kind = kind,
		.node = task->node,
		.tid = tid,
		.pass = entity->pass,
		.worth = entity->worth,
		.present = present(),
		.queue = queue,
		.bound = is_bound(task),
		.early = hybrid ? task->early : NOT_EARLY,
		.lead_ns =
			is_early(task) ? task->judged_lead_ns : lead_by(task->node, scx_bpf_now()),
		.own_lead_ns = task->lead_ns,
	};
}

static __noinline int tell_of_task(u32 kind, u32 tid, struct task *task, u32 queue, u64 key)
{
	struct decision decision = record_of(kind, tid, task, queue);

	decision.key = key;
	return put(&decision);
}

static __always_inline void trace_task(u32 kind, const struct task_struct *p, struct task *task,
				       u32 queue, u64 key)
{
	if (traced && !one_cpu)
		tell_of_task(kind, p->pid, task, queue, key);
}

/* What the task received and deserved stands in the fields of a key and of service. */
static __noinline int tell_of_early(u32 kind, u32 tid, struct task *task, u32 queue)
{
	const struct use_window *window = &task->window;
	struct decision decision = record_of(kind, tid, task, queue);

	decision.key = window->all_received_ns;
	if (window->until_ns - window->since_ns >= SLOT_NS)
		decision.service_ns = window->all_deserved_ns;
	return put(&decision);
}

static __always_inline void trace_early(u32 kind, const struct task_struct *p, struct task *task,
					u32 queue)
{
	if (!traced)
		return;
	if (!one_cpu && p->migration_disabled)
		kind = TASK_GOES;
	tell_of_early(kind, p->pid, task, queue);
}

static __always_inline void trace_pick(const struct task_struct *p, struct task *task)
{
	if (!traced)
		return;
	tell_of_task(DECISION_PICK, p->pid, task, is_in_slot(task) ? BY_CLAIM : 0, task->latest);
	tell_state_if_asked();
}

/* The other CPUs pass over a task that the kernel holds on its CPU for a moment. */
static __always_inline void trace_wait(const struct task_struct *p, struct task *task, u32 queue,
				       u64 key)
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
