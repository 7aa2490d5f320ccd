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

/* Whether turns are cut short for those who wake. */
bool abbreviated;
#define WORTH_A_SWITCH_NS 1000000

/* Tasks that are put in a new order in one go. */
#define REORDERED_AT_ONCE 1024

/* The least pass in a queue, if any waits there; hints for other CPUs. */
static struct head {
	u64 pass;
	u32 waits;
	u32 unused;
} heads[MAX_QUEUES];

/* Pause after that for each of them, so that it takes a few percent of the time. */
#define PAUSE_NS 20000

/* `rises` up to which the order is right, and when to look at that next. */
static u32 ordered_up_to;
static u64 order_next_at;

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

/*
 * Who wakes ends the turn of who runs on its CPU, if it deserves to run more by
 * now: both have used what they are charged for. A turn is not cut short for
 * less than `WORTH_A_SWITCH_NS` of the waking one's service.
 */
static void abbreviate_turn(s32 cpu, const struct task *task)
{
	struct task_struct *runs = __COMPAT_scx_bpf_cpu_curr(cpu);
	struct task *other = runs ? task_of(runs) : NULL;
	u64 pass;

	if (!other || !other->competes)
		return;
	pass = other->pass + wait_for(used_by(runs, other), other->worth);
	if (before(task->pass + wait_for(WORTH_A_SWITCH_NS, task->worth), pass))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
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
 * its turn is to come sooner (1995, 2.3): all are put in their present order.
 * Gives back how many waited.
 */
static __noinline u32 reorder(u32 queue, u64 now)
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
		trace(DECISION_TICKETS, p->pid, moved, worth, 0);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key_of(task));
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
	order_next_at = now + pause;
}

/* Publishes who waits first in a queue. */
static void note_head(u32 queue)
{
	struct head *head = head_of(queue);
	u64 key = 0;

	head->waits = first_key(queue, &key);
	head->pass = key;
}

/*
 * Another CPU's queue whose head has a lesser pass than `key`, or than anything
 * if `anybody` will do: the least of all; `own` if there is none.
 */
static u32 better_queue(u32 own, u64 key, bool anybody)
{
	u32 best = own, queue;

	bpf_for(queue, 0, queues) {
		struct head *head = head_of(queue);

		if (queue == own || !head->waits || (!anybody && !before(head->pass, key)))
			continue;
		key = head->pass;
		anybody = false;
		best = queue;
	}
	return best;
}

/* What is published can be wrong for a while: a CPU without work looks itself. */
static __noinline bool take_any(void)
{
	u32 queue;

	bpf_for(queue, 0, queues) {
		if (scx_bpf_dsq_nr_queued(queue) > 0 && scx_bpf_dsq_move_to_local(queue, 0)) {
			note_head(queue);
			__sync_fetch_and_add(&totals.steals, 1);
			return true;
		}
	}
	return false;
}

/*
 * Moves who waits first in all queues to this CPU, if that is before `pass` or
 * nobody has one (`anybody`).
 */
static bool take_first(u32 own, u64 pass, bool anybody)
{
	u64 key = 0;
	bool waits, deserves;

	/* Looking first costs more than moving. */
	if (queues == 1 && anybody)
		return scx_bpf_dsq_move_to_local(own, 0);
	waits = first_key(own, &key);
	deserves = waits && (anybody || before(key, pass));

	if (queues > 1) {
		u32 best = better_queue(own, deserves ? key : pass, anybody && !deserves);

		head_of(own)->pass = key;
		head_of(own)->waits = waits;
		if (best != own && scx_bpf_dsq_move_to_local(best, 0)) {
			note_head(best);
			__sync_fetch_and_add(&totals.steals, 1);
			return true;
		}
	}
	if (deserves && scx_bpf_dsq_move_to_local(own, 0))
		return true;
	return queues > 1 && anybody && take_any();
}

#endif
