/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines: who waits inside its node, in the order of progress, while another task
 * represents the node in a queue.
 *
 * So a node stands in one place only, however many tasks it has, and nothing
 * needs moving when that changes. A task comes from the line into the queue
 * when it is to represent its node: on one CPU when the turn of the task before
 * it has ended and the node's place is known; on several CPUs when the one before
 * it begins to run (it then is put behind if its node's pass has moved when its
 * turn comes).
 */
#ifndef PRORATA_LINE_BPF_H
#define PRORATA_LINE_BPF_H

/* The line inside a node: queues have the numbers below. */
#define LINES 65536

/* Whether it is to wait in line; if not, it represents its node, or itself. */
static bool waits_in_line(struct task *task)
{
	struct rights *node = node_at(task->node);

	if (task->place == REPRESENTS || is_alone(task) || !node->has_line)
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

static void wait_in_line(struct task_struct *p, const struct task *task, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(
		p, LINES + task->node, turn_of(node_at(task->node)), task->progress, enq_flags);
}

/* It waits in a queue, where a CPU that is idle takes it. */
static void wait_in_queue(struct task_struct *p, struct task *task, u64 enq_flags)
{
	u32 queue = queue_for(p, task);
	u64 pass = pass_for(task), key = key_for(task, pass);

	task->queued_pass = pass;
	trace_wait(p, task, queue, key);
	note_key(queue, key);
	scx_bpf_dsq_insert_vtime(p, queue, turn_of(node_at(task->node)), key, enq_flags);
	wake_idle_cpu(p);
}

/*
 * Who waits first in a node's line, if with less progress than this, comes into
 * a queue, or onto the CPU at once.
 */
__noinline int promote(u32 number, u64 progress, bool anybody, bool at_once)
{
	struct rights *node = node_at(number);
	struct task_struct *p;
	int promoted = nothing;

	bpf_for_each(scx_dsq, p, LINES + number, 0) {
		struct task *task = task_of(p);
		u32 queue = queue_of(scx_bpf_task_cpu(p));
		u64 pass = READ_ONCE(node->pass), key = key_of(node, pass);

		if (!task)
			continue;
		if (!anybody && !before(task->progress, progress))
			break;
		if (!__sync_bool_compare_and_swap(&task->place, IN_LINE, REPRESENTS))
			continue;
		if (at_once && scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0)) {
			node->in_line--;
			note_next(task, key);
			promoted = 1;
			break;
		}
		task->queued_pass = pass;
		trace_wait(p, task, queue, key);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0)) {
			__sync_fetch_and_add(&node->in_line, -1);
			note_key(queue, key);
			wake_idle_cpu(p);
			promoted = 1;
			break;
		}
		trace_task(TASK_GOES, p, task, queue, key);
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
		if (promote(number, 0, true, false))
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
 * in line represents it now. If nobody waits in the queue, it is to run at once.
 */
static bool hand_over(struct task *task)
{
	if (!one_cpu || task->place != REPRESENTS || !node_at(task->node)->in_line)
		return false;
	if (!promote(task->node, task->progress, false, !scx_bpf_dsq_nr_queued(0)))
		return false;
	task->place = NOWHERE;
	return true;
}

#endif
