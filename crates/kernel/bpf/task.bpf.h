/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks: each belongs to one node. The unbound tasks of a node share what it receives by
 * their progress: the CPU time that each used for each ticket that it holds there.
 *
 * A task competes from the moment that it becomes runnable until it stops running because
 * it sleeps. Temporary operations in between, such as a change of affinity, do not matter.
 * All fields but `assigned`, `progress` and `place` are protected by the lock of the task's
 * run queue.
 */
#ifndef PRORATA_TASK_BPF_H
#define PRORATA_TASK_BPF_H

/* What a competing task does for its node, see line.bpf.h. */
enum place {
	NOWHERE,
	/* It stands for its node in a queue; on one CPU also while it runs. */
	REPRESENTS,
	/* It waits in the node's line. */
	IN_LINE,
	/*
	 * It goes from the line to its node's place. The CPU that moves it holds `represented` meanwhile: a
	 * task that leaves, or is queued anew, leaves the node's place to that CPU.
	 */
	MOVES,
};

struct task {
	/* CPU time for each ticket, in units of 2^-PROGRESS_BITS ns. */
	u64 progress;
	/* The task's CPU time up to which it was charged. */
	u64 charged_ns;
	/* The task's CPU time that the present pass includes: never less than `charged_ns`. */
	u64 dispensed_ns;
	/* The waiting time that the node's account includes. */
	u64 delay_ns;
	/* Its entity's pass when it was queued. */
	u64 queued_pass;
	/* While it waits: its latest place in a queue, however its entity's pass moves. */
	u64 latest;
	/* Its place among early tasks (window.h), or NOT_EARLY. */
	u64 early;
	/* What it received and deserved, and the rate of the latter. */
	struct use_window window;
	u64 rate;
	/* CPU time that it used beyond what it deserved. */
	u64 lead_ns;
	/* Its client's lead when that last decided whether it is early. Only traces need it. */
	u64 judged_lead_ns;
	/* When it began to wait, and what it had used by then. */
	u64 waits_since;
	u64 ran_ns;
	/* `charged_ns` when it woke last. */
	u64 woke_at_ns;
	/* The second in which the rate was found. */
	u32 rated_in;
	/* enum wake_class: how it sleeps, since it stopped. */
	u32 sleeps_on;
	/* One more than the CPU of a waker that is about to sleep, or 0. */
	u32 waker;
	/* The node in which it competes. */
	u32 node;
	/* The node to which it belongs. It moves there when it is next queued or charged. */
	u32 assigned;
	/* Tickets of its node that it holds while it competes. */
	u32 held;
	/* enum place */
	u32 place;
	s32 cpu;
	/* The node of its control group. */
	u32 group;
	/* What competes for it while it is bound; its home is 0 otherwise. */
	struct entity own;
	bool competes;
	/* Whether the loader assigned it, rather than its control group. */
	bool given;
	/* Whether it belongs to a node. */
	bool present;
	/* enum in_slot: whether it runs in a slot of the timetable (claim.bpf.h). */
	u8 in_slot;
};

static bool is_bound(const struct task *task)
{
	return !one_cpu && task->own.home;
}

#define NOT_EARLY (~0ULL)

static bool is_early(const struct task *task)
{
	return hybrid && task->early != NOT_EARLY;
}

static struct entity *entity_of(struct task *task)
{
	return is_bound(task) ? &task->own : &node_at(task->node)->client;
}

/*
 * The pass that decides the task's place. A caller that derives a key and `queued_pass`
 * reads it once for both. Other CPUs move it meanwhile: if `queued_pass` were later than
 * the key, no CPU would see that the key is outdated.
 */
static u64 pass_for(struct task *task)
{
	return READ_ONCE(entity_of(task)->pass);
}

#define PROGRESS_BITS 17

