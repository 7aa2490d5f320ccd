/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants and layouts that the scheduler shares with the program that loads it.
 * That program's side is src/scheduler. The test `arithmetic` compares the constants;
 * static assertions on both sides compare the layouts.
 */
#ifndef PRORATA_ABI_H
#define PRORATA_ABI_H

#include "arithmetic.h"
#include "allowance.h"

/* The node of the base currency. */
#define BASE 0

/* The loader uses the nodes below this number. Control groups use the others. */
#define CGROUP_NODES 24576
#define ROOT_CGROUP  CGROUP_NODES
#define NODES	     32768

/*
 * The loader's ticket lists lie below CGROUP_TICKETS. Each control group has
 * TICKETS_A_CGROUP lists of one ticket from there on, and uses them in turn.
 */
#define CGROUP_TICKETS	 65536
#define TICKETS_A_CGROUP 4
#define TICKETS		 131072

/* The longest chain of tickets from a node of the loader to the base currency. */
#define MAX_DEPTH 16
/* The longest chain when nested control groups come on top. */
#define MAX_LEVELS 32

/* A task with weight 1024 (nice 0) holds 1024 times this many tickets of its node. */
#define TICKETS_A_WEIGHT 100
/* Tickets of the parent's node for each unit of cpu.weight: weight 100 equals nice 0. */
#define TICKETS_A_CGROUP_WEIGHT 1024

/* Base tickets of the root control group before the loader changes them. */
#define ROOT_TICKETS 65536

/* Classes of the histogram of waits. */
#define BUCKETS 40

/* A CPU with this number or a higher one uses the queue of a lower one. */
#define MAX_CPUS 1024

/*
 * No task waits much longer than this, however few tickets it has, unless its client has a crowd of
 * tasks. (The others may be behind the present pass, by half of it.)
 */
#define LONGEST_WAIT_NS 8000000000ULL

/*
 * An early task lets the first task of a queue go ahead that has waited longer than this. The
 * order of passes alone lets no task wait so long. The kernel would unload the scheduler after
 * thirty seconds.
 */
#define OVERDUE_NS 12000000000ULL

/*
 * Where credit is cut over a sleep, the most that remains, in quanta of the client with the
 * longest. The core defines this bound, and explains it (policy/credit.rs).
 */
#define CUT_CREDIT_QUANTA 2

/*
 * The queues that hold waiting tasks, by number: below ROAMERS one for each CPU, each
 * cache or the machine. Bound tasks wait in ROAMERS if several CPUs may run them, else in
 * RESIDENTS plus the number of their CPU. LINES plus a node's number is that node's line.
 */
#define ROAMERS	  1024
#define RESIDENTS (ROAMERS + 1)
#define LINES	  65536
/* The queue of early tasks, see early.bpf.h. */
#define EARLY 4097
/* In records of picks: the timetable decided, and no queue was looked at. */
#define BY_CLAIM 4098
/* SET_ASIDE plus a limit's place is the queue of bound tasks whose client pauses. */
#define SET_ASIDE 8192

/* Places for limits, see limits.bpf.h. Place 0 stands for none. */
#define LIMITS 1024

/*
 * The timetable (2005, 2.1) is a map of 64-bit words: these, the row of each CPU, the words of all
 * cells twice (word.h), the schedulees by number, and a tally of each row. See timetable.bpf.h.
 */
#define TABLE_EPOCH   0
#define TABLE_SLOT_NS 1
#define TABLE_COLUMNS 2
/* Rows times columns. */
#define TABLE_CELLS 3
/* `from << 1 | buffer`: the buffer in force from that tick on, and the other one before. */
#define TABLE_SWITCH 4
/* One more than the row of a CPU; 0 if the table does not have the CPU. */
#define TABLE_ROWS	 8
#define TABLE_CELLS_FROM (TABLE_ROWS + MAX_CPUS)

/* The greatest number of a schedulee. Number 0 stands for none. */
#define SCHEDULEES 65536

/* The tally of a row: see `enum tally`, and then its histogram of lateness (histogram.h). */
#define TALLY_WORDS	 1024
#define TALLY_HISTOGRAM	 8
#define LATENESS_BUCKETS 896

/*
 * A ticket in a list of those that fund one node. The index of the first ticket names
 * the list; 0 names the empty list. A list that is in use never changes.
 */
struct ticket {
	u32 currency;
	/* Whether the next ticket belongs to the same list. */
	u32 more;
	u64 amount;
};

_Static_assert(sizeof(struct ticket) == 16, "src/scheduler/loaded.rs writes these bytes");

/*
 * What competes for a CPU: the unbound tasks of a node together, or one bound task.
 * See entity.bpf.h.
 */
