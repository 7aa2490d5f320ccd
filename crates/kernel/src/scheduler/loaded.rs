//! The scheduler in the kernel, and the calls that control it.

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore as _, MapFlags, ProgramInput, ProgramMut};
use prorata_core::hybrid::{FACTOR_ONE, boost};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::free_space::FreeSpace;
use super::graph::Graph;
use super::limits::{Limits, has_timer};
use super::quanta::{Quanta, check_quantum};
use super::ring::Ring;
use super::tables::Tables;
use super::timetable::Timetable;
use super::trace::{Decision, Trace};
use super::{
    Account, BASE, BUCKETS, CGROUP_NODES, Options, PASS_BITS, Policy, Scope, Statistics, TICKETS,
    Ticket, layout, task, trace, worth,
};
use crate::exit::ejection;
use crate::prorata_skeleton::{
    OpenProrataSkel, ProrataProgs, ProrataSkel, ProrataSkelBuilder, types,
};
use crate::{KernelError, attach};

const NAME: &str = "prorata";

const _: () = assert!(size_of::<types::rights>() == 368);
const _: () = assert!(size_of::<types::ticket>() == 16);
const _: () = assert!(size_of::<types::totals>() == 56);
const _: () = assert!(size_of::<types::change_request>() == 16);

/// `SCX_OPS_ENQ_LAST`: a task does not continue because its CPU would idle.
/// `SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED`: such tasks wait in the queues, too.
const FLAGS: u64 = 2 | 4 | 16;
const SWITCH_PARTIAL: u64 = 8;
const VARIABLES: &str = "the scheduler has variables";

/// The loaded scheduler. Dropping this unloads it, and so does any end of the process. The
/// tasks then continue under the kernel's own scheduler.
pub struct Scheduler {
    /// Dropped first: that unloads the scheduler.
    _link: Link,
    exits: Ring<u32>,
    /// Present if decisions are traced.
    decisions: Option<Ring<Decision>>,
    pub(super) rights: Mutex<Rights>,
    pub(super) skeleton: Mutex<ProrataSkel<'static>>,
    /// The open timetable. A thread that takes this and the skeleton takes this first.
    pub(super) timetable: Mutex<Option<Timetable>>,
    pub(super) scope: Scope,
    queues: u32,
    /// Whether the kernel has the timer that limits need.
    pub(super) timed: bool,
}

/// The graph, the table of tickets, the quanta and the limits, as the caller set them.
pub(super) struct Rights {
    pub(super) graph: Graph,
    free_space: FreeSpace,
    pub(super) quanta: Quanta,
    pub(super) limits: Limits,
}

impl Scheduler {
    /// Loads the scheduler. This needs root, and some 0.2 s: 450 million
    /// instructions, four tenths of them libbpf's linear search of the kernel's types.
    pub fn load(options: &Options) -> Result<Self, KernelError> {
        Self::new(options, false, has_timer())
    }

    /// Loads the scheduler as it is loaded under PREEMPT_RT, whose kernels have no timer for it:
    /// limits are refused, and threads of this process keep the boundaries of slots.
    pub fn load_without_timer(options: &Options) -> Result<Self, KernelError> {
        Self::new(options, false, false)
    }

    /// Loads the scheduler with a trace of its decisions, see [`Scheduler::take_decisions`].
    /// Each decision then costs some 0.2 us more.
    pub fn load_traced(options: &Options) -> Result<Self, KernelError> {
        Self::new(options, true, has_timer())
    }

