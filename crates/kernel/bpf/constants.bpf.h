/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants of sched_ext as the running kernel defines them. The loader patches their
 * values into the program, so they cost nothing at run time. (The headers of scx make
 * them variables that the loading program would have to fill in.)
 */
#ifndef PRORATA_CONSTANTS_BPF_H
#define PRORATA_CONSTANTS_BPF_H

#include <bpf/bpf_core_read.h>

#undef SCX_DSQ_LOCAL
#undef SCX_DSQ_LOCAL_ON
#undef SCX_TASK_QUEUED
#undef SCX_DSQ_FLAG_BUILTIN
#define DSQ_LOCAL    bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define DSQ_BUILT_IN bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_FLAG_BUILTIN)
#define DSQ_LOCAL_ON bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)

#undef SCX_KICK_PREEMPT
#undef SCX_KICK_IDLE
#undef SCX_ENQ_WAKEUP
#undef SCX_ENQ_HEAD
#undef SCX_ENQ_LAST
#undef SCX_ENQ_PREEMPT
#undef SCX_WAKE_TTWU
#undef SCX_WAKE_SYNC
#define KICK_PREEMPT bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT)
#define KICK_IDLE    bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE)
#define ENQ_WAKEUP   bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP)
#define ENQ_HEAD     bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_HEAD)
#define ENQ_LAST     bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_LAST)
#define ENQ_PREEMPT  bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_PREEMPT)
#define WAKE_TTWU    bpf_core_enum_value(enum scx_wake_flags, SCX_WAKE_TTWU)
#define WAKE_SYNC    bpf_core_enum_value(enum scx_wake_flags, SCX_WAKE_SYNC)
#define TASK_QUEUED  bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)

#endif
