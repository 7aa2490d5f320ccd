/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's arithmetic, its graph of rights and its feasible weights, compiled
 * natively for tests that compare them with the core.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
typedef int32_t s32;

#define SEC(name)
#define __noinline	      __attribute__((noinline))
#define __arg_nonnull
#define can_loop	      true
#define bpf_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)

/* Only lotteries draw numbers, and no test runs one here. */
static u32 bpf_get_prandom_u32(void)
{
	__builtin_trap();
}

/* Settings of the loader. */
static u32 cpus = 1;
static bool nice_counts = true;

#include "../../bpf/window.h"
#include "../../bpf/abi.h"
#include "../../bpf/pass.h"
#include "../../bpf/rights.h"
#include "../../bpf/nice.h"
#include "../../bpf/feasible.h"
#include "../../bpf/histogram.h"
#include "../../bpf/word.h"

/* Constants that src/scheduler and src/replay repeat. */
const struct {
	u64 base, cgroup_nodes, cgroup_tickets, root_tickets, max_depth, buckets;
	u64 pass_bits, longest_wait, longest_wait_ns, overdue_ns, roamers, cut_credit_quanta;
	u64 most_limits, period_ns;
	u64 by_claim, schedulees, cells_from, tally_words, lateness_buckets;
} prorata_constants = {
	.base = BASE,
	.cgroup_nodes = CGROUP_NODES,
	.cgroup_tickets = CGROUP_TICKETS,
	.root_tickets = ROOT_TICKETS,
	.max_depth = MAX_DEPTH,
	.buckets = BUCKETS,
	.pass_bits = PASS_BITS,
	.longest_wait = LONGEST_WAIT,
	.longest_wait_ns = LONGEST_WAIT_NS,
	.overdue_ns = OVERDUE_NS,
	.roamers = ROAMERS,
	.cut_credit_quanta = CUT_CREDIT_QUANTA,
	.most_limits = LIMITS - 1,
	.period_ns = PERIOD_NS,
	.by_claim = BY_CLAIM,
	.schedulees = SCHEDULEES,
	.cells_from = TABLE_CELLS_FROM,
	.tally_words = TALLY_WORDS,
	.lateness_buckets = LATENESS_BUCKETS,
};

u32 prorata_bucket_of(u64 duration)
{
	return bucket_of(duration);
}

u32 prorata_schedulee_of(u64 word, u64 period)
{
	return schedulee_of(word, period);
}

bool prorata_is_gift(u64 word)
{
	return is_gift(word);
}

u32 prorata_distance_of(u64 word)
{
	return distance_of(word);
}

u64 prorata_charged_in_slot(u64 service_ns, u64 ahead, u64 furthest, u64 worth)
{
	return charged_in_slot(service_ns, ahead, furthest, worth);
}

u64 prorata_worth_of(u64 amount)
{
	return worth_of(amount);
}

u64 prorata_worth_add(u64 a, u64 b)
{
	return worth_add(a, b);
}

u64 prorata_worth_multiply(u64 a, u64 b)
{
	return worth_multiply(a, b);
}

u64 prorata_worth_divide(u64 a, u64 b)
{
	return worth_divide(a, b);
}

u64 prorata_wait_for(u64 service_ns, u64 tickets)
{
	return wait_by(stride_of(tickets), service_ns);
}

u64 prorata_service_in(u64 wait, u64 tickets)
{
	return service_in(wait, tickets);
}

s64 prorata_rescaled(s64 remain, u64 from, u64 to)
{
	return rescaled(remain, from, to);
}

u64 prorata_minus_ln(u64 bits)
{
	return minus_ln(bits);
}

u64 prorata_chanced(u64 service_ns, u64 bits)
{
	return chanced(service_ns, bits);
}

/* A clock for prices: each lasts for one reading. */
static u64 now;

/* Forgets all nodes, tickets and running tasks. */
void prorata_reset(void)
{
	memset(nodes, 0, sizeof(nodes));
	memset(tickets, 0, sizeof(tickets));
	memset(running, 0, sizeof(running));
	memset(limits, 0, sizeof(limits));
	limits_end = 1;
	niced_by = 0;
	price_lasts_ns = 1;
	most = 0;
}

void prorata_write_ticket(u32 index, u32 currency, u32 more, u64 amount)
{
	tickets[index] = (struct ticket){.currency = currency, .more = more, .amount = amount};
}

void prorata_fund(u32 number, u32 list)
{
	fund(number, list);
}

/* The tasks inside a node hold so many tickets more, or less. */
void prorata_hold(u32 number, s64 amount)
{
	nodes[number].client.held += amount;
	change_held(number, amount);
}

