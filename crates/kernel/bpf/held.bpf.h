/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Held tasks: they wait while their client pauses (limits.bpf.h), outside the order.
 *
 * Unbound tasks wait in their node's line, which no task represents meanwhile. Bound tasks wait
 * in a queue of the limit's own. A task moves there when it is queued, or when a CPU finds it
 * in another queue. So each task moves at most once a pause. When the pause ends, a task of the
 * line represents the node again, and bound tasks go home.
 *
 * Two kinds of tasks run all the same, and are charged:
 *
 * - Tasks that exit or got a fatal signal: a client can always be ended.
 * - Tasks that have waited for LONGEST_WAIT_NS. Their turn lasts some microseconds. The kernel
 *   would take a much longer wait for starvation, and unload the scheduler.
 *
 * After each period a CPU looks for such tasks; if it saw very many, after a second.
 */
#ifndef PRORATA_HELD_BPF_H
#define PRORATA_HELD_BPF_H

/* Held tasks of a client that one look sees. */
#define MOST_LOOKED_AT 65536

/* After a look that saw more held tasks than this there is none for a second. */
#define MANY_HELD    1024
#define MANY_LOOK_NS 1000000000ULL

/* Bound tasks of a client that one look sends home. */
#define MOST_RETURNED 1024

/* A task is about to wait in its node's line. False if it does already, or another CPU moves it. */
static bool enter_line(struct task *task)
{
	struct rights *node = node_at(task->node);
	u32 place = task->place;

	if (place == IN_LINE || !__sync_bool_compare_and_swap(&task->place, place, IN_LINE))
		return false;
	__sync_fetch_and_add(&node->in_line, 1);
	if (place == REPRESENTS)
		__sync_lock_test_and_set(&node->represented, 0);
	return true;
}

/* It could not be moved there. */
static void leave_line_again(struct task *task)
{
	if (__sync_bool_compare_and_swap(&task->place, IN_LINE, NOWHERE))
		__sync_fetch_and_add(&node_at(task->node)->in_line, -1);
}

/*
 * The pause may have ended before the alarm could see that the task waits. Then this CPU looks
 * once the task is in the queue, and so does an idle one.
 */
static void check_pause(const struct task_struct *p, const struct task *task)
{
	const struct rights *node = node_at(task->node);

	if (pauses(node))
		return;
	if (!is_bound(task))
		note_vacancy(task->node);
	look_at_held = 1;
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), 0);
	wake_idle_cpu(p);
}

/* A held task is queued: in the queue `aside` if it is bound. */
static void wait_for_allowance(struct task_struct *p, struct task *task, u64 aside, u64 enq_flags)
{
	const struct rights *node = node_at(task->node);

	if (is_early(task))
		cease_to_be_early(task);
	begin_to_wait(p, task);
	if (is_bound(task)) {
		insert(p, aside, quantum_of(node), enq_flags);
	} else {
		enter_line(task);
		wait_in_line(p, task, quantum_of(node), enq_flags);
	}
	check_pause(p, task);
}

/* A held task leaves the order, in a loop over its queue. */
static void set_aside(struct bpf_iter_scx_dsq *waiting, struct task_struct *p, struct task *task,
		      u32 queue)
{
	u64 aside = queue_set_aside(node_at(task->node));
	bool moved;

	if (is_bound(task) && !aside)
		return;
	trace_task(TASK_GOES, p, task, queue, 0);
	if (is_early(task)) {
		trace_early(EARLY_ENDS, p, task, queue);
		cease_to_be_early(task);
	}
	if (is_bound(task)) {
		scx_bpf_dsq_move___new(waiting, p, aside, 0);
	} else if (enter_line(task)) {
		scx_bpf_dsq_move_set_vtime___new(waiting, task->progress);
		moved = scx_bpf_dsq_move_vtime___new(waiting, p, LINES + task->node, 0);
		/* Another CPU has taken it, or the kernel is about to queue it again. */
		if (!moved)
			leave_line_again(task);
	}
	check_pause(p, task);
}

/* Sends bound tasks home whose client does not pause any more. */
__noinline int return_bound(u64 set_aside_queue)
{
	u32 count = nothing;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, set_aside_queue, 0) {
		struct task *task = task_of(p);
		u64 pass, key;
		u32 queue;

		if (++count > MOST_RETURNED) {
			look_at_held = 1;
			break;
		}
		if (!task)
			continue;
		queue = queue_for(p, task);
		pass = pass_for(task);
		key = place_of(task, pass);
		if (put_in_place(BPF_FOR_EACH_ITER, p, task, queue, key, pass)) {
			note_key(queue, key);
			wake_idle_cpu(p);
		}
	}
	return 0;
}

