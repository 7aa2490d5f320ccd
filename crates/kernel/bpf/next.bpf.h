/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Next: on one CPU, who is first anyway goes to the CPU's own queue, from which the
 * kernel takes it without asking again. That is, as long as nobody waits elsewhere,
 *
 * - who wakes and deserves to run at the latest when the turn of who runs is over;
 * - whose turn has ended, behind another task of its node.
 *
 * So two that wake each other, or yield to each other, cost no queue. The price: who
 * goes there is not looked at again. Who wakes later goes before it if it has a lesser
 * pass, but only one does; others wait for that turn, and not for a second one, because
 * nobody goes there while somebody waits. Likewise who runs, if it yields before its
 * turn is over. Passes move by what was used, so nobody's share changes.
 */
#ifndef PRORATA_NEXT_BPF_H
#define PRORATA_NEXT_BPF_H

/* Who came to the CPU's own queue last. */
struct {
	u64 key;
	u64 progress;
	u32 node;
	/* Whether it may be there still, and alone. */
	bool known;
} next_here;

/*
 * Whether the task whose turn ends was compared with the others in its node. True from
 * the end of its `dispatch` to its `enqueue` only: the kernel does not ask at the end
 * of a turn if somebody waits in the CPU's own queue.
 */
static bool compared;

static void note_next(const struct task *task, u64 key)
{
	next_here.key = key;
	next_here.progress = task->progress;
	next_here.node = task->node;
	next_here.known = true;
}

/* Whether it wakes to be next, after who runs, if anybody of ours does. */
static bool wakes_next(const struct task *task, const struct task *runs, u64 key, u64 *enq_flags)
{
	s32 waiting = scx_bpf_dsq_nr_queued(DSQ_LOCAL);
	const struct rights *node;
	u64 turn_ns;

	if (waiting) {
		if (waiting > 1 || !next_here.known || !before(key, next_here.key))
			return false;
		*enq_flags |= ENQ_HEAD;
	}
	if (!runs)
		return true;
	node = node_at(runs->node);
	turn_ns = turn_of(node);
	if (runs->node == task->node)
		return !before(runs->progress + progress_of(turn_ns, runs->held), task->progress);
	return !before(node->pass + wait(node->stride, turn_ns), key);
}

/* Whether it is next after the one that will run instead of it. */
static bool follows_next(const struct task *task)
{
	const struct rights *node = node_at(task->node);

	return next_here.known && next_here.node == task->node &&
	       scx_bpf_dsq_nr_queued(DSQ_LOCAL) == 1 &&
	       !before(next_here.progress + progress_of(turn_of(node), task->held), task->progress);
}

/* It represents its node, perhaps instead of who runs; false if somebody else does. */
static bool represents(struct task *task, struct task *runs)
{
	struct rights *node = node_at(task->node);

	if (task->place == REPRESENTS || !node->has_line)
		return true;
	if (!node->represented) {
		node->represented = true;
	} else {
		if (!runs || runs->node != task->node || runs->place != REPRESENTS)
			return false;
		runs->place = NOWHERE;
	}
	task->place = REPRESENTS;
	return true;
}

/* Who runs represents its node again, if nobody else does. */
static void represent_by(struct task *runs)
{
	struct rights *node = node_at(runs->node);

	if (runs->place != NOWHERE || node->represented || !node->has_line)
		return;
	node->represented = true;
	runs->place = REPRESENTS;
}

/* Whose turn it is on the only CPU, if it competes; nobody, if it is its own that ends. */
static struct task *who_runs_beside(const struct task_struct *p)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task *runs = current == p ? NULL : task_of(current);

	return runs && runs->competes ? runs : NULL;
}

/* Whether it went to the CPU's own queue. */
static bool goes_next(struct task_struct *p, struct task *task, struct task *runs, u64 enq_flags)
{
	struct rights *node = node_at(task->node);
	u64 key;

	if (bpf_get_current_task_btf() == p) {
		if (vacant || node->in_line || !follows_next(task) || scx_bpf_dsq_nr_queued(0))
			return false;
		compared = false;
		key = key_of(node, node->pass);
	} else {
		if (runs && runs->node == task->node)
			represent_by(runs);
		if (vacant || node->in_line || scx_bpf_dsq_nr_queued(0))
			return false;
		key = key_of(node, node->pass);
		if (!wakes_next(task, runs, key, &enq_flags) || !represents(task, runs))
			return false;
	}
	note_next(task, key);
	scx_bpf_dsq_insert(p, DSQ_LOCAL, turn_of(node), enq_flags);
	return true;
}

/*
 * The turn of who represents its node has ended, and nobody asked whether another one
 * in line is to represent it: it waits in line, too, until somebody asks.
 */
static bool steps_back(const struct task_struct *p, struct task *task)
{
	struct rights *node = node_at(task->node);
	bool asked = compared;

	if ((void *)bpf_get_current_task_btf() != p)
		return false;
	compared = false;
	if (asked || task->place != REPRESENTS || !node->in_line)
		return false;
	node->in_line++;
	node->represented = false;
	task->place = IN_LINE;
	note_vacancy(task->node);
	return true;
}

#endif
