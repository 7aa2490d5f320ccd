/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Observes any scheduler: how long tasks wait for a CPU after they wake, how often CPUs
 * switch, and where in the kernel tasks sleep.
 *
 *   sched_wakeup  -- the task is runnable: its wait begins
 *   sched_switch  -- the next task's wait ends; if the previous task blocks, its sleep
 *                    begins, in the functions that its stack names
 *   sched_wakeup  -- that sleep ends
 *
 * A preempted task waits, too, but not after a wake, so that wait does not count. All maps
 * are bounded: stacks beyond their map are counted, and durations fall into buckets.
 */
#include <scx/common.bpf.h>

#include "histogram.h"

char _license[] SEC("license") = "GPL";

/* The one process to observe; 0 observes all. */
const volatile u32 only_tgid;
/* Whether sleeps are recorded. */
const volatile bool with_sleeps;

#define STACKS 4096
#define FRAMES 24

struct observed {
	/* When the task woke; 0 unless it waits since. */
	u64 woken_ns;
	/* When it fell asleep; 0 unless it sleeps. */
	u64 asleep_ns;
	/* Its stack then. */
	s32 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct observed);
} tasks SEC(".maps");

/* Waits after a wake, by bucket. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WAIT_BUCKETS);
	__type(key, u32);
	__type(value, u64);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, FRAMES * sizeof(u64));
} stacks SEC(".maps");

/* Sleeps of one stack. */
struct sleeps {
	u64 count;
	u64 total_ns;
	u64 longest_ns;
	/* By power of two. */
	u64 octaves[64];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, s32);
	__type(value, struct sleeps);
} sleeps_of SEC(".maps");

/* Longest wait of all, switches, and sleeps whose stack found no room. */
u64 longest_wait_ns;
u64 switches;
u64 stacks_lost;

static const struct sleeps no_sleeps;

static bool is_observed(struct task_struct *p)
{
	/* Idle tasks have the number 0. */
	return p->pid && (!only_tgid || p->tgid == only_tgid);
}

static struct observed *observed(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static void raise(u64 *longest, u64 value)
{
	/* A lost update of two CPUs hides the smaller of two values at most once. */
	if (value > *longest)
		*longest = value;
}

static void end_of_sleep(struct observed *task, u64 now_ns)
{
	u64 slept_ns = now_ns - task->asleep_ns;
	s32 stack = task->stack;
	struct sleeps *found;
	u32 octave;

	task->asleep_ns = 0;
	found = bpf_map_lookup_elem(&sleeps_of, &stack);
	if (!found) {
		bpf_map_update_elem(&sleeps_of, &stack, &no_sleeps, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&sleeps_of, &stack);
	}
	if (!found) {
		__sync_fetch_and_add(&stacks_lost, 1);
		return;
	}
	__sync_fetch_and_add(&found->count, 1);
	__sync_fetch_and_add(&found->total_ns, slept_ns);
	octave = slept_ns ? 63 - __builtin_clzll(slept_ns) : 0;
	/* The verifier does not know how clang counts zeros. */
	barrier_var(octave);
	__sync_fetch_and_add(&found->octaves[octave & 63], 1);
	raise(&found->longest_ns, slept_ns);
}

static int woke(struct task_struct *p)
{
	struct observed *task;
	u64 now_ns;

	if (!is_observed(p))
		return 0;
	task = observed(p);
	if (!task)
		return 0;
	now_ns = bpf_ktime_get_ns();
	task->woken_ns = now_ns;
	if (task->asleep_ns)
		end_of_sleep(task, now_ns);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(observe_wakeup, struct task_struct *p)
{
	return woke(p);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(observe_wakeup_new, struct task_struct *p)
{
	return woke(p);
}

static void leaves(void *ctx, struct task_struct *p, bool blocks)
{
	struct observed *task = observed(p);

	if (!task)
		return;
	/* A wake of a task that ran on is not one that it waits after. */
	task->woken_ns = 0;
	if (!blocks || !with_sleeps)
		return;
	task->stack = bpf_get_stackid(ctx, &stacks, 0);
	if (task->stack < 0) {
		__sync_fetch_and_add(&stacks_lost, 1);
		return;
	}
	task->asleep_ns = bpf_ktime_get_ns();
}

static void runs(struct task_struct *p)
{
	struct observed *task = bpf_task_storage_get(&tasks, p, 0, 0);
	u64 *count, waited_ns;
	u32 bucket;

	if (!task || !task->woken_ns)
		return;
	waited_ns = bpf_ktime_get_ns() - task->woken_ns;
	task->woken_ns = 0;
	bucket = bucket_of(waited_ns);
	count = bpf_map_lookup_elem(&waits, &bucket);
	if (count)
		*count += 1;
	raise(&longest_wait_ns, waited_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(observe_switch, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (is_observed(prev)) {
		__sync_fetch_and_add(&switches, 1);
		leaves(ctx, prev, !preempted && prev_state);
	}
	if (is_observed(next))
		runs(next);
	return 0;
}
