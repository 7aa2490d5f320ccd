/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task or a client deserves and receives in the last ten seconds, and how far its use
 * is ahead of that (Petrou et al. 1999, 3.3). It compiles as BPF and natively: tests compare
 * it with the core (core/src/hybrid), which explains the rules.
 */
#ifndef PRORATA_WINDOW_H
#define PRORATA_WINDOW_H

/* A window has a slot for each of the last ten seconds, the present one included. */
#define SLOTS	10
#define SLOT_NS 1000000000ULL

/* A rate of one CPU. */
#define CPU_BITS 30
#define ONE_CPU	 (1ULL << CPU_BITS)

/* A fraction of one: all that was deserved was received. */
#define FRACTION_BITS 14
#define FRACTION_ONE  (1U << FRACTION_BITS)

/* An early client's lead is at most this, or the quantum if that is longer. */
#define LEAD_BOUND_NS 100000000ULL
/* A lead counts for at most this. */
#define MAX_LEAD_NS (SLOTS * SLOT_NS)

#define ARRIVAL_BITS 46

/* What a task slept on. The order is that of early tasks (1999, 3.1). */
enum wake_class {
	WAKE_LOCK,
	WAKE_DISK,
	WAKE_OTHER,
	/* No kernel priority. */
	WAKE_USER,
};

struct use_window {
	/* Of each slot. */
	u64 received_ns[SLOTS];
	u64 deserved_ns[SLOTS];
	/* Of all slots. */
	u64 all_received_ns;
	u64 all_deserved_ns;
	/* When the task first competed. */
	u64 since_ns;
	/* The time up to which the account is complete, and the end of its slot. */
	u64 until_ns;
	u64 slot_end_ns;
	u32 slot;
	u32 unused;
};

static inline u64 at_most(u64 number, u64 bound)
{
	return number < bound ? number : bound;
}

/* CPU time due for each ns that passes, in 2^-CPU_BITS, at this part of all values. */
static inline u64 due_rate(u32 value, u64 total, u32 cpu_count, u32 threads)
{
	u64 part = total ? ((u64)value << CPU_BITS) / total : 0;

	part = at_most(part, ONE_CPU) * at_most(cpu_count, 1 << 16);
	return at_most(part, at_most(threads, 1 << 16) << CPU_BITS);
}

/* The product is held at its greatest value. (The compiler would multiply in 128 bits.) */
static inline u64 due_in(u64 rate, u64 elapsed_ns)
{
	u64 more = rate > elapsed_ns ? rate : elapsed_ns;
	u64 less = rate > elapsed_ns ? elapsed_ns : rate;
	u64 high, low;

	if (!(more >> 32))
		return (rate * elapsed_ns) >> CPU_BITS;
	high = (more >> 32) * less;
	low = (more & 0xffffffff) * less;
	if (less >> 32 || (high + (low >> 32)) >> 32)
		return ~0ULL >> CPU_BITS;
	return ((high << 32) + low) >> CPU_BITS;
}

static inline struct use_window window_from(u64 now)
{
	u64 slot = now / SLOT_NS;

	return (struct use_window){
		.since_ns = now,
		.until_ns = now,
		.slot_end_ns = (slot + 1) * SLOT_NS,
		.slot = slot % SLOTS,
	};
}

/* The verifier does not know that the slot is one of the window's. */
static inline u32 slot_of(const struct use_window *window)
{
	return window->slot < SLOTS ? window->slot : 0;
}

/* Finds the sums of the slots anew. */
static inline void add_up(struct use_window *window)
{
	u64 received_ns = 0, deserved_ns = 0;
	u32 slot;

	bpf_for(slot, 0, SLOTS) {
		received_ns += window->received_ns[slot];
		deserved_ns += window->deserved_ns[slot];
	}
	window->all_received_ns = received_ns;
	window->all_deserved_ns = deserved_ns;
}

static inline void deserve_until(struct use_window *window, u64 until_ns, u64 rate)
{
	u64 due_ns = due_in(rate, until_ns - window->until_ns);

	window->deserved_ns[slot_of(window)] += due_ns;
	window->all_deserved_ns += due_ns;
	window->until_ns = until_ns;
}

