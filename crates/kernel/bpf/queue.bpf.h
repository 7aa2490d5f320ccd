/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: clients wait here in the order of their passes, each represented by one of its
 * tasks (line.bpf.h). Bound tasks wait elsewhere (home.bpf.h).
 *
 * There is one queue for the machine, for each last-level cache or for each CPU. A CPU
 * takes the smallest pass of all queues (head.bpf.h).
 */
#ifndef PRORATA_QUEUE_BPF_H
#define PRORATA_QUEUE_BPF_H

static u32 queue_for(const struct task_struct *p, const struct task *task)
{
	return is_bound(task) ? queue_at(task->own.home) : queue_of(scx_bpf_task_cpu(p));
}

/*
 * Moves a waiting task to its place, in a loop over its queue. The pass follows the move: a
 * CPU that sees the pass finds the task in its new place, or fails to take it from the old
 * one. False if the task no longer waits there, or another CPU has moved it.
 */
static __always_inline bool put_in_place(struct bpf_iter_scx_dsq *waiting, struct task_struct *p,
					 struct task *task, u32 queue, u64 key, u64 pass)
{
	trace_wait(p, task, queue, key);
	scx_bpf_dsq_move_set_vtime___new(waiting, key);
	if (!scx_bpf_dsq_move_vtime___new(waiting, p, queue, 0)) {
		trace_task(TASK_GOES, p, task, queue, key);
		return false;
	}
	task->queued_pass = pass;
	return true;
}

/* A task waits in a queue: an idle CPU takes it. */
static void wake_idle_cpu(const struct task_struct *p)
{
	s32 cpu;

	if (one_cpu)
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

static void wait_in_queue(struct task_struct *p, struct task *task, u64 slice, u64 enq_flags)
{
	u32 queue = queue_for(p, task);
	u64 pass = pass_for(task), key = key_of(entity_of(task), pass);

	task->queued_pass = pass;
	trace_wait(p, task, queue, key);
	note_key(queue, key);
	insert_by_key(p, queue, slice, key, enq_flags);
	wake_idle_cpu(p);
}

#endif
