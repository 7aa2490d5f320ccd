/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Claims: in a claimed slot the schedulee precedes all other tasks (2005, 2.2). If it is not runnable,
 * the fallback decides, which is all the rest of this scheduler (2.5). If it wakes in its slot, it is
 * back at once (3.2).
 *
 *	slot begins	boundary    ends the turn on the CPU (boundary.bpf.h)
 *			dispatch    takes the schedulee out of whatever queue it waits in; if it runs on
 *				    another CPU, that turn ends, too
 *	it wakes	select_cpu, enqueue  it goes to the CPU of its slot, and ends the turn there
 *	slot ends	boundary    ends the turn; its task competes again
 *
 * Tokens paid for the slot, so its time costs tickets only up to a bound (word.h). A task in its slot is
 * out of the order of tasks, like an early task: it stands for its node nowhere.
 *
 * Rules protect the others. A claim ends where its client's limit does: a client that pauses has no
 * slots. Tasks that have waited too long (OVERDUE_NS) get a turn in a claimed slot. And after a busy CPU
 * was wholly claimed for CLAIMED_NS, the fallback decides there for a moment. So the kernel, which
 * unloads a scheduler after thirty seconds in which some task waits, never does for a timetable.
 */
#ifndef PRORATA_CLAIM_BPF_H
#define PRORATA_CLAIM_BPF_H

/* Threads of a process, or waiting tasks of a client, among which a CPU looks for a schedulee. */
#define MOST_OF_SCHEDULEE 64

static __always_inline bool is_schedulee(const struct slot *slot, const struct task_struct *p,
					 const struct task *task)
{
	u32 node = task->node, process = p->tgid, thread = p->pid;

	/* Else one instruction would read all of them, through two kinds of pointers. */
	barrier_var(node);
	barrier_var(process);
	barrier_var(thread);
	switch (slot->kind) {
	case CLIENT:
		return node == slot->id;
	case PROCESS:
		return process == slot->id;
	case THREAD:
		return thread == slot->id;
	}
	return false;
}

/* Until the slot has ended for certain: the boundary ends the turn. */
static u64 turn_in_slot(const struct slot *slot, const struct task *task)
{
	const struct rights *node = node_at(task->node);
	u64 turn_ns = 2 * (slot->until_ns - slot->begin_ns);

	return node->limit ? turn_within_limit(node, turn_ns) : turn_ns;
}

/*
 * For how long a task goes on because no other was found. If its slot has just ended, that is until the
 * next tick: another CPU may be moving the next task of a line to its place, which would wait for a whole
 * quantum. The order of passes does not make up for that, as time in slots is charged only up to a bound.
 */
static u64 slice_after_slot(s32 cpu, struct task *task)
{
	return !one_cpu && is_in_slot(task) ? 1 : slice_until(cpu, entity_of(task));
}

static void begin_in_slot(const struct slot *slot, struct task *task)
{
	task->in_slot = slot->is_gift ? GIVEN_SLOT : OWN_SLOT;
}

/* Whether another task of the schedulee runs on the CPU of its slot, or is about to. */
static __always_inline bool is_taken(const struct slot *slot, s32 cpu, const struct task_struct *p)
{
	struct task_struct *current;
	struct task *task;

	if (slot->kind == THREAD)
		return false;
	if (slot->comes && slot->comes != (u32)p->pid)
		return true;
	current = scx_bpf_cpu_curr(cpu);
	if (!current || current->pid == p->pid)
		return false;
	task = task_of(current);
	return task && task->competes && is_schedulee(slot, current, task);
}

/* Whether a task may run on a CPU. The kernel may hold it on its own one for a moment. */
static __always_inline bool may_come(const struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       (one_cpu || scx_bpf_task_cpu(p) == cpu || !is_migration_disabled(p));
}

/*
 * The CPU in whose slot a task is to run now, or -1. A gift interrupts no turn elsewhere. Cost: a look
 * at each CPU while one of them is in a claimed slot.
 */
