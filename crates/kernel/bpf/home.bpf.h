/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Homes: where bound tasks wait. A task is bound if it may run on some of the online CPUs,
 * but not on all. If only one CPU may run it, it waits in the residents' queue of that CPU,
 * else in the one queue of the roamers. So every task in the other queues may run on every
 * CPU, and the first one hides no other.
 *
 * The residents of a CPU can together be entitled to more than that CPU. Their passes then
 * fall behind the present one, further and further. So a resident that joins begins behind
 * it, too, at the front: the pass of the last winner at that home. What remains of a wait
 * is measured from there.
 */
#ifndef PRORATA_HOME_BPF_H
#define PRORATA_HOME_BPF_H

static u32 queue_of(s32 cpu)
{
	return queues > 1 ? queue_by_cpu[cpu & (MAX_CPUS - 1)] : 0;
}

static u32 residents_of(s32 cpu)
{
	return RESIDENTS + cpu;
}

static bool is_restricted(const struct task_struct *p)
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

/* A home is the number of a queue, counted from 1 at ROAMERS. Home 0 is everywhere. */
static u32 home_of(u32 queue)
{
	return queue - ROAMERS + 1;
}

/* The queue of a home other than 0. */
static u32 queue_at(u32 home)
{
	return ROAMERS - 1 + home;
}

static u32 home_for(const struct task_struct *p)
{
	if (!is_restricted(p))
		return 0;
	return home_of(p->nr_cpus_allowed == 1 ? residents_of(scx_bpf_task_cpu(p)) : ROAMERS);
}

static s32 create_homes(void)
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

__noinline int evict_from(u64 queue, s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (p->nr_cpus_allowed == 1 && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL_ON | cpu, 0);
	}
	return 0;
}

/*
 * A CPU goes offline and looks at no queue any more. Its residents move to its own queue,
 * from where the kernel binds them elsewhere before they run.
 */
static void evict_residents(s32 cpu)
{
	struct task_struct *p;
	u32 place;

	bpf_for_each(scx_dsq, p, residents_of(cpu), 0)
		scx_bpf_dsq_move___new(BPF_FOR_EACH_ITER, p, DSQ_LOCAL_ON | cpu, 0);
	if (hybrid)
		evict_from(EARLY, cpu);
	bpf_for(place, 1, limits_end)
		evict_from(SET_ASIDE + place, cpu);
}

/*
 * The pass of the last winner at each home. It counts while it is behind the present pass
 * by more than `most_owed`: unbound winners move that pass by less.
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

/* The present pass at a home. */
static u64 present_at(u32 home)
{
	const struct front *front = front_of(home);

	return !one_cpu && home && front->behind ? front->pass : present();
}

static void catch_up_at(u32 queue)
{
	struct front *front = front_of(home_of(queue));

	if (front->behind && !scx_bpf_dsq_nr_queued(queue))
		front->behind = 0;
}

/* The tasks at a home are no longer behind if none of them waits while others win. */
static void catch_up(s32 cpu)
{
	catch_up_at(residents_of(cpu));
	catch_up_at(ROAMERS);
}

/* A task with this pass has won at a home. */
static void note_winner(u32 home, u64 pass)
{
	struct front *front = front_of(home);

	front->pass = pass;
	front->behind = (s64)(present() - pass) > (s64)most_owed;
}

#endif
