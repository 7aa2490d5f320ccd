/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entities: what competes for a CPU with one pass (1995, 2.2 and Figure 3).
 *
 * The unbound tasks of a node compete together, as the node's client. So what a client
 * receives depends neither on how many tasks it has nor on how they take turns, come and
 * go. A task that is bound to some of several CPUs competes by itself, for the part of its
 * node's value that its tickets are. With one pass for both, it would wait for its CPU
 * until the node has paid for what other tasks received elsewhere.
 *
 * A bound task that is new in a node begins with the pass of the bound task charged last,
 * not a quantum later. So a series of short tasks is served like one long task.
 */
#ifndef PRORATA_ENTITY_BPF_H
#define PRORATA_ENTITY_BPF_H

/* Updates the node's account with what was due to the entity until now. */
static void settle(struct entity *entity)
{
	u64 until = dispensed;
	u64 passed = until - __sync_lock_test_and_set(&entity->settled_at, until);

	if ((s64)passed > 0)
		__sync_fetch_and_add(&node_at(entity->node)->account.specified_ns,
				     service_of(passed, entity->worth));
}

/* Whether worth and stride follow from a valid price of the node. */
static bool is_valued(const struct entity *entity, u64 now)
{
	const struct rights *node = node_at(entity->node);

	return is_priced(node, now) && entity->priced_at == node->priced_at;
}

/* What tickets are worth of all that are active in a node of this value. */
static worth_t part_of(worth_t value, s64 held, s64 active)
{
	if (held >= active)
		return value;
	return product(value,
		       quotient(worth_of_amount(held > 0 ? held : 0), worth_of_amount(active)));
}

/* What the entity's tickets are worth, of those that are active in its node. */
static worth_t worth_of_part(const struct entity *entity, u64 now)
{
	struct rights *node = node_at(entity->node);

	if (!is_priced(node, now))
		price(entity->node, now);
	return part_of(value_of(entity->node), entity->held, node->active);
}

/* What a part of a limited node is worth. */
__noinline u64 worth_within_limit(u32 number, worth_t part)
{
	struct rights *node = node_at(number);
	struct limit *limit = limit_at(node->limit);

	/* All of its tasks together count, not those that run. */
	node->single = 0;
	limit->value = single_of(value_of(number));
	readjust();
	return feasible_part(part, limit);
}

/* Finds worth and stride. */
__noinline int value(struct entity *entity __arg_nonnull, u64 now)
{
	struct rights *node = node_at(entity->node);
	worth_t worth = worth_of_part(entity, now);
	u32 tasks = entity->tasks;

	if (node->limit) {
		worth = worth_within_limit(entity->node, worth);
	} else if (!one_cpu && !entity->home) {
		node->single = single_of(worth) / (tasks ? tasks : 1);
		readjust();
		worth = feasible(worth, tasks);
	}
	entity->priced_at = node->priced_at;
	if (worth == entity->worth)
		return 0;
	entity->worth = worth;
	entity->stride = stride_of(worth);
	return 0;
}

/* The same while the entity competes: what remains of its wait is rescaled. */
__noinline int revalue(struct entity *entity __arg_nonnull, u64 now)
{
	worth_t worth = entity->worth;
	u64 pass = entity->pass, from, moved;

	settle(entity);
	value(entity, now);
	if (entity->worth == worth)
		return 0;
	from = present_at(entity->home);
	moved = from + keep_remain(pass - from, worth, entity->worth);
	__sync_val_compare_and_swap(&entity->pass, pass, moved);
	if (!entity->home)
		trace(DECISION_TICKETS, entity->node, 0, 0);
	return 0;
}

/* The currency of the first ticket that funds a node. A control group has one ticket. */
static struct rights *currency_of(const struct rights *node)
{
	return node_at(ticket_at(list_of(node->backing))->currency);
}

/*
 * Whether siblings of the node have come or gone since its price was found. A task that naps ends
 * turns, and those are valued while it runs. Early tasks do not end for it. So their node would
 * seem to be worth more, if a turn were not valued when it begins, too.
 */
