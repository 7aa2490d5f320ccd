/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking who runs next out of the queues.
 */
#ifndef PRORATA_TAKE_BPF_H
#define PRORATA_TAKE_BPF_H

/* Looks at a queue whose order is found to have changed. */
#define ATTEMPTS 8

/* What came of looking at a queue. */
enum taken {
	NOBODY,
	TAKEN,
	/* The order has changed. */
	AGAIN,
};

/* The node in which who goes on is compared with others by progress. */
static u32 rivals_node(const struct task *task)
{
	return is_alone(task) ? NODES : task->node;
}

static bool comes_first(const struct task *task, u64 key, const struct rival *rival)
{
	return rival->nobody || before(key, rival->pass) ||
	       (!is_alone(task) && task->node == rival->node &&
		before(task->progress, rival->progress));
}

/*
 * Moves who waits first in a queue and may run here to this CPU, if it comes before
 * the rival; or only makes it the rival.
 */
static __noinline enum taken take_first(u32 queue, s32 cpu, struct rival *rival, bool only_look,
					u32 attempt)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		u64 key = p->scx.dsq_vtime, pass;
		struct task *task = task_of(p);

		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (!task || !task->competes) {
			if (only_look || (!rival->nobody && !before(key, rival->pass)))
				return NOBODY;
			return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0) ? TAKEN : AGAIN;
		}
		pass = pass_for(task);
		/* In the last attempt the order is good enough: somebody is to run. */
		if (pass != task->queued_pass && attempt + 1 < ATTEMPTS) {
			key = key_for(task, pass);
			put_in_place(BPF_FOR_EACH_ITER, p, task, queue, key, pass);
			return AGAIN;
		}
		if (!comes_first(task, key, rival))
			return NOBODY;
		if (only_look) {
			rival->pass = key;
			rival->progress = task->progress;
			rival->node = rivals_node(task);
			rival->nobody = false;
			return TAKEN;
		}
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0))
			return AGAIN;
		trace_task(pass == task->queued_pass ? TASK_TAKEN : TASK_GOES, p, task, queue, key);
		leave_place(task);
		return TAKEN;
	}
	return NOBODY;
}

static __noinline bool take_from(u32 queue, s32 cpu, struct rival *rival, bool only_look)
{
	u32 attempt;

	bpf_for(attempt, 0, ATTEMPTS) {
		enum taken taken = take_first(queue, cpu, rival, only_look, attempt);

		if (taken != AGAIN) {
			if (queues > 1 && queue < ROAMERS)
				note_head(queue);
			return taken == TAKEN;
		}
	}
	return false;
}

/* What is published can be wrong for a while: a CPU without work looks itself. */
static __noinline bool take_any(s32 cpu, struct rival *rival)
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

/* Moves who waits first of those that may run everywhere. */
static __noinline bool take_free(s32 cpu, struct rival *rival)
{
	u32 own = queue_of(cpu), best;

	if (queues == 1)
		return take_from(own, cpu, rival, false);
	best = best_queue(own, rival);
	if (best != own && take_from(best, cpu, rival, false)) {
		__sync_fetch_and_add(&totals.steals, 1);
		return true;
	}
	if (take_from(own, cpu, rival, false))
		return true;
	return rival->nobody && take_any(cpu, rival);
}

/* The same of all, on one of several CPUs. */
static bool take_on(s32 cpu, struct rival *rival)
{
	struct rival first = *rival;
	u32 bound = 0;

	trace_look();
	if (scx_bpf_dsq_nr_queued(residents_of(cpu)) > 0 &&
	    take_from(residents_of(cpu), cpu, &first, true))
		bound = residents_of(cpu);
	if (scx_bpf_dsq_nr_queued(ROAMERS) > 0 && take_from(ROAMERS, cpu, &first, true))
		bound = ROAMERS;
	if (take_free(cpu, &first))
		return true;
	if (!bound)
		return false;
	/* Unless another CPU has taken it. */
	return take_from(bound, cpu, rival, false) || take_free(cpu, rival);
}

static bool nobody_waits_for(s32 cpu)
{
	return !scx_bpf_dsq_nr_queued(residents_of(cpu)) && !scx_bpf_dsq_nr_queued(ROAMERS) &&
	       !scx_bpf_dsq_nr_queued(queue_of(cpu));
}

/* Moves who waits first in all queues to this CPU, if it comes before the rival. */
static bool take(s32 cpu, struct rival *rival)
{
	u64 key = 0;

	if (!one_cpu)
		return take_on(cpu, rival);
	/* Looking first costs more than moving. */
	if (!rival->nobody && (!first_key(0, &key) || !before(key, rival->pass)))
		return false;
	return scx_bpf_dsq_move_to_local(0, 0);
}

#endif
