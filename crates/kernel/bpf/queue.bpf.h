/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: where nodes wait in the order of their passes, each represented by one
 * of its tasks; and lines, in which the others wait inside their node, in the
 * order of their progress.
 *
 * So a node stands in one place only, however many tasks it has, and nothing
 * needs moving when that changes. A task comes from the line into the queue
 * when it is to represent its node: on one CPU when the turn of the task before
 * it has ended and the node's place is known; on several CPUs when the one before
 * it begins to run (it then is put behind if its node's pass has moved when its
 * turn comes). Tasks that are bound to some of several CPUs stand for themselves.
 *
 * There is one queue, or one for each CPU, where a CPU takes the least pass of
 * all queues (2001, 4): each queue's least pass is published in `heads`, so
 * that looking at the others costs a load each.
 */
#ifndef PRORATA_QUEUE_BPF_H
#define PRORATA_QUEUE_BPF_H

/* The line inside a node: queues have the numbers below. */
#define LINES 65536

/* CPUs that have a queue of their own; those beyond use the first ones'. */
#define MAX_QUEUES 1024

const volatile u32 queues = 1;

/* Whether turns are cut short for those who wake. */
bool abbreviated;
#define WORTH_A_SWITCH_NS 1000000ULL

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

/*
 * Turns inside a node with more tasks than this are shorter, so that nobody waits
 * for too long. (The kernel ends turns with its tick, every 4 ms or so.)
 */
#define CROWD 64

static u64 turn_of(const struct rights *node)
{
	u32 tasks = node->runnable;

	return tasks > CROWD ? quantum_ns * CROWD / tasks : quantum_ns;
}

/*
 * Where a node stands in a queue: its pass, unless that means too long a wait
 * for one of its tasks.
 */
static u64 key_of(const struct rights *node)
{
	u32 tasks = node->runnable;
	u64 latest = present() + (tasks > 1 ? longest / tasks : longest);

	if (!mantissa_of(node->worth) || before(latest, node->pass))
		return latest;
	return node->pass;
}

/* A key has come into a queue. */
static void note_key(u32 queue, u64 key)
{
	struct head *head = head_of(queue);

	if (queues == 1 || (head->waits && !before(key, head->pass)))
		return;
	head->pass = key;
	head->waits = 1;
}

/* Somebody waits in a queue: a CPU that is idle takes it. */
static void wake_idle_cpu(const struct task_struct *p)
{
	s32 cpu;

	if (one_cpu)
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

/* Whether it is to wait in line; if not, it represents its node, or itself. */
static bool waits_in_line(const struct task_struct *p, struct task *task)
{
	struct rights *node = node_at(task->node);

	if (task->place == REPRESENTS || is_bound(p) || !node->has_line)
		return false;
	if (__sync_bool_compare_and_swap(&node->represented, 0, 1)) {
		leave_place(task);
		task->place = REPRESENTS;
		return false;
	}
	if (task->place != IN_LINE)
		__sync_fetch_and_add(&node->in_line, 1);
	task->place = IN_LINE;
	/* Who represented it may have gone before seeing that there is a line. */
	if (!node->represented)
		note_vacancy(task->node);
	return true;
}

static void wait_in_queue(struct task_struct *p, struct task *task, u64 enq_flags)
{
	const struct rights *node = node_at(task->node);
	u32 queue;
	u64 key;

	if (waits_in_line(p, task)) {
		scx_bpf_dsq_insert_vtime(p, LINES + task->node, turn_of(node), task->progress,
					 enq_flags);
		return;
	}
	queue = queue_of(scx_bpf_task_cpu(p));
	key = key_of(node);
	task->queued_pass = node->pass;
	note_key(queue, key);
	scx_bpf_dsq_insert_vtime(p, queue, turn_of(node), key, enq_flags);
	wake_idle_cpu(p);
}

/*
 * Who waits first in a node's line, if with less progress than this, comes into
 * a queue.
 */
__noinline int promote(u32 number, u64 progress, bool anybody)
{
	struct rights *node = node_at(number);
	struct task_struct *p;
	int promoted = nothing;

	bpf_for_each(scx_dsq, p, LINES + number, 0) {
		struct task *task = task_of(p);
		u32 queue = queue_of(scx_bpf_task_cpu(p));
		u64 key = key_of(node);

		if (!task)
			continue;
		if (!anybody && !before(task->progress, progress))
			break;
		if (!__sync_bool_compare_and_swap(&task->place, IN_LINE, REPRESENTS))
			continue;
		task->queued_pass = node->pass;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0)) {
			__sync_fetch_and_add(&node->in_line, -1);
			note_key(queue, key);
			wake_idle_cpu(p);
			promoted = 1;
			break;
		}
		__sync_bool_compare_and_swap(&task->place, REPRESENTS, IN_LINE);
	}
	return promoted;
}

