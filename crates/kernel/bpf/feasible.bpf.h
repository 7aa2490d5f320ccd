/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Feasible weights: a task runs on one CPU at a time, so its tickets count for no
 * more than a CPU's worth, and the others share what it cannot use in proportion
 * to theirs.
 *
 * Of M CPUs and T active base tickets a CPU is worth T / M. A task that is worth
 * more has one CPU, and there are M - 1 for the other tickets, and so on until
 * nobody is worth more than a CPU (the readjustment of surplus fair scheduling,
 * Chandra et al. 2000). Who is, runs: so it is enough to look at those that run.
 */
#ifndef PRORATA_FEASIBLE_BPF_H
#define PRORATA_FEASIBLE_BPF_H

/* CPUs beyond these count as those that nobody rich runs on. */
#define MAX_CPUS 1024

/* Fractional bits of a worth in this header. */
#define SINGLE_BITS 16
#define ROUNDS	    4

/* The node whose task runs on each CPU, unless the task is bound to CPUs; or 0. */
static u32 running[MAX_CPUS];

/* What a task counts for at most, in 2^-SINGLE_BITS base tickets; 0: no bound. */
static u64 most;

/* How far the present pass moves, and the active base tickets it was made for. */
static struct stride common;
static s64 common_active;

/* What the longest wait was before it last became twice or half as long. */
static u64 longest_before;

static u32 *running_on(s32 cpu)
{
	return &running[cpu & (MAX_CPUS - 1)];
}

/* In 2^-SINGLE_BITS base tickets. */
static u64 single_of(worth_t worth)
{
	return scaled(mantissa_of(worth), exponent_of(worth) + SINGLE_BITS);
}

static worth_t worth_of_single(u64 single)
{
	worth_t worth = worth_of_amount(single);

	return worth ? to_worth(mantissa_of(worth), exponent_of(worth) - SINGLE_BITS) : 0;
}

/* Those that run and are worth more than a CPU. */
struct rich {
	u64 sum;
	u64 least;
	u32 count;
};

static void find_rich(u64 bound, struct rich *rich)
{
	u32 cpu;

	rich->sum = 0;
	rich->least = LONGEST_WAIT;
	rich->count = nothing;
	bpf_for(cpu, 0, cpus) {
		u32 number = *running_on(cpu);
		u64 single = number ? node_at(number)->single : 0;

		if (single <= bound)
			continue;
		rich->sum += single;
		rich->count++;
		if (single < rich->least)
			rich->least = single;
	}
}

/* Brings what depends on all active tickets up to date. */
__noinline int readjust(void)
{
	s64 active = nodes[BASE].active;
	u64 total = (u64)active << SINGLE_BITS, bound;
	u32 round, count = nothing;
	struct rich rich;

	if (active <= 0)
		return 0;
	common_active = active;
	common = stride_of(worth_of_amount(active));
	longest = wait(common, LONGEST_WAIT_NS / 4) * 4 * online;
	most_owed = wait(common, most_owed_ns);
	/* Those who wait for that long would do so for too long. */
	if (longest < longest_before / 2)
		rises++;
	if (longest < longest_before / 2 || longest > 2 * longest_before)
		longest_before = longest;
	if (one_cpu)
		return 0;
	bound = total / online;
	bpf_for(round, 0, ROUNDS) {
		u64 rest;

		find_rich(bound, &rich);
		if (rich.count == count)
			break;
		count = rich.count;
		rest = rich.sum < total ? total - rich.sum : 0;
		/* Everybody has a CPU: nobody is worth more than another. */
		bound = count < online && rest > total >> 10 ? rest / (online - count) : rich.least;
		common = stride_of(worth_of_single(rest + count * bound));
		if (bound == rich.least)
			break;
	}
	most = count ? bound : 0;
	return 0;
}

/* What the tasks of a node count for together. */
static worth_t feasible(worth_t worth, u32 tasks)
{
	worth_t bound;

	if (one_cpu || !most || !tasks)
		return worth;
	bound = worth_of_single(most * tasks);
	return single_of(worth) > most * tasks ? bound : worth;
}

/* The present pass moves with all service. */
static void dispense(u64 service_ns)
{
	if (nodes[BASE].active != common_active)
		readjust();
	__sync_fetch_and_add(&dispensed, wait(common, service_ns));
}

#endif
