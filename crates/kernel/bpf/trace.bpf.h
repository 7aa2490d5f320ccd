/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace of decisions, for a checker that replays it against the core. Off
 * unless asked for at load; then the verifier leaves nothing of it.
 */
#ifndef PRORATA_TRACE_BPF_H
#define PRORATA_TRACE_BPF_H

const volatile bool traced;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} decisions SEC(".maps");

/* Decisions that the ring had no room for: then the trace is worth nothing. */
u64 decisions_lost;

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

	if (!traced)
		return;
	decision.present = present();
	decision.time_ns = scx_bpf_now();
	if (bpf_ringbuf_output(&decisions, &decision, sizeof(decision), 0))
		__sync_fetch_and_add(&decisions_lost, 1);
}

#endif
