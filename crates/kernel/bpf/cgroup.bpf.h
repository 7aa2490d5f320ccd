/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups as currencies: each group is a node. One ticket of its parent's node funds
 * it, with cpu.weight as the amount. Its tasks hold tickets of it by their nice values,
 * beside the tickets of its child groups.
 *
 * The kernel makes these calls under its lock of control groups, one at a time. So the
 * table of free nodes needs no lock of its own.
 */
#ifndef PRORATA_CGROUP_BPF_H
#define PRORATA_CGROUP_BPF_H

#define GROUPS (NODES - CGROUP_NODES)

/* A group nested deeper counts as its ancestor at this level. */
#define DEEPEST_GROUP (MAX_LEVELS - MAX_DEPTH - 1)

/* The weight of a group with cpu.idle, as in the kernel (100 is usual). */
#define WEIGHT_OF_IDLE_GROUP 1

struct group {
	u32 node;
	u32 weight;
	/* Whether it shares its parent's node because none was free. */
	bool shared;
	bool idle;
	/* Which of its lists is in use. */
	u8 turn;
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct group);
} groups SEC(".maps");

/* Nodes from `first_unused` on were never in use; ROOT_CGROUP is not among them. */
static u32 first_unused = 1;
static u32 freed[GROUPS];
static u32 freed_count;

static u32 take_group(void)
{
	if (freed_count)
		return freed[--freed_count & (GROUPS - 1)];
	return first_unused < GROUPS ? first_unused++ : 0;
}

static void free_group(u32 index)
{
	freed[freed_count++ & (GROUPS - 1)] = index;
}

/* Funds a group's node by its weight. */
static void fund_group(struct group *group, u32 parent)
{
	u32 index = group->node - CGROUP_NODES;
	u32 list = CGROUP_TICKETS + index * TICKETS_A_CGROUP + group->turn;
	u32 weight = group->idle ? WEIGHT_OF_IDLE_GROUP : group->weight;
	struct ticket *ticket = ticket_at(list);

	group->turn = (group->turn + 1) % TICKETS_A_CGROUP;
	ticket->currency = parent;
	ticket->amount = (u64)weight * TICKETS_A_CGROUP_WEIGHT;
	fund(group->node, list);
}

/* Makes a line for a node's tasks. The node keeps it for ever. */
static void give_line(u32 number)
{
	struct rights *node = node_at(number);

	if (!node->has_line)
		node->has_line = !scx_bpf_create_dsq(LINES + number, -1);
}

static struct group *group_of(struct cgroup *cgrp)
{
	return bpf_cgrp_storage_get(&groups, cgrp, 0, 0);
}

/* The node of a group's parent; ROOT_CGROUP if there is none. */
static u32 parent_of(struct cgroup *cgrp)
{
	struct cgroup *parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	struct group *group;
	u32 node = ROOT_CGROUP;

	if (!parent)
		return node;
	group = group_of(parent);
	if (group)
		node = group->node;
	bpf_cgroup_release(parent);
	return node;
}

static s32 begin_group(struct cgroup *cgrp, u32 weight, bool idle)
{
	struct group *group =
		bpf_cgrp_storage_get(&groups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 parent, index;

	if (!group)
		return -ENOMEM;
	group->weight = weight;
	group->idle = idle;
	if (cgrp->level == 0) {
		struct ticket *ticket = ticket_at(CGROUP_TICKETS);

		group->node = ROOT_CGROUP;
		give_line(ROOT_CGROUP);
		ticket->currency = BASE;
		ticket->amount = ROOT_TICKETS;
		fund(ROOT_CGROUP, CGROUP_TICKETS);
		return 0;
	}
	parent = parent_of(cgrp);
	index = cgrp->level <= DEEPEST_GROUP ? take_group() : 0;
	group->shared = !index;
	group->node = index ? CGROUP_NODES + index : parent;
	if (index) {
		give_line(group->node);
		fund_group(group, parent);
	} else {
		__sync_fetch_and_add(&totals.groups_without_node, 1);
	}
	return 0;
}

static void end_group(struct cgroup *cgrp)
{
	struct group *group = group_of(cgrp);
	struct rights *node;

	if (!group || group->shared || group->node == ROOT_CGROUP)
		return;
	fund(group->node, 0);
	node = node_at(group->node);
	node->account = (struct account){};
	node->client.known = false;
	node->bound_worth = 0;
	node->dues = (struct dues){};
	free_group(group->node - CGROUP_NODES);
}

static void change_group(struct cgroup *cgrp)
{
	struct group *group = group_of(cgrp);

	if (group && !group->shared && group->node != ROOT_CGROUP)
		fund_group(group, parent_of(cgrp));
}

static u32 node_of_group(struct cgroup *cgrp)
{
	struct group *group = group_of(cgrp);

	return group ? group->node : ROOT_CGROUP;
}

/* The same where the verifier does not trust the pointer to the group. */
static u32 node_of_group_by_id(u64 id)
{
	struct cgroup *cgrp = bpf_cgroup_from_id(id);
	u32 node;

	if (!cgrp)
		return ROOT_CGROUP;
	node = node_of_group(cgrp);
	bpf_cgroup_release(cgrp);
	return node;
}

#endif