/*
 * The turn of a held task ends, on its CPU. The kernel keeps no rest of it for later. The next
 * task of the CPU's own queue may be held, too.
 */
static void stop_held(struct task_struct *p)
{
	scx_bpf_task_set_slice(p, 0);
	if (one_cpu && scx_bpf_dsq_nr_queued(DSQ_LOCAL) > 0)
		scx_bpf_kick_cpu(0, KICK_PREEMPT);
}

/* No look for tasks that run all the same before then. */
static u64 spare_at;

/* Whether a held task is to run all the same. */
static bool is_spared(struct task_struct *p, const struct task *task, u64 now)
{
	return is_ending(p) || has_waited(p, task, now) > (s64)LONGEST_WAIT_NS;
}

/*
 * Moves tasks of a queue that run all the same to a CPU: to this one if it may run them, else to
 * their own. Returns how many moved to this one.
 */
__noinline int spare(u64 queue, s32 cpu)
{
	u64 now = scx_bpf_now();
	u32 count = nothing;
	int spared = nothing;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);
		bool here = bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
		s32 there = here ? cpu : scx_bpf_task_cpu(p);

		if (++count > MOST_LOOKED_AT)
			break;
		if (!task || !is_spared(p, task, now) || !bpf_cpumask_test_cpu(there, p->cpus_ptr))
			continue;
		leave_place(task);
		trace_task(TASK_GOES, p, task, 0, 0);
		trace_early(LIMIT_SPARES, p, task, 0);
		if (!scx_bpf_dsq_move___new(
			    BPF_FOR_EACH_ITER, p, here ? DSQ_LOCAL : DSQ_LOCAL_ON | there, 0))
			continue;
		if (here)
			spared++;
		else
			scx_bpf_kick_cpu(there, KICK_PREEMPT);
	}
	return spared;
}

/*
 * Looks after held tasks on a CPU that takes its next task. Returns how many tasks moved to it
 * that run although their clients pause.
 */
__noinline int look_after_held(s32 cpu)
{
	u64 now = scx_bpf_now();
	bool rests = before(now, spare_at);
	int spared = nothing;
	u32 place, seen = nothing;

	look_at_held = 0;
	bpf_for(place, 1, limits_end) {
		const struct limit *limit = limit_at(place);
		u64 aside = SET_ASIDE + place, line = LINES + limit->node;
		u32 in_line = node_at(limit->node)->in_line;
		u32 bound = one_cpu ? 0 : scx_bpf_dsq_nr_queued(aside);

		if (!limit->allowance.pauses) {
			if (bound)
				return_bound(aside);
			continue;
		}
		if (rests)
			continue;
		seen += in_line + bound;
		if (bound)
			spared += spare(aside, cpu);
		if (in_line)
			spared += spare(line, cpu);
	}
	if (seen > MANY_HELD)
		spare_at = now + MANY_LOOK_NS;
	/* Turns of tasks that have waited too long end at once. */
	if (spared)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	return spared;
}

/* A CPU is to look after held tasks: an idle one if there is one. */
static void have_a_cpu_look(void)
{
	const struct cpumask *there;
	s32 cpu;

	if (one_cpu) {
		scx_bpf_kick_cpu(0, KICK_PREEMPT);
		return;
	}
	there = scx_bpf_get_online_cpumask();
	cpu = scx_bpf_pick_idle_cpu(there, 0);
	scx_bpf_put_cpumask(there);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
	else
		scx_bpf_kick_cpu(bpf_get_smp_processor_id(), KICK_PREEMPT);
}

/* A pause ends. */
static void resume(struct limit *limit)
{
	end_pause(limit);
	if (node_at(limit->node)->in_line)
		note_vacancy(limit->node);
}

/* The alarm: a period has ended. */
static int end_pauses(void *map, u32 *key, struct period_alarm *alarm)
{
	u64 now = scx_bpf_now();
	bool again = false, look = false;
	u32 place;

	/* First: a client that pauses from now on sets the alarm again, or is seen here. */
	__sync_lock_test_and_set(&alarm_is_set, 0);
	bpf_for(place, 1, limits_end) {
		struct limit *limit = limit_at(place);

		if (!limit->allowance.pauses)
			continue;
		look = true;
		regain(&limit->allowance, now);
		if (is_exhausted(&limit->allowance))
			again = true;
		else
			resume(limit);
	}
	if (again)
		set_alarm(now);
	if (look || look_at_held) {
		look_at_held = 1;
		have_a_cpu_look();
	}
	if (look && had_claims)
		look_in_slots();
	return 0;
}

static s32 create_alarm(void)
{
	struct period_alarm *alarm = the_alarm();
	s32 error;

	if (!alarm)
		return -ENOENT;
	error = bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	return error ? error : bpf_timer_set_callback(&alarm->timer, end_pauses);
}

#endif
