/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Boundaries of slots: each CPU looks at its row of the timetable when a claimed slot begins or ends
 * (2005, 2.2 and 2.5). A look costs the same whatever the table holds. No timer is set for a row
 * without claims: a thread of the loader has the CPU look when that changes
 * (src/scheduler/boundaries.rs).
 *
 * Each CPU has a timer of its own, which stays on the CPU that starts it. The kernel has no such timer
 * under PREEMPT_RT. There the loader's real-time thread on each CPU looks at each boundary. It
 * interrupts a turn, which would go on after it: begin_turn_in_slot() ends that.
 */
#ifndef PRORATA_BOUNDARY_BPF_H
#define PRORATA_BOUNDARY_BPF_H

struct boundary_alarm {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct boundary_alarm);
} boundaries SEC(".maps");

/* Slots that are looked at after a CPU missed their beginnings. */
#define MOST_MISSED 64

/* What a row says at a time. */
struct view {
	u64 tick;
	u64 begin_ns;
	u64 until_ns;
	/* When to look again; 0: never. */
	u64 due_ns;
	u64 word;
	/* The schedulee; 0 if the slot is unclaimed. */
	u32 number;
};

/* The word of a row at a tick, by the buffer in force then. */
__noinline u64 word_at(u32 row, u64 tick)
{
	u64 columns = table_value(TABLE_COLUMNS), change = table_value(TABLE_SWITCH);
	u64 buffer = (change & 1) ^ (tick < change >> 1);
	u64 from = TABLE_CELLS_FROM + buffer * table_value(TABLE_CELLS);

	return columns ? table_value(from + row * columns + tick % columns) : 0;
}

__noinline u32 number_at(u64 tick, u64 word)
{
	u64 columns = table_value(TABLE_COLUMNS);

	return columns ? schedulee_of(word, tick / columns) : 0;
}

__noinline int view_row(u32 row, u64 now, struct view *view __arg_nonnull)
{
	u64 epoch = table_value(TABLE_EPOCH), length = table_value(TABLE_SLOT_NS);
	u64 from = table_value(TABLE_SWITCH) >> 1, next = 0;

	if (!length || before(now, epoch)) {
		view->due_ns = epoch;
		return 0;
	}
	view->tick = (now - epoch) / length;
	view->begin_ns = epoch + view->tick * length;
	view->until_ns = view->begin_ns + length;
	view->word = word_at(row, view->tick);
	view->number = number_at(view->tick, view->word);
	if (view->number)
		next = view->tick + 1;
	else if (view->word)
		next = view->tick + distance_of(view->word);
	if (view->tick < from && (!next || from < next))
		next = from;
	view->due_ns = next ? epoch + next * length : 0;
	return 0;
}

/* Whether the schedulee of a slot that ends wanted to run. */
static bool wants_to_run(const struct slot *slot)
{
	const struct rights *node = node_at(slot->id);
	struct task_struct *p;
	bool wants;

	if (slot->kind == CLIENT)
		return node->client.tasks + node->bound > 0 && !pauses(node);
	p = bpf_task_from_pid(slot->id);
	if (!p)
		return false;
	wants = !p->__state;
	bpf_task_release(p);
	return wants;
}

__noinline int tally_end(s32 cpu)
{
	const struct slot *slot = slot_at(cpu);
	u32 counter = TALLY_RAN;

	if (!slot->kind)
		return 0;
	if (!slot->has_run)
		counter = wants_to_run(slot) ? TALLY_LOST : TALLY_IDLE;
	tally(cpu, counter, 1);
	if (slot->stolen_since_ns && before(slot->stolen_since_ns, slot->until_ns))
		tally(cpu, TALLY_STOLEN_NS, slot->until_ns - slot->stolen_since_ns);
	return 0;
}

/* Counts claimed slots between the time when a look was due and the tick of the look. */
__noinline int tally_missed(s32 cpu, u64 due_ns, u64 until_tick)
{
	u64 epoch = table_value(TABLE_EPOCH), length = table_value(TABLE_SLOT_NS);
	u32 row = row_of(cpu), missed = nothing, turn;

	if (!due_ns || !length || !row)
		return 0;
	bpf_for(turn, 0, MOST_MISSED) {
		u64 tick = (due_ns - epoch) / length + turn;

		if (tick >= until_tick)
			break;
		if (number_at(tick, word_at(row - 1, tick)))
			missed++;
	}
	return missed ? tally(cpu, TALLY_MISSED, missed) : 0;
}

/* Whether a process or thread is the one that the claim names, not a later one of its number. */
static __always_inline bool is_claimed_task(u32 id, u64 started)
{
	struct task_struct *p = bpf_task_from_pid(id);
	bool same;

	if (!p)
		return false;
	same = started_at(p) == started;
	bpf_task_release(p);
	return same;
}

/* A schedulee that runs and goes on needs no switch: its turn lasts longer. */
static __always_inline bool prolong_in_slot(s32 cpu, struct slot *slot)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task *task = task_of(current);

	if (!task || !task->in_slot || !is_schedulee(slot, current, task))
		return false;
	/* A turn is charged when it ends: until then its service would not count for the limit. */
	if (node_at(task->node)->limit)
		return false;
	/*
	 * The CPU is to look whether it is the turn of others. Tasks that came to the CPU's own queue before
	 * the slot began would wait there for ever.
	 */
	if (!before(scx_bpf_now(), slot->others_from) ||
	    scx_bpf_dsq_nr_queued(DSQ_LOCAL_ON | cpu) > 0)
		return false;
	slot->has_run = true;
	scx_bpf_task_set_slice(current, turn_in_slot(slot, task));
	return true;
}

