/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranks and slices: which of two tasks runs first, and for how long.
 */
#ifndef PRORATA_RANK_BPF_H
#define PRORATA_RANK_BPF_H

/* Where a task stands in the order of tasks. */
struct rank {
	/* Its place among early tasks, which precede all others, or NOT_EARLY. */
	u64 early;
	/* Its entity's place in a queue. */
	u64 key;
	u64 progress;
	/* Its node; NODES if it is bound, and so shares its entity with no other task. */
	u32 node;
	/* Whether there is such a task. */
	bool exists;
};

/* The place among early tasks after some more service. */
static __always_inline u64 early_after(const struct task *task, u64 service_ns)
{
	u64 early = task->early;

	if (!is_early(task) || early >> (ARRIVAL_BITS + FRACTION_BITS) != WAKE_USER)
		return early;
	return early_rank(WAKE_USER, fraction_after(&task->window, service_ns), early);
}

/* The rank of a task after some more service. */
static __always_inline struct rank rank_after(struct task *task, u64 service_ns)
{
	struct entity *entity = entity_of(task);

	return (struct rank){
		.early = early_after(task, service_ns),
		.key = key_of(entity, READ_ONCE(entity->pass) + wait(entity->stride, service_ns)),
		.progress = task->progress + progress_of(service_ns, task->held),
		.node = is_bound(task) ? NODES : task->node,
		.exists = true,
	};
}

/* The rank of a task with this key. */
static __always_inline struct rank rank_at(const struct task *task, u64 key)
{
	return (struct rank){
		.early = task->early,
		.key = key,
		.progress = task->progress,
		.node = is_bound(task) ? NODES : task->node,
		.exists = true,
	};
}

/*
 * The one order of tasks: early tasks first, then inside a node by progress, else by the keys
 * of their entities. A task precedes no task that is equal.
 */
static bool precedes(const struct rank *a, const struct rank *b)
{
	if (hybrid && a->early != b->early)
		return a->early < b->early;
	if (a->node == b->node && a->node < NODES)
		return before(a->progress, b->progress);
	return before(a->key, b->key);
}

/*
 * Tasks of a node beyond which turns inside it become shorter, so that none of them waits
 * too long. (The kernel ends turns at its tick, every 4 ms or so.)
 */
#define CROWD 64

/*
 * The one rule for slices: how long a task of this entity runs from now on, once a CPU
 * takes it.
 */
static u64 slice_until(s32 cpu, const struct entity *entity)
{
	const struct rights *node = node_at(entity->node);
	u64 turn_ns = quantum_of(node);
	u32 tasks = node->client.tasks + node->bound;

	if (tasks > CROWD)
		turn_ns = turn_ns * CROWD / tasks;
	return node->limit ? turn_within_limit(node, turn_ns) : turn_ns;
}

#endif
