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

/* Whether the present pass is to be where those who compete stand in the mean. */
static bool is_centered(void)
{
	return one_cpu && all_tasks && !lottery;
}

/* By how much service clients are ahead of the present pass together, or behind it. */
static s64 lead_ns;

/* Counts a task's part of its node's lead: all of it, if one stands for the node. */
static void count_lead(const struct task *task)
{
	const struct rights *node = node_at(task->node);
	s64 remain = node->pass - present();
	u32 parts = node->has_line || !node->runnable ? 1 : node->runnable;

	if (remain < 0)
		lead_ns -= service_of(-remain, node->worth) / parts;
	else
		lead_ns += service_of(remain, node->worth) / parts;
}

/*
 * In a whole system the present pass is where those who compete on its only CPU stand in
 * the mean, each by what it is worth (Stoica et al. 1996: virtual time). It leaves there
 * by what sleepers are owed and never take, and by prices that were old. If all were
 * behind it, who comes would have to wait for all, and what is owed to all would be
 * another's whenever somebody's tickets change.
 */
static void center_present(void)
{
	if (lead_ns < 0)
		ahead -= wait(common, -lead_ns);
	else
		ahead += wait(common, lead_ns);
}

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
		if (is_centered())
			count_lead(task);
		if (is_alone(task)) {
			if (!is_valued(node, task->alone.worth_priced_at, now))
				revalue_alone(&task->alone, task->node, task->held, now);
		} else if (!is_valued(node, node->worth_priced_at, now)) {
			revalue(task->node, now);
		}
		pass = pass_for(task);
		key = key_for(task, pass);
		/* The longest wait is shorter, too, when more tickets are active. */
		if (pass == task->queued_pass && !before(key, p->scx.dsq_vtime))
			continue;
		if (put_in_place(BPF_FOR_EACH_ITER, p, task, queue, key, pass))
			__sync_fetch_and_add(&totals.reordered, 1);
	}
	return count;
}

/* Of the task that goes on, too, if there is one. */
static void reorder_if_due(const struct task *runs, u64 now)
{
	u32 up_to = rises, queue, count = nothing;
	u64 pause = price_lasts_ns;

	if (up_to == ordered_up_to || before(now, order_next_at))
		return;
	ordered_up_to = up_to;
	order_next_at = now + pause;
	lead_ns = 0;
	bpf_for(queue, 0, queues)
		count += reorder(queue, now);
	pause += count * PAUSE_NS;
	if (is_centered() && count <= REORDERED_AT_ONCE) {
		if (runs)
			count_lead(runs);
		center_present();
	}
	if (!one_cpu) {
		bpf_for(queue, ROAMERS, residents_of(cpus))
			pause += reorder(queue, now) * PAUSE_NS;
	}
	order_next_at = now + pause;
}

#endif