/* Nodes with a line are represented again. */
static void fill_vacancies(void)
{
	u32 turn, number;

	if (!vacant)
		return;
	bpf_for(turn, 0, 8) {
		struct rights *node;

		if (bpf_map_pop_elem(&vacancies, &number))
			break;
		__sync_fetch_and_add(&vacant, -1);
		number &= NODES - 1;
		node = node_at(number);
		if (!node->in_line || !__sync_bool_compare_and_swap(&node->represented, 0, 1))
			continue;
		if (promote(number, 0, true))
			continue;
		/* It is about to come into the line, or about to leave it. */
		__sync_lock_test_and_set(&node->represented, 0);
		if (node->in_line) {
			note_vacancy(number);
			break;
		}
	}
}

/*
 * The turn of who represented its node on one CPU has ended: whether another one
 * in line represents it now.
 */
static bool hand_over(struct task *task)
{
	if (!one_cpu || task->place != REPRESENTS || !node_at(task->node)->in_line)
		return false;
	if (!promote(task->node, task->progress, false))
		return false;
	task->place = NOWHERE;
	return true;
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
	const struct rights *node, *its_node;
	u64 used_ns, least, pass;

	if (!other || !other->competes)
		return;
	used_ns = used_by(runs, other);
	node = node_at(task->node);
	its_node = node_at(other->node);
	if (node == its_node) {
		least = task->progress + (WORTH_A_SWITCH_NS << PROGRESS_BITS) / (task->held | 1);
		pass = other->progress + (used_ns << PROGRESS_BITS) / (other->held | 1);
	} else {
		least = node->pass + wait(node->stride, WORTH_A_SWITCH_NS);
		pass = its_node->pass + wait(its_node->stride, used_ns);
	}
	if (before(least, pass))
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
		u64 key;

		if (++count > REORDERED_AT_ONCE)
			break;
		if (!task || !task->competes)
			continue;
		node = node_at(task->node);
		if (!is_valued(node, now))
			revalue(task->node, now);
		key = key_of(node);
		/* The longest wait is shorter, too, when more tickets are active. */
		if (node->pass == task->queued_pass && !before(key, p->scx.dsq_vtime))
			continue;
		task->queued_pass = node->pass;
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

/* Who goes on unless another one deserves to run more. */
struct rival {
	u64 pass;
	u64 progress;
	u32 node;
	/* There is none. */
	bool nobody;
};

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

/*
 * Another CPU's queue whose head has a lesser pass than that of `own` and of the
 * rival, if there are any: the least of all; `own` if there is none.
 */
static u32 best_queue(u32 own, const struct rival *rival)
{
	u32 best = own, queue;
	bool anybody = rival->nobody;
	u64 least = rival->pass;
	struct head *head = head_of(own);

	if (head->waits && (anybody || before(head->pass, least))) {
		least = head->pass;
		anybody = false;
	}
	bpf_for(queue, 0, queues) {
		head = head_of(queue);
		if (queue == own || !head->waits || (!anybody && !before(head->pass, least)))
			continue;
		least = head->pass;
		anybody = false;
		best = queue;
	}
	return best;
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
