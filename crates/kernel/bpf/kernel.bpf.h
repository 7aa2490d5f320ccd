/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls into sched_ext under the names that Linux 6.18 and later know. The wrappers of scx
 * also try older names. The loader searches all types of the kernel for each name, whether
 * the running kernel has it or not.
 */
#ifndef PRORATA_KERNEL_BPF_H
#define PRORATA_KERNEL_BPF_H

extern struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym;

/* Appends a task to a queue in the order of arrival. */
static inline void insert(struct task_struct *p, u64 queue, u64 slice, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___compat))
		scx_bpf_dsq_insert___v2___compat(p, queue, slice, enq_flags);
	else
		scx_bpf_dsq_insert___v1(p, queue, slice, enq_flags);
}

/* Puts a task into a queue in the order of keys. */
static inline void insert_by_key(struct task_struct *p, u64 queue, u64 slice, u64 key,
				 u64 enq_flags)
{
	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = queue,
			.slice = slice,
			.vtime = key,
			.enq_flags = enq_flags,
		};

		__scx_bpf_dsq_insert_vtime(p, &args);
	} else {
		scx_bpf_dsq_insert_vtime___compat(p, queue, slice, key, enq_flags);
	}
}

/* The first task of a queue, or NULL. */
static inline struct task_struct *first_in(u64 queue)
{
	struct task_struct *p = NULL;
	struct bpf_iter_scx_dsq waiting;

	if (!bpf_iter_scx_dsq_new(&waiting, queue, 0))
		p = bpf_iter_scx_dsq_next(&waiting);
	bpf_iter_scx_dsq_destroy(&waiting);
	return p;
}

/* Moves the first task of a queue to this CPU. */
static inline bool move_first_here(u64 queue)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___compat))
		return scx_bpf_dsq_move_to_local___v2___compat(queue, 0);
	return scx_bpf_dsq_move_to_local___v1(queue);
}

#endif
