/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Heads: the least pass in each queue of those that may run everywhere, published for
 * other CPUs (2001, 4), so that looking at their queues costs a load each.
 */
#ifndef PRORATA_HEAD_BPF_H
#define PRORATA_HEAD_BPF_H

/* The least pass in a queue, if any waits there: a hint. */
static struct head {
	u64 pass;
	u32 waits;
	u32 unused;
} heads[ROAMERS];

static struct head *head_of(u32 queue)
{
	return &heads[queue & (ROAMERS - 1)];
}

/* A key has come into a queue. */
static void note_key(u32 queue, u64 key)
{
	struct head *head = head_of(queue);

	if (queues == 1 || queue >= ROAMERS || (head->waits && !before(key, head->pass)))
		return;
	head->pass = key;
	head->waits = 1;
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

/* Publishes who waits first in a queue. */
static void note_head(u32 queue)
{
	struct head *head = head_of(queue);
	u64 key = 0;

	head->waits = first_key(queue, &key);
	head->pass = key;
}

/* The least pass of all that wait, or this one if it is less. Cost: a load for each queue. */
static u64 least_waiting(u64 pass)
{
	u64 key;
	u32 queue;

	if (queues == 1)
		return first_key(0, &key) && before(key, pass) ? key : pass;
	bpf_for(queue, 0, queues) {
		const struct head *head = head_of(queue);

		key = head->pass;
		if (head->waits && before(key, pass))
			pass = key;
	}
	return pass;
}

#endif
