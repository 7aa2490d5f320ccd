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

/*
 * On one CPU: whether tasks may wait in the queue and among early tasks. An insertion sets
 * this, and a look that finds no task clears it. So a look at an empty queue costs a load.
 * (On several CPUs a task could enter between the look and the clearing.)
 */
static bool queue_in_use, early_in_use;

static void note_use(bool *in_use)
{
	if (one_cpu)
		*in_use = true;
}

static bool waits_in(u32 queue, bool *in_use)
{
	if (one_cpu && !*in_use)
		return false;
	if (scx_bpf_dsq_nr_queued(queue) > 0)
		return true;
	if (one_cpu)
		*in_use = false;
	return false;
}

/* Whether a task waits in the only queue. */
static bool queue_waits(void)
{
	bool waits = waits_in(0, &queue_in_use);

	if (!waits)
		has_outdated_places = false;
	return waits;
}

/* Whether an early task waits for some CPU. */
static bool early_waits(void)
{
	return hybrid && waits_in(EARLY, &early_in_use);
}

/*
 * A task begins to wait, in a queue or in line. Its latest place holds until it runs: other tasks
 * of its node may move the node's pass meanwhile, and each of them may have waited before it.
 */
static void begin_to_wait(const struct task_struct *p, struct task *task)
{
	u64 ran_ns = p->se.sum_exec_runtime;

	/* The kernel may queue it again, on other CPUs, though it did not run. */
	if (task->ran_ns != ran_ns || !task->waits_since) {
		task->ran_ns = ran_ns;
		task->waits_since = scx_bpf_now();
	}
	task->latest = present_at(entity_of(task)->home) + longest;
}

/*
 * The place of a waiting task in a queue. The tasks of a crowd may all have waited too long, and
 * would keep others from running: for them the bound counts from now.
 */
static u64 place_of(struct task *task, u64 pass)
{
	const struct entity *entity = entity_of(task);
	u64 key = key_of(entity, pass);

	return entity->tasks <= CROWD && before(task->latest, key) ? task->latest : key;
}

static u32 queue_for(const struct task_struct *p, const struct task *task)
{
	return is_bound(task) ? queue_at(task->own.home) : queue_of(scx_bpf_task_cpu(p));
}

/* A task waits in a queue: for its node, unless it is bound. */
static void note_representative(const struct task_struct *p, const struct task *task)
{
	if (!is_bound(task))
		node_at(task->node)->representative = p->pid;
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
	note_use(&queue_in_use);
	scx_bpf_dsq_move_set_vtime___new(waiting, key);
	if (!scx_bpf_dsq_move_vtime___new(waiting, p, queue, 0)) {
		trace_task(TASK_GOES, p, task, queue, key);
		return false;
	}
	task->queued_pass = pass;
	note_representative(p, task);
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

/* How often a CPU looks for an overdue task, while it finds none. */
#define OVERDUE_LOOK_NS 1000000000ULL

/* When each CPU looks for one next. */
static u64 overdue_look_at[MAX_CPUS];

/* For how long a task has waited for a CPU. Below zero if the clocks of CPUs differ. */
static s64 has_waited(const struct task_struct *p, const struct task *task, u64 now)
{
	u64 since = p->sched_info.last_queued;

	/* Else one instruction would read both fields, through two kinds of pointers. */
	barrier_var(since);
	if (task)
		since = task->waits_since;
	return since ? now - since : 0;
}

static __always_inline bool is_first_overdue(u32 queue, u64 now)
{
	struct task_struct *p = first_in(queue);
	struct task *task = p ? task_of(p) : NULL;
	s64 waited_ns = p ? has_waited(p, task, now) : 0;

	if (waited_ns <= (s64)OVERDUE_NS)
		return false;
	if (task)
		trace(TASK_OVERDUE, task->node, p->pid, waited_ns);
	return true;
}

__noinline int find_overdue(s32 cpu, u64 now)
{
	if (is_first_overdue(queue_of(cpu), now))
		return 1;
	if (!one_cpu &&
	    (is_first_overdue(residents_of(cpu), now) || is_first_overdue(ROAMERS, now)))
		return 1;
	overdue_look_at[cpu & (MAX_CPUS - 1)] = now + OVERDUE_LOOK_NS;
	return 0;
}

/*
 * Whether a task that waits for this CPU is overdue, so that no early task runs next. Early tasks
 * precede it only while their clients' leads permit, but beside a client with few tickets that
 * may be for long: a client with nearly all of them hardly ever has a lead.
 */
static bool is_overdue(s32 cpu, u64 now)
{
	return !before(now, overdue_look_at[cpu & (MAX_CPUS - 1)]) && find_overdue(cpu, now);
}

static void wait_in_queue(struct task_struct *p, struct task *task, u64 slice, u64 enq_flags)
{
	u32 queue = queue_for(p, task);
	u64 pass = pass_for(task), key = place_of(task, pass);

	task->queued_pass = pass;
	note_representative(p, task);
	trace_wait(p, task, queue, key);
	note_key(queue, key);
	note_use(&queue_in_use);
	insert_by_key(p, queue, slice, key, enq_flags);
	wake_idle_cpu(p);
}

#endif
