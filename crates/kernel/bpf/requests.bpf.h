/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests of the loader while the scheduler runs. The loader has checked them.
 */
#ifndef PRORATA_REQUESTS_BPF_H
#define PRORATA_REQUESTS_BPF_H

/* Replaces the list that funds a node. */
SEC("syscall")
int set_tickets(struct change_request *request)
{
	fund(request->node, request->list);
	return 0;
}

/*
 * No walk over the limits visits the last places if they are in use no more. A limit ends one change
 * before that: a bound task may still be on its way to the place's queue.
 */
static void forget_last_places(void)
{
	u32 turn;

	bpf_for(turn, 1, LIMITS) {
		u32 last = limits_end - 1;
		const struct limit *limit = limit_at(last);

		if (!last || node_at(limit->node)->limit == last || limit->allowance.pauses ||
		    (limit->has_queue && scx_bpf_dsq_nr_queued(SET_ASIDE + last) > 0))
			break;
		limits_end = last;
	}
}

/* Limits a node's CPU time, or ends its limit. */
SEC("syscall")
int set_limit(struct limit_request *request)
{
	struct limit *limit = limit_at(request->place);
	struct rights *node = node_at(request->node);

	if (!timed)
		return -EOPNOTSUPP;
	forget_last_places();
	if (!request->max) {
		/* First, so that no CPU lets it pause again. */
		node->limit = 0;
		resume(limit);
		limit->value = 0;
	} else if (node->limit) {
		change_max(&limit->allowance, request->max);
	} else {
		give_line(request->node);
		if (!one_cpu && !limit->has_queue)
			limit->has_queue = !scx_bpf_create_dsq(SET_ASIDE + request->place, -1);
		if (!node->has_line || (!one_cpu && !limit->has_queue))
			return -ENOMEM;
		end_pause(limit);
		limit->node = request->node;
		begin_allowance(&limit->allowance, request->max, scx_bpf_now());
		if (request->place >= limits_end)
			limits_end = request->place + 1;
		node->limit = request->place;
	}
	__sync_fetch_and_add(&change, 1);
	__sync_fetch_and_add(&rises, 1);
	readjust();
	look_at_held = 1;
	have_a_cpu_look();
	return 0;
}

/* A task belongs to a node from now on, and so do the tasks that it forks. */
SEC("syscall")
int give(struct change_request *request)
{
	struct task_struct *p = bpf_task_from_vpid(request->tid);
	struct task *task;

	if (!p)
		return -ESRCH;
	give_line(request->node);
	task = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (task && task->present) {
		belong_elsewhere(task, request->node);
	} else if (task) {
		task->present = true;
		begin_clocks(p, task);
		begin_window(task, NULL);
		belong(task, request->node);
	}
	if (task)
		task->given = true;
	bpf_task_release(p);
	__sync_fetch_and_add(&rises, 1);
	return task ? 0 : -ENOMEM;
}

/* A task belongs to its control group's node again, or to no node. */
SEC("syscall")
int take_back(struct change_request *request)
{
	struct task_struct *p = bpf_task_from_vpid(request->tid);
	struct task *task;

	if (!p)
		return -ESRCH;
	task = task_of(p);
	if (task && task->given) {
		task->given = false;
		if (all_tasks) {
			belong_elsewhere(task, task->group);
		} else if (!task->competes) {
			lose_task(task->assigned);
			bpf_task_storage_delete(&tasks, p);
		}
	}
	bpf_task_release(p);
	return 0;
}

/* Names a schedulee of the open timetable by its number, see timetable.bpf.h. */
SEC("syscall")
int name_schedulee(struct schedulee_request *request)
{
	u32 id = request->id, from = schedulee_from(request->number);
	u64 *what, *started;
	struct task_struct *p;
	bool same;

	if (request->kind > CLIENT) {
		p = bpf_task_from_vpid(id);
		if (!p)
			return -ESRCH;
		same = started_at(p) == request->started;
		id = request->kind == PROCESS ? p->tgid : p->pid;
		bpf_task_release(p);
		if (!same)
			return -ESRCH;
	}
	what = table_word(from);
	started = table_word(from + 1);
	if (!what || !started)
		return -ERANGE;
	*started = request->started;
	*what = (u64)request->kind << 32 | id;
	return 0;
}

/* This CPU looks at its row of the timetable now. A thread of the loader runs it on that CPU. */
SEC("syscall")
int look_at_row(struct look_request *request)
{
	u32 key = bpf_get_smp_processor_id();
	struct boundary_alarm *alarm;

	if (!timed) {
		/* No decision on this CPU sees a half-written slot. */
		bpf_preempt_disable();
		request->due_ns = look_at_boundary(request->cpu, false);
		bpf_preempt_enable();
		return 0;
	}
	alarm = bpf_map_lookup_elem(&boundaries, &key);
	if (!alarm)
		return -EOPNOTSUPP;
	return bpf_timer_start(&alarm->timer, 0, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

/* Finds the node of a task. */
SEC("syscall")
int find(struct change_request *request)
{
	struct task_struct *p = bpf_task_from_vpid(request->tid);
	struct task *task;
	int error = -ENOENT;

	if (!p)
		return -ESRCH;
	task = task_of(p);
	if (task) {
		request->found = task->assigned;
		error = 0;
	}
	bpf_task_release(p);
	return error;
}

#endif
