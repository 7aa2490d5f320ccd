/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking the next task out of the queues.
 */
#ifndef PRORATA_TAKE_BPF_H
#define PRORATA_TAKE_BPF_H

/* Looks at one queue whose order turns out to be outdated. */
#define ATTEMPTS 8

/* The result of a look at a queue. */
enum taken {
	NO_TASK,
	TAKEN,
	/* What was found is outdated. Another look may find a task. */
	AGAIN,
};

/*
 * Moves the first task of a queue that may run here to this CPU, if it precedes the rival;
 * or only makes it the rival.
 */
__noinline int take_first(u32 queue, s32 cpu, struct rank *rival __arg_nonnull, bool only_look,
			  u32 attempt)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);
		u64 key = p->scx.dsq_vtime, pass;
		struct rank rank;

		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (!task || !task->competes) {
			if (only_look || (rival->exists && !before(key, rival->key)))
				return NO_TASK;
			return scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0) ? TAKEN
											  : AGAIN;
		}
		if (is_held(p, task)) {
			set_aside(BPF_FOR_EACH_ITER, p, task, queue);
			continue;
		}
		pass = pass_for(task);
		/* The last attempt takes a task even if its place is outdated. */
		if (pass != task->queued_pass && attempt + 1 < ATTEMPTS) {
			key = place_of(task, pass);
			put_in_place(BPF_FOR_EACH_ITER, p, task, queue, key, pass);
			return AGAIN;
		}
		rank = rank_at(task, key);
		if (rival->exists && !precedes(&rank, rival))
			return NO_TASK;
		if (only_look) {
			*rival = rank;
			return TAKEN;
		}
		scx_bpf_task_set_slice(p, slice_until(cpu, entity_of(task)));
		if (!scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0))
			return AGAIN;
		trace_task(pass == task->queued_pass ? TASK_TAKEN : TASK_GOES, p, task, queue, key);
		/* On one CPU it represents its node until its turn has ended. */
		if (!one_cpu)
			leave_place(task);
		return TAKEN;
	}
	return NO_TASK;
}

__noinline int take_from(u32 queue, s32 cpu, struct rank *rival __arg_nonnull, bool only_look)
{
	u32 attempt;

	bpf_for(attempt, 0, ATTEMPTS) {
		int taken = take_first(queue, cpu, rival, only_look, attempt);

		if (taken != AGAIN) {
			if (queues > 1 && queue < ROAMERS)
				note_head(queue);
			return taken == TAKEN;
		}
	}
	return false;
}

/* Published heads can be outdated for a moment, so a CPU without work looks at each queue. */
static bool take_any(s32 cpu, struct rank *rival)
{
	u32 queue;

	bpf_for(queue, 0, queues) {
		if (scx_bpf_dsq_nr_queued(queue) > 0 && take_from(queue, cpu, rival, false)) {
			__sync_fetch_and_add(&totals.steals, 1);
			return true;
		}
	}
	return false;
}

/* Takes an unbound task. */
__noinline int take_unbound(s32 cpu, struct rank *rival __arg_nonnull)
{
	u32 own = queue_of(cpu), best;

	if (queues == 1)
		return take_from(own, cpu, rival, false);
	best = best_queue(own, rival->exists, rival->key);
	if (best != own && take_from(best, cpu, rival, false)) {
		__sync_fetch_and_add(&totals.steals, 1);
		return true;
	}
	if (take_from(own, cpu, rival, false))
		return true;
	return !rival->exists && take_any(cpu, rival);
}

/* Takes any task, on one of several CPUs. */
static bool take_on(s32 cpu, struct rank *rival)
{
	struct rank first = *rival;
	u32 home_queue = 0;

	trace_look();
	if (scx_bpf_dsq_nr_queued(residents_of(cpu)) > 0 &&
	    take_from(residents_of(cpu), cpu, &first, true))
		home_queue = residents_of(cpu);
	if (scx_bpf_dsq_nr_queued(ROAMERS) > 0 && take_from(ROAMERS, cpu, &first, true))
		home_queue = ROAMERS;
	if (take_unbound(cpu, &first))
		return true;
	if (!home_queue)
		return false;
	/* Another CPU may have taken the bound task meanwhile. */
	return take_from(home_queue, cpu, rival, false) || take_unbound(cpu, rival);
}

static bool is_idle_beside(s32 cpu)
{
	return !scx_bpf_dsq_nr_queued(residents_of(cpu)) && !scx_bpf_dsq_nr_queued(ROAMERS) &&
	       !scx_bpf_dsq_nr_queued(queue_of(cpu));
}

/*
 * Whether the first task waits for an allowance, or its node has used service since the task was
 * queued, so that it may have to wait behind others.
 */
static bool is_head_outdated(void)
{
	struct task_struct *p = has_outdated_places || pausing ? first_in(0) : NULL;
	struct task *task = p ? task_of(p) : NULL;

	return task && task->competes && (pass_for(task) != task->queued_pass || is_held(p, task));
}

/* Moves the first task of all queues to this CPU, if it precedes the rival. */
static bool take(s32 cpu, struct rank *rival)
{
	u64 key = 0;

	if (!one_cpu)
		return take_on(cpu, rival);
	if (!queue_in_use)
		return false;
	if (is_head_outdated())
		return take_from(0, cpu, rival, false);
	/* hand_over() has compared the rival with its node's others. A look costs more than a move. */
	if (rival->exists && (!first_key(0, &key) || !before(key, rival->key)))
		return false;
	return move_first_here(0);
}

#endif