    fn new(options: &Options, traced: bool, timed: bool) -> Result<Self, KernelError> {
        check_quantum(options.quantum_ns)?;
        attach::check_vacancy()?;
        let refused = attach::refusal(NAME);
        let mut open = ProrataSkelBuilder::default()
            .open(attach::object())
            .map_err(&refused)?;
        let queues = configure(&mut open, options, traced, timed).map_err(&refused)?;
        let tables = Tables::replace_map(&mut open).map_err(&refused)?;
        let mut skeleton = open.load().map_err(&refused)?;
        tables.map_into(&mut skeleton).map_err(&refused)?;
        let exits = Ring::new(&skeleton.maps.exits, node_of_bytes).map_err(&refused)?;
        let decisions = traced.then(|| Ring::new(&skeleton.maps.prorata_trace, trace::decode));
        let decisions = decisions.transpose().map_err(&refused)?;
        let link = skeleton.maps.prorata_ops.attach_struct_ops();
        let scheduler = Self {
            _link: link.map_err(&refused)?,
            exits,
            decisions,
            rights: Mutex::new(Rights {
                graph: Graph::default(),
                free_space: FreeSpace::new(TICKETS as u32 + 1),
                quanta: Quanta::new(options.quantum_ns),
                limits: Limits::default(),
            }),
            skeleton: Mutex::new(skeleton),
            timetable: Mutex::new(None),
            scope: options.scope,
            queues,
            timed,
        };
        match scheduler.failure() {
            Some(failure) => Err(failure),
            None => Ok(scheduler),
        }
    }

    /// Changes the policy, from the next charge of each task on.
    pub fn set_policy(&self, policy: Policy) -> Result<(), KernelError> {
        self.with_data(|data, _| {
            let lottery = policy == Policy::Lottery;
            if data.lottery == lottery {
                return;
            }
            // The present pass continues from its present place.
            if lottery {
                data.furthest = data.dispensed.wrapping_add(data.ahead);
            } else {
                data.ahead = data.furthest.wrapping_sub(data.dispensed);
            }
            data.lottery = lottery;
        })
    }

    /// Replaces the tickets that fund `node`, and creates the node. The change is atomic: no
    /// value ever depends on some of the tickets only. A node without tickets is legal: its
    /// tasks run when no others want to.
    pub fn set_tickets(&self, node: u32, tickets: &[Ticket]) -> Result<(), KernelError> {
        let mut rights = lock(&self.rights);
        let Rights {
            graph, free_space, ..
        } = &mut *rights;
        graph.check(node, tickets)?;
        let wanted = tickets.len();
        let list = match wanted {
            0 => 0,
            1..=TICKETS => free_space
                .take(wanted as u32, quiesce)
                .ok_or(KernelError::TooManyTickets { wanted })?,
            _ => return Err(KernelError::TooManyTickets { wanted }),
        };
        self.with_data(|_, tables| write_list(tables, list, tickets))?;
        self.ask(|progs| &progs.set_tickets, [node, list, 0, 0])
            .map_err(|why| self.refused(&why))?;
        if let Some(before) = graph.fund(node, tickets, list) {
            free_space.retire(before.list, before.length);
        }
        Ok(())
    }

    /// Removes a node and its account. Fails while the node funds others or has tasks.
    pub fn remove(&self, node: u32) -> Result<(), KernelError> {
        let mut rights = lock(&self.rights);
        check_own(&rights.graph, node)?;
        let in_use = |why| Err(KernelError::InUse { node, why });
        if rights.graph.funds_any(node) {
            return in_use("funds others");
        }
        if self.read_account(node)?.tasks > 0 {
            return in_use("has tasks");
        }
        self.ask(|progs| &progs.set_tickets, [node, 0, 0, 0])
            .map_err(|why| self.refused(&why))?;
        if let Some(before) = rights.graph.forget(node) {
            rights.free_space.retire(before.list, before.length);
        }
        let Rights { quanta, limits, .. } = &mut *rights;
        self.forget_quantum(quanta, node)?;
        self.forget_limit(limits, node)?;
        self.with_data(|_, tables| {
            // The node has no task, so the kernel does not write here.
            let entry = &mut tables.nodes[node as usize];
            entry.account = types::account::default();
            entry.client.known = 0;
            entry.bound_worth = 0;
            entry.dues = types::dues::default();
            tables.waits[node as usize] = [0; BUCKETS];
        })
    }

    /// Removes all nodes, as after a load. Fails if one of them has tasks; no node has tickets
    /// any more in that case.
    pub fn forget_all(&self) -> Result<(), KernelError> {
        let nodes = lock(&self.rights).graph.nodes();
        // A node that funds others cannot be removed.
        nodes
            .iter()
            .try_for_each(|node| self.set_tickets(*node, &[]))?;
        let own = nodes.iter().filter(|node| **node < CGROUP_NODES);
        own.into_iter().try_for_each(|node| self.remove(*node))
    }

