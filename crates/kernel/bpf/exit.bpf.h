/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reason why a scheduler was unloaded, for the program that loaded it.
 */
#ifndef PRORATA_EXIT_BPF_H
#define PRORATA_EXIT_BPF_H

#define EXIT_REASON_BYTES  128
#define EXIT_MESSAGE_BYTES 1024

struct exit_record {
	/* enum scx_exit_kind; 0 while the scheduler is loaded. */
	u64 kind;
	char reason[EXIT_REASON_BYTES];
	char message[EXIT_MESSAGE_BYTES];
};

_Static_assert(sizeof(struct exit_record) == 1160, "src/exit.rs reads these bytes");

static void record_exit(struct exit_record *record, const struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(record->reason, sizeof(record->reason), info->reason);
	bpf_probe_read_kernel_str(record->message, sizeof(record->message), info->msg);
	record->kind = info->kind;
}

#endif
