/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Early tasks: a task that wakes and received less than it deserved runs before all tasks that
 * only compete (Petrou et al. 1999, 3.1 and 3.3; window.h has the rules). First come tasks that
 * slept in the kernel and may hold one of its locks, then those that received least of what
 * they deserved.
 *
 * The paper multiplies tickets. A pass cannot be multiplied: a client whose pass is always in
 * front owes nothing and still starves the others. So the order of passes stays as it is, and
 * passes move by use as ever. Early tasks wait in a queue of their own, which each CPU looks at
 * first. A node's representative (line.bpf.h) stays where it is meanwhile.
 *
 * A task is early until it sleeps, has received what it deserved, or its client's lead
 * (lead.bpf.h) or its own exceeds the bound. Its own lead protects the client's other tasks: a
 * client that has the whole machine is never ahead. A kernel priority lasts for one turn.
 *
 * One queue serves all CPUs: early tasks are few and run for a short time.
 */
#ifndef PRORATA_EARLY_BPF_H
#define PRORATA_EARLY_BPF_H

/* Early tasks that one look passes over. */
#define MOST_PASSED_OVER 64

#define NICE_0	     120
#define POLICY_BATCH 3

/* Nice and idle tasks are never early: their users ask for less. */
static bool wants_less(const struct task_struct *p)
{
	return p->static_prio > NICE_0 || p->policy == POLICY_IDLE || p->policy == POLICY_BATCH;
}

/*
 * How a task sleeps that stops running. Only an uninterruptible sleep can hold a lock of the
 * kernel. Of those, the kernel tells the ones for a disk.
 */
static u32 kind_of_sleep(const struct task_struct *sleeper)
{
	if (!kernel_priorities)
		return WAKE_USER;
	if (bpf_core_field_exists(sleeper->in_iowait) && BPF_CORE_READ_BITFIELD(sleeper, in_iowait))
		return WAKE_DISK;
	if (bpf_core_field_exists(sleeper->sched_contributes_to_load) &&
	    BPF_CORE_READ_BITFIELD(sleeper, sched_contributes_to_load))
		return WAKE_LOCK;
	return WAKE_USER;
}

/* The task of ours that runs on a CPU which looks for the next one, or where a task wakes. */
static struct task *beside(s32 cpu)
{
	struct task *task;

	if (!one_cpu)
		return running_task_on(cpu);
	task = task_of(bpf_get_current_task_btf());
	return task && task->competes ? task : NULL;
}

/*
 * The service by which a task's client is ahead of the tasks that wait for this CPU, and of the one
 * that runs there. An early task there is left out: it mostly naps, and is due more than it uses.
 */
static u64 lead_over_others(const struct task *task, s32 cpu)
{
	const struct entity *client = &node_at(task->node)->client;
	u64 lead = lead_over_waiting(task->node, cpu), pass = READ_ONCE(client->pass);
	u64 key, over_rival;
	struct task *rival = beside(cpu);

	if (!rival || rival->node == task->node || is_early(rival))
		return lead;
	key = key_of(entity_of(rival), pass_for(rival));
	if (!before(key, pass))
		return lead;
	over_rival = service_of(pass - key, client->worth);
	return over_rival > lead ? over_rival : lead;
}

/* Whether the leads of a task and of its client permit it to be early on this CPU. */
__noinline int is_within_bounds(struct task *task __arg_nonnull, s32 cpu, u64 now)
{
	const struct rights *node = node_at(task->node);
	u64 bound = lead_bound(node), lead = lead_by(task->node, now);

	/* What is worth nothing is behind nobody. */
	if (lead > bound && all_tasks && !lottery && !is_bound(task) &&
	    mantissa_of(node->client.worth))
		lead = at_most(lead, lead_over_others(task, cpu));
	if (traced)
		task->judged_lead_ns = lead;
	return lead <= bound && task->lead_ns <= lead_bound_of(quantum_of(node));
}

/* Makes a task early that slept on this, if it may be. */
static void make_early(struct task *task, s32 cpu, u32 class, u64 arrival, u64 now)
{
	u32 part = FRACTION_ONE;

	if (ticket_boost && class == WAKE_USER)
		part = fraction_after(&task->window, 0);
	task->early = NOT_EARLY;
	if (wakes_early(class, part, 0, 0) && is_within_bounds(task, cpu, now))
		task->early = early_rank(class, part, arrival);
}

/* A waking task that has joined may be early. */
__noinline int consider_early(struct task_struct *p __arg_trusted, struct task *task __arg_nonnull,
			      u64 now)
{
	s32 cpu = one_cpu ? 0 : scx_bpf_task_cpu(p);
	u32 class = task->sleeps_on;

	task->woke_at_ns = task->charged_ns;
	task->sleeps_on = WAKE_USER;
	follow_second(task->node, now);
	advance_window(task, now);
	forgive_progress(task);
	if (!wants_less(p))
		make_early(task, cpu, class, now, now);
	return 0;
}

