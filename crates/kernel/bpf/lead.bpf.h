/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leads: how far a client's use is ahead of what it is due (Petrou et al. 1999; window.h has
 * the rules). A lead rises with use. It drains at the client's rate: its part of the values of
 * all clients that competed in the last ten seconds, awake or asleep. So early use is bounded,
 * however a client sleeps.
 *
 * Clients that only sleep take nothing of what they are due. So while a client competes its
 * lead drains by what it is due among those that compete at the moment (its account has that),
 * if that is more. Otherwise programs that wake now and then would make each session of
 * programs that compute look as if it were far ahead.
 *
 * Even so, in a whole system others are due more than they take: they nap for short times, and
 * what they leave goes to those that compute. So there a client whose lead is too high is compared
 * with the tasks that wait: how far is its pass ahead of theirs? Tasks that do not wait lose
 * nothing. (A client's early use moves its pass. So beside any task that waits all the time the
 * client receives no more than the bound beyond its due.)
 *
 * Rates are found once a second, when the client first competes or is charged in it.
 */
#ifndef PRORATA_LEAD_BPF_H
#define PRORATA_LEAD_BPF_H

/* A client counts for at most this, in 2^-SINGLE_BITS base tickets. */
#define MAX_COUNTED (1ULL << 48)

/* Tickets, service and the parts of a rate are counted in these units, to fit 64 bits. */
#define HELD_BITS    6
#define SERVICE_BITS 10
#define PART_BITS    20

/* The present second since boot, and its end. */
static u32 second;
static u64 second_ends_at;

/*
 * By the second in which clients competed last, modulo RING: the sum of their values. A sum that
 * is wrong by a race is soon replaced. (6.18 does not know the bound of a modulo by SLOTS.)
 */
#define RING 16
static s64 competed[RING];

static s64 *competed_in(u32 number)
{
	return &competed[number & (RING - 1)];
}

/* Another second begins. */
__noinline int begin_second(u64 now)
{
	u32 last = second, number = now / SLOT_NS, turn;
	u32 passed = number - last;

	if ((s32)passed <= 0 || !__sync_bool_compare_and_swap(&second, last, number))
		return 0;
	bpf_for(turn, 0, RING) {
		if (turn >= passed)
			break;
		*competed_in(number - turn) = 0;
	}
	second_ends_at = (number + 1) * SLOT_NS;
	return 0;
}

/* The values of all clients that competed in the last ten seconds. */
static u64 all_competed(void)
{
	s64 all = nothing;
	u32 slot;

	bpf_for(slot, 0, SLOTS)
		all += *competed_in(second - slot);
	return all > 0 ? all : 0;
}

/* A part of what all clients are due. */
static u64 rate_of_value(u64 value, u64 all, u32 threads)
{
	u32 shift = all >> 32 ? 32 - zeros_above(all) : 0;

	return due_rate(at_most(value, all) >> shift, all >> shift, online, threads);
}

/* Without unbound tasks the client is due nothing beside what its bound tasks are. */
static __always_inline void settle_if_competing(struct rights *node)
{
	if (node->client.tasks)
		settle(&node->client);
}

/* CPU time for each ns, in 2^-CPU_BITS. */
static u64 rate_in(u64 time_ns, u64 elapsed_ns)
{
	if ((s64)time_ns <= 0 || (s64)elapsed_ns <= 0 || elapsed_ns > 2 * SLOT_NS)
		return 0;
	return (at_most(time_ns, 1ULL << 42) << PART_BITS) / elapsed_ns << (CPU_BITS - PART_BITS);
}

/*
 * What the client's tasks share: what the client was due in the last second among those that
 * competed at the moment. In a whole system it is what the client received, if that is more,
 * because others left it.
 */
static u64 rate_to_share(struct rights *node, u64 now)
{
	struct dues *dues = &node->dues;
	u64 elapsed_ns = now - dues->since, time_ns;

	settle_if_competing(node);
	time_ns = node->account.specified_ns - dues->specified_before_ns;
	dues->specified_before_ns += time_ns;
	dues->since = now;
	if (all_tasks && (s64)time_ns < (s64)(dues->service << SERVICE_BITS))
		time_ns = dues->service << SERVICE_BITS;
	return rate_in(time_ns, elapsed_ns);
}

/*
 * What the node's own tasks are worth, within its limit. Groups inside a control group count by
 * themselves.
 */
