/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks: each is in one node and shares what that is worth with the others in it,
 * by its progress: the CPU time that it used for each ticket that it holds there.
 *
 * A task competes from when it first is to run after a sleep until it stops
 * running because it sleeps. What is done to it temporarily in between, such
 * as a change of affinity, changes nothing. All but `assigned`, `progress` and
 * `place` is touched under the lock of the task's run queue only.
 */
#ifndef PRORATA_TASK_BPF_H
#define PRORATA_TASK_BPF_H

/* Where a task that competes is counted, see line.bpf.h. */
enum place {
	NOWHERE,
	/* It stands for its node in a queue; on one CPU also while it runs. */
	REPRESENTS,
	/* It waits in line inside its node. */
	IN_LINE,
};

struct task {
	/* CPU time for each ticket, in units of 2^-PROGRESS_BITS ns. */
	u64 progress;
	/* CPU time that it was charged for. */
	u64 charged_ns;
	/* CPU time that the present pass has moved with: never less. */
	u64 dispensed_ns;
	/* Waiting time that is accounted for. */
	u64 delay_ns;
	/* The node's pass when it was queued. */
	u64 queued_pass;
	/* Where it counts, while it competes. */
	u32 node;
	/* Where it belongs; whoever is changed takes note when it next runs. */
	u32 assigned;
	/* Tickets that it holds in its node, while it competes. */
	u32 held;
	/* enum place */
	u32 place;
	s32 cpu;
	/* The control group's node. */
	u32 group;
	struct alone alone;
	bool competes;
	/* Whether the loader, rather than a control group, says where it belongs. */
	bool given;
	/* Whether it was put into a node yet. */
	bool present;
};

static bool is_alone(const struct task *task)
{
	return !one_cpu && task->alone.is;
}

#define PROGRESS_BITS 17

/* What so much CPU time adds to the progress of who holds so many tickets. */
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

/* Turns of each node by the time waited, in powers of two of 1 ns. */
u32 waits[NODES][BUCKETS];

/* Weights by nice value, from -20, as in the kernel (kernel/sched/core.c). */
static const u32 weights[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
	1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
	110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
};

#define WEIGHT_OF_IDLE 3
#define POLICY_IDLE    5
#define FIRST_PRIO     100

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

/* It tells of tasks, and what follows is traced. */
#include "trace_task.bpf.h"

static void join(const struct task_struct *p, struct task *task, u64 now)
{
	struct alone *alone = &task->alone;
	const struct rights *node;
	/* Progress in another node, where it was while it slept, says nothing here. */
	bool comes = task->node != task->assigned;

	task->node = task->assigned;
	task->held = tickets_by_nice(p);
	task->competes = true;
	alone->is = is_bound(p);
	if (comes)
		alone->known = false;
	if (alone->is) {
		count_in_alone(alone, task->node, task->held, home_for(p), now);
		return;
	}
	count_in(task->node, task->held, now);
	node = node_at(task->node);
	if (comes || before(task->progress, node->progress))
		task->progress = node->progress;
}

/* Nodes that nobody represents although some wait in line. */
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

/* It no longer stands for its node, nor waits in line. */
static void leave_place(struct task *task)
{
	struct rights *node = node_at(task->node);
	u32 place = __sync_lock_test_and_set(&task->place, NOWHERE);

	if (place == IN_LINE)
		__sync_fetch_and_add(&node->in_line, -1);
	if (place != REPRESENTS)
		return;
	__sync_lock_test_and_set(&node->represented, 0);
	if (node->in_line)
		note_vacancy(task->node);
}

static void leave(const struct task_struct *p, struct task *task)
{
	trace_task(TASK_GOES, p, task, 0, 0);
	leave_place(task);
	task->competes = false;
	if (is_alone(task))
		count_out_alone(&task->alone, task->node, task->held);
	else
		count_out(task->node, task->held);
}

/* It belongs elsewhere, is nicer, or is bound to other CPUs, since it joined. */
static void follow_assignment(const struct task_struct *p, struct task *task, u64 now)
{
	leave(p, task);
	join(p, task, now);
}

/* Whether where it may run has changed since it joined. */
static bool is_bound_anew(const struct task_struct *p, const struct task *task)
{
	if (one_cpu)
		return false;
	return is_bound(p) ? !is_alone(task) || task->alone.home != home_for(p) : is_alone(task);
}

