/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The words of a timetable's cells (2005, 3.2), and what a service in a slot costs in tickets. It
 * compiles as BPF and natively: tests compare it with the core (slots/word.rs, dispatcher/slots.rs).
 *
 * From the top: schedulee (20 bits), columns to the row's next claimed slot (12), expiry (32). The
 * upper bit of the schedulee tells a gift here: a claim of another user than the schedulee's.
 * Here a word of an unclaimed cell names that distance, too, and no schedulee: a CPU finds the next
 * claimed slot from wherever it looks. The word is zero if no slot of the row is claimed.
 */
#ifndef PRORATA_WORD_H
#define PRORATA_WORD_H

/* A distance of as many columns is packed as zero. */
#define LONGEST_DISTANCE 4096

/* Above the greatest number of a schedulee. */
#define GIFT (1U << 19)

/* The schedulee of a cell in a period, or 0: a claim is valid before the period of its expiry. */
static inline u32 schedulee_of(u64 word, u64 period)
{
	u32 expiry = (u32)word;

	return expiry && period >= expiry ? 0 : word >> 44 & (GIFT - 1);
}

static inline bool is_gift(u64 word)
{
	return word >> 44 & GIFT;
}

static inline u32 distance_of(u64 word)
{
	u32 distance = word >> 32 & (LONGEST_DISTANCE - 1);

	return distance ? distance : LONGEST_DISTANCE;
}

/*
 * How much of a service in slots is charged to an entity: what takes its pass no further ahead of the
 * present one than `furthest`, a wait (c2: one period of the table and two quanta). The rest is outside
 * the economy.
 */
static inline u64 charged_in_slot(u64 service_ns, u64 ahead, u64 furthest, worth_t worth)
{
	s64 room = furthest - ahead;
	u64 room_ns = room > 0 ? service_in(room, worth) : 0;

	return service_ns < room_ns ? service_ns : room_ns;
}

#endif