s64 prorata_active(u32 number)
{
	return nodes[number].active;
}

u64 prorata_value(u32 number)
{
	price(number, ++now);
	return nodes[number].value;
}

/* A task with this weight joins a node or leaves it. */
void prorata_count_nice(u32 number, u32 weight, s32 sign)
{
	nodes[number].client.tasks += sign;
	follow_nice(number, weight, sign);
}

/* The node's value as the nice values of its tasks change it. */
u64 prorata_niced_value(u32 number)
{
	price(number, ++now);
	return value_of(number);
}

/* What all clients are worth. */
u64 prorata_all_worth(void)
{
	return worth_of_single(all_worth());
}

/* A node's tasks, each worth so much, run on all CPUs from `first` to before `end`. */
void prorata_run(u32 number, u64 amount, u32 tasks, u32 first, u32 end)
{
	nodes[number].single = single_of(worth_of(amount)) / tasks;
	while (first < end)
		*running_on(first++) = number;
}

void prorata_readjust(u32 cpu_count, u64 active)
{
	cpus = cpu_count;
	online = cpu_count;
	nodes[BASE].active = active;
	readjust();
}

u64 prorata_feasible(u64 amount, u32 tasks)
{
	return feasible(worth_of(amount), tasks);
}

/* A node's competing tasks are worth so much together, and have a limit. */
void prorata_limit(u32 number, u64 amount, u32 tasks, u32 max)
{
	struct limit *limit = limit_at(limits_end);

	*limit = (struct limit){
		.allowance = {.max = max},
		.value = single_of(worth_of(amount)),
		.node = number,
	};
	nodes[number].client.tasks = tasks;
	nodes[number].limit = limits_end++;
}

/* What one part in so many of a limited node's value counts for. */
u64 prorata_feasible_part(u32 number, u64 amount, u64 parts)
{
	return feasible_part(worth_divide(worth_of(amount), worth_of(parts)),
			     limit_at(nodes[number].limit));
}

const u64 prorata_allowance_bytes = sizeof(struct allowance);

void prorata_begin_allowance(struct allowance *allowance, u32 max, u64 from)
{
	begin_allowance(allowance, max, from);
}

void prorata_change_max(struct allowance *allowance, u32 max)
{
	change_max(allowance, max);
}

void prorata_spend(struct allowance *allowance, u64 used_ns)
{
	spend(allowance, used_ns);
}

void prorata_regain(struct allowance *allowance, u64 until)
{
	regain(allowance, until);
}

bool prorata_is_exhausted(const struct allowance *allowance)
{
	return is_exhausted(allowance);
}

u64 prorata_allowance_lasts_ns(const struct allowance *allowance, u32 cpu_count)
{
	return allowance_lasts_ns(allowance, cpu_count);
}

u64 prorata_due_rate(u32 value, u64 total, u32 cpu_count, u32 threads)
{
	return due_rate(value, total, cpu_count, threads);
}

u64 prorata_due_in(u64 rate, u64 elapsed_ns)
{
	return due_in(rate, elapsed_ns);
}

u32 prorata_fraction(u64 received_ns, u64 deserved_ns)
{
	return fraction(received_ns, deserved_ns);
}

u64 prorata_lead_bound_of(u64 quantum)
{
	return lead_bound_of(quantum);
}

u64 prorata_drained(u64 lead_ns, u64 due_ns)
{
	return drained(lead_ns, due_ns);
}

u64 prorata_risen(u64 lead_ns, u64 used_ns)
{
	return risen(lead_ns, used_ns);
}

bool prorata_wakes_early(u32 class, u32 part, u64 lead_ns, u64 bound_ns)
{
	return wakes_early(class, part, lead_ns, bound_ns);
}

u64 prorata_early_rank(u32 class, u32 part, u64 arrival)
{
	return early_rank(class, part, arrival);
}

const u64 prorata_window_bytes = sizeof(struct use_window);

void prorata_window_from(struct use_window *window, u64 from)
{
	*window = window_from(from);
}

u64 prorata_advance(struct use_window *window, u64 until, u64 rate)
{
	return advance(window, until, rate);
}

void prorata_receive(struct use_window *window, u64 used_ns)
{
	receive(window, used_ns);
}

u64 prorata_received(const struct use_window *window)
{
	return window->all_received_ns;
}

u64 prorata_deserved(const struct use_window *window)
{
	return window->all_deserved_ns;
}

u32 prorata_fraction_after(const struct use_window *window, u64 used_ns)
{
	return fraction_after(window, used_ns);
}