static worth_t value_of_tasks(u32 number)
{
	const struct rights *node = node_at(number);
	worth_t value = part_of(value_of(number), held_in(node), node->active);

	return node->limit ? feasible_part(value, limit_at(node->limit)) : value;
}

/* The most that a client is due by its limit, as a rate. */
static u64 most_due(const struct rights *node)
{
	if (!node->limit)
		return ~0ULL;
	return ((u64)limit_at(node->limit)->allowance.max << CPU_BITS) / CPU_THOUSANDTHS;
}

/* The client competes for the first time in this second. */
__noinline int count_client(u32 number, u64 now)
{
	struct rights *node = node_at(number);
	struct dues *dues = &node->dues;
	u32 here = second, last = dues->counted_in;
	u64 value = at_most(single_of(value_of_tasks(number)), MAX_COUNTED), shared;

	if (!__sync_bool_compare_and_swap(&dues->counted_in, last, here))
		return 0;
	if (last && here - last < SLOTS)
		__sync_fetch_and_add(competed_in(last), -(s64)dues->counted);
	__sync_fetch_and_add(competed_in(here), value);
	dues->counted = value;
	dues->rate = at_most(rate_of_value(value, all_competed(), node->tasks), most_due(node));
	shared = rate_to_share(node, now);
	dues->rate_of_tasks = shared > dues->rate ? shared : dues->rate;
	if (dues->service)
		dues->mean_held = dues->held_by_service / dues->service;
	dues->held_by_service = 0;
	dues->service = 0;
	return 0;
}

/* Before the client's rate is used. */
static __always_inline void follow_second(u32 number, u64 now)
{
	if (now >= second_ends_at)
		begin_second(now);
	if (node_at(number)->dues.counted_in != second)
		count_client(number, now);
}

/*
 * The lead up to which a client's tasks are early. Turns that run on several CPUs are charged
 * one after the other, so the lead varies by a quantum for each further CPU.
 */
static u64 lead_bound(const struct rights *node)
{
	u64 quantum = quantum_of(node), others = node->client.tasks + node->bound;

	others = at_most(others ? others - 1 : 0, cpus - 1);
	return lead_bound_of(quantum) + others * quantum;
}

/*
 * The lead by now. Below half of the bound the exact due does not matter. Only a charge keeps
 * the result: what runs at the moment is charged later, and a lead that had drained to nothing
 * before would then count all of that.
 */
__noinline u64 lead_by(u32 number, u64 now)
{
	struct rights *node = node_at(number);
	struct dues *dues = &node->dues;
	u64 passed_ns = now - dues->lead_at, due_ns, specified_ns;

	if ((s64)passed_ns <= 0)
		return dues->lead_ns;
	due_ns = due_in(dues->rate, passed_ns);
	if (dues->lead_ns > due_ns + LEAD_BOUND_NS / 2) {
		settle_if_competing(node);
		specified_ns = node->account.specified_ns - dues->lead_specified_ns;
		if ((s64)specified_ns > (s64)due_ns)
			due_ns = specified_ns;
	}
	return drained(dues->lead_ns, due_ns);
}

/* The smallest place of a task that waits for this CPU, or this pass if that is smaller. */
static u64 least_beside(u64 pass, s32 cpu)
{
	u64 key;

	pass = least_waiting(pass);
	if (one_cpu)
		return pass;
	if (first_key(residents_of(cpu), &key) && before(key, pass))
		pass = key;
	return first_key(ROAMERS, &key) && before(key, pass) ? key : pass;
}

/* The service by which the client's unbound tasks are ahead of the tasks that wait for this CPU. */
__noinline u64 lead_over_waiting(u32 number, s32 cpu)
{
	const struct entity *client = &node_at(number)->client;
	u64 pass = READ_ONCE(client->pass);

	return service_of(pass - least_beside(pass, cpu), client->worth);
}

/* A task of the client used service. A lost update of another CPU's does no harm. */
static __always_inline void raise_lead(u32 number, u64 service_ns, u64 now)
{
	struct rights *node = node_at(number);
	struct dues *dues = &node->dues;

	follow_second(number, now);
	dues->lead_ns = risen(lead_by(number, now), service_ns);
	dues->lead_specified_ns = node->account.specified_ns;
	if (before(dues->lead_at, now))
		dues->lead_at = now;
	dues->service += service_ns >> SERVICE_BITS;
	dues->held_by_service += (u64)(held_in(node) >> HELD_BITS) * (service_ns >> SERVICE_BITS);
}

#endif