__noinline int free_slot_for(struct task_struct *p __arg_trusted, struct task *task __arg_nonnull,
			     bool is_running)
{
	s32 first = scx_bpf_task_cpu(p);
	u32 turn;

	if (!in_claimed_slots)
		return -1;
	bpf_for(turn, 0, cpus) {
		s32 cpu = (first + turn) % cpus;
		struct slot *slot = slot_at(cpu);

		if (!slot->kind || !is_schedulee(slot, p, task) ||
		    !before(bpf_ktime_get_ns(), slot->until_ns))
			continue;
		if (is_running && (slot->is_gift || cpu == first))
			continue;
		if (before(scx_bpf_now(), slot->others_until))
			continue;
		if (!may_come(p, cpu))
			continue;
		if (!is_taken(slot, cpu, p))
			return cpu;
	}
	return -1;
}

/*
 * A task that is queued gets the CPU of its slot. Linux 6.18 ends no turn on another CPU for that, so
 * the turn is ended here, too. It ends after the task has come there: a task that changes CPUs has run
 * until now, and then the kernel moves it before it lets this CPU send anything.
 */
static void run_in_slot(struct task_struct *p, struct task *task, s32 cpu, u64 enq_flags)
{
	bool is_here = one_cpu || cpu == scx_bpf_task_cpu(p);
	struct slot *slot = slot_at(cpu);

	if ((void *)bpf_get_current_task_btf() == p)
		compared = false;
	slot->comes = p->pid;
	leave_place(task);
	begin_in_slot(slot, task);
	trace(SLOT_TAKES, task->node, p->pid, 0);
	insert(p,
	       is_here ? DSQ_LOCAL : DSQ_LOCAL_ON | cpu,
	       turn_in_slot(slot, task),
	       enq_flags | ENQ_PREEMPT | ENQ_HEAD);
	if (!is_here)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Moves a task that waits in any queue to this CPU. */
__noinline int take_schedulee(struct task_struct *p __arg_trusted, s32 cpu)
{
	const struct scx_dispatch_q *dsq = p->scx.dsq;
	const struct slot *slot = slot_at(cpu);
	struct bpf_iter_scx_dsq waiting;
	struct task *task = task_of(p);
	bool taken = false;
	u64 queue;

	if (!dsq || !task || !task->competes || is_held(p, task))
		return 0;
	/* A node's representative is another task by now, or belongs to another node. */
	if (!is_schedulee(slot, p, task))
		return 0;
	queue = dsq->id;
	if (queue & DSQ_BUILT_IN)
		return 0;
	/* The affinity of a task that waits there since before the look does not change unnoticed. */
	if (!bpf_iter_scx_dsq_new(&waiting, queue, 0) && may_come(p, cpu)) {
		scx_bpf_dsq_move_set_slice___new(&waiting, turn_in_slot(slot, task));
		taken = scx_bpf_dsq_move___new(&waiting, p, DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&waiting);
	if (!taken)
		return 0;
	leave_place(task);
	begin_in_slot(slot, task);
	trace(SLOT_TAKES, task->node, p->pid, 0);
	if (!one_cpu && queues > 1 && queue < ROAMERS)
		note_head(queue);
	return 1;
}

static __always_inline int take_by_number(u32 number, s32 cpu)
{
	struct task_struct *p = bpf_task_from_pid(number);
	int taken;

	if (!p)
		return 0;
	taken = take_schedulee(p, cpu);
	bpf_task_release(p);
	return taken;
}

/* Takes the first waiting thread of a process. */
__noinline int take_of_process(u32 number, s32 cpu)
{
	struct task_struct *leader = bpf_task_from_pid(number), *thread;
	int taken = nothing;
	u32 count = nothing;

	if (!leader)
		return 0;
	bpf_for_each(task, thread, leader, BPF_TASK_ITER_PROC_THREADS) {
		if (++count > MOST_OF_SCHEDULEE)
			break;
		taken = take_by_number(thread->pid, cpu);
		if (taken)
			break;
	}
	bpf_task_release(leader);
	return taken;
}

/* The first task of a client that waits in this queue, among those that are looked at, or 0. */
__noinline u32 first_of_client(u32 number, u64 queue, s32 cpu)
{
	u32 found = nothing, count = nothing;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);

		if (++count > MOST_OF_SCHEDULEE)
			break;
		if (!task || task->node != number || !task->competes || is_held(p, task) ||
		    !may_come(p, cpu))
			continue;
		found = p->pid;
		break;
	}
	return found;
}

