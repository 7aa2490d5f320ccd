/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Next: on one CPU, a task that is first anyway goes to the CPU's own queue, from which the
 * kernel takes it without another call. While no task waits elsewhere, this concerns
 *
 * - a waking task that precedes the running task by the end of that one's turn;
 * - a task whose turn has ended, behind another task of its node.
 *
 * So two tasks that wake each other, or yield to each other, need no other queue. The price
 * is that the scheduler does not reconsider the order there. One task that wakes later and
 * precedes the task there goes ahead of it; further tasks wait for that turn. They wait for
 * no second turn, because no task goes there while others wait. The same holds for the
 * running task, if it yields before its turn ends. Passes move by what was used, so shares
 * do not change.
 */
#ifndef PRORATA_NEXT_BPF_H
#define PRORATA_NEXT_BPF_H

/*
 * The task that went to the CPU's own queue last, if it may be there still, and alone. (A
 * static variable would be split into its fields, which the kernel refuses.)
 */
struct rank next_here;

/*
 * Whether the task whose turn ends was compared with the others of its node. It is true
 * only from the end of that task's `dispatch` to its `enqueue`: the kernel skips `dispatch`
 * while a task waits in the CPU's own queue.
 */
static bool compared;

static bool is_next_early(void)
{
	return hybrid && next_here.early != NOT_EARLY;
}

static void note_next(const struct task *task, u64 key)
{
	next_here = rank_at(task, key);
}

/* Whether a waking task runs next, after the running task if that is one of ours. */
static bool wakes_next(const struct task *task, struct task *running_task, u64 key, u64 *enq_flags)
{
	s32 waiting = scx_bpf_dsq_nr_queued(DSQ_LOCAL);
	struct rank rank = rank_at(task, key), end;

	if (waiting) {
		if (waiting > 1 || !next_here.exists || is_next_early() ||
		    !before(key, next_here.key))
			return false;
		*enq_flags |= ENQ_HEAD;
	}
	if (!running_task) {
		if (!bpf_get_current_task_btf()->pid)
			__sync_fetch_and_add(&totals.direct, 1);
		return true;
	}
	end = rank_after(running_task, slice_until(0, entity_of(running_task)));
	return !precedes(&end, &rank);
}

/* Whether a task runs next after the one that now replaces it, which is of its node. */
static bool follows_next(const struct task *task, u64 slice)
{
	struct rank rank = rank_at(task, next_here.key), end = next_here;

	if (!next_here.exists || next_here.node != task->node ||
	    scx_bpf_dsq_nr_queued(DSQ_LOCAL) != 1)
		return false;
	end.progress += progress_of(slice, task->held);
	return !precedes(&end, &rank);
}

/* A task represents its node, perhaps instead of the running one; false if another does. */
static bool represents(struct task *task, struct task *running_task)
{
	struct rights *node = node_at(task->node);

	if (task->place == REPRESENTS || !node->has_line)
		return true;
	if (!node->represented) {
		node->represented = true;
	} else {
		if (!running_task || running_task->node != task->node ||
		    running_task->place != REPRESENTS)
			return false;
		running_task->place = NOWHERE;
	}
	task->place = REPRESENTS;
	return true;
}

/* The running task represents its node again, unless another task does. */
static void represent_by(struct task *running_task)
{
	struct rights *node = node_at(running_task->node);

	if (running_task->place != NOWHERE || node->represented || !node->has_line ||
	    is_early(running_task))
		return;
	node->represented = true;
	running_task->place = REPRESENTS;
}

/* The competing task that runs on the only CPU, unless its own turn is what ends. */
static struct task *running_beside(const struct task_struct *p)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task *task = current == p ? NULL : task_of(current);

	return task && task->competes ? task : NULL;
}

/* Whether a task went to the CPU's own queue. */
static bool goes_next(struct task_struct *p, struct task *task, struct task *running_task,
		      u64 slice, u64 enq_flags)
{
	struct rights *node = node_at(task->node);
	u64 key;

	/* At a boundary the kernel would take the task there without a look at the timetable. */
	if (claims)
		return false;
	if (bpf_get_current_task_btf() == p) {
		if (vacant || node->in_line || !follows_next(task, slice) || queue_waits() ||
		    early_waits())
			return false;
		compared = false;
		key = key_of(&node->client, node->client.pass);
	} else {
		if (running_task && running_task->node == task->node)
			represent_by(running_task);
		if (vacant || node->in_line || queue_waits() || early_waits())
			return false;
		key = key_of(&node->client, node->client.pass);
		if (!wakes_next(task, running_task, key, &enq_flags) ||
		    !represents(task, running_task))
			return false;
	}
	note_next(task, key);
	insert(p, DSQ_LOCAL, slice, enq_flags);
	return true;
}

/*
 * Whether a waking early task went to the CPU's own queue. Tasks that wait elsewhere come
 * after it, unless they are early, too.
 */
static bool goes_next_early(struct task_struct *p, struct task *task, u64 slice, u64 enq_flags)
{
	s32 waiting = scx_bpf_dsq_nr_queued(DSQ_LOCAL);

	if (claims || (void *)bpf_get_current_task_btf() == p || early_waits() ||
	    is_overdue(0, scx_bpf_now()))
		return false;
	if (waiting) {
		if (waiting > 1 || !next_here.exists || next_here.early <= task->early)
			return false;
		enq_flags |= ENQ_HEAD;
	}
	leave_place(task);
	trace_early(EARLY_WAITS, p, task, 0);
	/* No other task compares its place with an early task's key. */
	note_next(task, 0);
	insert(p, DSQ_LOCAL, slice, enq_flags);
	return true;
}

/*
 * The turn of a node's representative has ended without a comparison with the node's line.
 * It waits in line, too, until a `dispatch` compares.
 */
static bool steps_back(const struct task_struct *p, struct task *task)
{
	struct rights *node = node_at(task->node);
	bool was_compared = compared;

	if ((void *)bpf_get_current_task_btf() != p)
		return false;
	compared = false;
	if (was_compared || task->place != REPRESENTS || !node->in_line)
		return false;
	node->in_line++;
	node->represented = false;
	task->place = IN_LINE;
	note_vacancy(task->node);
	return true;
}

#endif
