/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Feasible weights: a task runs on one CPU at a time, so its tickets count for at most one
 * CPU. The other tasks share what it cannot use, in proportion to their tickets.
 *
 * Of M CPUs and T active base tickets a CPU is worth T / M. A task that is worth more gets
 * one CPU, and M - 1 CPUs remain for the other tickets. This repeats until no task is worth
 * more than a CPU (the readjustment of surplus fair scheduling, Chandra et al. 2000). Such a
 * task runs at any time, so it is enough to look at the running tasks.
 *
 * A limited client counts for no more CPUs than its limit permits, with all its tasks.
 *
 * Bound tasks are not readjusted. They share each of their CPUs by value, but what is due to
 * them counts as if they could use all CPUs. The core's weighted max-min fair rates (max_min.rs)
 * have no twin here: the daemon corrects its clients' accounts.
 *
 * The readjustment compiles as BPF and natively: tests compare it with the core's.
 */
#ifndef PRORATA_FEASIBLE_H
#define PRORATA_FEASIBLE_H

#define ROUNDS 32

/* The node whose unbound task runs on each CPU, or 0. */
static u32 running[MAX_CPUS];

/* What a task counts for at most, in 2^-SINGLE_BITS base tickets; 0 is no bound. */
static u64 most;

/* How far the present pass moves, and what all clients are worth for which that holds. */
static struct stride common;
static u64 common_worth;

/* The longest wait when it last doubled or halved. */
static u64 longest_before;

static u32 *running_on(s32 cpu)
{
	return &running[cpu & (MAX_CPUS - 1)];
}

static worth_t worth_of_single(u64 single)
{
	worth_t worth = worth_of_amount(single);

	return worth ? to_worth(mantissa_of(worth), exponent_of(worth) - SINGLE_BITS) : 0;
}

/* number * CPU_THOUSANDTHS / divisor, at most LONGEST_WAIT. */
static u64 thousandfold_over(u64 number, u64 divisor)
{
	u64 whole = number / divisor;

	if (whole >= LONGEST_WAIT / CPU_THOUSANDTHS)
		return LONGEST_WAIT;
	return whole * CPU_THOUSANDTHS + number % divisor * CPU_THOUSANDTHS / divisor;
}

/* What thousandths of a CPU are worth, at most those of all CPUs. */
static u64 worth_of_thousandths(u64 cpu, u64 thousandths)
{
	return cpu / CPU_THOUSANDTHS * thousandths +
	       cpu % CPU_THOUSANDTHS * thousandths / CPU_THOUSANDTHS;
}

/* Thousandths of a CPU that a limited client can use now: none if it does not compete. */
static u64 usable(const struct limit *limit)
{
	const struct rights *node = node_at(limit->node);
	u64 tasks = node->client.tasks + node->bound;

	return at_most(limit->allowance.max, at_most(tasks, online) * CPU_THOUSANDTHS);
}

/* The running tasks and the limited clients that are worth more than a bound for each CPU. */
struct rich {
	u64 sum;
	/* The least that is worth a CPU to one of them. */
	u64 least;
	/* CPUs that they can use. */
	u32 thousandths;
};

__noinline int find_rich(u64 bound, struct rich *rich __arg_nonnull)
{
	u32 cpu, place;

	rich->sum = 0;
	rich->least = LONGEST_WAIT;
	rich->thousandths = nothing;
	bpf_for(cpu, 0, cpus) {
		u32 number = *running_on(cpu);
		u64 single = number ? node_at(number)->single : 0;

		if (single <= bound)
			continue;
		rich->sum += single;
		rich->thousandths += CPU_THOUSANDTHS;
		if (single < rich->least)
			rich->least = single;
	}
	bpf_for(place, 1, limits_end) {
		const struct limit *limit = limit_at(place);
		u64 thousandths = usable(limit), density;

		if (!thousandths || limit->value <= worth_of_thousandths(bound, thousandths))
			continue;
		rich->sum += limit->value;
		rich->thousandths += thousandths;
		density = thousandfold_over(limit->value, thousandths);
		if (density < rich->least)
			rich->least = density;
	}
	return 0;
}

/*
 * What all competing clients are worth, in 2^-SINGLE_BITS base tickets: the active base tickets, as
 * nice values change them.
 */
static u64 all_worth(void)
{
	s64 active = nodes[BASE].active, all;

	if (active <= 0)
		return 0;
	active <<= SINGLE_BITS;
	all = nice_counts ? active + niced_by : active;
	/* Other CPUs may be about to count. */
	return all > 0 ? all : active;
}

/* Finds `most` and `common` for clients that are worth so much together. */
static void bound_singles(u64 total)
{
	u64 bound = total / online;
	u32 all_thousandths = online * CPU_THOUSANDTHS, thousandths = nothing, round;
	struct rich rich;

	bpf_for(round, 0, ROUNDS) {
		u64 rest;

		find_rich(bound, &rich);
		if (rich.thousandths == thousandths)
			break;
		thousandths = rich.thousandths;
		rest = rich.sum < total ? total - rich.sum : 0;
		/* If every task has a CPU of its own, all are worth the same. */
		bound = thousandths < all_thousandths && rest > total >> 10
				? thousandfold_over(rest, all_thousandths - thousandths)
				: rich.least;
		common =
			stride_of(worth_of_single(rest + worth_of_thousandths(bound, thousandths)));
		if (bound == rich.least)
			break;
	}
	most = thousandths ? bound : 0;
}

/* Updates all that depends on what all clients are worth. */
__noinline int readjust(void)
{
	u64 all = all_worth();

	if (!all)
		return 0;
	common_worth = all;
	common = stride_of(worth_of_single(all));
	longest = wait(common, LONGEST_WAIT_NS / 4) * 4 * online;
	most_owed = wait(common, most_owed_ns);
	/* The places of waiting tasks still follow the longer bound. */
	if (longest < longest_before / 2)
		rises++;
	if (longest < longest_before / 2 || longest > 2 * longest_before)
		longest_before = longest;
	if (!one_cpu || limits_end > 1)
		bound_singles(all);
	return 0;
}

/* What these tasks of one node count for together. */
static worth_t feasible(worth_t worth, u32 tasks)
{
	if (one_cpu || !most || !tasks || single_of(worth) <= most * tasks)
		return worth;
	return worth_of_single(most * tasks);
}

/* What a part of a limited node's value counts for. */
static worth_t feasible_part(worth_t part, const struct limit *limit)
{
	u64 bound = worth_of_thousandths(most, usable(limit));

	if (!bound || limit->value <= bound)
		return part;
	return product(part, quotient(worth_of_amount(bound), worth_of_amount(limit->value)));
}

/* The present pass moves with all service. */
static void dispense(u64 service_ns)
{
	if (all_worth() != common_worth)
		readjust();
	__sync_fetch_and_add(&dispensed, wait(common, service_ns));
}

#endif
