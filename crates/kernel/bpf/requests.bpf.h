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