    /// Puts a task, and the tasks that it forks from now on, into a node and under this
    /// scheduler. The task keeps its nice value. A task of another node moves.
    pub fn give(&self, node: u32, tid: u32) -> Result<(), KernelError> {
        check_own(&lock(&self.rights).graph, node)?;
        let refused = |why| KernelError::Task { tid, why };
        self.ask(|progs| &progs.give, [node, 0, tid, 0])
            .map_err(refused)?;
        match self.scope {
            Scope::Given => task::join(tid).map_err(refused),
            Scope::All => Ok(()),
        }
    }

    /// Releases a task: in [`Scope::Given`] to the kernel's own scheduler (`SCHED_OTHER`, with
    /// its nice value), else to its control group's node. Other tasks are left alone.
    pub fn take_back(&self, tid: u32) -> Result<(), KernelError> {
        let refused = |why| KernelError::Task { tid, why };
        if self.scope == Scope::Given {
            task::part(tid).map_err(refused)?;
        }
        self.ask(|progs| &progs.take_back, [0, 0, tid, 0])
            .map(|_| ())
            .map_err(refused)
    }

    /// The account of a node.
    pub fn account(&self, node: u32) -> Result<Account, KernelError> {
        if node != BASE && node < CGROUP_NODES && !lock(&self.rights).graph.contains(node) {
            return Err(KernelError::UnknownNode { node });
        }
        self.read_account(node)
    }

    fn read_account(&self, node: u32) -> Result<Account, KernelError> {
        self.with_data(|data, tables| {
            let entry = tables.nodes.get(node as usize);
            let entry = entry.ok_or(KernelError::NoSuchNode { node })?;
            let waits = tables.waits[node as usize].map(u64::from);
            Ok(Account {
                received_ns: entry.account.received_ns,
                specified_ns: entry.account.specified_ns + unsettled(data.dispensed, &entry.client),
                runnable: entry.client.tasks + entry.bound,
                bound: entry.bound,
                tasks: entry.tasks,
                pauses: entry.limit != 0
                    && tables.limits[entry.limit as usize].allowance.pauses != 0,
                dispatches: entry.account.dispatches,
                migrations: entry.account.migrations,
                waited_ns: entry.account.waited_ns,
                waits,
                lead_ns: entry.dues.lead_ns,
                nice_factor: match entry.nice_factor {
                    0 => FACTOR_ONE,
                    factor => factor,
                },
            })
        })?
    }

    /// The boost of a process's first thread when it last ran
    /// ([`prorata_core::hybrid::boost()`]). None if the thread has never been this scheduler's.
    pub fn boost_of(&self, pid: u32) -> Option<u32> {
        let process = Pid::from_raw(pid.cast_signed())?;
        let process = pidfd_open(process, PidfdFlags::empty()).ok()?;
        let key = process.as_raw_fd().to_ne_bytes();
        let skeleton = lock(&self.skeleton);
        let bytes = skeleton.maps.tasks.lookup(&key, MapFlags::ANY).ok()??;
        let window = std::mem::offset_of!(types::task, window);
        let word = |offset: usize| {
            let bytes = bytes.get(window + offset..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        let received_ns = word(std::mem::offset_of!(types::use_window, all_received_ns))?;
        let deserved_ns = word(std::mem::offset_of!(types::use_window, all_deserved_ns))?;
        Some(boost(received_ns, deserved_ns))
    }

    /// The node that a task was given to, or inherited from its parent.
    pub fn node_of(&self, tid: u32) -> Option<u32> {
        self.ask(|progs| &progs.find, [0, 0, tid, 0]).ok()
    }

    /// Readable when the last task of one of the caller's nodes has ended, see
    /// [`Scheduler::take_exited`].
    pub fn exits(&self) -> BorrowedFd<'_> {
        self.exits.fd()
    }

    /// The nodes whose last task ended since the last call. They may have tasks again by now:
    /// [`Account::tasks`] tells.
    pub fn take_exited(&self) -> Vec<u32> {
        self.exits.take()
    }

    /// The decisions since the last call, and how many the kernel had no room for. The ring
    /// holds some 10,000 decisions. Fails if the scheduler was loaded without a trace.
    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        let ring = self.decisions.as_ref().ok_or(KernelError::NotTraced)?;
        let decisions = ring.take();
        let lost = trace::count_in(&lock(&self.skeleton).maps.prorata_lost)?;
        Ok(Trace { decisions, lost })
    }