static __noinline int tell_of_look(u32 row, const struct slot *slot, const struct view *view,
				   u64 now)
{
	struct decision decision = {
		.kind = SLOT_LOOKS,
		.node = slot->kind == CLIENT ? slot->id : BASE,
		.tid = slot->kind == CLIENT ? 0 : slot->id,
		.bound = slot->kind == PROCESS,
		.service_ns = now - view->begin_ns,
		.key = view->word,
		.queue = row,
		.early = view->tick,
	};

	return put(&decision);
}

/*
 * This CPU goes over to the slot that its row says. `in_turn`: the task row_cpu turn it is runs on the CPU.
 * Returns whether that turn is to end.
 */
static __always_inline bool enter_slot(s32 cpu, const struct view *view, bool in_turn)
{
	struct slot *slot = slot_at(cpu);
	u32 from = schedulee_from(view->number), was = slot->kind, id = slot->id;
	u64 what = view->number ? table_value(from) : 0;
	u32 kind = what >> 32;
	bool goes_on = slot->until_ns == view->begin_ns, was_gift = slot->is_gift;

	tally_end(cpu);
	/* Other CPUs look at no slot that is over. */
	__sync_lock_test_and_set(&slot->until_ns, 0);
	slot->tick = view->tick;
	slot->begin_ns = view->begin_ns;
	slot->kind = kind > CLIENT && !is_claimed_task(what, table_value(from + 1)) ? NO_SCHEDULEE
										    : kind;
	slot->id = what;
	slot->is_gift = is_gift(view->word);
	slot->has_run = false;
	slot->stolen_since_ns = 0;
	slot->comes = 0;
	if (view->number)
		tally(cpu, TALLY_BEGUN, 1);
	/* The fallback has decided in the unclaimed slot before. */
	if (!was)
		slot->others_from = scx_bpf_now() + CLAIMED_NS;
	if (!was != !slot->kind)
		__sync_fetch_and_add(&in_claimed_slots, was ? -1 : 1);
	goes_on &= was == slot->kind && id == slot->id && was_gift == slot->is_gift;
	slot->has_looked = false;
	/* Only a schedulee that follows another one is late. */
	slot->is_awaited = false;
	slot->goes_on = goes_on;
	__sync_lock_test_and_set(&slot->until_ns, view->until_ns);
	/* It may have woken since the boundary, when the slot before was over and this one not begun. */
	if (in_turn && goes_on && slot->kind && prolong_in_slot(cpu, slot))
		return false;
	return was || slot->kind;
}

/* A slot ends without a table, or without its CPU. Returns whether it was claimed. */
static bool abandon_slot(struct slot *slot)
{
	bool was_claimed = slot->kind;

	slot->due_ns = 0;
	slot->kind = NO_SCHEDULEE;
	if (was_claimed)
		__sync_fetch_and_add(&in_claimed_slots, -1);
	return was_claimed;
}

/* This CPU looks on behalf of the row's. Returns when that one is to look again, or 0. */
static __always_inline u64 look_at_boundary(s32 row_cpu, bool in_turn)
{
	s32 cpu = bpf_get_smp_processor_id();
	struct slot *slot = slot_at(row_cpu);
	u64 now = bpf_ktime_get_ns();
	u32 row = row_of(cpu);
	struct view view = {};
	bool ends_turn;

	/* The timer or thread of an offline CPU runs on another CPU. */
	if (!row || row_cpu != cpu) {
		if (abandon_slot(slot))
			scx_bpf_kick_cpu(row_cpu, KICK_PREEMPT);
		return 0;
	}
	view_row(row - 1, now, &view);
	if (before(slot->due_ns, view.begin_ns))
		tally_missed(cpu, slot->due_ns, view.tick);
	slot->due_ns = view.due_ns;
	/* A look in the middle of a claimed slot, or just before a boundary, changes no slot. */
	ends_turn = !(slot->kind && slot->tick == view.tick) && enter_slot(cpu, &view, in_turn);
	if (traced)
		tell_of_look(row - 1, slot, &view, now);
	if (ends_turn)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	return view.due_ns;
}

/* The timer of a CPU: a claimed slot begins or ends there, or the loader has changed the row. */
static int keep_boundary(void *map, u32 *key, struct boundary_alarm *alarm)
{
	u64 due_ns = look_at_boundary(*key, true);

	if (due_ns)
		bpf_timer_start(&alarm->timer, due_ns, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
	return 0;
}

static s32 create_boundaries(void)
{
	u32 cpu;

	bpf_for(cpu, 0, cpus) {
		u32 key = cpu & (MAX_CPUS - 1);
		struct boundary_alarm *alarm = bpf_map_lookup_elem(&boundaries, &key);
		s32 error;

		if (!alarm || cpu >= MAX_CPUS)
			break;
		error = bpf_timer_init(&alarm->timer, &boundaries, CLOCK_MONOTONIC);
		if (!error)
			error = bpf_timer_set_callback(&alarm->timer, keep_boundary);
		if (error)
			return error;
	}
	return 0;
}

#endif