static bool have_siblings_changed(u32 number)
{
	const struct rights *currency = currency_of(node_at(number));

	return currency != &nodes[BASE] && currency->active != currency->priced_active;
}

/* The prices of the node and of its currency are to be found anew. */
static void forget_price(u32 number)
{
	struct rights *node = node_at(number);

	currency_of(node)->priced_change = change - 1;
	node->priced_change = change - 1;
}

/*
 * Whether credit beyond one wait for the longest turns is lost over a sleep. In a whole
 * system many tasks wake, wait for a turn to end, use little and sleep again. The credit
 * for those waits adds up, and spending it at once would stop all other tasks for long.
 * Bound tasks only compete for a few CPUs, where the same holds.
 */
static bool forgets_credit(const struct entity *entity)
{
	return all_tasks || entity->home;
}

/* What remains of a wait once the credit is cut to CUT_CREDIT_QUANTA. */
static s64 limit_credit(s64 remain, struct stride stride)
{
	s64 least = -(s64)wait(stride, CUT_CREDIT_QUANTA * longest_quantum_ns);

	return remain < least ? least : remain;
}

/* The first wait of an entity. */
static s64 first_wait(const struct entity *entity)
{
	const struct rights *node = node_at(entity->node);

	if (!entity->home || !mantissa_of(node->bound_worth))
		return wait_after(quantum_ns, entity->stride);
	return keep_remain(
		node->bound_pass - present_at(node->bound_home), node->bound_worth, entity->worth);
}

__noinline u64 lead_by(u32 number, u64 now);

/*
 * A client that comes back owes no more than this: what it used out of order was due to it while it was
 * away, except for its lead (1999; `run_off` of the core's policies).
 */
static u64 most_owed_by(u32 number, u64 now)
{
	return lead_by(number, now) + quantum_of(node_at(number));
}

/* All others are behind the present pass by what is forgiven, so that moves back. */
static s64 forgive_debt(const struct entity *client, s64 remain, u64 owed_ns)
{
	s64 owed = wait(client->stride, owed_ns);

	if (remain <= owed || !mantissa_of(client->worth))
		return remain;
	ahead -= wait(common, service_of(remain - owed, client->worth));
	return owed;
}

/* The first task of an entity competes. */
__noinline int enter(struct entity *entity __arg_nonnull, u64 now)
{
	worth_t worth = entity->worth;
	s64 remain = held(entity->pass - entity->left_at);
	u64 owed_ns = 0;
	bool known = entity->known;

	entity->settled_at = dispensed;
	value(entity, now);
	remain = known ? keep_remain(remain, worth, entity->worth) : first_wait(entity);
	if (hybrid && known && !lottery && !entity->home) {
		owed_ns = most_owed_by(entity->node, now);
		remain = forgive_debt(entity, remain, owed_ns);
	}
	if (forgets_credit(entity))
		remain = limit_credit(remain, entity->stride);
	entity->known = true;
	entity->pass = present_at(entity->home) + remain;
	if (!entity->home)
		trace(known ? DECISION_JOIN : DECISION_NEW, entity->node, 0, owed_ns);
	return 0;
}

/* A task with these tickets competes as part of the entity. */
static void count_in(struct entity *entity, u32 held, u64 now)
{
	struct rights *node = node_at(entity->node);
	bool first = !__sync_fetch_and_add(&entity->tasks, 1);

	__sync_fetch_and_add(&entity->held, held);
	if (entity->home) {
		__sync_fetch_and_add(&node->bound, 1);
		__sync_fetch_and_add(&node->bound_held, held);
	}
	change_held(entity->node, held);
	if (nice_counts)
		follow_nice(entity->node, held / TICKETS_A_WEIGHT, 1);
	if (first)
		enter(entity, now);
}

