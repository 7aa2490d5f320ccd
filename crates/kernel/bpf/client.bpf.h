/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nodes as clients (1995, 2.2 and Figure 3): the tasks in a node compete as one,
 * with one pass that all of them move, but for those that are bound to CPUs
 * (alone.bpf.h). So what a client receives does not depend on how many tasks it has,
 * how they take turns, or when they come and go.
 */
#ifndef PRORATA_CLIENT_BPF_H
#define PRORATA_CLIENT_BPF_H

/*
 * How far who comes back in a whole system, or to some CPUs that it is bound to, may be
 * behind the present pass, in quanta of those who have the longest.
 */
#define LARGEST_LAG 2

/* Accounts for what was due to the node's tasks until now. */
static void settle(struct rights *node)
{
	u64 until = dispensed;
	u64 passed = until - __sync_lock_test_and_set(&node->settled_at, until);

	if ((s64)passed > 0)
		__sync_fetch_and_add(&node->specified_ns, service_of(passed, node->worth));
}

/* Whether what was worked out from a node's price of then is right still. */
static bool is_valued(const struct rights *node, u64 worth_priced_at, u64 now)
{
	return is_priced(node, now) && worth_priced_at == node->priced_at;
}

/* What those are worth that hold so many of the tickets that are active in a node. */
static worth_t worth_of_part(u32 number, s64 held, u64 now)
{
	struct rights *node = node_at(number);
	s64 active;

	if (!is_priced(node, now))
		price(number, now);
	active = node->active;
	if (held >= active)
		return node->value;
	return product(node->value,
		       quotient(worth_of_amount(held > 0 ? held : 0), worth_of_amount(active)));
}

/* How far behind who waited for others' turns to end can be: a wait. */
static u64 largest_lag(struct stride stride)
{
	return wait(stride, LARGEST_LAG * longest_quantum_ns);
}

/* What remains of the wait of one that is owed no more than that. */
static s64 owed_at_most(s64 remain, struct stride stride)
{
	s64 least = -(s64)largest_lag(stride);

	return remain < least ? least : remain;
}

/* Service is in a node's account. */
static void count_received(struct rights *node, u64 service_ns)
{
	__sync_fetch_and_add(&node->received_ns, service_ns);
	__sync_fetch_and_add(&totals.charged_ns, service_ns);
}

/* Works out what a node's tasks are worth together. */
__noinline int value(u32 number, u64 now)
{
	struct rights *node = node_at(number);
	u32 runnable = node->runnable;
	worth_t worth = worth_of_part(number, node->held - node->alone_held, now);

	if (!one_cpu) {
		node->single = single_of(worth) / (runnable ? runnable : 1);
		readjust();
		worth = feasible(worth, runnable);
	}
	node->worth_priced_at = node->priced_at;
	if (worth == node->worth)
		return 0;
	node->worth = worth;
	node->stride = stride_of(worth);
	return 0;
}

/* The same for one that competes: what remains of its wait changes, too. */
__noinline int revalue(u32 number, u64 now)
{
	struct rights *node = node_at(number);
	worth_t worth = node->worth;
	u64 pass = node->pass, from, moved;

	settle(node);
	value(number, now);
	if (node->worth == worth)
		return 0;
	from = present();
	moved = from + keep_remain(pass - from, worth, node->worth);
	__sync_val_compare_and_swap(&node->pass, pass, moved);
	trace(DECISION_TICKETS, number, 0, 0);
	return 0;
}

/*
 * What remains of the wait of who comes back. In a whole system there are many that wake,
 * wait for others' turns to end, use little and sleep again. What they are owed by that
 * adds up; if one of them could have it all at once, nobody else would run for long. So
 * it is owed no more than what it may have missed by waiting once.
 */
static s64 remain_on_return(const struct rights *node, s64 remain, worth_t worth)
{
	remain = keep_remain(remain, worth, node->worth);
	return all_tasks ? owed_at_most(remain, node->stride) : remain;
}

/* The first of a node's tasks joins. */
__noinline int enter(u32 number, u64 now)
{
	struct rights *node = node_at(number);
	worth_t worth = node->worth;
	s64 remain = held(node->pass - node->left_at);
	bool known = node->known;

	node->settled_at = dispensed;
	value(number, now);
	if (known)
		remain = remain_on_return(node, remain, worth);
	else
		remain = wait_after(quantum_ns, node->stride);
	node->known = true;
	node->pass = present() + remain;
	trace(known ? DECISION_JOIN : DECISION_NEW, number, 0, 0);
	return 0;
}

/* A task that holds so many tickets joins. */
static void count_in(u32 number, u32 held, u64 now)
{
	struct rights *node = node_at(number);
	bool first = !__sync_fetch_and_add(&node->runnable, 1);

	__sync_fetch_and_add(&node->held, held);
	change_held(number, held);
	if (first)
		enter(number, now);
}

static void count_out(u32 number, u32 held)
{
	struct rights *node = node_at(number);

	/* Before others can see that nobody competes. */
	node->left_at = present();
	__sync_fetch_and_add(&node->held, -(s64)held);
	if (__sync_fetch_and_add(&node->runnable, -1) == 1) {
		settle(node);
		trace(DECISION_LEAVE, number, 0, 0);
	}
	change_held(number, -(s64)held);
}

/*
 * On several CPUs a client can be entitled to more than it takes, so what it is owed has a
 * limit: some quanta of a CPU's service beyond what puts it first. Measured from the present
 * pass alone that would not be enough: clients with few tickets stand before it by as much as
 * their long strides are, and who is due a whole CPU could never be before them all.
 */
static void forgive_lag(struct rights *node)
{
	u64 least = least_waiting(present()) - wait(node->stride, most_owed_ns / cpus);

	if (before(node->pass, least))
		node->pass = least;
}

/* One of its tasks has used service that the present pass has moved with. */
static void charge_client(u32 number, u32 tid, u64 service_ns, u64 now)
{
	struct rights *node = node_at(number);

	/* With the pass that it won with. */
	follow_winner(node->pass);
	/* In a race its next wait begins at the present moment, as in the core. */
	if (lottery && before(node->pass, present()))
		node->pass = present();
	/* At what it was worth in its turn. */
	__sync_fetch_and_add(&node->pass, wait_after(service_ns, node->stride));
	if (!one_cpu && !lottery)
		forgive_lag(node);
	trace(DECISION_CHARGE, number, tid, service_ns);
	count_received(node, service_ns);
	if (!is_valued(node, node->worth_priced_at, now))
		revalue(number, now);
}

#endif
