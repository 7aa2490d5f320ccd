//! A scheduler that keeps books. It gives no task a CPU, but marks its members
//! by their policy, as the one in the kernel does.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::slots::geometry::{Geometry, Tick};
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{Account, InSlot, Options, Policy as Kind, RowTally, Ticket};
use prorata_user::{Bell, Policy, ProcessId, procfs};

use crate::kernel_engine::client::NOTHING;
use crate::kernel_engine::policies::SCHED_EXT;
use crate::kernel_engine::scheduler::InKernel;

/// A member's policy in place of `SCHED_EXT`, which this kernel lacks.
pub(super) const MARK: Policy = Policy(SCHED_EXT);

/// Everything that all schedulers, one after another, were told.
#[derive(Clone)]
pub(super) struct Kernel {
    books: Arc<Mutex<Books>>,
    exits: Arc<Bell>,
}

#[derive(Default)]
pub(super) struct Books {
    pub nodes: BTreeMap<u32, Vec<Ticket>>,
    pub quanta_ns: BTreeMap<u32, u64>,
    pub limits: BTreeMap<u32, CpuLimit>,
    pub members: HashMap<u32, (ProcessId, u32)>,
    /// Threads that were taken back: they inherit nothing any more.
    taken_back: HashMap<u32, ProcessId>,
    /// So many tasks are members again after they were taken back, as a thread is that was born
    /// meanwhile.
    pub births: u32,
    pub accounts: HashMap<u32, Account>,
    /// By pid.
    pub boosts: HashMap<u32, u32>,
    exited: Vec<u32>,
    pub failure: Option<KernelError>,
    /// Whether all tasks were released, as during an unload.
    unloading: bool,
    pub options: Option<Options>,
    pub loads: u32,
    /// The node of tasks in no other one, where all of the machine is
    /// scheduled.
    pub group: Option<u32>,
    /// So many loads succeed, and later ones fail.
    pub most_loads: u32,
    /// The cells of the open timetable.
    pub cells: Option<usize>,
    pub schedulees: BTreeMap<u32, InSlot>,
    /// The words that were published last.
    pub words: Vec<u64>,
}

impl Kernel {
    pub fn new() -> Self {
        let books = Books {
            most_loads: u32::MAX,
            ..Books::default()
        };
        Self {
            books: Arc::new(Mutex::new(books)),
            exits: Arc::new(Bell::new().unwrap()),
        }
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// A scheduler without any knowledge, as after each load.
    pub fn load(&self, options: &Options) -> Result<Box<dyn InKernel>, KernelError> {
        let mut books = self.books();
        if books.loads == books.most_loads {
            return Err(KernelError::Occupied("scx_other".into()));
        }
        books.loads += 1;
        books.options = Some(*options);
        books.failure = None;
        books.unloading = false;
        books.nodes.clear();
        books.quanta_ns.clear();
        books.limits.clear();
        books.members.clear();
        books.taken_back.clear();
        books.accounts.clear();
        books.cells = None;
        books.schedulees.clear();
        books.words.clear();
        Ok(Box::new(self.clone()))
    }

    /// The kernel begins to unload the scheduler: all tasks seem to have ended.
    pub fn begin_to_eject(&self) {
        let mut books = self.books();
        books.unloading = true;
        books.exited = books.nodes.keys().copied().collect();
        self.exits.ring();
    }

    /// Whether the engine has asked for all exits.
    pub fn is_heard(&self) -> bool {
        self.books().exited.is_empty()
    }

    /// The kernel unloads the scheduler; members keep their policy.
    pub fn eject(&self, reason: &str) {
        self.books().failure = Some(KernelError::Ejected {
            name: "fake",
            reason: reason.to_owned(),
            message: "a test".to_owned(),
        });
        self.exits.ring();
    }

    /// Notices the end of tasks, as the kernel does by itself.
    pub fn notice_ends(&self) {
        let mut books = self.books();
        let (living, ended): (HashMap<_, _>, HashMap<_, _>) = std::mem::take(&mut books.members)
            .into_iter()
            .partition(|(_, (process, _))| process.is_alive());
        books.members = living;
        for (_, node) in ended.into_values() {
            if books.members.values().all(|(_, other)| *other != node) {
                books.exited.push(node);
                self.exits.ring();
            }
        }
    }
}

impl Books {
    /// A task that is not listed has what its parent had at its birth.
    fn node_of(&mut self, tid: u32) -> Option<u32> {
        let thread = ProcessId::of(tid).ok()?;
        if let Some((_, node)) = self
            .members
            .get(&tid)
            .filter(|(member, _)| *member == thread)
        {
            return Some(*node);
        }
        if self.taken_back.get(&tid) == Some(&thread) {
            return None;
        }
        let stat = procfs::stat(tid).ok()?;
        // Only members have it: no test gives it to other tasks.
        if stat.parent == 0 || Policy::of(tid).ok()? != MARK {
            return None;
        }
        let node = self.node_of(stat.parent)?;
        self.members.insert(tid, (thread, node));
        Some(node)
    }
}

impl InKernel for Kernel {
    fn open_timetable(&self, geometry: &Geometry, _: &[u32]) -> Result<(), KernelError> {
        let mut books = self.books();
        books.cells = Some(geometry.cells());
        books.schedulees.clear();
        books.words = vec![0; geometry.cells()];
        Ok(())
    }