static void count_out(struct entity *entity, u32 held)
{
	struct rights *node = node_at(entity->node);

	/* Before other CPUs can see that no task competes. */
	entity->left_at = present_at(entity->home);
	__sync_fetch_and_add(&entity->held, -(s64)held);
	if (entity->home) {
		__sync_fetch_and_add(&node->bound, -1);
		__sync_fetch_and_add(&node->bound_held, -(s64)held);
	}
	if (__sync_fetch_and_add(&entity->tasks, -1) == 1) {
		settle(entity);
		if (!entity->home)
			trace(DECISION_LEAVE, entity->node, 0, 0);
	}
	change_held(entity->node, -(s64)held);
	if (nice_counts)
		follow_nice(entity->node, held / TICKETS_A_WEIGHT, -1);
}

/*
 * On several CPUs a client can be entitled to more than it takes, so its credit has a
 * limit: some quanta of a CPU beyond the smallest pass that waits. The present pass is no
 * measure for that. Clients with few tickets are ahead of it by their long strides, and a
 * client entitled to a whole CPU must be able to overtake them all.
 */
static void forgive_lag(struct entity *client)
{
	u64 least = least_waiting(present()) - wait(client->stride, most_owed_ns / cpus);

	if (before(client->pass, least))
		client->pass = least;
}

/*
 * Turns won by the bound on waits are service beyond what is due. They move the present pass, and
 * all others fall behind it, together. Bounds count from the present pass, so the lag must not
 * grow for ever: all who lag so much rise alike, and their shares hold.
 */
static void forgive_excess(struct entity *client, u64 from)
{
	u64 least = from - longest / 2;

	if (before(client->pass, least))
		client->pass = least;
}

/* Bound tasks that are new in the node begin with this one's pass. */
static void note_bound(const struct entity *entity)
{
	struct rights *node = node_at(entity->node);

	node->bound_pass = entity->pass;
	node->bound_home = entity->home;
	node->bound_worth = entity->worth;
}

/*
 * A task of the entity has used service with which the present pass has moved. An early task, and one in
 * its slot, won by another order than that of passes.
 */
static void charge_entity(struct entity *entity, u32 tid, u64 service_ns, bool out_of_order)
{
	u64 from = present_at(entity->home);

	/* It won with this pass. */
	if (entity->home) {
		if (!out_of_order)
			note_winner(entity->home, entity->pass);
		settle(entity);
	}
	if (!out_of_order && (!entity->home || lottery))
		follow_winner(entity->pass);
	/* As in the core, the next wait of a lottery begins at the present pass. */
	if (lottery && before(entity->pass, from))
		entity->pass = from;
	/* The worth of its turn counts, not that of now. */
	__sync_fetch_and_add(&entity->pass, wait_after(service_ns, entity->stride));
	if (entity->home) {
		note_bound(entity);
	} else {
		if (!lottery)
			forgive_excess(entity, from);
		if (!one_cpu && !lottery)
			forgive_lag(entity);
		trace(DECISION_CHARGE, entity->node, tid, service_ns);
	}
	__sync_fetch_and_add(&node_at(entity->node)->account.received_ns, service_ns);
	__sync_fetch_and_add(&totals.charged_ns, service_ns);
}

/*
 * No other task wanted the CPU, so the lead that a bound task gained there is cut to the
 * wait of a quantum.
 */
static void forgive_lead(struct entity *entity)
{
	u64 furthest_ahead =
		present_at(entity->home) + wait(entity->stride, quantum_of(node_at(entity->node)));

	if (before(furthest_ahead, entity->pass))
		entity->pass = furthest_ahead;
}

/*
 * The place of an entity with this pass in a queue: the pass, unless one of its tasks would
 * wait too long. Without tickets it waits as long as it may.
 */
static u64 key_of(const struct entity *entity, u64 pass)
{
	u32 tasks = entity->tasks;
	u64 latest = present_at(entity->home) + (tasks > 1 ? longest / tasks : longest);

	return !mantissa_of(entity->worth) || before(latest, pass) ? latest : pass;
}

#endif
