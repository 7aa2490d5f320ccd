//! Giving out the records of the table.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{MAX_RECORDS, Record, Table, flag, store_cpus};
use crate::descriptors::MAX_PROCESSES;
use crate::process_id::ProcessId;
use crate::scheduler::Policy;
use crate::threads::{Ascent, Binding};

/// Most records of threads other than their processes' first ones. Threads are many where a user
/// wants that, and all processes that can be managed are to have records.
pub(super) const MAX_THREADS: u32 = MAX_RECORDS - MAX_PROCESSES;

/// Names a record that the engine uses.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct RecordId(u32);

/// The engine's side of the table: gives out records and writes them.
#[derive(Debug)]
pub(crate) struct Journal {
    table: Arc<Table>,
    /// Records given back.
    free: Vec<u32>,
    /// Records from here on were never given out.
    fresh: u32,
    /// Records of threads that are in use.
    threads: u32,
}

impl Journal {
    /// Takes over a table after a sweep. Records of deeds that the sweep could not undo stay for
    /// later sweeps.
    pub(crate) fn new(table: Arc<Table>) -> Self {
        table.clear_untouched();
        Self {
            table,
            free: Vec::new(),
            fresh: 0,
            threads: 0,
        }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// A record for a process (`thread.pid == pid`) or for one thread of it.
    /// `None` when all are in use that such a one may have.
    pub(crate) fn take(&mut self, thread: ProcessId, pid: u32) -> Option<RecordId> {
        let is_thread = thread.pid != pid;
        if is_thread && self.threads >= MAX_THREADS {
            return None;
        }
        let index = self.free.pop().or_else(|| {
            let unused = |&index: &u32| self.table.is_unused(index);
            let index = (self.fresh..MAX_RECORDS).find(unused)?;
            self.fresh = index + 1;
            Some(index)
        })?;
        let record = &self.table.records()[index as usize];
        record.tid.store(thread.pid, Ordering::Relaxed);
        record
            .start_time_ticks
            .store(thread.start_time_ticks, Ordering::Relaxed);
        record.pid.store(pid, Ordering::Relaxed);
        self.threads += u32::from(is_thread);
        Some(RecordId(index))
    }

    /// Gives a record back, after the end of its process or when its deeds are undone.
    pub(crate) fn give_back(&mut self, record: RecordId) {
        let Record { tid, pid, .. } = &self.table.records()[record.0 as usize];
        let is_thread = tid.load(Ordering::Relaxed) != pid.load(Ordering::Relaxed);
        self.threads -= u32::from(is_thread);
        self.table.clear(record.0, u32::MAX);
        self.free.push(record.0);
    }

    /// Notes a deed, before it is done.
    pub(crate) fn mark(&self, record: &RecordId, flags: u32) {
        self.table.mark(record, flags);
    }

    /// Notes that a deed is undone.
    pub(crate) fn clear(&self, record: &RecordId, flags: u32) {
        self.table.clear(record.0, flags);
    }

    /// Notes a thread's own policy.
    pub(crate) fn keep_policy(&self, record: &RecordId, policy: Policy) {
        let record = &self.table.records()[record.0 as usize];
        record.policy.store(policy.0, Ordering::Relaxed);
        record.flags.fetch_or(flag::OWN_POLICY, Ordering::Release);
    }

    /// Notes a binding, before the thread is bound. A thread that is bound already has the same
    /// own CPUs, or has left its former binding by itself. So a reader in between does no harm.
    pub(crate) fn keep_binding(&self, record: &RecordId, binding: &Binding) {
        let record = &self.table.records()[record.0 as usize];
        store_cpus(&record.own_cpus, &binding.own);
        store_cpus(&record.cpus, &binding.ours);
        record.flags.fetch_or(flag::BOUND, Ordering::Release);
    }
}

impl Table {
    /// Notes that a thread is raised, before it is. Where it is raised already, only its slot's CPUs
    /// may differ; a reader in between restores it all the same.
    pub(crate) fn keep_ascent(&self, record: &RecordId, ascent: &Ascent) {
        let record = &self.records()[record.0 as usize];
        let (policy, priority) = (ascent.own_policy.0, ascent.own_priority);
        record.slot_own_policy.store(policy, Ordering::Relaxed);
        record.slot_own_priority.store(priority, Ordering::Relaxed);
        store_cpus(&record.slot_own_cpus, &ascent.binding.own);
        store_cpus(&record.slot_cpus, &ascent.binding.ours);
        record.flags.fetch_or(flag::RAISED, Ordering::Release);
    }

    /// Notes a deed, before it is done.
    pub(crate) fn mark(&self, record: &RecordId, flags: u32) {
        let record = &self.records()[record.0 as usize];
        record.flags.fetch_or(flags, Ordering::Release);
    }

    /// Notes that a deed is undone.
    pub(crate) fn unmark(&self, record: &RecordId, flags: u32) {
        self.clear(record.0, flags);
    }
}