/* Looks for a waiting task of a client while other CPUs take what was found. */
#define LOOKS_FOR_CLIENT 3

/* Takes the first task of a client that waits in this queue. `found`: there was one. */
static __always_inline bool take_from_queue(u32 number, u64 queue, s32 cpu, bool *found)
{
	u32 tid = scx_bpf_dsq_nr_queued(queue) > 0 ? first_of_client(number, queue, cpu) : 0;

	*found |= tid;
	return tid && take_by_number(tid, cpu);
}

/*
 * Takes a waiting task of a client: first early ones, then its representative, its line, bound ones.
 * AGAIN: other CPUs have taken what was found, and the next representative may have a name by now.
 */
__noinline int look_for_client(u32 number, s32 cpu)
{
	const struct rights *node = node_at(number);
	bool found = false;

	if (early_waits() && take_from_queue(number, EARLY, cpu, &found))
		return TAKEN;
	if (node->represented) {
		if (take_by_number(node->representative, cpu))
			return TAKEN;
		found = true;
	}
	/* Not only those that `in_line` counts: the next representative waits there until it is moved. */
	if (take_from_queue(number, LINES + number, cpu, &found))
		return TAKEN;
	if (one_cpu)
		return NO_TASK;
	if (node->bound && (take_from_queue(number, residents_of(cpu), cpu, &found) ||
			    take_from_queue(number, ROAMERS, cpu, &found)))
		return TAKEN;
	/* The next representative has moved, and is not named yet. */
	if (node->represented && take_from_queue(number, queue_of(cpu), cpu, &found))
		return TAKEN;
	return found ? AGAIN : NO_TASK;
}

__noinline int take_of_client(u32 number, s32 cpu)
{
	u32 look;

	bpf_for(look, 0, LOOKS_FOR_CLIENT) {
		int taken = look_for_client(number, cpu);

		if (taken != AGAIN)
			return taken == TAKEN;
	}
	return 0;
}

static __always_inline int take_by_claim(const struct slot *slot, s32 cpu)
{
	switch (slot->kind) {
	case CLIENT:
		return take_of_client(slot->id, cpu);
	case PROCESS:
		return take_of_process(slot->id, cpu);
	case THREAD:
		return take_by_number(slot->id, cpu);
	}
	return 0;
}

/* Whether a task of a CPU's schedulee runs on another CPU, and in no slot of its own there. */
__noinline int runs_elsewhere(s32 here, s32 there)
{
	struct task_struct *current = scx_bpf_cpu_curr(there);
	struct task *task = current ? task_of(current) : NULL;
	const struct slot *slot = slot_at(here), *other = slot_at(there);

	if (!task || !task->competes || !is_schedulee(slot, current, task))
		return 0;
	return bpf_cpumask_test_cpu(here, current->cpus_ptr) &&
	       !(other->kind && is_schedulee(other, current, task));
}

/* Ends such a turn; false if there is none. */
__noinline int call_from_elsewhere(s32 here)
{
	u32 cpu;

	if (one_cpu || slot_at(here)->is_gift)
		return 0;
	bpf_for(cpu, 0, cpus) {
		if ((s32)cpu == here || !runs_elsewhere(here, cpu))
			continue;
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
		return 1;
	}
	return 0;
}

/* Whether claims do not precede others on a CPU for now. */
static bool is_others_turn(struct slot *slot, s32 cpu, u64 now)
{
	if (!before(now, slot->others_from)) {
		slot->others_until = now + OTHERS_NS;
		slot->others_from = slot->others_until + CLAIMED_NS;
	}
	return before(now, slot->others_until);
}

/* Takes the first task of a queue that may run here if that has waited too long. */
__noinline int take_overdue_from(u32 queue, s32 cpu, u64 now)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task *task = task_of(p);

		if (!may_come(p, cpu))
			continue;
		if (has_waited(p, task, now) <= (s64)OVERDUE_NS || (task && is_held(p, task)))
			break;
		if (!scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL, 0))
			break;
		if (!task)
			return 1;
		trace_task(TASK_GOES, p, task, queue, 0);
		/* On one CPU it represents its node until its turn has ended. */
		if (!one_cpu)
			leave_place(task);
		return 1;
	}
	return 0;
}

