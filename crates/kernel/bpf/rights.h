/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rights: the graph of currencies, its active tickets, and the value of each node (1994,
 * 3.3 and 4.4). It compiles as BPF and natively: tests compare it with the core's ledger.
 *
 * A node is active while its active amount is not zero. Its backing tickets then count in
 * their currencies. So activity spreads up the graph, but only when an amount becomes zero
 * or ceases to be zero: an edge. No lock is needed:
 *
 * - Atomic addition changes amounts. The addition that finds an edge works it off. The
 *   edges of one amount alternate.
 * - An edge adds 1 to the node's balance or subtracts 1. The word that holds the balance
 *   also names the node's list of tickets. The list counts while the balance is positive.
 *   CPUs may work off edges in another order than they occurred. Sums commute, so the
 *   balance is 0 or 1 when all edges are worked off.
 * - The loader replaces a list in that same word, so it knows whether the old list counted.
 *   It adds the new list before it subtracts the old one: otherwise currencies could become
 *   inactive in between.
 *
 * A value is found when it is needed. It stays valid for `price_lasts_ns`, or until the
 * loader changes the graph.
 */
#ifndef PRORATA_RIGHTS_H
#define PRORATA_RIGHTS_H

/*
 * The large tables have a section, and so a map, of their own. The loader makes that map:
 * libbpf would copy 15 MB of zeros into it.
 */
#define TABLE SEC(".bss.tables")

struct rights nodes[NODES] TABLE;
struct ticket tickets[TICKETS] TABLE;
/* Turns of each node by the time waited, in powers of two of 1 ns. */
u32 waits[NODES][BUCKETS] TABLE;
struct limit limits[LIMITS] TABLE;

/* The places from 1 to before this one may hold limits. */
static u32 limits_end = 1;

/* Clients that pause. */
static u32 pausing;

struct totals totals;

/* How long a price is valid. The loader sets it. */
u64 price_lasts_ns;

/*
 * Counts what invalidates all prices at once: changes by the loader, and amounts that
 * doubled or halved. (An entity that waits at a wrong price gets credit at a wrong rate: a
 * millisecond at a thousand times too much is a second.)
 */
static u32 change;

/* Counts the changes that raised a value: waiting tasks may stand too far back then. */
static u32 rises;

/* Fractional bits of what one task is worth. */
#define SINGLE_BITS 16

/* In 2^-SINGLE_BITS base tickets. */
static u64 single_of(worth_t worth)
{
	return scaled(mantissa_of(worth), exponent_of(worth) + SINGLE_BITS);
}

/*
 * Always zero, which the verifier does not know. It would otherwise follow a loop's count
 * from a known number through every iteration.
 */
static volatile u32 nothing;

/*
 * The verifier walks a global function once a program, without knowing its arguments. It
 * walks an inlined copy at each call.
 */
__noinline u64 product(u64 a, u64 b)
{
	return worth_multiply(a, b);
}

__noinline u64 quotient(u64 a, u64 b)
{
	return worth_divide(a, b);
}

__noinline u64 sum_of(u64 a, u64 b)
{
	return worth_add(a, b);
}

__noinline u64 worth_of_amount(u64 amount)
{
	return worth_of(amount);
}

static struct rights *node_at(u32 number)
{
	return &nodes[number & (NODES - 1)];
}

static struct limit *limit_at(u32 place)
{
	return &limits[place & (LIMITS - 1)];
}

/* Whether a client waits for its allowance, see limits.bpf.h. */
static bool pauses(const struct rights *node)
{
	return pausing && node->limit && limit_at(node->limit)->allowance.pauses;
}

static struct ticket *ticket_at(u32 index)
{
	return &tickets[index & (TICKETS - 1)];
}

static u32 next_in_list(const struct ticket *ticket, u32 index)
{
	return ticket->more ? index + 1 : 0;
}

static u32 list_of(u64 backing)
{
	return (u32)backing;
}

static s32 balance_of(u64 backing)
{
	return (s32)(backing >> 32);
}

/*
 * Works off an edge: 1 if the node became active, -1 if inactive. Returns the list that
 * begins or ceases to count in its currencies; 0 for none.
 */
static u32 work_off_edge(struct rights *node, s32 edge)
{
	u64 backing = __sync_fetch_and_add(&node->backing, (u64)(u32)edge << 32);
	s32 counted_at = edge > 0 ? 0 : 1;

	return balance_of(backing) == counted_at ? list_of(backing) : 0;
}

/* Invalidates prices if the active amount has doubled or halved since the node's price. */
static void note_change(const struct rights *node, s64 active)
{
	if (active >= 2 * node->priced_active) {
		change++;
	} else if (2 * active <= node->priced_active) {
		change++;
		rises++;
	}
}

