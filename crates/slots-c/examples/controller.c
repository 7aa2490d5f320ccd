/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A loop that wants one slot of every twelve on the first CPU, and claims another slot of the same
 * window when it loses one. Run it as a client: prorata run -- ./controller
 *
 * cc controller.c -I include libprorata_slots_c.a -lpthread -ldl -lm -o controller
 */
#include <stdio.h>
#include <stdlib.h>

#include "prorata_slots.h"

enum { PERIOD = 12 };

static prorata_slots *slots;

static void lost(uint32_t row, uint32_t column, enum prorata_reason reason, void *data);

/* Claims the first unclaimed slot of a window. */
static int claim_one(uint32_t row, uint32_t window)
{
	for (uint32_t column = window; column < window + PERIOD; column++) {
		struct prorata_slot_request request = {
			.row = row,
			.column = column,
			.runs = PRORATA_PROCESS,
			.level = PRORATA_BEST_EFFORT,
			.revoked = lost,
		};
		int length = 1;

		if (prorata_is_claimed(slots, row, column) == 0 &&
		    prorata_claim_slots(slots, &request, &length) == 0)
			return (int)column;
	}
	return -1;
}

static void lost(uint32_t row, uint32_t column, enum prorata_reason reason, void *data)
{
	int instead = claim_one(row, column - column % PERIOD);

	(void)data;
	printf("lost slot %u for reason %d, took slot %d\n", column, reason, instead);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct prorata_table_info info;
	struct prorata_token_info tokens[PRORATA_LEVELS];
	int losses = argc > 1 ? atoi(argv[1]) : 1;

	slots = prorata_slots_open(getenv("PRORATA_SOCKET"));
	if (!slots) {
		fprintf(stderr, "%s\n", prorata_slots_error());
		return 1;
	}
	if (prorata_table_info(slots, &info) < 0 || prorata_get_tokens(slots, tokens) < 0) {
		fprintf(stderr, "%s\n", prorata_slots_error());
		return 1;
	}
	printf("%u CPUs, %u slots of %llu us, %llu tokens\n", info.rows, info.columns,
	       (unsigned long long)info.slot_ns / 1000,
	       (unsigned long long)tokens[PRORATA_BEST_EFFORT].count);
	for (uint32_t window = 0; window + PERIOD <= info.columns; window += PERIOD)
		printf("claimed slot %d\n", claim_one(0, window));
	fflush(stdout);
	while (losses > 0) {
		int ran = prorata_slots_dispatch(slots);

		if (ran < 0) {
			fprintf(stderr, "%s\n", prorata_slots_error());
			return 1;
		}
		losses -= ran;
	}
	prorata_slots_close(slots);
	return 0;
}