/* The next slot begins. It replaces the one of ten seconds ago. */
static inline void begin_slot(struct use_window *window)
{
	u32 slot = slot_of(window) + 1;

	if (slot >= SLOTS)
		slot = 0;
	window->all_received_ns -= window->received_ns[slot];
	window->all_deserved_ns -= window->deserved_ns[slot];
	window->received_ns[slot] = 0;
	window->deserved_ns[slot] = 0;
	window->slot = slot;
	window->slot_end_ns += SLOT_NS;
}

/* All that is known is out of the window: it begins nine slots before that of `now`. */
static inline void begin_anew(struct use_window *window, u64 now)
{
	u64 since_ns = window->since_ns;
	u64 first = now / SLOT_NS + 1 - SLOTS;

	*window = window_from(first * SLOT_NS);
	window->since_ns = since_ns;
}

/* Ends the present slot, and all others that lie before `now`. */
__noinline int advance_slots(struct use_window *window __arg_nonnull, u64 now, u64 rate)
{
	u32 turn;

	if (now >= window->slot_end_ns + (SLOTS - 1) * SLOT_NS)
		begin_anew(window, now);
	bpf_for(turn, 0, SLOTS) {
		if (now < window->slot_end_ns)
			break;
		deserve_until(window, window->slot_end_ns, rate);
		begin_slot(window);
	}
	return 0;
}

/* Completes the account up to `now`. Returns the time that has passed. */
static inline u64 advance(struct use_window *window, u64 now, u64 rate)
{
	u64 passed_ns = now - window->until_ns;

	if ((s64)passed_ns <= 0)
		return 0;
	if (now >= window->slot_end_ns)
		advance_slots(window, now, rate);
	deserve_until(window, now, rate);
	return passed_ns;
}

/* CPU time was used, up to the time to which the account is complete. */
static inline void receive(struct use_window *window, u64 used_ns)
{
	window->received_ns[slot_of(window)] += used_ns;
	window->all_received_ns += used_ns;
}

/* The part of what was deserved that was received. */
static inline u32 fraction(u64 received_ns, u64 deserved_ns)
{
	received_ns = at_most(received_ns, 1ULL << 50);
	deserved_ns = at_most(deserved_ns, 1ULL << 50);
	return received_ns < deserved_ns ? (received_ns << FRACTION_BITS) / deserved_ns
					 : FRACTION_ONE;
}

/* The same for a window, after some more use. A new task has no boost for a second. */
static inline u32 fraction_after(const struct use_window *window, u64 used_ns)
{
	if (window->until_ns - window->since_ns < SLOT_NS)
		return FRACTION_ONE;
	return fraction(window->all_received_ns + used_ns, window->all_deserved_ns);
}

static inline u64 lead_bound_of(u64 quantum)
{
	return quantum > LEAD_BOUND_NS ? quantum : LEAD_BOUND_NS;
}

static inline u64 drained(u64 lead_ns, u64 due_ns)
{
	return lead_ns > due_ns ? lead_ns - due_ns : 0;
}

static inline u64 risen(u64 lead_ns, u64 used_ns)
{
	return at_most(lead_ns + at_most(used_ns, MAX_LEAD_NS), MAX_LEAD_NS);
}

static inline bool wakes_early(u32 class, u32 part, u64 lead_ns, u64 bound_ns)
{
	return lead_ns <= bound_ns && (class != WAKE_USER || part < FRACTION_ONE);
}

/* The place of an early task: the least runs first. It is below 2^62. */
static inline u64 early_rank(u32 class, u32 part, u64 arrival)
{
	u64 rank = (u64) class << (ARRIVAL_BITS + FRACTION_BITS);

	if (class == WAKE_USER)
		rank |= at_most(part, FRACTION_ONE - 1) << ARRIVAL_BITS;
	return rank | (arrival & ((1ULL << ARRIVAL_BITS) - 1));
}

#endif
