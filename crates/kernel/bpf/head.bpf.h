/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Heads: the smallest key in each queue of unbound tasks, published for the other CPUs
 * (2001, 4). So a look at another queue costs one load.
 */
#ifndef PRORATA_HEAD_BPF_H
#define PRORATA_HEAD_BPF_H

/* The smallest key in a queue, if a task waits there. Only a hint. */
static struct head {
	u64 pass;
	u32 waits;
	u32 unused;
} heads[ROAMERS];

static struct head *head_of(u32 queue)
{
	return &heads[queue & (ROAMERS - 1)];
}

/* A key has entered a queue. */
static void note_key(u32 queue, u64 key)
{
	struct head *head = head_of(queue);

	if (queues == 1 || queue >= ROAMERS || (head->waits && !before(key, head->pass)))
		return;
	head->pass = key;
	head->waits = 1;
}

/* The key of the first task; false if no task waits. */
static bool first_key(u32 queue, u64 *key)
{
	struct task_struct *p = first_in(queue);

	if (!p)
		return false;
	*key = p->scx.dsq_vtime;
	return true;
}

/* Publishes the first key of a queue. */
static void note_head(u32 queue)
{
	struct head *head = head_of(queue);
	u64 key = 0;

	head->waits = first_key(queue, &key);
	head->pass = key;
}

/* The smallest key that waits, or this pass if that is smaller. Cost: a load for each queue. */
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

/*
 * An entity with this pass has won. All who wait are at least as far, so the present pass is at most
 * `most_owed` behind. If a lesser place waits, the entity won by another order: it was early, or
 * its place was less than its pass because no task waits too long.
 */
static void follow_winner(u64 pass)
{
	s64 lag = pass - present();

	if (lag > (s64)longest)
		return;
	if (before(furthest, pass))
		furthest = pass;
	if (lottery || lag <= (s64)most_owed)
		return;
	lag = least_waiting(pass) - present() - most_owed;
	if (lag > 0)
		ahead += lag;
}

/*
 * The queue with the smallest head, if that comes before the head of `own` and before
 * `rival`'s pass; else `own`.
 */
static u32 best_queue(u32 own, bool has_rival, u64 rival)
{
	struct head *head = head_of(own);
	u64 least = rival;
	u32 best = own, queue;

	if (head->waits && (!has_rival || before(head->pass, least))) {
		least = head->pass;
		has_rival = true;
	}
	bpf_for(queue, 0, queues) {
		head = head_of(queue);
		if (queue == own || !head->waits || (has_rival && !before(head->pass, least)))
			continue;
		least = head->pass;
		has_rival = true;
		best = queue;
	}
	return best;
}

#endif
