/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: where nodes wait in the order of their passes, each represented by one
 * of its tasks (line.bpf.h). Tasks that are bound to some of several CPUs wait
 * elsewhere (resident.bpf.h).
 *
 * There is one queue, or one for each CPU or each last-level cache, where a CPU
 * takes the least pass of all queues (head.bpf.h).
 */
#ifndef PRORATA_QUEUE_BPF_H
#define PRORATA_QUEUE_BPF_H

/*
 * Turns inside a node with more tasks than this are shorter, so that nobody waits
 * for too long. (The kernel ends turns with its tick, every 4 ms or so.)
 */
#define CROWD 64

static u64 turn_of(const struct rights *node)
{
	u64 turn_ns = quantum_of(node);
	u32 tasks = node->runnable + node->alone;

	return tasks > CROWD ? turn_ns * CROWD / tasks : turn_ns;
}

/*
 * Where a node with this pass stands in a queue: there, unless that means too long a
 * wait for one of its tasks.
 */
static u64 key_of(const struct rights *node, u64 pass)
{
	u32 tasks = node->runnable;
	u64 latest = present() + (tasks > 1 ? longest / tasks : longest);

	return !mantissa_of(node->worth) || before(latest, pass) ? latest : pass;
}

/*
 * The pass that a task's place follows. It is read once for both a place and
 * `queued_pass`: others of its node move it meanwhile, and if that one were later than
 * the place, nobody would see that the place is old.
 */
static u64 pass_for(const struct task *task)
{
	return is_alone(task) ? task->alone.pass : READ_ONCE(node_at(task->node)->pass);
}

/* Where a task with this pass stands in a queue. */
static u64 key_for(const struct task *task, u64 pass)
{
	return is_alone(task) ? key_alone(&task->alone, pass) : key_of(node_at(task->node), pass);
}

static u32 queue_for(const struct task_struct *p, const struct task *task)
{
	return is_alone(task) ? home_queue_for(p) : queue_of(scx_bpf_task_cpu(p));
}

/*
 * Puts one that waits in a queue in its place there, in a loop over those who do. The pass
 * comes after the place: who sees it sees the task there, or fails to take it from where it
 * was. False if it waits there no more, or somebody else has put it elsewhere.
 */
static __always_inline bool put_in_place(struct bpf_iter_scx_dsq *waiting, struct task_struct *p,
					 struct task *task, u32 queue, u64 key, u64 pass)
{
	trace_wait(p, task, queue, key);
	scx_bpf_dsq_move_set_vtime(waiting, key);
	if (!scx_bpf_dsq_move_vtime(waiting, p, queue, 0)) {
		trace_task(TASK_GOES, p, task, queue, key);
		return false;
	}
	task->queued_pass = pass;
	return true;
}

/* Somebody waits in a queue: a CPU that is idle takes it. */
static void wake_idle_cpu(const struct task_struct *p)
{
	s32 cpu;

	if (one_cpu)
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

/* Who goes on unless another one deserves to run more. */
struct rival {
	u64 pass;
	u64 progress;
	u32 node;
	/* There is none. */
	bool nobody;
};

/*
 * Another CPU's queue whose head has a lesser pass than that of `own` and of the
 * rival, if there are any: the least of all; `own` if there is none.
 */
static u32 best_queue(u32 own, const struct rival *rival)
{
	u32 best = own, queue;
	bool anybody = rival->nobody;
	u64 least = rival->pass;
	struct head *head = head_of(own);

	if (head->waits && (anybody || before(head->pass, least))) {
		least = head->pass;
		anybody = false;
	}
	bpf_for(queue, 0, queues) {
		head = head_of(queue);
		if (queue == own || !head->waits || (!anybody && !before(head->pass, least)))
			continue;
		least = head->pass;
		anybody = false;
		best = queue;
	}
	return best;
}

#endif
