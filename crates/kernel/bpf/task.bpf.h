/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks: joining, leaving and being charged (1995, 2.2 and Figure 3).
 *
 * A task competes from when it first is to run after a sleep until it stops
 * running because it sleeps. What is done to it temporarily in between, such
 * as a change of affinity, changes nothing. All but `assigned` and `pass` is
 * touched under the lock of the task's run queue only.
 */
#ifndef PRORATA_TASK_BPF_H
#define PRORATA_TASK_BPF_H

struct task {
	/* Its place, while it competes. */
	u64 pass;
	/* What it was worth when the pass was set. */
	worth_t worth;
	/* Its place before the present pass when it left, and its worth then. */
	s64 remain;
	worth_t remain_worth;
	/* CPU time that it was charged for. */
	u64 charged_ns;
	/* Waiting time that is accounted for. */
	u64 delay_ns;
	/* Where it counts, while it competes. */
	u32 node;
	/* Where it belongs; whoever is changed takes note when it next runs. */
	u32 assigned;
	/* Tickets that it holds in its node, while it competes. */
	u32 held;
	s32 cpu;
	bool competes;
	/* Whether it ever did. */
	bool known;
	/* Whether it has not run since it joined. */
	bool reserved;
	/* Whether the loader, rather than a control group, says where it belongs. */
	bool given;
	/* Whether it was put into a node yet. */
	bool present;
	/* The control group's node. */
	u32 group;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

struct totals totals;

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

/* Accounts for what was due to the node's tasks until now. */
__noinline int settle(u32 number)
{
	struct rights *node = node_at(number);
	u64 until = dispensed;
	u64 wait = until - __sync_lock_test_and_set(&node->settled_at, until);

	if ((s64)wait > 0)
		__sync_fetch_and_add(&node->specified_ns, service_in(wait, node->value));
	return 0;
}

/* What those are worth who hold so many tickets in a node. */
__noinline u64 price_held(u32 number, u32 held, u64 now)
{
	struct rights *node = node_at(number);
	s64 active;

	if (!is_priced(node, now)) {
		worth_t value = node->value;
		s64 remain = node->pass - present();

		settle(number);
		price(number, now);
		set_longest();
		if (node->value != value)
			node->pass = present() + keep_remain(remain, value, node->value);
	}
	active = node->active;
	if (active <= (s64)held)
		return node->value;
	return worth_multiply(node->value, worth_divide(worth_of(held), worth_of(active)));
}

/* What a competing task is worth now. */
static worth_t price_task(const struct task *task, u64 now)
{
	return price_held(task->node, task->held, now);
}

/* A node becomes active; it was worth `before` when it ceased to be. */
__noinline int enter(u32 number, u64 before)
{
	struct rights *node = node_at(number);
	s64 remain;

	if (node->known)
		remain = keep_remain(node->remain, before, node->value);
	else
		remain = held(wait_after(quantum_ns, node->value));
	node->known = true;
	node->pass = present() + remain;
	return 0;
}

/* Turns end with a tick, which come that far apart; the loader sets it. */
u64 tick_ns;

/*
 * Where a task that joins may begin: where its node stands, and behind those
 * who joined before it and have not had their turn.
 */
__noinline u64 entrance(u32 number)
{
	struct rights *node = node_at(number);
	u64 pass = node->pass, reserved = __sync_fetch_and_add(&node->reserved, 1);

	/* On several CPUs see forgive(). */
	if (!one_cpu && before(pass, present()))
		pass = present();
	return pass + wait_for((quantum_ns + tick_ns) * reserved, node->value);
}

/* Gives back what the task is worth then. */
static worth_t count_in(struct task *task, u64 now)
{
	struct rights *node = node_at(task->node);
	bool first = !__sync_fetch_and_add(&node->runnable, 1);
	worth_t value = node->value, worth;

	if (first)
		node->settled_at = dispensed;
	change_held(task->node, task->held);
	worth = price_task(task, now);
	if (first)
		enter(task->node, value);
	return worth;
}

/* It runs, or is gone. */
static void end_reservation(struct task *task)
{
	if (task->reserved)
		__sync_fetch_and_add(&node_at(task->node)->reserved, -1);
	task->reserved = false;
}

static void count_out(struct task *task)
{
	struct rights *node = node_at(task->node);

	end_reservation(task);
	if (__sync_fetch_and_add(&node->runnable, -1) == 1) {
		settle(task->node);
		node->remain = held(node->pass - present());
	}
	change_held(task->node, -(s64)task->held);
}

static void join(struct task_struct *p, struct task *task, u64 now)
{
	u64 first;

	task->node = task->assigned;
	task->held = tickets_by_nice(p);
	task->competes = true;
	task->worth = count_in(task, now);
	first = entrance(task->node);
	task->reserved = true;
	task->pass = first;
	if (task->known) {
		u64 pass = present() + keep_remain(task->remain, task->remain_worth, task->worth);

		if (before(first, pass))
			task->pass = pass;
	}
	task->known = true;
	trace(DECISION_JOIN, p->pid, task->pass, task->worth, 0);
}

static void leave(const struct task_struct *p, struct task *task)
{
	trace(DECISION_LEAVE, p->pid, task->pass, task->worth, 0);
	task->remain = held(task->pass - present());
	task->remain_worth = task->worth;
	task->competes = false;
	count_out(task);
}

/* What remains of a competing task's wait changes with its worth. */
static void be_worth(const struct task_struct *p, struct task *task, worth_t worth)
{
	s64 remain;

	if (worth == task->worth)
		return;
	remain = keep_remain(task->pass - present(), task->worth, worth);
	task->pass = present() + remain;
	task->worth = worth;
	trace(DECISION_TICKETS, p->pid, task->pass, task->worth, 0);
}

/* It belongs elsewhere, or is nicer, since it joined. */
static void follow_assignment(const struct task_struct *p, struct task *task, u64 now)
{
	count_out(task);
	task->node = task->assigned;
	task->held = tickets_by_nice(p);
	be_worth(p, task, count_in(task, now));
}

/*
 * Who has run is owed nothing. In a race (before it is charged) its next wait
 * begins at the present moment, as in the core. On several CPUs one that is
 * behind all winners even after it was charged is entitled to more than a CPU,
 * or others than us took its CPU.
 */
static void forgive(struct task *task, bool charged)
{
	u64 now = present();

	if (lottery == charged || (one_cpu && charged))
		return;
	if (before(task->pass, now))
		task->pass = now;
}

/* CPU time that a task used and was not charged for. */
static u64 used_by(const struct task_struct *p, const struct task *task)
{
	return p->se.sum_exec_runtime - task->charged_ns;
}

/* Charges a competing task for the CPU time that it used since last time. */
static void charge(struct task_struct *p, struct task *task, u64 now)
{
	u64 service_ns = used_by(p, task), wait;
	struct rights *node;

	if (!service_ns)
		return;
	task->charged_ns += service_ns;
	if (task->node != task->assigned)
		follow_assignment(p, task, now);
	else
		be_worth(p, task, price_task(task, now));
	if (service_ns > MAX_SERVICE_NS)
		service_ns = MAX_SERVICE_NS;
	follow_winner(task->pass);
	dispense(service_ns);
	forgive(task, false);
	wait = wait_after(service_ns, task->worth);
	task->pass += wait;
	forgive(task, true);
	trace(DECISION_CHARGE, p->pid, task->pass, task->worth, service_ns);
	end_reservation(task);
	node = node_at(task->node);
	if (lottery || task->worth != node->value)
		wait = wait_for(service_ns, node->value);
	__sync_fetch_and_add(&node->pass, wait);
	__sync_fetch_and_add(&node->received_ns, service_ns);
	__sync_fetch_and_add(&totals.charged_ns, service_ns);
}

/* Accounts for a turn that has ended. */
static void count_turn(struct task_struct *p, struct task *task)
{
	struct rights *node = node_at(task->node);
	u64 waited_ns = p->sched_info.run_delay - task->delay_ns;
	s32 cpu = scx_bpf_task_cpu(p);
	u32 bucket;

	task->delay_ns += waited_ns;
	bucket = waited_ns ? 64 - zeros_above(waited_ns) : 0;
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	__sync_fetch_and_add(&waits[task->node & (NODES - 1)][bucket], 1);
	__sync_fetch_and_add(&node->waited_ns, waited_ns);
	__sync_fetch_and_add(&node->dispatches, 1);
	__sync_fetch_and_add(&totals.dispatches, 1);
	if (task->cpu != cpu) {
		if (task->cpu >= 0)
			__sync_fetch_and_add(&node->migrations, 1);
		task->cpu = cpu;
	}
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
