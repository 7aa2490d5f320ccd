/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace of decisions, for a checker that replays it against the core. Off
 * unless asked for at load; then the verifier leaves a load of that setting of it, and these
 * three maps are not made. Other processes find them by their names. Who comes when
 * decisions have been made already asks for the state.
 */
#ifndef PRORATA_TRACE_BPF_H
#define PRORATA_TRACE_BPF_H

const volatile bool traced;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} prorata_trace SEC(".maps");

/* Decisions that the ring had no room for: then the trace is worth nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} prorata_lost SEC(".maps");

/* How often the state was asked for, by who comes later; and how often it was told. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} prorata_asked SEC(".maps");

static u64 answered;

/* Tells it with what it does not say of itself yet. */
static __noinline int put(struct decision *decision)
{
	const struct rights *node = node_at(decision->node);
	u64 *lost;
	u32 zero = 0;

	decision->cpu = bpf_get_smp_processor_id();
	decision->time_ns = scx_bpf_now();
	decision->quantum_ns = quantum_of(node);
	decision->tasks = node->runnable;
	decision->drawn = lottery;
	if (!bpf_ringbuf_output(&prorata_trace, decision, sizeof(*decision), 0))
		return 0;
	lost = bpf_map_lookup_elem(&prorata_lost, &zero);
	if (lost)
		__sync_fetch_and_add(lost, 1);
	return 0;
}

__noinline int tell(u32 kind, u32 number, u32 tid, u64 service_ns)
{
	const struct rights *node = node_at(number);
	struct decision decision = {
		.kind = kind,
		.node = number,
		.tid = tid,
		.pass = node->pass,
		.worth = node->worth,
		.present = kind == STATE_SLEEPS ? node->left_at : present(),
		.service_ns = service_ns,
	};

	return put(&decision);
}

/*
 * Tells where everybody stands, if somebody has asked for it. On one CPU nothing is
 * decided meanwhile, as nothing interrupts a decision: so it is the state between two.
 */
__noinline int tell_state_if_asked(void)
{
	u32 zero = 0, number, end = NODES + nothing;
	u64 *asked = bpf_map_lookup_elem(&prorata_asked, &zero);

	if (!asked || *asked == answered)
		return 0;
	answered = *asked;
	tell(STATE_BEGINS, BASE, 0, 0);
	bpf_for(number, BASE + 1, end) {
		const struct rights *node = node_at(number);

		if (node->runnable)
			tell(STATE_COMPETES, number, 0, 0);
		else if (node->known)
			tell(STATE_SLEEPS, number, 0, 0);
	}
	return 0;
}

static __always_inline void trace(u32 kind, u32 number, u32 tid, u64 service_ns)
{
	if (!traced)
		return;
	tell(kind, number, tid, service_ns);
	tell_state_if_asked();
}

#endif