struct entity {
	/* The entity with the smallest pass runs next. */
	u64 pass;
	/* While the entity does not compete: the present pass when it ceased to. */
	u64 left_at;
	/* What its tickets are worth, and how far its pass moves for each ns of service. */
	u64 worth;
	struct stride stride;
	/* The node's `priced_at` from which worth and stride follow. */
	u64 priced_at;
	/* The `dispensed` (pass.h) up to which the node's account holds what was due. */
	u64 settled_at;
	/* Tickets of the node that its competing tasks hold. Signed, like `active`. */
	s64 held;
	u32 node;
	/* Its competing tasks: at most one if it is a bound task. */
	u32 tasks;
	/* Where it waits: 0 anywhere, else see home.bpf.h. */
	u32 home;
	/* Whether it ever competed. */
	u32 known;
};

_Static_assert(sizeof(struct entity) == 80, "part of struct rights");

/* What a node was due and received. */
struct account {
	u64 specified_ns;
	u64 received_ns;
	u64 dispatches;
	u64 migrations;
	u64 waited_ns;
};

/* What a client deserved, and how far its use is ahead of that, see lead.bpf.h. */
struct dues {
	/* CPU time that it used beyond what it was due by `lead_at`. */
	u64 lead_ns;
	u64 lead_at;
	/* The account's `specified_ns` up to which the lead has drained. */
	u64 lead_specified_ns;
	/* What it is due of the clients of the last ten seconds (window.h). */
	u64 rate;
	/* That, or what it was due of those that competed at the moment, if more. */
	u64 rate_of_tasks;
	/* Its value in the sum of the second in which it competed last. */
	u64 counted;
	u32 counted_in;
	/* Mean tickets of its competing tasks, in 2^HELD_BITS. */
	u32 mean_held;
	/* Since the beginning of that second. */
	u64 specified_before_ns;
	u64 since;
	u64 held_by_service;
	u64 service;
};

_Static_assert(sizeof(struct dues) == 88, "part of struct rights");

/* A node of the graph of rights: a currency, a client or a control group. */
struct rights {
	/*
	 * The active tickets that this currency issued, and those that competing tasks
	 * inside hold. Signed: during concurrent changes a subtraction may come first.
	 */
	s64 active;
	/* Lower half: the list of its backing tickets. Upper half: see rights.h. */
	u64 backing;
	/* What it is worth, found at `priced_at` when `priced_active` was active. */
	u64 value;
	s64 priced_active;
	u64 priced_at;
	/* The change of rights that this price includes. */
	u32 priced_change;
	/* Tasks inside, runnable or not. */
	u32 tasks;
	/* The unbound tasks inside. */
	struct entity client;
	struct account account;
	/* What one unbound task inside is worth, in 2^-16 base tickets. */
	u64 single;
	/* The furthest progress with which a task inside won a turn; newcomers begin there. */
	u64 progress;
	/* The longest turn of its tasks; 0 stands for the common quantum. */
	u64 quantum_ns;
	/* Whether a queue holds one of its tasks for all of them, see line.bpf.h. */
	u32 represented;
	/* Tasks in its line, and whether the line exists. */
	u32 in_line;
	u32 has_line;
	/* Bound tasks inside that compete, and the tickets that they hold. */
	u32 bound;
	s64 bound_held;
	/* Home, pass and worth of the bound task that was charged last. */
	u32 bound_home;
	/* The place of its limit of CPU time, or 0. */
	u32 limit;
	u64 bound_pass;
	u64 bound_worth;
	/* When its line is searched next for a task that has waited too long. */
	u64 search_at;
	struct dues dues;
	/* Competing tasks above nice 0 and below it, see nice.h. */
	u64 niced_up;
	u64 niced_down;
	/* By how much they change what the node is worth, in 2^-16 base tickets. */
	s64 niced_by;
	/* The factor of that, 0 before any. */
	u32 nice_factor;
	/* The task that came to the node's place in a queue last. It may have left since. */
	u32 representative;
};

_Static_assert(sizeof(struct rights) == 368, "src/scheduler/loaded.rs reads these bytes");

/* The limit of a client's CPU time. */
struct limit {
	struct allowance allowance;
	/* Its node's value, in 2^-SINGLE_BITS base tickets: what it would be worth without. */
	u64 value;
	u32 node;
	/* Whether the place has a queue for bound tasks. It keeps that for ever. */
	u32 has_queue;
};

_Static_assert(sizeof(struct limit) == 40, "src/scheduler/limits.rs reads these bytes");

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

/* A request of the loader, see requests.bpf.h. */
struct change_request {
	u32 node;
	/* A list of tickets. */
	u32 list;
	u32 tid;
	/* The answer: a node. */
	u32 found;
};

_Static_assert(sizeof(struct change_request) == 16, "src/scheduler/loaded.rs writes these bytes");

/* A request for a limit, see requests.bpf.h. */
struct limit_request {
	u32 node;
	u32 place;
	/* In thousandths of a CPU; 0 ends the limit. */
	u32 max;
	u32 unused;
};

_Static_assert(sizeof(struct limit_request) == 16, "src/scheduler/limits.rs writes these bytes");

