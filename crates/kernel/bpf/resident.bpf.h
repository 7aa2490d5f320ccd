/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Residents: tasks that are bound to some of several CPUs. They are clients of their
 * own (alone.bpf.h), and wait where their CPUs look and no others do: who may run on one
 * CPU only, in that CPU's own queue of residents; who may run on several, in one
 * queue for all of these. So whoever is first in another queue may run anywhere, and
 * hides nobody.
 *
 * What is bound to a CPU can together be entitled to more than that is. Its passes
 * then fall ever further behind the present one, all alike. So who joins residents
 * begins behind it by as much, and what remains of a wait is measured from there.
 */
#ifndef PRORATA_RESIDENT_BPF_H
#define PRORATA_RESIDENT_BPF_H

const volatile u32 queues = 1;

/* The queue of each CPU; those beyond use the first ones'. */
const volatile u32 queue_by_cpu[MAX_CPUS];

static u32 queue_of(s32 cpu)
{
	return queues > 1 ? queue_by_cpu[cpu & (MAX_CPUS - 1)] : 0;
}

/* Those that may run on several CPUs, but not on all. Queues have the numbers below. */
#define ROAMERS 1024

/* Those of CPU 0; then each CPU's. LINES is beyond. */
#define RESIDENTS (ROAMERS + 1)

static u32 residents_of(s32 cpu)
{
	return RESIDENTS + cpu;
}

/* It is bound to some of the CPUs that there are. */
static bool is_bound(const struct task_struct *p)
{
	const struct cpumask *there;
	bool everywhere;

	if (one_cpu || p->nr_cpus_allowed >= (s32)cpus)
		return false;
	there = scx_bpf_get_online_cpumask();
	everywhere = bpf_cpumask_subset(there, p->cpus_ptr);
	scx_bpf_put_cpumask(there);
	return !everywhere;
}

/* Where a task waits, if it is bound. */
static u32 home_queue_for(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 ? residents_of(scx_bpf_task_cpu(p)) : ROAMERS;
}

static s32 create_residents(void)
{
	s32 error = scx_bpf_create_dsq(ROAMERS, -1);
	u32 cpu;

	if (error)
		return error;
	bpf_for(cpu, 0, cpus) {
		error = scx_bpf_create_dsq(residents_of(cpu), -1);
		if (error)
			return error;
	}
	return 0;
}

/*
 * A CPU goes, and asks for nobody any more: the kernel binds its residents
 * elsewhere as soon as they are about to run.
 */
static void evict_residents(s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, residents_of(cpu), 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, DSQ_LOCAL_ON | cpu, 0);
}

/* A home: the number of a queue from ROAMERS on, which is 0. */
static u32 home_of(u32 queue)
{
	return queue - ROAMERS;
}

/* The home of a task that is bound. */
static u32 home_for(const struct task_struct *p)
{
	return home_of(home_queue_for(p));
}

/*
 * The pass of who won last at each home, while those there are behind: further than who
 * may run everywhere puts the present pass ahead of others now and then.
 */
static struct front {
	u64 pass;
	u32 behind;
	u32 unused;
} fronts[2 * MAX_CPUS];

static struct front *front_of(u32 home)
{
	return &fronts[home & (2 * MAX_CPUS - 1)];
}

/* The present pass for those at a home. */
static u64 present_at(u32 home)
{
	const struct front *front = front_of(home);

	return front->behind ? front->pass : present();
}

/* Nobody waits where others would have won: those are not behind. */
static void catch_up(s32 cpu)
{
	if (front_of(home_of(residents_of(cpu)))->behind &&
	    !scx_bpf_dsq_nr_queued(residents_of(cpu)))
		front_of(home_of(residents_of(cpu)))->behind = 0;
	if (front_of(home_of(ROAMERS))->behind && !scx_bpf_dsq_nr_queued(ROAMERS))
		front_of(home_of(ROAMERS))->behind = 0;
}

/* Who had this pass has won there. */
static void note_winner(u32 home, u64 pass)
{
	struct front *front = front_of(home);

	front->pass = pass;
	front->behind = (s64)(present() - pass) > (s64)most_owed;
}

#endif
