/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The trace of decisions: a checker replays it against the core. It is off unless the loader
 * asks for it; then the verifier drops it, and the loader makes none of these three maps.
 * Other processes find the maps by their names. A process that opens them after the first
 * decisions asks for the state.
 */
#ifndef PRORATA_TRACE_BPF_H
#define PRORATA_TRACE_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} prorata_trace SEC(".maps");

/* Records that the ring had no room for. The trace is not usable then. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} prorata_lost SEC(".maps");

/* How often a process asked for the state, and how often it was told. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} prorata_asked SEC(".maps");

static u64 answered;

/* The longest turn of a node's tasks. */
static u64 quantum_of(const struct rights *node)
{
	return node->quantum_ns ? node->quantum_ns : quantum_ns;
}

/* Adds what is the same for all records, and sends the record. */
static __noinline int put(struct decision *decision)
{
	const struct rights *node = node_at(decision->node);
	u64 *lost;
	u32 zero = 0;

	decision->cpu = bpf_get_smp_processor_id();
	decision->time_ns = scx_bpf_now();
	decision->quantum_ns = quantum_of(node);
	decision->tasks = node->client.tasks;
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
	const struct entity *client = &node_at(number)->client;
	struct decision decision = {
		.kind = kind,
		.node = number,
		.tid = tid,
		.pass = client->pass,
		.worth = client->worth,
		.present = kind == STATE_SLEEPS ? client->left_at : present(),
		.service_ns = service_ns,
		.key = longest,
	};

	return put(&decision);
}

/*
 * Tells the state of all clients if a process has asked for it. On one CPU nothing
 * interrupts a decision, so this is the state between two decisions.
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
		const struct entity *client = &node_at(number)->client;

		if (client->tasks)
			tell(STATE_COMPETES, number, 0, 0);
		else if (client->known)
			tell(STATE_SLEEPS, number, 0, 0);
		if (pauses(node_at(number)))
			tell(LIMIT_PAUSES, number, 0, 0);
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
