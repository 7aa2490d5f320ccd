/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: where tasks wait in the order of their passes.
 *
 * There is one queue, or one for each CPU, where a CPU takes the least pass of
 * all queues (2001, 4): each queue's least pass is published in `heads`, so
 * that looking at the others costs a load each.
 */
#ifndef PRORATA_QUEUE_BPF_H
#define PRORATA_QUEUE_BPF_H

/* CPUs that have a queue of their own; those beyond use the first ones'. */
#define MAX_QUEUES 1024

const volatile u32 queues = 1;

/* Tasks that are put in a new order in one go. */
#define REORDERED_AT_ONCE 1024

/* The least pass in a queue, if any waits there; hints for other CPUs. */
static struct head {
	u64 pass;
	u32 waits;
	u32 unused;
} heads[MAX_QUEUES];

/* `rises` up to which the order is right, and when that was looked at. */
static u32 ordered_up_to;
static u64 ordered_at;

static u32 queue_of(s32 cpu)
{
	return queues > 1 ? (u32)cpu % queues : 0;
}

static struct head *head_of(u32 queue)
{
	return &heads[queue & (MAX_QUEUES - 1)];
}

/* Where a task stands in the queue: its pass, unless that means too long a wait. */
static u64 key_of(const struct task *task)
{
	u64 latest = present() + longest;

	if (!mantissa_of(task->worth) || before(latest, task->pass))
		return latest;
	return task->pass;
}

static void wait_in_queue(struct task_struct *p, const struct task *task, u64 enq_flags)
{
	u32 queue = queue_of(scx_bpf_task_cpu(p));
	u64 key = key_of(task);

	if (queues > 1) {
		struct head *head = head_of(queue);

		if (!head->waits || before(key, head->pass)) {
			head->pass = key;
			head->waits = 1;
		}
	}
	scx_bpf_dsq_insert_vtime(p, queue, quantum_ns, key, enq_flags);
}

/* The key of who waits first; false if nobody does. */
static bool first_key(u32 queue, u64 *key)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(queue);

	if (!p)
		return false;
	*key = p->scx.dsq_vtime;
	return true;
}

/*
 * Who waits has a pass from when it last ran. If it is worth much more since,
 * its turn is to come sooner (1995, 2.3): once a quantum at most, all are put
 * in their present order.
 */
static __noinline void reorder(u32 queue, u64 now)
{
	struct task_struct *p;
	u32 count = nothing;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);
		u64 pass, moved;
		worth_t worth;

		if (++count > REORDERED_AT_ONCE)
			break;
		if (!task || !task->competes)
			continue;
		pass = task->pass;
		worth = price_task(task, now);
		if (worth == task->worth)
			continue;
		moved = present() + keep_remain(pass - present(), task->worth, worth);
		if (!__sync_bool_compare_and_swap(&task->pass, pass, moved))
			continue;
		task->worth = worth;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key_of(task));
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0))
			__sync_fetch_and_add(&totals.reordered, 1);
	}
}

static void reorder_if_due(u64 now)
{
	u32 up_to = rises, queue;

	if (up_to == ordered_up_to || now - ordered_at < price_lasts_ns)
		return;
	ordered_up_to = up_to;
	ordered_at = now;
	bpf_for(queue, 0, queues)
		reorder(queue, now);
}

/* Publishes who waits first in a queue. */
static void note_head(u32 queue)
{
	struct head *head = head_of(queue);
	u64 key = 0;

	head->waits = first_key(queue, &key);
	head->pass = key;
}

/* The queue whose head has the least pass, this CPU's own if none is less. */
static u32 best_queue(u32 own, u64 *key, bool *found)
{
	u32 best = own, queue;

	*found = first_key(own, key);
	if (queues > 1) {
		struct head *head = head_of(own);

		head->pass = *key;
		head->waits = *found;
		bpf_for(queue, 0, queues) {
			head = head_of(queue);
			if (queue == own || !head->waits)
				continue;
			if (*found && !before(head->pass, *key))
				continue;
			*key = head->pass;
			*found = true;
			best = queue;
		}
	}
	return best;
}

#endif
