/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nice values (Petrou et al. 1999, 3.4): a client's base tickets are multiplied by a factor, and
 * then bounded. The core has the law (core/src/hybrid/nice.rs); tests compare the two. The ledger's
 * amounts and values stay as they are, and so do those of control groups: inside a group, and inside a
 * client, tasks hold tickets by their nice values.
 *
 * The factor is the mean of the weights of the client's competing tasks. Tasks above nice 0 count only
 * if all are above nice 0. Each node counts the tasks that are not at nice 0, so others cost nothing.
 */
#ifndef PRORATA_NICE_H
#define PRORATA_NICE_H

/* The weight of nice 0: a factor of one. */
#define FACTOR_BITS 10
#define FACTOR_ONE  (1U << FACTOR_BITS)

/* SCHED_IDLE is no nice value: a task counts as one at nice 0. */
#define WEIGHT_OF_IDLE 3

/* Base tickets that bound a client at nice 0: the default funding of a user. */
#define NICE_THRESHOLD 1000

/* A count of tasks, and above it the sum of their weights: one word, to change both at once. */
#define COUNT_BITS 24
#define COUNT_MASK ((1ULL << COUNT_BITS) - 1)

/*
 * By how much nice values change what all competing clients are worth, in 2^-SINGLE_BITS base
 * tickets. The sum has what each node says of itself.
 */
static s64 niced_by;

/* The mean of the weights of so many tasks. */
static inline u32 mean_weight(u64 up, u64 down, u64 tasks)
{
	u64 others, lowered = down & COUNT_MASK;

	if (tasks <= (up & COUNT_MASK))
		return up & COUNT_MASK ? (up >> COUNT_BITS) / (up & COUNT_MASK) : FACTOR_ONE;
	others = tasks - (up & COUNT_MASK);
	/* Other CPUs may be about to count. */
	if (lowered > others)
		others = lowered;
	return (((others - lowered) << FACTOR_BITS) + (down >> COUNT_BITS)) / others;
}

static u32 nice_factor(const struct rights *node)
{
	u64 up = node->niced_up, down = node->niced_down;

	if (!up && !down)
		return FACTOR_ONE;
	return mean_weight(up, down, node->client.tasks + node->bound);
}

static inline bool is_less(worth_t a, worth_t b)
{
	if (exponent_of(a) != exponent_of(b))
		return exponent_of(a) < exponent_of(b);
	return mantissa_of(a) < mantissa_of(b);
}

/* What base tickets become at a factor. */
__noinline u64 niced(u64 value, u32 factor)
{
	worth_t one = to_worth(1U << 31, -31 - FACTOR_BITS), multiplied, bound;

	if (factor == FACTOR_ONE || !mantissa_of(value))
		return value;
	multiplied = product(value, product(worth_of_amount(factor), one));
	bound = product(worth_of_amount((u64)factor * NICE_THRESHOLD), one);
	/* At most the bound above nice 0, at least the bound below. */
	return is_less(multiplied, bound) == (factor < FACTOR_ONE) ? multiplied : bound;
}

/* Says by how much nice values change what the node is worth, in the sum of all. */
static void count_niced(struct rights *node, s64 by)
{
	s64 last = __sync_lock_test_and_set(&node->niced_by, by);

	if (by != last)
		__sync_fetch_and_add(&niced_by, by - last);
}

static bool competes(const struct rights *node)
{
	return node->client.tasks || node->bound;
}

__noinline u64 niced_value(u32 number)
{
	struct rights *node = node_at(number);
	worth_t value = niced(node->value, nice_factor(node));

	count_niced(node, competes(node) ? single_of(value) - single_of(node->value) : 0);
	return value;
}

/* What the tasks of a priced node are worth together. */
static worth_t value_of(u32 number)
{
	const struct rights *node = node_at(number);

	if (!nice_counts || (!node->niced_up && !node->niced_down && !node->niced_by))
		return node->value;
	return niced_value(number);
}

/* A task with this weight has come to a node, or has left it. */
__noinline int follow_nice(u32 number, u32 weight, s32 sign)
{
	struct rights *node = node_at(number);
	u32 factor, last;

	if (number >= CGROUP_NODES)
		return 0;
	if (weight == WEIGHT_OF_IDLE)
		weight = FACTOR_ONE;
	if (weight != FACTOR_ONE) {
		u64 *sums = weight < FACTOR_ONE ? &node->niced_up : &node->niced_down;

		__sync_fetch_and_add(sums, (s64)sign * (((s64)weight << COUNT_BITS) + 1));
	}
	if (!competes(node)) {
		count_niced(node, 0);
		return 0;
	}
	factor = nice_factor(node);
	last = node->nice_factor ? node->nice_factor : FACTOR_ONE;
	if (factor == last)
		return 0;
	/* What its tasks are worth is to be found anew, and soon if that is more. */
	node->nice_factor = factor;
	node->priced_change = change - 1;
	if (factor > last)
		__sync_fetch_and_add(&rises, 1);
	return 0;
}

#endif