    /// The reason why the kernel unloaded the scheduler, if it did.
    pub fn failure(&self) -> Option<KernelError> {
        let skeleton = lock(&self.skeleton);
        let data = skeleton.maps.bss_data.as_deref().expect(VARIABLES);
        ejection_of(data)
    }

    /// Totals.
    pub fn statistics(&self) -> Result<Statistics, KernelError> {
        self.with_data(|data, tables| Statistics {
            charged_ns: data.totals.charged_ns,
            dispatches: data.totals.dispatches,
            direct: data.totals.direct,
            prolonged: data.totals.prolonged,
            steals: data.totals.steals,
            reordered: data.totals.reordered,
            active_base: tables.nodes[BASE as usize].active.try_into().unwrap_or(0),
            groups_without_node: data.totals.groups_without_node,
            queues: self.queues,
        })
    }

    /// Reads or writes the scheduler's variables, unless it was unloaded.
    pub(super) fn with_data<T>(
        &self,
        visit: impl FnOnce(&mut types::bss, &mut types::bss_tables) -> T,
    ) -> Result<T, KernelError> {
        let mut skeleton = lock(&self.skeleton);
        let maps = &mut skeleton.maps;
        let data = maps.bss_data.as_deref_mut().expect(VARIABLES);
        let tables = maps.bss_tables_data.as_deref_mut().expect(VARIABLES);
        match ejection_of(data) {
            Some(ejected) => Err(ejected),
            None => Ok(visit(data, tables)),
        }
    }

