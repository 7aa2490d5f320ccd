/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bound tasks as clients of their own: a task that is bound to some of several CPUs
 * has a pass of its own, and takes the part of its node's value that its tickets are.
 * What the node's other tasks receive where they may run says nothing about where this
 * one may: with one pass for both, it would wait for its CPU until the node has paid for
 * others'.
 *
 * Who is new in a node begins where the one stands that was charged last, not a quantum
 * later: so a row of short ones is served as one that goes on is.
 */
#ifndef PRORATA_ALONE_BPF_H
#define PRORATA_ALONE_BPF_H

struct alone {
	/* Its place; while it does not compete, seen from the present pass at its home. */
	u64 pass;
	worth_t worth;
	struct stride stride;
	/* The `priced_at` of its node from which these two were worked out. */
	u64 worth_priced_at;
	/* `dispensed` up to which what was due to it is in its node's account. */
	u64 settled_at;
	/* See resident.bpf.h. */
	u32 home;
	/* Whether it is a client of its own now, and whether it was before in its node. */
	bool is;
	bool known;
};

static void settle_alone(struct alone *self, struct rights *node)
{
	u64 until = dispensed;
	s64 passed = until - self->settled_at;

	self->settled_at = until;
	if (passed > 0)
		__sync_fetch_and_add(&node->specified_ns, service_of(passed, self->worth));
}

/* Works out what so many tickets in its node are worth. */
static void value_alone(struct alone *self, u32 number, u32 held, u64 now)
{
	worth_t worth = worth_of_part(number, held, now);

	self->worth_priced_at = node_at(number)->priced_at;
	if (worth == self->worth)
		return;
	self->worth = worth;
	self->stride = stride_of(worth);
}

/* The same for one that competes: what remains of its wait changes, too. */
static void revalue_alone(struct alone *self, u32 number, u32 held_tickets, u64 now)
{
	worth_t worth = self->worth;
	u64 from;

	settle_alone(self, node_at(number));
	value_alone(self, number, held_tickets, now);
	if (self->worth == worth)
		return;
	from = present_at(self->home);
	self->pass = from + keep_remain(self->pass - from, worth, self->worth);
}

/* What remains of the wait of who was charged last in the node, at this worth. */
static s64 remain_of_last(const struct rights *node, const struct alone *self)
{
	s64 remain = node->alone_pass - present_at(node->alone_home);

	if (!mantissa_of(node->alone_worth))
		return wait_after(quantum_of(node), self->stride);
	return keep_remain(remain, node->alone_worth, self->worth);
}

/*
 * One that holds so many tickets joins at a home. It is owed no more than what it may
 * have missed by waiting for others' turns to end.
 */
static void count_in_alone(struct alone *self, u32 number, u32 held_tickets, u32 home, u64 now)
{
	struct rights *node = node_at(number);
	worth_t worth = self->worth;
	s64 remain;

	__sync_fetch_and_add(&node->alone, 1);
	__sync_fetch_and_add(&node->alone_held, held_tickets);
	__sync_fetch_and_add(&node->held, held_tickets);
	change_held(number, held_tickets);
	self->settled_at = dispensed;
	value_alone(self, number, held_tickets, now);
	remain = self->known ? keep_remain(held(self->pass), worth, self->worth)
			     : remain_of_last(node, self);
	self->known = true;
	self->home = home;
	self->pass = present_at(home) + owed_at_most(remain, self->stride);
}

static void count_out_alone(struct alone *self, u32 number, u32 held_tickets)
{
	struct rights *node = node_at(number);

	settle_alone(self, node);
	self->pass -= present_at(self->home);
	__sync_fetch_and_add(&node->alone, -1);
	__sync_fetch_and_add(&node->alone_held, -(s64)held_tickets);
	__sync_fetch_and_add(&node->held, -(s64)held_tickets);
	change_held(number, -(s64)held_tickets);
}

/* It has used service that the present pass has moved with. */
static void charge_alone(struct alone *self, u32 number, u32 held_tickets, u64 service_ns, u64 now)
{
	struct rights *node = node_at(number);
	u64 from = present_at(self->home);

	note_winner(self->home, self->pass);
	settle_alone(self, node);
	if (lottery) {
		follow_winner(self->pass);
		if (before(self->pass, from))
			self->pass = from;
	}
	self->pass += wait_after(service_ns, self->stride);
	node->alone_pass = self->pass;
	node->alone_home = self->home;
	node->alone_worth = self->worth;
	count_received(node, service_ns);
	if (!is_valued(node, self->worth_priced_at, now))
		revalue_alone(self, number, held_tickets, now);
}

/*
 * Nobody else wanted the CPU: what it used of that it need not wait for, beyond a
 * quantum's wait.
 */
static void forgive_lead(struct alone *self, const struct rights *node)
{
	u64 furthest_ahead = present_at(self->home) + wait(self->stride, quantum_of(node));

	if (before(furthest_ahead, self->pass))
		self->pass = furthest_ahead;
}

/* Where it stands in a queue with this pass: there, unless that means too long a wait. */
static u64 key_alone(const struct alone *self, u64 pass)
{
	u64 latest = present_at(self->home) + longest;

	return !mantissa_of(self->worth) || before(latest, pass) ? latest : pass;
}

#endif
