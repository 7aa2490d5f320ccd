//! Records over crashes, boots and the limit.

use std::sync::Arc;

use super::journal::MAX_THREADS;
use super::*;
use crate::descriptors::MAX_PROCESSES;
use crate::scheduler::members;

fn thread(pid: u32) -> ProcessId {
    ProcessId {
        pid,
        start_time_ticks: 7,
    }
}

#[test]
fn records_outlive_the_mapping_until_they_are_cleared() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = Arc::new(Table::open(directory.path()).expect("opens"));
    let mut journal = Journal::new(table.clone());
    let first = journal.take(thread(1), 1).expect("room");
    let second = journal.take(thread(3), 2).expect("room");
    let mut cpus = CpuSet::new();
    cpus.set(0);
    cpus.set(CpuSet::MAX_CPU - 1);
    journal.mark(&first, flag::STOPPED);
    journal.keep_policy(&second, Policy(3));
    let binding = Binding {
        own: cpus,
        ours: CpuSet::new(),
    };
    journal.keep_binding(&second, &binding);
    drop((journal, table));

    let table = Table::open(directory.path()).expect("opens again");
    let entries: Vec<_> = table.entries().collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].flags, entries[0].thread),
        (flag::STOPPED, thread(1))
    );
    assert_eq!(entries[1].flags, flag::BOUND | flag::OWN_POLICY);
    assert_eq!((entries[1].pid, entries[1].policy), (2, Policy(3)));
    assert_eq!(entries[1].binding, Some(binding));
    table.clear(entries[0].index, flag::STOPPED);
    table.clear(entries[1].index, flag::BOUND);
    assert!(!table.is_anything(flag::TOUCHED));
    assert_eq!(table.entries().count(), 1, "an own policy is no deed");
}

#[test]
fn a_table_of_another_boot_or_of_garbage_is_void() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(FILE_NAME);
    std::fs::write(&path, vec![0xff; TABLE_BYTES]).expect("writes");
    let table = Table::open(directory.path()).expect("opens");
    assert_eq!(table.entries().count(), 0);
    drop(table);
    std::fs::write(&path, b"short").expect("writes");
    assert_eq!(
        Table::open(directory.path())
            .expect("opens")
            .entries()
            .count(),
        0
    );
}

#[test]
fn records_run_out_at_the_limit_and_come_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = Arc::new(Table::open(directory.path()).expect("opens"));
    let mut journal = Journal::new(table);
    let mut records: Vec<_> = (0..MAX_RECORDS)
        .map(|pid| journal.take(thread(pid), pid).expect("within the limit"))
        .collect();
    assert_eq!(journal.take(thread(0), 0), None, "one past the limit");
    journal.give_back(records.pop().expect("there are some"));
    assert!(journal.take(thread(0), 0).is_some());
}

#[test]
fn threads_leave_room_for_processes() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = Arc::new(Table::open(directory.path()).expect("opens"));
    let mut journal = Journal::new(table);
    let of_thread = |journal: &mut Journal, tid| journal.take(thread(tid), 1);
    let mut threads: Vec<_> = (0..MAX_THREADS)
        .map(|index| of_thread(&mut journal, 2 + index).expect("within the limit"))
        .collect();
    assert_eq!(of_thread(&mut journal, 0), None, "one past the limit");
    let processes: Vec<_> = (0..MAX_PROCESSES)
        .map(|pid| journal.take(thread(pid), pid).expect("there is room"))
        .collect();
    // A record that a thread gives back is for a thread or a process.
    journal.give_back(threads.pop().expect("there are some"));
    threads.extend(of_thread(&mut journal, 0));
    assert_eq!(threads.len() + processes.len(), MAX_RECORDS as usize);
    for process in processes {
        journal.give_back(process);
    }
    assert_eq!(
        of_thread(&mut journal, 2),
        None,
        "processes give threads no room"
    );
}

#[test]
fn two_engines_cannot_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let _table = Table::open(directory.path()).expect("opens");
    let second = Table::open_at_once(directory.path());
    assert!(matches!(second, Err(EngineError::AlreadyRunning(_))));
}

#[test]
fn only_keepers_that_broke_their_promises_have_stalled() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = Table::open(directory.path()).expect("a new table");
    let stalled = |now_ns| members(&table.stalled_keepers(now_ns)).collect::<Vec<_>>();
    assert!(stalled(u64::MAX).is_empty());
    table.promise_as_keeper(3, 100);
    table.promise_as_keeper(1023, 200);
    table.promise_as_keeper(1024, 0);
    assert!(stalled(100).is_empty());
    assert_eq!(stalled(101), [3]);
    assert_eq!(stalled(201), [3, 1023]);
    table.promise_as_keeper(3, u64::MAX);
    assert_eq!(stalled(201), [1023]);
}