    /// Runs one of the programs of `bpf/requests.bpf.h`. Returns the node that it found.
    pub(super) fn ask(
        &self,
        program: for<'a> fn(&'a ProrataProgs<'static>) -> &'a ProgramMut<'static>,
        request: [u32; 4],
    ) -> io::Result<u32> {
        let mut bytes = [0; 16];
        for (place, number) in bytes.chunks_exact_mut(4).zip(request) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        let skeleton = lock(&self.skeleton);
        let input = ProgramInput {
            context_in: Some(&mut bytes),
            ..ProgramInput::default()
        };
        let output = program(&skeleton.progs)
            .test_run(input)
            .map_err(io::Error::other)?;
        match output.return_value.cast_signed() {
            0 => {
                let found = bytes[12..].try_into().expect("there are four");
                Ok(u32::from_ne_bytes(found))
            }
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }

    pub(super) fn refused(&self, why: &io::Error) -> KernelError {
        KernelError::Refused {
            name: NAME,
            why: why.to_string(),
        }
    }
}

/// Returns the number of queues.
fn configure(
    open: &mut OpenProrataSkel<'static>,
    options: &Options,
    traced: bool,
    timed: bool,
) -> libbpf_rs::Result<u32> {
    let cpus = possible_cpus();
    let constants = open.maps.rodata_data.as_deref_mut().expect(VARIABLES);
    constants.cpus = cpus;
    // A CPU beyond the table uses the queue of a lower one.
    let listed = cpus.min(constants.queue_by_cpu.len() as u32);
    let queue_by_cpu = layout::queue_by_cpu(options.queues, listed);
    let queues = queue_by_cpu.iter().max().map_or(1, |last| last + 1);
    constants.queues = queues;
    constants.queue_by_cpu[..queue_by_cpu.len()].copy_from_slice(&queue_by_cpu);
    constants.traced = traced;
    constants.timed = timed;
    constants.abbreviated = options.hybrid.abbreviated_quanta;
    constants.kernel_priorities = options.hybrid.kernel_priorities;
    constants.ticket_boost = options.hybrid.ticket_boost;
    constants.nice_counts = options.hybrid.nice;
    constants.all_tasks = options.scope == Scope::All;
    let data = open.maps.bss_data.as_deref_mut().expect(VARIABLES);
    data.lottery = options.policy == Policy::Lottery;
    data.online = online_cpus();
    Quanta::new(options.quantum_ns).write(data, options.scope);
    if !traced {
        let maps = &mut open.maps;
        for map in [
            &mut maps.prorata_trace,
            &mut maps.prorata_lost,
            &mut maps.prorata_asked,
        ] {
            map.set_autocreate(false)?;
        }
    }
    if !timed {
        open.maps.alarms.set_autocreate(false)?;
        open.maps.boundaries.set_autocreate(false)?;
    }
    // A program from the headers of scx that nothing here needs.
    open.progs.scx_lib_init_probe.set_autoload(false);
    let operations = open.struct_ops.prorata_ops_mut();
    operations.flags = match options.scope {
        Scope::Given => FLAGS | SWITCH_PARTIAL,
        Scope::All => FLAGS,
    };
    if cpus == 1 {
        operations.tick = std::ptr::null_mut();
    }
    if !kernel_knows(b"\0cgroup_set_idle\0").unwrap_or(false) {
        operations.cgroup_set_idle = std::ptr::null_mut();
    }
    Ok(queues)
}

/// Whether the names in the kernel's description of its types include this one.
fn kernel_knows(name: &[u8]) -> io::Result<bool> {
    let types = fs::File::open("/sys/kernel/btf/vmlinux")?;
    // `struct btf_header`: the lengths stand from byte 4 on.
    let mut header = [0; 24];
    types.read_exact_at(&mut header, 0)?;
    let word = |index: usize| {
        let bytes = &header[4 * index..][..4];
        u32::from_ne_bytes(bytes.try_into().expect("there are four"))
    };
    let [header_length, start, length] = [word(1), word(4), word(5)];
    let mut names = vec![0; length as usize];
    types.read_exact_at(&mut names, (header_length + start).into())?;
    // SAFETY: both are as long as stated, and only read.
    let found = unsafe {
        libc::memmem(
            names.as_ptr().cast(),
            names.len(),
            name.as_ptr().cast(),
            name.len(),
        )
    };
    Ok(!found.is_null())
}

/// CPUs that could be online; 1 if the kernel does not tell.
pub fn possible_cpus() -> u32 {
    libbpf_rs::num_possible_cpus().map_or(1, |cpus| cpus as u32)
}

fn online_cpus() -> u32 {
    // SAFETY: takes no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(1).max(1)
}

fn write_list(data: &mut types::bss_tables, list: u32, tickets: &[Ticket]) {
    let places = &mut data.tickets[list as usize..][..tickets.len()];
    for (place, ticket) in places.iter_mut().zip(tickets) {
        *place = types::ticket {
            currency: ticket.currency,
            more: 1,
            amount: ticket.amount,
        };
    }
    if let Some(last) = places.last_mut() {
        last.more = 0;
    }
}

/// Returns when no program in the kernel reads lists that were replaced before.
fn quiesce() {
    /// `MEMBARRIER_CMD_GLOBAL` waits for a grace period, which includes the kernel's
    /// programs. On one CPU no program runs meanwhile.
    const GLOBAL: libc::c_int = 1;
    // SAFETY: takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
}

pub(super) fn check_own(graph: &Graph, node: u32) -> Result<(), KernelError> {
    match node {
        BASE => Err(KernelError::Base),
        CGROUP_NODES.. => Err(KernelError::NoSuchNode { node }),
        _ if !graph.contains(node) => Err(KernelError::UnknownNode { node }),
        _ => Ok(()),
    }
}

fn ejection_of(data: &types::bss) -> Option<KernelError> {
    let record = &data.exit_record;
    ejection(NAME, record.kind, &record.reason, &record.message)
}

/// What was due to a client since its account was last brought up to date: the rest of
/// `settle` in `bpf/entity.bpf.h`.
fn unsettled(dispensed: u64, client: &types::entity) -> u64 {
    if client.tasks == 0 {
        return 0;
    }
    let wait = dispensed.wrapping_sub(client.settled_at).cast_signed();
    let wait = wait.max(0) as f64 / f64::from(1 << PASS_BITS);
    (wait * worth::to_f64(client.worth)) as u64
}

fn node_of_bytes(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// A panic leaves no locked value half-changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
