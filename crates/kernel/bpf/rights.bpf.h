/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rights: the graph of currencies, which tickets are active, and what
 * everything is worth (1994, 3.3 and 4.4).
 *
 * A node is active as long as its active amount is not zero. Its backing
 * tickets then count in their currencies, so being active travels up the
 * graph, but only when an amount leaves or reaches zero. Nothing is locked:
 *
 * - Amounts are changed by atomic addition. Whoever sees one leave or reach
 *   zero has seen an edge; edges of one amount alternate.
 * - An edge adds to or takes from the node's balance, in the word that also
 *   names its list of tickets. The list counts in its currencies exactly if
 *   the balance is above none. Edges may be worked off in another order than
 *   they happened in, but sums commute: when all are done, the balance is none
 *   or one.
 * - The loader replaces a list in the same word at once, so whether the old
 *   list counted is certain; it then adds the new list before it takes the old
 *   one, lest currencies become inactive in between.
 *
 * Values are worked out on the way of who needs them and then good for
 * `price_lasts_ns`, or until the loader changes something.
 */
#ifndef PRORATA_RIGHTS_BPF_H
#define PRORATA_RIGHTS_BPF_H

struct rights nodes[NODES];
struct ticket tickets[TICKETS];
struct totals totals;

/* Time for which a price is good; the loader sets it. */
u64 price_lasts_ns;

/*
 * Counts what makes prices useless at once: the loader's changes, and amounts
 * that became at least twice or half of what they were. (Who waits at a wrong
 * price is credited at a wrong rate: a millisecond at a thousand times too
 * much is a second.)
 */
static u32 change;

/*
 * Counts those of them by which somebody's value rose: who waits may do so for
 * too long (order.bpf.h).
 */
static u32 rises;

/*
 * Zero, though the verifier does not know: it would follow a count that begins
 * with a known number through every turn of a loop.
 */
static volatile u32 nothing;

/*
 * Functions that the verifier walks once, without knowing their arguments, rather
 * than at each call with what it knows there.
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
 * Works off an edge: 1 if the node became active, -1 if inactive. Gives back
 * the list that now is to count, or not, in its currencies; 0 for none.
 */
static u32 work_off_edge(struct rights *node, s32 edge)
{
	u64 backing = __sync_fetch_and_add(&node->backing, (u64)(u32)edge << 32);
	s32 counted_at = edge > 0 ? 0 : 1;

	return balance_of(backing) == counted_at ? list_of(backing) : 0;
}

/*
 * The amount that is active in a node has changed so much since it was priced
 * that prices of all that it funds are useless.
 */
static void note_change(const struct rights *node, s64 active)
{
	if (active >= 2 * node->priced_active) {
		change++;
	} else if (2 * active <= node->priced_active) {
		change++;
		rises++;
	}
}

/* Changes a node's active amount; gives back the edge that this makes, or 0. */
static s32 change_amount(u32 number, s64 amount)
{
	struct rights *node = node_at(number);
	s64 old = __sync_fetch_and_add(&node->active, amount);
	s64 active = old + amount;

	if (!active)
		return -1;
	/* A base ticket is worth what it is; and where only tasks share, nobody has a price. */
	if (number != BASE && active != node->held)
		note_change(node, active);
	return old ? 0 : 1;
}

/*
 * A list begins (sign 1) or ceases (-1) to count in its currencies, and so on
 * upwards. Cost: the tickets of all nodes that become active or inactive.
 * (A function that the verifier looks at by itself has to return a number.)
 */
__noinline int propagate(u32 list, s32 sign)
{
	/* The lists on the way, each as far as it is done, twice; odd: it ceases. */
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
		/* Nothing left to do here: the way does not get longer. */
		if (here / 2 && level < MAX_LEVELS) {
			way[level & (MAX_LEVELS - 1)] = here;
			level++;
		}
		here = 2 * above + (edge < 0);
	}
	return 0;
}

/* What the tasks inside a node hold changes, because one joins or leaves. */
__noinline int change_held(u32 number, s64 amount)
{
	s32 edge = change_amount(number, amount);
	u32 list = edge ? work_off_edge(node_at(number), edge) : 0;

	if (list)
		propagate(list, edge);
	return 0;
}

static bool is_priced(const struct rights *node, u64 now)
{
	return now - node->priced_at < price_lasts_ns && node->priced_change == change;
}

/* What one ticket of a currency that has a price is worth. */
static worth_t rate_of(const struct rights *currency)
{
	s64 active = currency->priced_active;

	return active > 0 ? quotient(currency->value, worth_of_amount(active)) : 0;
}

/*
 * Works out a node's value. If it needs a currency's whose price is too old, then
 * that first, and begins again: without a record of the way, which the verifier
 * would follow through every turn. Cost: that of as many lists as are on the way,
 * for each currency without a price.
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
