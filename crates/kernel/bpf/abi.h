/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler and the program that loads it both look at. The other
 * side is src/scheduler: it asserts the same sizes.
 */
#ifndef PRORATA_ABI_H
#define PRORATA_ABI_H

#include "arithmetic.h"

/* The base currency's node. */
#define BASE 0

/* Nodes below this are the loader's; from here on they are control groups'. */
#define CGROUP_NODES 24576
#define ROOT_CGROUP  CGROUP_NODES
#define NODES	     32768

/*
 * Tickets: the loader's lists are below CGROUP_TICKETS; beyond, each control
 * group has so many lists of one ticket, which it uses in turns.
 */
#define CGROUP_TICKETS	 65536
#define TICKETS_A_CGROUP 4
#define TICKETS		 131072

/* Tickets from a node to the base currency, at most. */
#define MAX_DEPTH 16
/* The same with those of nested control groups. */
#define MAX_LEVELS 32

/* A task of nice 0 holds 1024 times this in its node. */
#define TICKETS_A_WEIGHT 100
/* Tickets in the parent's node for each unit of cpu.weight: 100 is nice 0. */
#define TICKETS_A_CGROUP_WEIGHT 1024

/* Base tickets of the root control group at first. */
#define ROOT_TICKETS 65536

#define BUCKETS 40

/*
 * A ticket, in a list of those that fund one node. A list's name is its first
 * ticket's index; 0 is the empty list. A list that is used never changes.
 */
struct ticket {
	u32 currency;
	/* Whether the next one is in the same list. */
	u32 more;
	u64 amount;
};

_Static_assert(sizeof(struct ticket) == 16, "src/scheduler/loaded.rs writes these bytes");

/* A node of the graph of rights: a currency, a client or a control group. */
struct rights {
	/*
	 * Sum of the active tickets that are issued in this currency and of what
	 * the runnable tasks inside hold. Signed: while changes are under way on
	 * several CPUs, taking may come before giving.
	 */
	s64 active;
	/*
	 * The list of tickets that fund it in the lower half; the balance of its
	 * activity in the upper. See rights.bpf.h.
	 */
	u64 backing;
	/* What it is worth, worked out at `priced_at` when so much was active. */
	u64 value;
	s64 priced_active;
	u64 priced_at;
	/* The change of rights that these know of. */
	u32 priced_change;
	/* Tasks inside, runnable or not. */
	u32 tasks;
	/* `dispensed` (pass.bpf.h) up to which `specified_ns` counts. */
	u64 settled_at;
	u64 specified_ns;
	u64 received_ns;
	u64 dispatches;
	u64 migrations;
	u64 waited_ns;
	/* Tasks inside that compete together, and the tickets that all inside hold. */
	u32 runnable;
	/* Whether one of them stands for the others in a queue, see line.bpf.h. */
	u32 represented;
	s64 held;
	/*
	 * Its place as a client, moved by what all tasks inside use; while none
	 * competes, seen from the present pass at which the last one left.
	 */
	u64 pass;
	u64 left_at;
	/* What those tasks are worth together, and so how far its pass moves. */
	u64 worth;
	struct stride stride;
	/* The `priced_at` from which these two were worked out. */
	u64 worth_priced_at;
	/* What one task inside is worth, in 2^-16 base tickets. */
	u64 single;
	/* Where the furthest task inside began a turn: who joins begins there. */
	u64 progress;
	/* Tasks that wait in line inside, and whether there is a line. */
	u32 in_line;
	u32 has_line;
	/* The longest turn of its tasks; 0 is that of all. */
	u64 quantum_ns;
	/* Whether it ever was active. */
	u32 known;
	/*
	 * Tasks inside that compete as clients of their own and are not in `runnable`, what
	 * they hold of `held`, and where the one stands that was charged last, see alone.bpf.h.
	 */
	u32 alone;
	s64 alone_held;
	u64 alone_pass;
	u64 alone_worth;
	u32 alone_home;
	u32 unused;
};

_Static_assert(sizeof(struct rights) == 232, "src/scheduler/loaded.rs reads these bytes");

/* Totals. */
struct totals {
	u64 charged_ns;
	u64 dispatches;
	u64 direct;
	u64 prolonged;
	u64 steals;
	u64 reordered;
	u64 groups_without_node;
};

_Static_assert(sizeof(struct totals) == 56, "src/scheduler/loaded.rs reads these bytes");

/* A request of the loader's, see requests.bpf.h. */
struct change_request {
	u32 node;
	/* A list of tickets. */
	u32 list;
	u32 tid;
	/* The answer: a node. */
	u32 found;
};

_Static_assert(sizeof(struct change_request) == 16, "src/scheduler/loaded.rs writes these bytes");

/* What the trace tells of nodes as clients, see trace.bpf.h. */
enum decision_kind {
	/* Competes, from this pass on; not for the first time. */
	DECISION_JOIN,
	/* Ceases to. */
	DECISION_LEAVE,
	/* Is worth something else; its pass is changed with it. */
	DECISION_TICKETS,
	/* One of its tasks runs next. */
	DECISION_PICK,
	/* One of its tasks used service; this is the client's pass now. */
	DECISION_CHARGE,
	/* Competes, from this pass on, for the first time. */
	DECISION_NEW,
	/* Not a decision: all that was told before is to be forgotten, the state follows. */
	STATE_BEGINS,
	/* Part of the state: it competes. */
	STATE_COMPETES,
	/* Part of the state: it does not, and had this pass when it ceased to. */
	STATE_SLEEPS,
	/*
	 * Of tasks in the queues of several CPUs: one is about to wait in a queue, or elsewhere
	 * in it.
	 */
	TASK_WAITS,
	/* This CPU begins to look at the queues. */
	CPU_LOOKS,
	/* It has taken one that waited from a queue. */
	TASK_TAKEN,
	/* One does not wait any more. */
	TASK_GOES,
};

struct decision {
	u32 kind;
	u32 node;
	/* Of a pick, a charge and what is told of tasks. */
	u32 tid;
	u32 cpu;
	u64 time_ns;
	u64 pass;
	u64 worth;
	/* The present pass; of one that sleeps, that when it ceased to compete. */
	u64 present;
	u64 service_ns;
	/* Its longest turn. */
	u64 quantum_ns;
	/* Its tasks that compete. */
	u32 tasks;
	/* Whether a lottery decides. */
	u32 drawn;
	/* Of one that waits: where in which queue, and whether it is a client of its own. */
	u64 key;
	u32 queue;
	u32 alone;
};

_Static_assert(sizeof(struct decision) == 88, "src/scheduler/trace.rs reads these bytes");

#endif
