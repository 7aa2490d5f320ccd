/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace of decisions, for a checker that replays it against the core. Off
 * unless asked for at load; then the verifier leaves nothing of it, and these two
 * maps are not made. Other processes find them by their names.
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

static __always_inline void trace(enum decision_kind kind, u32 number, u32 tid, u64 service_ns)
{
	const struct rights *node = node_at(number);
	struct decision decision = {
		.kind = kind,
		.node = number,
		.tid = tid,
		.pass = node->pass,
		.worth = node->worth,
		.service_ns = service_ns,
	};
	u64 *lost;
	u32 zero = 0;

	if (!traced)
		return;
	decision.present = present();
	decision.time_ns = scx_bpf_now();
	decision.cpu = bpf_get_smp_processor_id();
	if (!bpf_ringbuf_output(&prorata_trace, &decision, sizeof(decision), 0))
		return;
	lost = bpf_map_lookup_elem(&prorata_lost, &zero);
	if (lost)
		__sync_fetch_and_add(lost, 1);
}

#endif