/*
 * Takes a task that has waited too long. The order of passes need not bring it in time: uncharged time
 * in slots moves no pass.
 */
__noinline int take_overdue(s32 cpu, u64 now)
{
	if (!is_overdue(cpu, now))
		return 0;
	return take_overdue_from(queue_of(cpu), cpu, now) ||
	       (!one_cpu && (take_overdue_from(residents_of(cpu), cpu, now) ||
			     take_overdue_from(ROAMERS, cpu, now)));
}

/* A CPU in a claimed slot takes a task of the schedulee, which did not run here until now. */
static __always_inline bool take_in_slot(struct slot *slot, s32 cpu, bool begins)
{
	if (take_by_claim(slot, cpu)) {
		slot->is_awaited |= begins;
		return true;
	}
	slot->is_awaited |= call_from_elsewhere(cpu) && begins;
	return false;
}

/* What the timetable says to a CPU that takes its next task. */
enum by_claim {
	/* The fallback decides. */
	FALLBACK,
	/* The same, but the task that ran until now has a slot on another CPU. */
	LEAVES,
	/* The schedulee goes on, or was taken. */
	DECIDED,
};

/*
 * Asks the timetable what runs next on a CPU. `task` has run until now, if it is one of ours. It goes on
 * if the slot is its own.
 */
__noinline int ask_timetable(struct task_struct *prev __arg_trusted __arg_nullable,
			     struct task *task, s32 cpu, u64 now)
{
	struct slot *slot = slot_on(cpu);
	bool begins = slot && !slot->has_looked && !slot->goes_on;

	if (slot)
		slot->has_looked = true;
	if (slot && !is_others_turn(slot, cpu, now)) {
		if (take_overdue(cpu, now))
			return DECIDED;
		if (!prev || !task || !is_schedulee(slot, prev, task) || is_held(prev, task)) {
			if (take_in_slot(slot, cpu, begins))
				return DECIDED;
			trace(SLOT_FALLS_BACK, BASE, 0, 0);
		} else {
			slot->has_run = true;
			if (!task->in_slot)
				trace(SLOT_TAKES, task->node, prev->pid, 0);
			begin_in_slot(slot, task);
			scx_bpf_task_set_slice(prev, turn_in_slot(slot, task));
			return DECIDED;
		}
	}
	if (prev && task && free_slot_for(prev, task, true) >= 0)
		return LEAVES;
	return FALLBACK;
}

/* The schedulee of a slot that awaited it sleeps: it is not late when it wakes. */
__noinline int await_no_more(struct task_struct *p __arg_trusted, struct task *task __arg_nonnull)
{
	u32 cpu;

	bpf_for(cpu, 0, cpus) {
		struct slot *slot = slot_at(cpu);

		if (slot->is_awaited && is_schedulee(slot, p, task))
			slot->is_awaited = false;
	}
	return 0;
}

/* A task begins to run on a CPU. Returns whether it got the CPU for a slot that is over. */
__noinline int begin_turn_in_slot(struct task_struct *p __arg_trusted,
				  struct task *task __arg_nonnull, s32 cpu)
{
	struct slot *slot = slot_on(cpu);
	u64 now = bpf_ktime_get_ns();

	if (slot)
		slot->comes = 0;
	if (slot && is_schedulee(slot, p, task) && task->in_slot) {
		if (slot->is_awaited)
			tally_late(cpu, now - slot->begin_ns);
		slot->is_awaited = false;
		slot->has_run = true;
		if (slot->stolen_since_ns)
			tally(cpu, TALLY_STOLEN_NS, now - slot->stolen_since_ns);
		slot->stolen_since_ns = 0;
		return 0;
	}
	/* The slot ended while a task of another class ran, or the task was taken before the slot began. */
	if (task->in_slot || (slot && !slot->has_looked))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	if (!task->in_slot)
		return 0;
	/* Another such task may run once more before the turn ends. */
	scx_bpf_task_set_slice(p, 1);
	return 1;
}

/* A task that ran in its slot stops although it is runnable: a task of another class interrupts. */
static void stop_in_slot(s32 cpu)
{
	struct slot *slot = slot_on(cpu);

	if (slot)
		slot->stolen_since_ns = bpf_ktime_get_ns();
}

#endif
