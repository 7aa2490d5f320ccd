/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of waiting tasks after a change of tickets.
 */
#ifndef PRORATA_ORDER_BPF_H
#define PRORATA_ORDER_BPF_H

/* Tasks of a queue that one pass over it puts in order. */
#define REORDERED_AT_ONCE 1024

/* The pause afterwards for each of them, so that reordering takes a few percent of the time. */
#define PAUSE_NS 20000

/* The `rises` that the order includes, and when to check that next. */
static u32 ordered_up_to;
static u64 order_next_at;

/* Whether the present pass is to be the mean of those of all entities. */
static bool is_centered(void)
{
	return one_cpu && all_tasks && !lottery;
}

/* The service by which all clients together are ahead of the present pass. */
static s64 lead_ns;

/* Adds a task's part of its client's lead: all of it if the task represents its node. */
static void count_lead(const struct task *task)
{
	const struct rights *node = node_at(task->node);
	const struct entity *client = &node->client;
	s64 remain = client->pass - present();
	u32 parts = node->has_line || !client->tasks ? 1 : client->tasks;

	if (remain < 0)
		lead_ns -= service_of(-remain, client->worth) / parts;
	else
		lead_ns += service_of(remain, client->worth) / parts;
}

/*
 * In a whole system the present pass is the mean of the passes on the only CPU, each
 * weighted by worth (Stoica et al. 1996: virtual time). Credit that sleepers never use and
 * outdated prices shift it. If all tasks were behind it, a newcomer would wait for them
 * all, and any change of tickets would move their common credit to one task.
 */
static void center_present(void)
{
	if (lead_ns < 0)
		ahead -= wait(common, -lead_ns);
	else
		ahead += wait(common, lead_ns);
}

/*
 * A waiting task stands where its pass was when it was queued. If its worth has risen much
 * since, its turn is to come sooner (1995, 2.3): all tasks move to their present places.
 * Returns how many waited.
 */
__noinline u32 reorder(u32 queue, u64 now)
{
	struct task_struct *p;
	u32 count = nothing;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);
		struct entity *entity;
		u64 key, pass;

		if (++count > REORDERED_AT_ONCE)
			break;
		if (!task || !task->competes)
			continue;
		if (is_centered())
			count_lead(task);
		entity = entity_of(task);
		if (!is_valued(entity, now))
			revalue(entity, now);
		pass = READ_ONCE(entity->pass);
		key = place_of(task, pass);
		/* The bound on waits shrinks, too, when more tickets are active. */
		if (pass == task->queued_pass && !before(key, p->scx.dsq_vtime))
			continue;
		if (put_in_place(BPF_FOR_EACH_ITER, p, task, queue, key, pass))
			__sync_fetch_and_add(&totals.reordered, 1);
	}
	return count;
}

/* Puts the tasks in order if that is due. `prev` is the running task, if it is one of ours. */
static void reorder_if_due(const struct task *prev, u64 now)
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
		/* A representative beside it counts for the node. */
		if (prev && !is_beside_representative(prev))
			count_lead(prev);
		center_present();
	}
	if (!one_cpu) {
		bpf_for(queue, ROAMERS, residents_of(cpus))
			pause += reorder(queue, now) * PAUSE_NS;
	}
	order_next_at = now + pause;
}

#endif
