/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPU time that a limited client may use now: a token bucket in integers. It compiles as
 * BPF and natively: tests compare it with the core (core/src/allowance.rs), which explains the
 * rules.
 *
 * Several CPUs may charge one allowance at the same time. Each change is one atomic addition,
 * so no use is lost. The CPU that moves `since_ns` forward adds what was regained meanwhile.
 */
#ifndef PRORATA_ALLOWANCE_H
#define PRORATA_ALLOWANCE_H

/* A client that has exhausted its allowance pauses until the next multiple of this time. */
#define PERIOD_NS 100000000ULL

#define CPU_THOUSANDTHS 1000

/* Less than one in so many parts of a full allowance is left for the next period. */
#define LEAST_PART 100

/* A debt counts up to this, some 26 days of CPU time. */
#define MOST_DEBT (1LL << 61)

struct allowance {
	/* In thousandths of a nanosecond of CPU time; a debt is below zero. */
	s64 left;
	/* It has regained what it was due until then. */
	u64 since_ns;
	/* The limit in thousandths of a CPU; 0 is none. */
	u32 max;
	/* Whether the client pauses. */
	u32 pauses;
};

static inline s64 full_allowance(u32 max)
{
	return max * PERIOD_NS;
}

/* Cuts what is more than a full allowance; `left` is what was found. */
static inline void cut_to_full(struct allowance *allowance, s64 left)
{
	s64 full = full_allowance(allowance->max);

	if (left > full)
		__sync_fetch_and_add(&allowance->left, full - left);
}

static inline void begin_allowance(struct allowance *allowance, u32 max, u64 now)
{
	allowance->max = max;
	allowance->left = full_allowance(max);
	allowance->since_ns = now;
	allowance->pauses = 0;
}

/* From now on another limit holds. A debt stays. */
static inline void change_max(struct allowance *allowance, u32 max)
{
	allowance->max = max;
	cut_to_full(allowance, allowance->left);
}

static inline void spend(struct allowance *allowance, u64 used_ns)
{
	u64 used = at_most(used_ns, MOST_DEBT / CPU_THOUSANDTHS) * CPU_THOUSANDTHS;
	s64 left = __sync_fetch_and_add(&allowance->left, -(s64)used) - (s64)used;

	if (left < -MOST_DEBT)
		__sync_fetch_and_add(&allowance->left, -MOST_DEBT - left);
}

/* Regains what is due until now. */
static inline void regain(struct allowance *allowance, u64 now)
{
	u64 since = allowance->since_ns, elapsed_ns = now - since, max = allowance->max, regained;
	s64 missing;

	if (now <= since || !max || !__sync_bool_compare_and_swap(&allowance->since_ns, since, now))
		return;
	/* The most that is counted fills any allowance. */
	regained = elapsed_ns < 2 * MOST_DEBT / max ? elapsed_ns * max : 2 * MOST_DEBT;
	/* Never more than full, not even for a moment: another CPU would cut that a second time. */
	missing = full_allowance(max) - allowance->left;
	if (missing > 0)
		__sync_fetch_and_add(&allowance->left, at_most(regained, missing));
}

static inline bool is_exhausted(const struct allowance *allowance)
{
	s64 least = (u64)full_allowance(allowance->max) / LEAST_PART;

	return allowance->left <= least;
}

/* For how long the client may run on so many CPUs. */
static inline u64 allowance_lasts_ns(const struct allowance *allowance, u32 cpu_count)
{
	u64 rate = (u64)cpu_count * CPU_THOUSANDTHS, max = allowance->max, drain = rate - max;
	s64 left = allowance->left;

	if (rate <= max)
		return ~0ULL;
	return left > 0 ? ((u64)left + drain - 1) / drain : 0;
}

#endif
