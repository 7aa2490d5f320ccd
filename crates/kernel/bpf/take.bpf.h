/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking who runs next out of the queues.
 */
#ifndef PRORATA_TAKE_BPF_H
#define PRORATA_TAKE_BPF_H

/* What came of looking at a queue. */
enum taken {
	NOBODY,
	TAKEN,
	/* The order has changed. */
	AGAIN,
};

/* Moves who waits first in a queue and may run here to this CPU. */
static __noinline enum taken take_first(u32 queue, s32 cpu, const struct rival *rival)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		u64 key = p->scx.dsq_vtime, pass;
		struct task *task = task_of(p);
		struct rights *node;

		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (!task || !task->competes) {
			if (!rival->nobody && !before(key, rival->pass))
				return NOBODY;
			return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0) ? TAKEN : AGAIN;
		}
		node = node_at(task->node);
		pass = node->pass;
		if (pass != task->queued_pass) {
			task->queued_pass = pass;
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key_of(node));
			scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0);
			return AGAIN;
		}
		if (!rival->nobody && !before(key, rival->pass) &&
		    !(task->node == rival->node && before(task->progress, rival->progress)))
			return NOBODY;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0))
			return AGAIN;
		leave_place(task);
		return TAKEN;
	}
	return NOBODY;
}

static __noinline bool take_from(u32 queue, s32 cpu, const struct rival *rival)
{
	u32 attempt;

	bpf_for(attempt, 0, 8) {
		enum taken taken = take_first(queue, cpu, rival);

		if (taken != AGAIN) {
			if (queues > 1)
				note_head(queue);
			return taken == TAKEN;
		}
	}
	return false;
}

/* What is published can be wrong for a while: a CPU without work looks itself. */
static __noinline bool take_any(s32 cpu, const struct rival *rival)
{
	u32 queue;

	bpf_for(queue, 0, queues) {
		if (scx_bpf_dsq_nr_queued(queue) > 0 && take_from(queue, cpu, rival)) {
			__sync_fetch_and_add(&totals.steals, 1);
			return true;
		}
	}
	return false;
}

/* Moves who waits first in all queues to this CPU, if it comes before the rival. */
static bool take(s32 cpu, const struct rival *rival)
{
	u32 own = queue_of(cpu), best;
	u64 key = 0;

	if (one_cpu) {
		/* Looking first costs more than moving. */
		if (!rival->nobody && (!first_key(own, &key) || !before(key, rival->pass)))
			return false;
		return scx_bpf_dsq_move_to_local(own, 0);
	}
	if (queues == 1)
		return take_from(own, cpu, rival);
	best = best_queue(own, rival);
	if (best != own && take_from(best, cpu, rival)) {
		__sync_fetch_and_add(&totals.steals, 1);
		return true;
	}
	if (take_from(own, cpu, rival))
		return true;
	return rival->nobody && take_any(cpu, rival);
}

#endif