/*
 * On one CPU: whether the turn that ends was reconsidered. It is true only from the end of the
 * `dispatch` of that turn's task to its `enqueue`.
 */
static bool reconsidered;

static bool is_reconsidered(const struct task_struct *p)
{
	bool was_reconsidered = reconsidered;

	if ((void *)bpf_get_current_task_btf() != p)
		return false;
	reconsidered = false;
	return was_reconsidered;
}

/*
 * A turn has ended, and was charged. Returns whether the task is early now. A task that woke and
 * lost that by its lead may become early again before it sleeps: if two tasks wake one another,
 * one of them may never sleep, because the other one always answers before.
 */
__noinline int reconsider_early(struct task_struct *p __arg_trusted,
				struct task *task __arg_nonnull, u64 now)
{
	u64 used_ns = task->charged_ns - task->woke_at_ns;
	u64 arrival = is_early(task) ? task->early : now;
	s32 cpu = one_cpu ? 0 : scx_bpf_task_cpu(p);

	if (!is_early(task) && used_ns > quantum_of(node_at(task->node)))
		return 0;
	if (wants_less(p))
		task->early = NOT_EARLY;
	else
		make_early(task, cpu, WAKE_USER, arrival, now);
	if (task->early != NOT_EARLY)
		return 1;
	forgive_progress(task);
	return 0;
}

/*
 * Whether an early task gives way to tasks that are bound to its CPU: they wait for no other
 * one. A task that is due a whole CPU is never ahead, and would stay early until it sleeps.
 */
static bool gives_way(const struct task *task, s32 cpu)
{
	u64 used_ns = task->charged_ns - task->woke_at_ns;

	return !one_cpu && used_ns > lead_bound_of(quantum_of(node_at(task->node))) &&
	       (scx_bpf_dsq_nr_queued(residents_of(cpu)) > 0 || scx_bpf_dsq_nr_queued(ROAMERS) > 0);
}

static void wait_among_early(struct task_struct *p, struct task *task, u64 slice, u64 enq_flags)
{
	leave_place(task);
	trace_early(EARLY_WAITS, p, task, EARLY);
	note_use(&early_in_use);
	insert_by_key(p, EARLY, slice, task->early, enq_flags);
	wake_idle_cpu(p);
}

/* A task in the queue is not early any more: it moves to its place among the others. */
static void compete_again(struct bpf_iter_scx_dsq *waiting, struct task_struct *p,
			  struct task *task)
{
	u32 queue;
	u64 pass, key;
	bool moved;

	/* One CPU moves it. */
	if (__sync_lock_test_and_set(&task->early, NOT_EARLY) == NOT_EARLY)
		return;
	forgive_progress(task);
	trace_early(EARLY_ENDS, p, task, EARLY);
	begin_to_wait(p, task);
	if (waits_in_line(task)) {
		scx_bpf_dsq_move_set_vtime___new(waiting, task->progress);
		moved = scx_bpf_dsq_move_vtime___new(waiting, p, LINES + task->node, 0);
	} else {
		queue = queue_for(p, task);
		pass = pass_for(task);
		key = place_of(task, pass);
		moved = put_in_place(waiting, p, task, queue, key, pass);
		note_key(queue, key);
	}
	/* Another CPU has taken it, or the kernel is about to queue it again. */
	if (!moved)
		leave_place(task);
}

/* Moves the first early task that may run here to this CPU, if it precedes a running one. */
__noinline int take_early(s32 cpu, u64 running_early)
{
	u32 passed_over = nothing;
	u64 now = scx_bpf_now();
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, EARLY, 0) {
		struct task *task = task_of(p);

		if (++passed_over > MOST_PASSED_OVER)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (task && task->competes) {
			if (is_held(p, task)) {
				set_aside(BPF_FOR_EACH_ITER, p, task, EARLY);
				continue;
			}
			if (!is_within_bounds(task, cpu, now)) {
				compete_again(BPF_FOR_EACH_ITER, p, task);
				continue;
			}
			if (task->early >= running_early)
				break;
			scx_bpf_task_set_slice(p, slice_until(cpu, entity_of(task)));
		}
		if (!scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0))
			continue;
		if (!one_cpu && task && task->competes)
			trace_early(TASK_TAKEN, p, task, EARLY);
		return 1;
	}
	return 0;
}

/*
 * On one CPU, a task that is not early any more, while another task represents its node: it
 * waits in the node's line, and the queue decides.
 */
static bool waits_for_its_node(const struct task *task)
{
	return one_cpu && task->place == NOWHERE && node_at(task->node)->represented;
}

#endif
