/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of CPU time: a limited client pauses once it has exhausted its allowance (allowance.h),
 * whatever idles. Its running tasks are stopped, and its waiting tasks leave the order
 * (held.bpf.h). Its pass stays, and its tickets count for no more than the limit (feasible.h).
 *
 * Pauses end at multiples of PERIOD_NS. A timer fires at each of them while a client pauses:
 * an idle CPU looks at no queue by itself.
 *
 *	charge, tick	spends	      exhausted: the client pauses, its turns end, the alarm is set
 *	alarm		regains	      not exhausted: the client resumes, and an idle CPU looks
 *
 * The kernel has no such timer under PREEMPT_RT. The loader then accepts no limits.
 */
#ifndef PRORATA_LIMITS_BPF_H
#define PRORATA_LIMITS_BPF_H

struct period_alarm {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct period_alarm);
} alarms SEC(".maps");

/* Whether `dispatch` is to look at held tasks. (A static variable would become one byte.) */
u32 look_at_held;

/* The queue of the bound tasks of a limited client while it pauses; 0 if there is none. */
static u64 queue_set_aside(const struct rights *node)
{
	/* Read once: a limit may end at any moment. */
	u32 place = *(const volatile u32 *)&node->limit;

	return place && limit_at(place)->has_queue ? SET_ASIDE + place : 0;
}

static struct period_alarm *the_alarm(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&alarms, &zero);
}

/* Whether the alarm will go off. */
static u32 alarm_is_set;

/* For the end of the period. An alarm that is about to go off is not put off by a period. */
static void set_alarm(u64 now)
{
	struct period_alarm *alarm = timed ? the_alarm() : NULL;

	if (alarm && __sync_bool_compare_and_swap(&alarm_is_set, 0, 1))
		bpf_timer_start(&alarm->timer, PERIOD_NS - now % PERIOD_NS, 0);
}

/*
 * A client used CPU time. Returns whether it pauses since then. (The turn of its task on this
 * CPU ends anyway, or the caller ends it.)
 */
__noinline int use_allowance(u32 number, u64 service_ns, u64 now)
{
	u32 place = *(const volatile u32 *)&node_at(number)->limit;
	struct allowance *allowance = &limit_at(place)->allowance;

	if (!place)
		return 0;
	spend(allowance, service_ns);
	regain(allowance, now);
	if (!is_exhausted(allowance) || !__sync_bool_compare_and_swap(&allowance->pauses, 0, 1))
		return 0;
	__sync_fetch_and_add(&pausing, 1);
	trace(LIMIT_PAUSES, number, 0, 0);
	set_alarm(now);
	return 1;
}

/* The client may run again. Its tasks wait until a CPU looks. */
static void end_pause(struct limit *limit)
{
	if (!__sync_bool_compare_and_swap(&limit->allowance.pauses, 1, 0))
		return;
	__sync_fetch_and_add(&pausing, -1);
	if (traced)
		tell(LIMIT_RESUMES, limit->node, 0, 0);
}

/* How long a turn of a limited client's task may last. It is never nothing: tasks that end run
 * although their client pauses. */
static u64 turn_within_limit(const struct rights *node, u64 turn_ns)
{
	struct allowance *allowance = &limit_at(node->limit)->allowance;
	u64 tasks = node->client.tasks + node->bound, lasts_ns;

	regain(allowance, scx_bpf_now());
	lasts_ns = allowance_lasts_ns(allowance, at_most(tasks ? tasks : 1, online));
	return lasts_ns && lasts_ns < turn_ns ? lasts_ns : turn_ns;
}

#endif
