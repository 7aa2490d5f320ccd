/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timetable of the CPUs (2005, 2.1): which client, process or thread runs on a CPU in which slot.
 * The loader makes the map when a table is opened, as large as the table is, and writes the words. A
 * CPU looks at its own row once a boundary (boundary.bpf.h), and decides by what it found (claim.bpf.h).
 *
 * There are two buffers of words. The loader writes one while all CPUs use the other, and then the word
 * that tells from which tick on the buffers change places. So a change takes effect on all CPUs at
 * once, and no CPU waits for a lock.
 */
#ifndef PRORATA_TIMETABLE_BPF_H
#define PRORATA_TIMETABLE_BPF_H

struct table_of_words {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};

/* The open table, if there is one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct table_of_words);
} timetable SEC(".maps");

/* Whether a slot of the table may be claimed. The loader sets this. */
u32 claims;

/* Whether there ever was a claim: tasks may have run in slots. */
u32 had_claims;

/* From one claimed slot to the same one of the next period. The loader sets it. */
u64 period_ns;

enum schedulee_kind {
	NO_SCHEDULEE,
	/* All tasks of a node. */
	CLIENT,
	PROCESS,
	THREAD,
};

/* What `struct task` says of the slot in which it runs. */
enum in_slot {
	NO_SLOT,
	OWN_SLOT,
	/* The slot is a gift of another user, and costs no tickets. */
	GIVEN_SLOT,
};

/* The slot that a CPU is in. Only the CPU's own boundary writes it, but for `has_looked` and below. */
struct slot {
	/* By the monotonic clock. */
	u64 begin_ns;
	u64 until_ns;
	/* When the CPU looks at the table next; 0 if never. */
	u64 due_ns;
	u64 tick;
	/* enum schedulee_kind; NO_SCHEDULEE in an unclaimed slot. */
	u32 kind;
	/* A node, a process or a thread. */
	u32 id;
	/* The schedulee belongs to another user than the claim. */
	bool is_gift;
	/* Whether the CPU has looked for the schedulee. */
	bool has_looked;
	/* Whether the slot before had the same schedulee. */
	bool goes_on;
	/* Whether the schedulee waited when the slot began and has not run yet: its wait is counted. */
	bool is_awaited;
	bool has_run;
	/* A task that has got the CPU and does not run yet, or 0. Further ones wait as others do. */
	u32 comes;
	/* Since when a task of another class runs instead of the schedulee, or 0. */
	u64 stolen_since_ns;
	/* By the CPU's clock: when the fallback is to decide again, and until when it does. */
	u64 others_from;
	u64 others_until;
};

/* So long may claims precede the fallback on a CPU without a break, and so long is the break. */
#define CLAIMED_NS 4000000000ULL
#define OTHERS_NS  20000000ULL

struct slot slots[MAX_CPUS] TABLE;

/* CPUs that are in claimed slots. */
static u32 in_claimed_slots;

static struct slot *slot_at(s32 cpu)
{
	return &slots[cpu & (MAX_CPUS - 1)];
}

/* CPUs in claimed slots look again: a schedulee whose client paused may run. */
__noinline int look_in_slots(void)
{
	u32 cpu;

	if (!in_claimed_slots)
		return 0;
	bpf_for(cpu, 0, cpus) {
		if (slot_at(cpu)->kind)
			scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
	return 0;
}

/* The claimed slot that a CPU is in, or NULL. */
static __always_inline struct slot *slot_on(s32 cpu)
{
	struct slot *slot = slot_at(cpu);

	return slot->kind && before(bpf_ktime_get_ns(), slot->until_ns) ? slot : NULL;
}

/* A word of the open table. The table is looked up each time: no pointer to it outlives a call. */
static __always_inline u64 *table_word(u32 index)
{
	u32 zero = 0;
	void *table = bpf_map_lookup_elem(&timetable, &zero);

	return table ? bpf_map_lookup_elem(table, &index) : NULL;
}

/* The same as a value; 0 if there is no such word, or no table. */
__noinline u64 table_value(u32 index)
{
	u64 *word = table_word(index);

	return word ? *word : 0;
}

/* Two words for each schedulee: kind and number; start. */
static u32 schedulee_from(u32 number)
{
	return TABLE_CELLS_FROM + 2 * (u32)table_value(TABLE_CELLS) + 2 * number;
}

/* One more than the row of a CPU, or 0. */
static u32 row_of(s32 cpu)
{
	return table_value(TABLE_ROWS + (cpu & (MAX_CPUS - 1)));
}

/* A counter of a CPU's row, or NULL. */
static __always_inline u64 *tally_word(s32 cpu, u32 counter)
{
	u32 row = row_of(cpu), from = schedulee_from(SCHEDULEES + 1);

	return row ? table_word(from + (row - 1) * TALLY_WORDS + counter) : NULL;
}

__noinline int tally(s32 cpu, u32 counter, u64 more)
{
	u64 *word = tally_word(cpu, counter);

	if (word)
		__sync_fetch_and_add(word, more);
	return 0;
}

/* A schedulee began to run so late. Only the row's CPU writes the latest time. */
__noinline int tally_late(s32 cpu, u64 late_ns)
{
	u64 *latest = tally_word(cpu, TALLY_LATEST_NS);
	u32 bucket = bucket_of(late_ns);

	if (latest && *latest < late_ns)
		*latest = late_ns;
	if (bucket >= LATENESS_BUCKETS)
		bucket = LATENESS_BUCKETS - 1;
	return tally(cpu, TALLY_HISTOGRAM + bucket, 1);
}

/* In hundredths of a second since boot, as /proc tells it. */
static u32 started_at(const struct task_struct *p)
{
	return p->start_boottime / 10000000;
}

#endif
