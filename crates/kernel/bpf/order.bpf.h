/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of those who wait, after changes of tickets.
 */
#ifndef PRORATA_ORDER_BPF_H
#define PRORATA_ORDER_BPF_H

/* Tasks that are put in a new order in one go. */
#define REORDERED_AT_ONCE 1024

/* Pause after that for each of them, so that it takes a few percent of the time. */
#define PAUSE_NS 20000

/* `rises` up to which the order is right, and when to look at that next. */
static u32 ordered_up_to;
static u64 order_next_at;

/*
 * Who waits has a pass from when it was queued. If it is worth much more since,
 * its turn is to come sooner (1995, 2.3): all are put in their present order.
 * Gives back how many waited.
 */
static __noinline u32 reorder(u32 queue, u64 now)
{
	struct task_struct *p;
	u32 count = nothing;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);
		struct rights *node;
		u64 key, pass;

		if (++count > REORDERED_AT_ONCE)
			break;
		if (!task || !task->competes)
			continue;
		node = node_at(task->node);
		if (is_alone(task)) {
			if (!is_valued_alone(&task->alone, node, now))
				revalue_alone(&task->alone, task->node, task->held, now);
		} else if (!is_valued(node, now)) {
			revalue(task->node, now);
		}
		key = key_for(task);
		pass = pass_for(task);
		/* The longest wait is shorter, too, when more tickets are active. */
		if (pass == task->queued_pass && !before(key, p->scx.dsq_vtime))
			continue;
		task->queued_pass = pass;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0))
			__sync_fetch_and_add(&totals.reordered, 1);
	}
	return count;
}

static void reorder_if_due(u64 now)
{
	u32 up_to = rises, queue;
	u64 pause = price_lasts_ns;

	if (up_to == ordered_up_to || before(now, order_next_at))
		return;
	ordered_up_to = up_to;
	order_next_at = now + pause;
	bpf_for(queue, 0, queues)
		pause += reorder(queue, now) * PAUSE_NS;
	if (!one_cpu) {
		bpf_for(queue, ROAMERS, residents_of(cpus))
			pause += reorder(queue, now) * PAUSE_NS;
	}
	order_next_at = now + pause;
}

#endif