/* The progress of a task with these tickets that used this CPU time. */
static u64 progress_of(u64 service_ns, u32 held)
{
	return (service_ns << PROGRESS_BITS) / (held | 1);
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

/* Weights by nice value, from -20 on, as in the kernel (kernel/sched/core.c). */
static const u32 weights[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
	1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
	110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
};

#define POLICY_IDLE 5
#define FIRST_PRIO  100

#define SIGKILL_BIT (1UL << 8)
#define GROUP_EXITS 0x4

/* Nodes whose last task has ended, for the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} exits SEC(".maps");

static struct task *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

static u32 tickets_by_nice(const struct task_struct *p)
{
	u32 nice = p->static_prio - FIRST_PRIO;

	if (p->policy == POLICY_IDLE)
		return WEIGHT_OF_IDLE * TICKETS_A_WEIGHT;
	return weights[nice < 40 ? nice : 39] * TICKETS_A_WEIGHT;
}

/* Whether the timetable lets a task run, not the order of tasks. */
static bool is_in_slot(const struct task *task)
{
	return had_claims && task->in_slot;
}

/* Whether a task runs by another order than that of passes and progress. */
static bool is_out_of_order(const struct task *task)
{
	return is_early(task) || is_in_slot(task);
}

/* It describes tasks, and the functions below use it. */
#include "trace_task.bpf.h"

__noinline int join(struct task_struct *p __arg_trusted, struct task *task __arg_nonnull, u64 now)
{
	/* Its progress in the node that it leaves says nothing in this one. */
	bool comes = task->node != task->assigned;
	const struct rights *node = node_at(task->assigned);
	struct entity *entity;

	task->node = task->assigned;
	task->held = tickets_by_nice(p);
	task->competes = true;
	task->early = NOT_EARLY;
	task->own.home = home_for(p);
	if (comes)
		task->own.known = false;
	entity = entity_of(task);
	entity->node = task->node;
	count_in(entity, task->held, now);
	if (!is_bound(task) && (comes || before(task->progress, node->progress)))
		task->progress = node->progress;
	return 0;
}

/* Nodes whose line holds tasks although no queue holds one of them. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, NODES);
	__type(value, u32);
} vacancies SEC(".maps");
static u32 vacant;

static void note_vacancy(u32 number)
{
	if (!bpf_map_push_elem(&vacancies, &number, 0))
		__sync_fetch_and_add(&vacant, 1);
}

/* No task stands for a node any more. */
static void vacate(u32 number)
{
	struct rights *node = node_at(number);

	__sync_lock_test_and_set(&node->represented, 0);
	if (node->in_line)
		note_vacancy(number);
}

/* The task neither stands for its node nor waits in its line any more. */
static void leave_place(struct task *task)
{
	u32 place = __sync_lock_test_and_set(&task->place, NOWHERE);

	if (place == IN_LINE)
		__sync_fetch_and_add(&node_at(task->node)->in_line, -1);
	if (place == REPRESENTS)
		vacate(task->node);
}

__noinline int leave(struct task_struct *p __arg_trusted, struct task *task __arg_nonnull)
{
	trace_task(TASK_GOES, p, task, 0, 0);
	if (is_early(task))
		trace_early(EARLY_ENDS, p, task, EARLY);
	leave_place(task);
	task->competes = false;
	count_out(entity_of(task), task->held);
	return 0;
}

/* Whether its node, its nice value or the CPUs that it is bound to changed since it joined. */
static bool is_changed(const struct task_struct *p, const struct task *task)
{
	return task->node != task->assigned || task->held != tickets_by_nice(p) ||
	       (!one_cpu && task->own.home != home_for(p));
}

static void follow_changes(struct task_struct *p, struct task *task, u64 now)
{
	u64 early = task->early;

	leave(p, task);
	join(p, task, now);
	task->early = early;
}

/* Whether a task exits or is about to: the last is true from its kill to its exit. */
static bool is_ending(const struct task_struct *p)
{
	return (p->flags & PF_EXITING) || (p->pending.signal.sig[0] & SIGKILL_BIT) ||
	       (p->signal->flags & GROUP_EXITS);
}

/* Whether a task waits for the end of its client's pause, see held.bpf.h. */
static bool is_held(const struct task_struct *p, const struct task *task)
{
	return pauses(node_at(task->node)) && !is_ending(p);
}

/* The task of ours that runs on a CPU, or NULL. */
static struct task *running_task_on(s32 cpu)
{
	struct task_struct *current = scx_bpf_cpu_curr(cpu);
	struct task *task = current ? task_of(current) : NULL;

	return task && task->competes ? task : NULL;
}

/* A client pauses: the turns of its tasks on other CPUs end. */
__noinline int stop_others(u32 number)
{
	s32 here = bpf_get_smp_processor_id(), cpu;

	bpf_for(cpu, 0, cpus) {
		struct task *task = cpu == here ? NULL : running_task_on(cpu);

		if (task && task->node == number)
			scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
	return 0;
}

/*
 * The present pass moves with all the CPU time that a competing task has used by now, and an
 * allowance shrinks by it.
 */
static void dispense_for(struct task *task, u64 used_ns)
{
	const struct rights *node = node_at(task->node);
	s64 service_ns = used_ns - task->dispensed_ns;

	if (service_ns <= 0)
		return;
	task->dispensed_ns = used_ns;
	if (!is_bound(task) && !is_out_of_order(task))
		follow_winner(node->client.pass);
	dispense(service_ns);
	if (node->limit && use_allowance(task->node, service_ns, scx_bpf_now()) && !one_cpu)
		stop_others(task->node);
}

/*
 * The same for the task that runs on a CPU whose run queue is locked. A task that joins in
 * the middle of a turn begins at the present pass of that moment (1995, 2.2), and gets no
 * credit for what the turn has used before.
 */
static void dispense_turn(const struct task_struct *p, struct task *task, s32 cpu)
{
	u64 uncounted_ns = scx_clock_task(cpu) - p->se.exec_start;

	/* How much of a slot is charged is found at its end. */
	if (!is_in_slot(task))
		dispense_for(task, p->se.sum_exec_runtime + uncounted_ns);
	if (pauses(node_at(task->node)))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* On one of several CPUs, before a task joins there. */
static void dispense_turn_on(s32 cpu)
{
	struct task_struct *current = scx_bpf_cpu_curr(cpu);
	struct task *task = current ? task_of(current) : NULL;

	if (task && task->competes)
		dispense_turn(current, task, cpu);
}

/*
 * Finds the part of what its client is due that a task deserves. A task that mostly sleeps is
 * hardly in the mean of those that compete, so its part is not too small.
 */
__noinline int rate_task(struct task *task __arg_nonnull)
{
	const struct dues *dues = &node_at(task->node)->dues;
	u64 held = task->held >> HELD_BITS, mean = dues->mean_held;
	u64 part = (held << PART_BITS) / ((mean > held ? mean : held) | !held);

	task->rated_in = second;
	task->rate = at_most((dues->rate_of_tasks * part) >> PART_BITS, ONE_CPU);
	return 0;
}

/* Completes the task's window. The client's second is the present one. */
static __always_inline void advance_window(struct task *task, u64 now)
{
	u64 passed_ns;

	if (task->rated_in != second)
		rate_task(task);
	passed_ns = advance(&task->window, now, task->rate);
	task->lead_ns = drained(task->lead_ns, due_in(task->rate, passed_ns));
}

/*
 * A task that comes back, or is not early any more, owes no more than its lead and a quantum: what else
 * it used out of order was due to it.
 */
__noinline int forgive_progress(struct task *task __arg_nonnull)
{
	const struct rights *node = node_at(task->node);
	u64 owed_ns = task->lead_ns + quantum_of(node);
	u64 most = node->progress + progress_of(owed_ns, task->held);

	if (!is_bound(task) && before(most, task->progress))
		task->progress = most;
	return 0;
}

static void cease_to_be_early(struct task *task)
{
	task->early = NOT_EARLY;
	forgive_progress(task);
}

/*
 * Whether a place in the queue may be older than a pass. Only tasks that run beside their
 * node's representative move a pass that has a place. A look at an empty queue clears this.
 */
static bool has_outdated_places;

/* On one CPU: whether another task of its node waits in the queue while a task runs. */
static bool is_beside_representative(const struct task *task)
{
	const struct rights *node = node_at(task->node);

	return one_cpu && (hybrid || had_claims) && task->place != REPRESENTS && node->represented;
}

/* What the task used and waited for before it came here does not count. */
static void begin_clocks(const struct task_struct *p, struct task *task)
{
	task->charged_ns = p->se.sum_exec_runtime;
	task->dispensed_ns = task->charged_ns;
	task->delay_ns = p->sched_info.run_delay;
}

/* A task that belongs to no node now belongs to this one. */
static void belong(struct task *task, u32 number)
{
	task->assigned = number;
	task->node = number;
	task->cpu = -1;
	__sync_fetch_and_add(&node_at(number)->tasks, 1);
}

/* A forked task has its parent's window, any other one a new one. */
static void begin_window(struct task *task, const struct task *parent)
{
	if (!hybrid)
		return;
	task->window = parent ? parent->window : window_from(scx_bpf_now());
	/* The parent may have been charged in the middle of the copy. */
	add_up(&task->window);
}

/* A node has one task less. */
static void lose_task(u32 number)
{
	if (__sync_fetch_and_add(&node_at(number)->tasks, -1) == 1 && number < CGROUP_NODES)
		bpf_ringbuf_output(&exits, &number, sizeof(number), 0);
}

static void belong_elsewhere(struct task *task, u32 number)
{
	u32 old = task->assigned;

	if (old == number)
		return;
	task->assigned = number;
	__sync_fetch_and_add(&node_at(number)->tasks, 1);
	lose_task(old);
}

#endif