/* CPU time that a task used and was not charged for. */
static u64 used_by(const struct task_struct *p, const struct task *task)
{
	return p->se.sum_exec_runtime - task->charged_ns;
}

/* The present pass moves with all the CPU time that a competing task has used by now. */
static void dispense_for(struct task *task, u64 used_ns)
{
	s64 service_ns = used_ns - task->dispensed_ns;

	if (service_ns <= 0)
		return;
	task->dispensed_ns = used_ns;
	if (!is_alone(task))
		follow_winner(node_at(task->node)->pass);
	dispense(service_ns);
}

/*
 * The same for who runs on a CPU, whose run queue is locked: who joins in the middle of a
 * turn begins where all stand by then (1995, 2.2), and is not credited what the turn has
 * used before.
 */
static void dispense_turn(const struct task_struct *p, struct task *runs, s32 cpu)
{
	u64 uncounted_ns = scx_clock_task(cpu) - p->se.exec_start;

	dispense_for(runs, p->se.sum_exec_runtime + uncounted_ns);
}

/* On one of several CPUs, where somebody is about to join. */
static void dispense_turn_on(s32 cpu)
{
	struct task_struct *current = __COMPAT_scx_bpf_cpu_curr(cpu);
	struct task *runs = current ? task_of(current) : NULL;

	if (runs && runs->competes)
		dispense_turn(current, runs, cpu);
}

/* Charges a competing task for the CPU time that it used since last time. */
static void charge(struct task_struct *p, struct task *task, u64 now)
{
	u64 service_ns = used_by(p, task);
	struct rights *node;

	if (!service_ns)
		return;
	task->charged_ns += service_ns;
	dispense_for(task, task->charged_ns);
	if (task->node != task->assigned || is_bound_anew(p, task))
		follow_assignment(p, task, now);
	if (service_ns > MAX_SERVICE_NS)
		service_ns = MAX_SERVICE_NS;
	if (is_alone(task)) {
		charge_alone(&task->alone, task->node, task->held, service_ns, now);
		return;
	}
	node = node_at(task->node);
	if (before(node->progress, task->progress))
		node->progress = task->progress;
	task->progress += progress_of(service_ns, task->held);
	if (!one_cpu)
		catch_up(scx_bpf_task_cpu(p));
	charge_client(task->node, p->pid, service_ns, now);
}

/* Accounts for a turn that has ended. */
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
	__sync_fetch_and_add(&node->waited_ns, waited_ns);
	__sync_fetch_and_add(&node->dispatches, 1);
	__sync_fetch_and_add(&totals.dispatches, 1);
	if (one_cpu)
		return;
	cpu = scx_bpf_task_cpu(p);
	if (task->cpu != cpu) {
		if (task->cpu >= 0)
			__sync_fetch_and_add(&node->migrations, 1);
		task->cpu = cpu;
	}
}

/* What it used and waited for before is nobody's business. */
static void begin_clocks(const struct task_struct *p, struct task *task)
{
	task->charged_ns = p->se.sum_exec_runtime;
	task->dispensed_ns = task->charged_ns;
	task->delay_ns = p->sched_info.run_delay;
}

/* A task comes to belong to a node; it is in none before, or not yet known. */
static void belong(struct task *task, u32 number)
{
	task->assigned = number;
	task->node = number;
	task->cpu = -1;
	__sync_fetch_and_add(&node_at(number)->tasks, 1);
}

static void belong_elsewhere(struct task *task, u32 number)
{
	u32 old = task->assigned;

	if (old == number)
		return;
	task->assigned = number;
	__sync_fetch_and_add(&node_at(number)->tasks, 1);
	if (__sync_fetch_and_add(&node_at(old)->tasks, -1) == 1 && old < CGROUP_NODES)
		bpf_ringbuf_output(&exits, &old, sizeof(old), 0);
}

/* A task has ended, or is let go. */
static void end(const struct task_struct *p, struct task *task)
{
	u32 number = task->assigned;

	if (task->competes)
		leave(p, task);
	if (__sync_fetch_and_add(&node_at(number)->tasks, -1) == 1 && number < CGROUP_NODES)
		bpf_ringbuf_output(&exits, &number, sizeof(number), 0);
}

#endif
