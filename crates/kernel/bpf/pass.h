/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes: which entity runs next, and where a newcomer begins (1995, 2).
 *
 * The entity with the smallest pass runs next. Afterwards its pass moves by the time that
 * it used, divided by its tickets, times a factor: 1 in stride scheduling, exponentially
 * distributed in lottery scheduling. The quantum does not appear: an entity that uses less
 * of its quantum waits less, which is what compensation tickets achieve (1994, 3.4).
 *
 * The present pass is where newcomers begin. In stride scheduling it moves with all
 * service (1995, 2.2). In a lottery it is the largest pass of a winner.
 */
#ifndef PRORATA_PASS_H
#define PRORATA_PASS_H

#define one_cpu (cpus == 1)

/* The longest turn, except for nodes with a quantum of their own. The loader sets it. */
u64 quantum_ns;
/* The longest of all quanta. */
u64 longest_quantum_ns;
bool lottery;

/* Online CPUs. The loader sets the first number. */
u32 online;

/* The wait of an entity that holds all active base tickets, for all service so far. */
u64 dispensed;

/* The largest pass of a winner. A lost update does no harm: the next one is near. */
u64 furthest;

/* How far the present pass of stride scheduling is ahead of `dispensed`. */
u64 ahead;

static u64 present(void)
{
	return lottery ? furthest : dispensed + ahead;
}

/* LONGEST_WAIT_NS as a wait, while the active tickets stay the same. */
static u64 longest = LONGEST_WAIT;

/*
 * The service that sleepers can be owed together; the loader sets it. A task that wants
 * little is owed for the turns that it waits for, and never takes that. All others are
 * ahead of the present pass by as much, and a change of tickets would multiply that lead
 * (1995, 2.3).
 */
u64 most_owed_ns;

/* `most_owed_ns` as a wait, likewise. */
static u64 most_owed;

/* What remains of a wait when the tickets change. */
__noinline s64 keep_remain(s64 remain, worth_t from, worth_t to)
{
	return held(rescaled(remain, from, to));
}

/* What service counts for in a lottery. */
__noinline u64 chance_on(u64 service_ns)
{
	u64 bits = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();

	return chanced(service_ns, bits);
}

__noinline u64 wait_at(u64 mantissa, s32 shift, u64 service_ns)
{
	struct stride stride = {.mantissa = mantissa, .shift = shift};

	return wait_by(stride, service_ns);
}

static u64 wait(struct stride stride, u64 service_ns)
{
	return wait_at(stride.mantissa, stride.shift, service_ns);
}

/* The service that is due at this worth while passes move by this wait. */
__noinline u64 service_of(u64 wait, worth_t worth)
{
	return service_in(wait, worth);
}

/* How far the pass of an entity moves that used this service. */
static u64 wait_after(u64 service_ns, struct stride stride)
{
	return wait(stride, lottery ? chance_on(service_ns) : service_ns);
}

#endif