/* A look at a CPU's row, see requests.bpf.h. Both numbers are used where the kernel has no timer. */
struct look_request {
	u64 cpu;
	/* The answer: when to look again; 0 if nothing is claimed. */
	u64 due_ns;
};

_Static_assert(sizeof(struct look_request) == 16, "src/scheduler/boundaries.rs writes these bytes");

/* Counters in the tally of a row. */
enum tally {
	/* Claimed slots whose beginning the CPU saw. */
	TALLY_BEGUN,
	/* Claimed slots that it did not see. */
	TALLY_MISSED,
	/* Slots in which the schedulee ran. */
	TALLY_RAN,
	/* Slots in which the schedulee did not run, nor want to at the end. */
	TALLY_IDLE,
	/* Slots in which the schedulee did not run, and wanted to at the end. */
	TALLY_LOST,
	/* For how long schedulees that ran in their slots were interrupted by tasks of other classes. */
	TALLY_STOLEN_NS,
	TALLY_LATEST_NS,
};

/* A request to name a schedulee, see requests.bpf.h. */
struct schedulee_request {
	u32 number;
	/* enum schedulee_kind */
	u32 kind;
	/* A node, or a process or thread as the loader knows it. */
	u32 id;
	/* When the process or thread began, in hundredths of a second since boot. */
	u32 started;
};

_Static_assert(sizeof(struct schedulee_request) == 16, "src/scheduler/slots.rs writes these bytes");

/* What a record of the trace tells, see trace.bpf.h. Clients are nodes. */
enum decision_kind {
	/* A client that competed before competes again, from this pass on. */
	DECISION_JOIN,
	/* A client ceases to compete. */
	DECISION_LEAVE,
	/* A client's worth changes, and its pass with it. */
	DECISION_TICKETS,
	/* A task of the client runs next. */
	DECISION_PICK,
	/* A task of the client used service; the client's pass has moved to this one. */
	DECISION_CHARGE,
	/* A client competes for the first time, from this pass on. */
	DECISION_NEW,
	/* The state follows. It replaces all records before this one. */
	STATE_BEGINS,
	/* State: the client competes. */
	STATE_COMPETES,
	/* State: the client does not compete; it had this pass when it ceased to. */
	STATE_SLEEPS,
	/* Several CPUs: a task is about to enter a queue, or to move inside it. */
	TASK_WAITS,
	/* Several CPUs: this CPU begins to look at the queues. */
	CPU_LOOKS,
	/* Several CPUs: this CPU has taken a task from a queue. */
	TASK_TAKEN,
	/* Several CPUs: a task no longer waits. */
	TASK_GOES,
	/*
	 * An early task waits before all others that are not early, at this rank: in the queue
	 * EARLY, or in the CPU's own queue.
	 */
	EARLY_WAITS,
	/* A task is not early any more. */
	EARLY_ENDS,
	/* This task has waited for `service_ns`: no early task runs next. */
	TASK_OVERDUE,
	/* A limited client has exhausted its allowance, and pauses. */
	LIMIT_PAUSES,
	/* Its pause is over. */
	LIMIT_RESUMES,
	/* A task of a pausing client is about to run all the same, see held.bpf.h. */
	LIMIT_SPARES,
	/*
	 * A CPU looks at the timetable: in `queue` is its row, in `key` the word that it found, in `early` the
	 * tick, in `service_ns` how long ago the tick began, in `node` or `tid` the schedulee, and in `bound`
	 * whether `tid` is a process.
	 */
	SLOT_LOOKS,
	/* A schedulee gets the CPU of its slot (claim.bpf.h). It waits nowhere else any more. */
	SLOT_TAKES,
	/* The schedulee of this CPU's slot does not want to run: the fallback decides once. */
	SLOT_FALLS_BACK,
};

struct decision {
	u32 kind;
	u32 node;
	/* The task of a pick, of a charge and of records about tasks. */
	u32 tid;
	u32 cpu;
	u64 time_ns;
	u64 pass;
	u64 worth;
	/* The present pass. For STATE_SLEEPS: that when the client ceased to compete. */
	u64 present;
	u64 service_ns;
	/* The client's longest turn. */
	u64 quantum_ns;
	/* The client's competing tasks. */
	u32 tasks;
	/* Whether a lottery decides. */
	u32 drawn;
	/*
	 * Of a client: the longest wait, as a difference of passes. Of a pick: the task's latest
	 * place. Of a waiting task: its place, its queue, and whether it is a bound task. An early
	 * task has what it received in its window instead of a place, and in `service_ns` what it
	 * deserved.
	 */
	u64 key;
	u32 queue;
	u32 bound;
	/* Of a pick and of an early task: its rank (window.h), its client's lead and its own. */
	u64 early;
	u64 lead_ns;
	u64 own_lead_ns;
};

_Static_assert(sizeof(struct decision) == 112, "src/scheduler/trace.rs reads these bytes");

#endif
