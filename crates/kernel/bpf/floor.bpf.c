/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The floor: the least that a scheduler which is fair by weight has to do.
 *
 * Every task has a pass. Waiting tasks stand in one queue in the order of their passes.
 * When a task stops running, its pass moves by the time that it ran, divided by its weight
 * (from its nice value: there are no groups). A task that slept long begins one quantum
 * behind the largest pass that has run, so sleep earns no more credit than that. A task
 * that wakes while a CPU is idle goes there at once.
 *
 * Benches compare schedulers with this one: its cost is the price of sched_ext itself. A
 * kernel that loads it can run any scheduler.
 */
#include <scx/common.bpf.h>

#include "constants.bpf.h"
#include "exit.bpf.h"

char _license[] SEC("license") = "GPL";

/* The longest turn of a task. */
const volatile u64 quantum_ns = 20000000;

/* The one queue. */
#define QUEUE 0

/* The weight of nice 0 in sched_ext. */
#define WEIGHT_ONE 100

/* The largest pass of a task that ran. A lost update does no harm. */
static u64 furthest_pass;

/* Tasks that this scheduler has taken over since it was loaded. */
u64 tasks_enabled;

struct exit_record exit_record;

s32 BPF_STRUCT_OPS(floor_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, DSQ_LOCAL, quantum_ns, 0);
	return cpu;
}

void BPF_STRUCT_OPS(floor_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 pass = p->scx.dsq_vtime;
	u64 least = furthest_pass - quantum_ns;

	/* Passes wrap around, so only differences compare. */
	if ((s64)(pass - least) < 0)
		pass = least;
	scx_bpf_dsq_insert_vtime(p, QUEUE, quantum_ns, pass, enq_flags);
}

void BPF_STRUCT_OPS(floor_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE, 0);
}

void BPF_STRUCT_OPS(floor_running, struct task_struct *p)
{
	if ((s64)(p->scx.dsq_vtime - furthest_pass) > 0)
		furthest_pass = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(floor_stopping, struct task_struct *p, bool runnable)
{
	u64 used_ns = quantum_ns - p->scx.slice;

	scx_bpf_task_set_dsq_vtime(p, p->scx.dsq_vtime + used_ns * WEIGHT_ONE / p->scx.weight);
}

void BPF_STRUCT_OPS(floor_enable, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, furthest_pass);
	__sync_fetch_and_add(&tasks_enabled, 1);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(floor_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(floor_exit, struct scx_exit_info *info)
{
	record_exit(&exit_record, info);
}

/* clang-format off */
SCX_OPS_DEFINE(floor_ops, .select_cpu = (void *)floor_select_cpu, .enqueue = (void *)floor_enqueue,
	       .dispatch = (void *)floor_dispatch, .running = (void *)floor_running,
	       .stopping = (void *)floor_stopping, .enable = (void *)floor_enable,
	       .init = (void *)floor_init, .exit = (void *)floor_exit, .name = "prorata_floor");
/* clang-format on */