/* Tickets of the node that competing tasks hold. */
static s64 held_in(const struct rights *node)
{
	return node->client.held + node->bound_held;
}

/* Changes a node's active amount. Returns the edge that results, or 0. */
static s32 change_amount(u32 number, s64 amount)
{
	struct rights *node = node_at(number);
	s64 old = __sync_fetch_and_add(&node->active, amount);
	s64 active = old + amount;

	if (!active)
		return -1;
	/* The price of a base ticket is fixed. If only tasks share, no node depends on it. */
	if (number != BASE && active != held_in(node))
		note_change(node, active);
	return old ? 0 : 1;
}

/*
 * A list begins (sign 1) or ceases (-1) to count in its currencies, and so on upwards.
 * Cost: the tickets of all nodes that become active or inactive. (The verifier wants a
 * global function to return a number.)
 */
__noinline int propagate(u32 list, s32 sign)
{
	/* For each unfinished list below: twice its next ticket, plus 1 if it ceases. */
	u32 way[MAX_LEVELS];
	u32 level = nothing;
	u32 here = 2 * list + (sign < 0);

	while (can_loop) {
		u32 index = here / 2, above;
		s32 towards = here & 1 ? -1 : 1, edge;
		struct ticket *ticket;
		struct rights *currency;

		if (!index) {
			if (!level)
				return 0;
			level--;
			here = way[level & (MAX_LEVELS - 1)];
			continue;
		}
		ticket = ticket_at(index);
		currency = node_at(ticket->currency);
		here = 2 * next_in_list(ticket, index) + (here & 1);
		edge = change_amount(ticket->currency, towards * (s64)ticket->amount);
		if (!edge || ticket->currency == BASE)
			continue;
		above = work_off_edge(currency, edge);
		if (!above)
			continue;
		/* A finished list takes no room, so the levels bound the way. */
		if (here / 2 && level < MAX_LEVELS) {
			way[level & (MAX_LEVELS - 1)] = here;
			level++;
		}
		here = 2 * above + (edge < 0);
	}
	return 0;
}

/* The tickets that competing tasks hold in a node change by this amount. */
__noinline int change_held(u32 number, s64 amount)
{
	s32 edge = change_amount(number, amount);
	u32 list = edge ? work_off_edge(node_at(number), edge) : 0;

	if (list)
		propagate(list, edge);
	return 0;
}

/* Replaces the list that funds a node. */
static void fund(u32 number, u32 list)
{
	struct rights *node = node_at(number);
	u64 backing = node->backing;

	while (can_loop) {
		u64 replaced = (backing >> 32 << 32) | list;
		u64 found = __sync_val_compare_and_swap(&node->backing, backing, replaced);

		if (found == backing)
			break;
		backing = found;
	}
	if (balance_of(backing) > 0) {
		if (list)
			propagate(list, 1);
		if (list_of(backing))
			propagate(list_of(backing), -1);
	}
	__sync_fetch_and_add(&change, 1);
	__sync_fetch_and_add(&rises, 1);
}

static bool is_priced(const struct rights *node, u64 now)
{
	return now - node->priced_at < price_lasts_ns && node->priced_change == change;
}

/* What one ticket of a priced currency is worth. */
static worth_t rate_of(const struct rights *currency)
{
	s64 active = currency->priced_active;

	return active > 0 ? quotient(currency->value, worth_of_amount(active)) : 0;
}

/*
 * Finds a node's value. A currency without a valid price comes first; then the search
 * begins again at the node. So it needs no record of the way, which the verifier would
 * follow through every iteration. Cost: for each currency without a price, the lists on
 * the way to it.
 */
__noinline int price(u32 number, u64 now)
{
	u32 here = number;
	u32 list = list_of(node_at(number)->backing);
	worth_t value = nothing;

	while (can_loop) {
		struct ticket *ticket = ticket_at(list);
		struct rights *currency = node_at(ticket->currency);
		worth_t amount;

		if (!list) {
			struct rights *node = node_at(here);

			node->value = value;
			node->priced_active = node->active;
			node->priced_change = change;
			node->priced_at = now;
			if (here == number)
				return 0;
			here = number;
		} else if (ticket->currency != BASE && !is_priced(currency, now)) {
			here = ticket->currency;
		} else {
			amount = worth_of_amount(ticket->amount);
			if (ticket->currency != BASE)
				amount = product(amount, rate_of(currency));
			value = sum_of(value, amount);
			list = next_in_list(ticket, list);
			continue;
		}
		list = list_of(node_at(here)->backing);
		value = nothing;
	}
	return 0;
}

#endif
