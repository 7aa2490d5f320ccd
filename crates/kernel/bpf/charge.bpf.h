/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charges: the CPU time that a task used moves its entity's pass, its own progress and the leads. In a
 * slot of the timetable only a part of it does (2005, 2.4.1; word.h).
 */
#ifndef PRORATA_CHARGE_BPF_H
#define PRORATA_CHARGE_BPF_H

/*
 * A task used service in a slot. Returns what of it is charged (word.h). The rest is outside the economy:
 * it counts as received, and for the client's limit.
 */
__noinline u64 charge_in_slot(struct task *task __arg_nonnull, u64 used_ns, u64 now)
{
	const struct entity *entity = entity_of(task);
	struct rights *node = node_at(task->node);
	u64 ahead = entity->pass - present_at(entity->home), charged_ns = 0, rest_ns;
	/* What all CPUs do in that time, in parts that wait() takes whole. */
	u64 furthest = wait(common, (period_ns + 2 * longest_quantum_ns) * online >> 16) << 16;

	if (task->in_slot == OWN_SLOT)
		charged_ns = charged_in_slot(used_ns, ahead, furthest, entity->worth);
	rest_ns = used_ns - charged_ns;
	if (!rest_ns)
		return charged_ns;
	task->dispensed_ns += rest_ns;
	__sync_fetch_and_add(&node->account.received_ns, rest_ns);
	__sync_fetch_and_add(&totals.charged_ns, rest_ns);
	if (node->limit && use_allowance(task->node, rest_ns, now) && !one_cpu)
		stop_others(task->node);
	if (hybrid) {
		advance_window(task, now);
		receive(&task->window, rest_ns);
	}
	return charged_ns;
}

/* A task used service: its client's lead, its own and its window follow. */
__noinline int raise_leads(struct task *task __arg_nonnull, u64 service_ns, u64 now)
{
	raise_lead(task->node, service_ns, now);
	advance_window(task, now);
	receive(&task->window, service_ns);
	task->lead_ns = risen(task->lead_ns, service_ns);
	return 0;
}

/* Charges a competing task for the CPU time that it used since the last charge. */
static __always_inline void charge(struct task_struct *p, struct task *task, u64 now)
{
	u64 service_ns = p->se.sum_exec_runtime - task->charged_ns;
	bool waits = is_beside_representative(task);

	if (!service_ns)
		return;
	if (waits || !node_at(task->node)->has_line)
		has_outdated_places = true;
	task->charged_ns += service_ns;
	if (is_in_slot(task))
		service_ns = charge_in_slot(task, service_ns, now);
	dispense_for(task, task->charged_ns);
	if (service_ns > MAX_SERVICE_NS)
		service_ns = MAX_SERVICE_NS;
	if (!is_bound(task)) {
		struct rights *node = node_at(task->node);

		/* A task out of order did not win by its progress. */
		if (!is_out_of_order(task) && before(node->progress, task->progress))
			node->progress = task->progress;
		task->progress += progress_of(service_ns, task->held);
		if (!one_cpu)
			catch_up(scx_bpf_task_cpu(p));
	}
	if (hybrid) {
		/* Its lead drains by what is due now, though the node's worth is not found anew. */
		if (waits)
			settle(entity_of(task));
		raise_leads(task, service_ns, now);
	}
	if (service_ns)
		charge_entity(entity_of(task), p->pid, service_ns, is_out_of_order(task));
	/*
	 * The representative's worth remains what it was when that task came to its place.
	 * Otherwise the pass could become less, and no CPU looks for a task before its place.
	 */
	if (!waits && !is_valued(entity_of(task), now))
		revalue(entity_of(task), now);
}

/* Adds a turn that has ended to the accounts. */
static void count_turn(struct task_struct *p, struct task *task)
{
	struct rights *node = node_at(task->node);
	u64 waited_ns = p->sched_info.run_delay - task->delay_ns;
	s32 cpu;
	u32 bucket;

	task->delay_ns += waited_ns;
	bucket = waited_ns ? 64 - zeros_above(waited_ns) : 0;
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	__sync_fetch_and_add(&waits[task->node & (NODES - 1)][bucket], 1);
	__sync_fetch_and_add(&node->account.waited_ns, waited_ns);
	__sync_fetch_and_add(&node->account.dispatches, 1);
	__sync_fetch_and_add(&totals.dispatches, 1);
	if (one_cpu)
		return;
	cpu = scx_bpf_task_cpu(p);
	if (task->cpu != cpu) {
		if (task->cpu >= 0)
			__sync_fetch_and_add(&node->account.migrations, 1);
		task->cpu = cpu;
	}
}

#endif
