/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Slot scheduling for C programs: the calls of the thesis (2005, Figures 2.3 to 2.5) with a prefix.
 *
 * Link with libprorata_slots_c.a (and -lpthread -ldl -lm) or libprorata_slots_c.so. All functions
 * return 0 on success and a negative value on failure, of which prorata_slots_error() says why. A
 * handle is for one thread at a time.
 */
#ifndef PRORATA_SLOTS_H
#define PRORATA_SLOTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of token levels, lowest first. */
#define PRORATA_LEVELS 7
enum prorata_level {
	PRORATA_BACKGROUND,
	PRORATA_BEST_EFFORT,
	PRORATA_GANG,
	PRORATA_SOFT_2,
	PRORATA_SOFT_1,
	PRORATA_HARD,
	PRORATA_SYSTEM,
};

/* What runs in a slot. */
enum prorata_runs {
	PRORATA_PROCESS, /* any thread of a process that is managed */
	PRORATA_THREAD,  /* one thread of such a process */
};

/* Why a claim ended. */
enum prorata_reason {
	PRORATA_PREEMPTED,
	PRORATA_SHARED,
	PRORATA_RESERVED,
	PRORATA_FREED,
	PRORATA_EXPIRED,
	PRORATA_SCHEDULEE_ENDED,
};

typedef struct prorata_slots prorata_slots;

/* Called by prorata_slots_dispatch() in the thread that calls it. */
typedef void (*prorata_revoked)(uint32_t row, uint32_t column, enum prorata_reason reason,
				void *data);

/* One slot to claim (Figure 2.3). */
struct prorata_slot_request {
	uint32_t row;
	uint32_t column;
	uint32_t runs;       /* enum prorata_runs */
	uint32_t id;         /* the process or the thread; 0 is the caller */
	uint32_t level;      /* enum prorata_level */
	uint32_t reserved;   /* 0 */
	uint64_t expires_ns; /* how long from now the claim holds; 0: until it is freed */
	prorata_revoked revoked; /* NULL: nothing is called */
	void *data;
};

/* What an account has of one level (Figure 2.4). */
struct prorata_token_info {
	uint64_t count; /* free to spend */
	uint64_t spent; /* in claims */
	uint32_t weight;
	uint32_t reserved;
};

/* The shape of the table. Slot k begins at epoch_ns + k * slot_ns on CLOCK_MONOTONIC. */
struct prorata_table_info {
	uint32_t rows;
	uint32_t columns;
	uint64_t slot_ns;
	uint64_t epoch_ns;
	uint64_t generation; /* grows with each change */
};

/* Connects to the daemon on a socket, or to the one that serves this user if socket is NULL. NULL on
 * failure. */
prorata_slots *prorata_slots_open(const char *socket);
void prorata_slots_close(prorata_slots *slots);

/* Why the last call of this thread failed: one sentence, until the next call. */
const char *prorata_slots_error(void);

/* Takes no call. */
int prorata_table_info(const prorata_slots *slots, struct prorata_table_info *info);
/* The CPU of a row; negative outside the table. */
int prorata_cpu_of_row(const prorata_slots *slots, uint32_t row);
/* Whether a slot is claimed, as decided: 1 or 0. Takes no call. */
int prorata_is_claimed(const prorata_slots *slots, uint32_t row, uint32_t column);

/* Claims what it can. On return the vector has the requests that succeeded, and *length their
 * number; -1 if any failed. */
int prorata_claim_slots(prorata_slots *slots, struct prorata_slot_request *vector, int *length);
/* Frees the slots of a vector, of which only row and column count. On return the vector has those
 * that were not freed. */
int prorata_free_slots(prorata_slots *slots, struct prorata_slot_request *vector, int *length);
/* What the account that pays for this process's claims has. */
int prorata_get_tokens(prorata_slots *slots, struct prorata_token_info tokens[PRORATA_LEVELS]);
/* For the daemon's owner: sets a user's tokens, or changes them by a number. A weight of 0 leaves
 * the weight. */
int prorata_set_tokens(prorata_slots *slots, const char *user, uint32_t level, int64_t count,
		       uint32_t weight, int absolute);
/* Gives tokens to the client of that name. Returns how many moved: fewer than count if there were no
 * more. */
int64_t prorata_donate_tokens(prorata_slots *slots, const char *client, uint32_t level,
			      uint32_t count);
/* For the daemon's owner: any denominator successive slots of a row keep numerator unclaimed. */
int prorata_reserve_slots(prorata_slots *slots, uint32_t row, uint32_t numerator,
			  uint32_t denominator, int immediate);

/* Readable when prorata_slots_dispatch() may have something to do. */
int prorata_slots_fd(prorata_slots *slots);
/* Waits for the next news and runs the callback of the claim that ended. Blocks if there are none.
 * Returns the number of callbacks that ran. */
int prorata_slots_dispatch(prorata_slots *slots);

#ifdef __cplusplus
}
#endif
#endif
