/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes: who deserves to run next, and since when (1995, 2; the core's
 * policy/stride.rs and race.rs).
 *
 * Whoever has the smallest pass runs next; having run, it waits for the time
 * it used, divided by its tickets, times a chance: 1 in stride scheduling, an
 * exponentially distributed one in lottery scheduling. The quantum does not
 * appear: who uses less of one waits less, which is what compensation tickets
 * are for (1994, 3.4).
 *
 * The present pass is where who joins begins. With stride scheduling it moves
 * with all time used (1995, 2.2), in a race it is the furthest pass of a winner.
 */
#ifndef PRORATA_PASS_BPF_H
#define PRORATA_PASS_BPF_H

/* CPUs that there could be. */
const volatile u32 cpus = 1;
#define one_cpu (cpus == 1)

/* Whether all tasks are scheduled here, or only those that were given. */
const volatile bool all_tasks;

/* The longest turn, unless a client has a quantum of its own; the loader sets it. */
u64 quantum_ns;
/* The longest of all these quanta. */
u64 longest_quantum_ns;
bool lottery;

/* The longest turn of a node's tasks. */
static u64 quantum_of(const struct rights *node)
{
	return node->quantum_ns ? node->quantum_ns : quantum_ns;
}

/* Passes of service that was charged to anybody, for each active base ticket. */
u64 dispensed;

/* The furthest pass of a winner. Lost updates do no harm: the next one is near. */
u64 furthest;

/* What stride scheduling's present pass is ahead of `dispensed`. */
u64 ahead;

static u64 present(void)
{
	return lottery ? furthest : dispensed + ahead;
}

/* CPUs that there are; the loader sets it at first. */
u32 online;

/* Nobody waits longer than this because of having few tickets, or none. */
#define LONGEST_WAIT_NS 8000000000ULL

/* That time as a wait, while the tickets that are active stay the same. */
static u64 longest = LONGEST_WAIT;

/*
 * What those who sleep can be owed together; the loader sets it. Who wants little
 * waits for others' turns to end and is owed for that, though it never takes it; and
 * as much all others are ahead of the present pass. If that were much, a change of
 * tickets would change their places by much (1995, 2.3).
 */
u64 most_owed_ns;

/* That time as a wait, as above. */
static u64 most_owed;

/* Somebody who had this pass has run. */
static void follow_winner(u64 pass)
{
	s64 lag = pass - present();

	/* It was not its turn: it had waited for as long as anybody may. */
	if (lag > (s64)longest)
		return;
	if (before(furthest, pass))
		furthest = pass;
	lag -= most_owed;
	if (!lottery && lag > 0)
		ahead += lag;
}

/* What remains of a wait when the tickets change. */
__noinline s64 keep_remain(s64 remain, worth_t from, worth_t to)
{
	return held(rescaled(remain, from, to));
}

/* What so much service counts for in a race. */
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

/* The service that so much is worth was due in a wait. */
__noinline u64 service_of(u64 wait, worth_t worth)
{
	return service_in(wait, worth);
}

/* How long who used so much waits. */
static u64 wait_after(u64 service_ns, struct stride stride)
{
	return wait(stride, lottery ? chance_on(service_ns) : service_ns);
}

#endif
