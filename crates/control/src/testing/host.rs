//! A machine with a few users and processes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{ALICE, ASKER, BOB};
use crate::host::{CpuUse, Host, Listed, Origin, Stamp, UserAccount};
use crate::process::{ProcessId, ProcessInfo};

/// The daemon's pid on the made-up machine.
pub(crate) const DAEMON: u32 = 50;

#[derive(Clone, Debug)]
pub(crate) struct FakeHost {
    pub daemon_uid: u32,
    pub processes: BTreeMap<u32, ProcessInfo>,
    /// Where processes come from, if not from nowhere.
    pub origins: BTreeMap<u32, Origin>,
    /// The process that has the same program, if another one has.
    pub programs: BTreeMap<u32, u32>,
    pub commands: BTreeMap<u32, &'static str>,
    /// Effective users, if they are not the real ones.
    pub owners: BTreeMap<u32, u32>,
    /// Processes that are stopped.
    pub stopped: BTreeSet<u32>,
    /// CPU time of processes, if they used any.
    pub cpu_uses: BTreeMap<u32, CpuUse>,
    /// Files of the configuration.
    pub texts: BTreeMap<&'static str, String>,
    /// The monotonic clock.
    pub now_ns: Rc<Cell<u64>>,
    /// How often an account was looked for by its name.
    pub look_ups: Cell<u32>,
}

impl FakeHost {
    /// A machine on which the daemon runs as `daemon_uid`. Processes 100 to 199
    /// are alice's, 200 to 299 bob's, 300 to 309 root's; 2 is the kernel's; 90
    /// asks and has the child 91.
    pub fn new(daemon_uid: u32) -> Self {
        let mut host = Self {
            daemon_uid,
            processes: BTreeMap::new(),
            origins: BTreeMap::new(),
            programs: BTreeMap::new(),
            commands: BTreeMap::new(),
            owners: BTreeMap::new(),
            stopped: BTreeSet::new(),
            cpu_uses: BTreeMap::new(),
            texts: BTreeMap::new(),
            now_ns: Rc::default(),
            look_ups: Cell::new(0),
        };
        host.add(1, 0, 0, "init");
        host.add(2, 0, 0, "kthreadd");
        host.processes.get_mut(&2).unwrap().is_kernel_thread = true;
        host.add(40, 1, daemon_uid, "session");
        host.add(DAEMON, 40, daemon_uid, "prorata");
        host.add(51, DAEMON, daemon_uid, "guardian");
        host.add(ASKER, 1, ALICE, "asker");
        host.add(91, ASKER, ALICE, "child");
        for pid in 100..200 {
            host.add(
                pid,
                1,
                ALICE,
                ["encoder", "c3", "7", "a:b"][pid as usize % 4],
            );
        }
        for pid in 200..300 {
            host.add(pid, 1, BOB, "backup");
        }
        for pid in 300..310 {
            host.add(pid, 1, 0, "server");
        }
        host
    }

    pub fn add(&mut self, pid: u32, parent: u32, uid: u32, name: &str) {
        let id = ProcessId {
            pid,
            // No real process started then.
            start_time_ticks: u64::MAX / 2 + u64::from(pid),
        };
        let name = name.to_owned();
        let info = ProcessInfo {
            id,
            parent,
            uid,
            name,
            is_kernel_thread: false,
            has_not_executed: false,
            process_group: pid,
            session: pid,
            has_terminal: false,
        };
        self.processes.insert(pid, info);
    }
}

impl Host for FakeHost {
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        self.processes.get(&pid).cloned()
    }

    fn processes(&self) -> Vec<Listed> {
        let listed = |process: &ProcessInfo| Listed {
            pid: process.id.pid,
            inode: process.id.start_time_ticks,
            owner: self
                .owners
                .get(&process.id.pid)
                .copied()
                .unwrap_or(process.uid),
        };
        self.processes.values().map(listed).collect()
    }

    fn origin(&self, pid: u32) -> Option<Origin> {
        let process = self.processes.get(&pid)?;
        let made_up = || Origin {
            effective_uid: process.uid,
            ..Origin::default()
        };
        let known = self.origins.get(&pid).cloned();
        Some(known.unwrap_or_else(made_up))
    }

    fn run_same_program(&self, one: u32, other: u32) -> bool {
        let program = |pid| self.programs.get(&pid).copied().unwrap_or(pid);
        program(one) == program(other)
    }

    fn command(&self, pid: u32) -> String {
        self.commands.get(&pid).copied().unwrap_or_default().into()
    }

    fn cpu_use(&self, pid: u32) -> Option<CpuUse> {
        Some(self.cpu_uses.get(&pid).copied().unwrap_or_default())
    }

    fn may_run(&self, process: ProcessId) -> bool {
        let known = self.processes.get(&process.pid);
        known.is_some_and(|known| known.id == process) && !self.stopped.contains(&process.pid)
    }

    fn text(&self, path: &'static str) -> String {
        self.texts.get(path).cloned().unwrap_or_default()
    }

    fn stamp(&self, path: &'static str) -> Option<Stamp> {
        let text = self.texts.get(path)?;
        let sum = text.bytes().map(u64::from).sum();
        Some(Stamp(sum, text.len() as u64, (0, 0)))
    }

    fn nice(&self, pid: u32) -> Option<i32> {
        // Alice is polite.
        let process = self.processes.get(&pid)?;
        Some(if process.uid == ALICE {
            (pid % 20) as i32
        } else {
            0
        })
    }

    fn account_named(&self, name: &str) -> Option<UserAccount> {
        self.look_ups.update(|count| count + 1);
        let uid = match name {
            "root" => 0,
            "alice" => ALICE,
            "bob" => BOB,
            _ => return None,
        };
        Some(UserAccount {
            name: name.to_owned(),
            uid,
            gid: uid,
        })
    }

    fn account_of(&self, uid: u32) -> Option<UserAccount> {
        ["root", "alice", "bob"]
            .into_iter()
            .filter_map(|name| self.account_named(name))
            .find(|account| account.uid == uid)
    }

    fn thread(&self, tid: u32) -> Option<(u32, u64)> {
        // Each process has one thread.
        let process = self.processes.get(&tid)?;
        Some((tid, process.id.start_time_ticks))
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn own_pid(&self) -> u32 {
        DAEMON
    }

    fn own_uid(&self) -> u32 {
        self.daemon_uid
    }
}
