/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines: unbound tasks wait inside their node in the order of progress, while one of them
 * represents the node in a queue.
 *
 * So a node has one place only, however many tasks it has, and a change of its pass moves
 * one task. A task moves from the line to the queue when it is to represent its node. On
 * one CPU that happens when the turn of the task before it has ended, and the node's place
 * is known. On several CPUs it happens when the task before it begins to run. If the node's
 * pass has moved by the time that its turn comes, it goes back to its new place.
 */
#ifndef PRORATA_LINE_BPF_H
#define PRORATA_LINE_BPF_H

/* Whether a task is to wait in line; if not, it represents its node or is bound. */
static bool waits_in_line(struct task *task)
{
	struct rights *node = node_at(task->node);

	if (task->place == REPRESENTS || is_bound(task) || !node->has_line)
		return false;
	if (__sync_bool_compare_and_swap(&node->represented, 0, 1)) {
		leave_place(task);
		task->place = REPRESENTS;
		return false;
	}
	/* A CPU that was moving the task does not return it. */
	if (__sync_lock_test_and_set(&task->place, IN_LINE) != IN_LINE)
		__sync_fetch_and_add(&node->in_line, 1);
	/* The node's representative may have left before it could see this line. */
	if (!node->represented)
		note_vacancy(task->node);
	return true;
}

static void wait_in_line(struct task_struct *p, const struct task *task, u64 slice, u64 enq_flags)
{
	insert_by_key(p, LINES + task->node, slice, task->progress, enq_flags);
}

/* A task of a line is about to represent its node. False if it is about to leave by itself. */
static bool leave_line(struct task *task)
{
	if (!__sync_bool_compare_and_swap(&task->place, IN_LINE, MOVES))
		return false;
	__sync_fetch_and_add(&node_at(task->node)->in_line, -1);
	return true;
}

/* It could not be moved. If it has left or was queued anew, the next task may have the node's place. */
static void return_to_line(struct task *task)
{
	if (__sync_bool_compare_and_swap(&task->place, MOVES, IN_LINE))
		__sync_fetch_and_add(&node_at(task->node)->in_line, 1);
}

/* It was moved. False if it has left its place since, so that the next task may have that. */
static bool arrive(struct task *task)
{
	return __sync_bool_compare_and_swap(&task->place, MOVES, REPRESENTS);
}

/* Moves a task that has left the line to a queue, or returns it. Whether it represents its node now. */
static __always_inline bool move_to_place(struct bpf_iter_scx_dsq *line, struct task_struct *p,
					  struct task *task, u64 key, u64 pass)
{
	u32 queue = queue_of(scx_bpf_task_cpu(p));

	if (!put_in_place(line, p, task, queue, key, pass)) {
		return_to_line(task);
		return false;
	}
	if (!arrive(task))
		return false;
	note_key(queue, key);
	wake_idle_cpu(p);
	return true;
}

/* How often a line is searched for a task that has waited too long. */
#define SEARCH_NS 1000000000ULL

/*
 * Moves a task from a node's line to a queue if its latest place has passed. While a node receives
 * little, and early tasks take most of that, others are owed many turns: a newcomer has more
 * progress than they, and would wait for all of these. (All tasks of a crowd wait for long.)
 */
__noinline int promote_overdue(u32 number, u64 now)
{
	u32 searched = nothing;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, LINES + number, 0) {
		struct task *task = task_of(p);
		u64 pass, key;

		if (++searched > CROWD)
			break;
		if (!task || !before(task->latest, present()) || !leave_line(task))
			continue;
		pass = pass_for(task);
		key = place_of(task, pass);
		if (move_to_place(BPF_FOR_EACH_ITER, p, task, key, pass))
			return 1;
	}
	node_at(number)->search_at = now + SEARCH_NS;
	return 0;
}

/*
 * Moves the first task of a node's line to a queue, or to this CPU at once, if it has made
 * less progress than this.
 */
__noinline int promote(u32 number, u64 progress, bool any, bool at_once)
{
	struct rights *node = node_at(number);
	u64 now = scx_bpf_now();
	struct task_struct *p;
	int promoted = nothing;

	if (node->client.tasks <= CROWD && !before(now, node->search_at) &&
	    promote_overdue(number, now))
		return 1;

	bpf_for_each(scx_dsq, p, LINES + number, 0) {
		struct task *task = task_of(p);
		u64 pass = READ_ONCE(node->client.pass), key;

		if (!task)
			continue;
		if (!any && !before(task->progress, progress))
			break;
		if (!leave_line(task))
			continue;
		key = place_of(task, pass);
		/* It may have waited for an allowance. */
		if (node->limit)
			scx_bpf_task_set_slice(p, turn_within_limit(node, quantum_of(node)));
		if (at_once && scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0)) {
			arrive(task);
			note_next(task, key);
			promoted = 1;
			break;
		}
		if (move_to_place(BPF_FOR_EACH_ITER, p, task, key, pass)) {
			promoted = 1;
			break;
		}
	}
	return promoted;
}

__noinline int promote_in_vacancies(void)
{
	u32 turn, number;

	bpf_for(turn, 0, 8) {
		struct rights *node;

		if (bpf_map_pop_elem(&vacancies, &number))
			break;
		__sync_fetch_and_add(&vacant, -1);
		number &= NODES - 1;
		node = node_at(number);
		if (!node->in_line || pauses(node) ||
		    !__sync_bool_compare_and_swap(&node->represented, 0, 1))
			continue;
		if (promote(number, 0, true, false))
			continue;
		/* The task is about to enter the line, or about to leave it. */
		vacate(number);
		if (node->in_line)
			break;
	}
	return 0;
}

/* Promotes a task of each node that has a line and no representative. */
static void fill_vacancies(void)
{
	if (vacant)
		promote_in_vacancies();
}

/*
 * The turn of a node's representative has ended, on one CPU. Whether another task of the
 * line represents the node now. If no task waits in the queue, that task runs at once.
 */
static bool hand_over(struct task *task)
{
	if (!one_cpu || task->place != REPRESENTS || !node_at(task->node)->in_line)
		return false;
	if (!promote(task->node, task->progress, false, !queue_waits()))
		return false;
	task->place = NOWHERE;
	return true;
}

#endif
