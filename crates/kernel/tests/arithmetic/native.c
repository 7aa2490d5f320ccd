/* SPDX-License-Identifier: GPL-2.0-only */
/* The scheduler's arithmetic, for tests that compare it with the core's. */
#include "../../bpf/arithmetic.h"

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