    fn close_timetable(&self) -> Result<(), KernelError> {
        let mut books = self.books();
        books.cells = None;
        books.words.clear();
        Ok(())
    }

    fn name_schedulee(&self, number: u32, schedulee: InSlot) -> Result<bool, KernelError> {
        let mut books = self.books();
        let lives = match schedulee {
            InSlot::Node(node) => books.nodes.contains_key(&node),
            InSlot::Process { pid, started } => {
                ProcessId::of(pid).is_ok_and(|process| process.start_time_ticks == started)
            }
            InSlot::Thread { tid, .. } => procfs::process_of_thread(tid).is_ok(),
        };
        if lives {
            books.schedulees.insert(number, schedulee);
        }
        Ok(lives)
    }

    fn publish_slots(&self, words: &[u64], from: Tick) -> Result<Tick, KernelError> {
        let mut books = self.books();
        if books.cells != Some(words.len()) {
            return Err(KernelError::NoTimetable);
        }
        books.words = words.to_vec();
        Ok(from)
    }

    fn look_after_slots(&self) -> Result<(), KernelError> {
        Ok(())
    }

    fn slot_tallies(&self) -> Vec<RowTally> {
        Vec::new()
    }

    fn set_policy(&self, policy: Kind) -> Result<(), KernelError> {
        self.books().options.as_mut().unwrap().policy = policy;
        Ok(())
    }

    fn set_quantum_ns(&self, quantum_ns: u64) -> Result<(), KernelError> {
        self.books().options.as_mut().unwrap().quantum_ns = quantum_ns;
        Ok(())
    }

    fn set_client_quantum_ns(&self, node: u32, quantum_ns: Option<u64>) -> Result<(), KernelError> {
        let mut books = self.books();
        if !books.nodes.contains_key(&node) {
            return Err(KernelError::UnknownNode { node });
        }
        match quantum_ns {
            Some(quantum_ns) => books.quanta_ns.insert(node, quantum_ns),
            None => books.quanta_ns.remove(&node),
        };
        Ok(())
    }

    fn set_limit(&self, node: u32, max: Option<CpuLimit>) -> Result<(), KernelError> {
        let mut books = self.books();
        if !books.nodes.contains_key(&node) {
            return Err(KernelError::UnknownNode { node });
        }
        match max {
            Some(max) => books.limits.insert(node, max),
            None => books.limits.remove(&node),
        };
        Ok(())
    }

    fn holds_limits(&self) -> bool {
        true
    }

    fn set_tickets(&self, node: u32, tickets: &[Ticket]) -> Result<(), KernelError> {
        self.books().nodes.insert(node, tickets.to_vec());
        Ok(())
    }

    fn remove(&self, node: u32) -> Result<(), KernelError> {
        let mut books = self.books();
        if books.members.values().any(|(_, other)| *other == node) {
            return Err(KernelError::InUse {
                node,
                why: "has tasks",
            });
        }
        assert!(books.nodes.remove(&node).is_some());
        books.quanta_ns.remove(&node);
        books.limits.remove(&node);
        Ok(())
    }

    fn give(&self, node: u32, tid: u32) -> Result<(), KernelError> {
        let gone = |why| KernelError::Task { tid, why };
        let thread = ProcessId::of(tid).map_err(|error| gone(std::io::Error::other(error)))?;
        MARK.set(tid).map_err(gone)?;
        let mut books = self.books();
        assert!(books.nodes.contains_key(&node), "node {node} is not there");
        books.taken_back.remove(&tid);
        books.members.insert(tid, (thread, node));
        Ok(())
    }

    fn take_back(&self, tid: u32) -> Result<(), KernelError> {
        let mut books = self.books();
        if books.births > 0 {
            books.births -= 1;
            return Ok(());
        }
        books.members.remove(&tid);
        if let Ok(thread) = ProcessId::of(tid) {
            books.taken_back.insert(tid, thread);
        }
        if Policy::of(tid).is_ok_and(|policy| policy == MARK) {
            let _ = Policy::OTHER.set(tid);
        }
        Ok(())
    }

    fn account(&self, node: u32) -> Result<Account, KernelError> {
        let books = self.books();
        if !books.nodes.contains_key(&node) {
            return Err(KernelError::UnknownNode { node });
        }
        let tasks = books.members.values().filter(|(_, other)| *other == node);
        Ok(Account {
            tasks: if books.unloading {
                0
            } else {
                tasks.count() as u32
            },
            ..books.accounts.get(&node).copied().unwrap_or(NOTHING)
        })
    }

    fn boost_of(&self, pid: u32) -> Option<u32> {
        self.books().boosts.get(&pid).copied()
    }

    fn node_of(&self, tid: u32) -> Option<u32> {
        let mut books = self.books();
        books.node_of(tid).or(books.group)
    }

    fn exits(&self) -> BorrowedFd<'_> {
        self.exits.as_fd()
    }

    fn take_exited(&self) -> Vec<u32> {
        self.exits.hush();
        std::mem::take(&mut self.books().exited)
    }

    fn failure(&self) -> Option<KernelError> {
        let books = self.books();
        match &books.failure {
            Some(KernelError::Ejected {
                name,
                reason,
                message,
            }) => Some(KernelError::Ejected {
                name,
                reason: reason.clone(),
                message: message.clone(),
            }),
            _ => None,
        }
    }

    fn dispatches(&self) -> u64 {
        let books = self.books();
        books
            .accounts
            .values()
            .map(|account| account.dispatches)
            .sum()
    }
}
