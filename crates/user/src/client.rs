//! One client: its processes taken together.

use prorata_core::affinity::Affinity;
use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::{Outlook, WakeClass};
use prorata_core::ids::ClientId;
use prorata_core::placement::Lag;
use rustix::thread::CpuSet;

use crate::control_groups::ControlGroup;
use crate::decision::BUSY_TURNS;
use crate::directory::ClientActivity;
use crate::limits::Limit;
use crate::nice::NiceFactor;
use crate::ownership::Users;
use crate::placement::affinity_of;
use crate::process::{Failure, Process, Treatment};
use crate::process_id::ProcessId;
use crate::procfs::StatFile;
use crate::scheduler::{self, intersection, members};
use crate::slumber::Sampling;
use crate::table::Journal;
use crate::threads::Heritage;
use crate::waited::Waited;

/// A loser answers signals for a quantum of CPU time since it last won, and after that for one
/// part in so many of all time. Otherwise timers would gain a client CPU time.
const FORGOTTEN_IN: u64 = 1000;

/// A process that started a client and inherits its orphans, but is no part of the client.
#[derive(Debug)]
pub(crate) struct FosterParent {
    pub(crate) id: ProcessId,
    /// Its own parent.
    pub(crate) parent: u32,
    pub(crate) stat_file: StatFile,
    pub(crate) waited: Waited,
    /// Another client has the same foster parent. The account does not tell whose children
    /// ended, so the time that was not seen while they lived is not charged.
    pub(crate) shared: bool,
}

impl FosterParent {
    /// Whether it has ended and its parent has waited for it.
    pub(crate) fn is_gone(&self) -> bool {
        self.stat_file.read().is_err()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.stat_file.read().is_ok_and(|stat| !stat.has_ended())
    }
}

/// A client with at least one process.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    /// Parents stand before their children, but for the exceptions of [`Self::add_process`].
    pub(crate) processes: Vec<Process>,
    pub(crate) foster_parents: Vec<FosterParent>,
    /// Index of the process from which the next slumbering ones are sampled.
    pub(crate) slumber_from: usize,
    /// Since when time of ended children is still to be charged, on the monotonic clock.
    pub(crate) reaped_since_ns: Option<u64>,
    pub(crate) users: Users,
    /// It holds what no caller named: a process leaves it for any client that it is named for.
    pub(crate) gives_way: bool,
    /// The shared CPUs that its processes may use when they are not bound.
    pub(crate) usable: CpuSet,
    /// The same as the dispatcher numbers CPUs, unless the client may use all or none, and
    /// what the dispatcher was told last.
    pub(crate) affinity: Option<Affinity>,
    pub(crate) affinity_told: Option<Affinity>,
    /// Its user took it out of the competition.
    pub(crate) suspended: bool,
    /// Some of its processes are raised in slots.
    pub(crate) has_slots: bool,
    /// How its limit stood at the last decision.
    pub(crate) limit: Limit,
    /// Runnable threads, up to the number of CPUs; zero is blocked.
    pub(crate) runnable: u32,
    /// The same as last reported to the dispatcher.
    pub(crate) runnable_told: u32,
    /// CPU time used since the last sample but one, and that time's length.
    pub(crate) usage_ns: (u64, u64),
    /// CPU time not yet reported to the dispatcher.
    pub(crate) uncharged_ns: u64,
    /// What of it was in slots of a timetable.
    pub(crate) uncharged_in_slots_ns: u64,
    /// Its own quantum, if it has one.
    pub(crate) quantum_ns: Option<u64>,
    /// The same as last reported to the dispatcher.
    pub(crate) quantum_told_ns: Option<u64>,
    /// When the turn in which it runs ends, on the monotonic clock.
    pub(crate) turn_ends_ns: u64,
    /// When that turn began.
    pub(crate) turn_began_ns: u64,
    /// CPUs that it won with the last decision; zero for a loser.
    pub(crate) cpus: u32,
    /// Whether it had won the decision before that.
    pub(crate) won_before: bool,
    /// CPU time that it took in advance: that it used as a loser since it last won.
    pub(crate) advance_ns: u64,
    /// It runs though it is a loser, because a signal waits for a handler of its own.
    pub(crate) answers_signal: bool,
    /// CPU time that it used because of signals since it last won, less what has been forgotten.
    pub(crate) answering_ns: u64,
    /// It ran because of signals when it was last sampled. The kernel adds to the clock of a
    /// running thread up to a tick late, so the next sample shows some of that time.
    answered_before: bool,
    /// What it slept on when it was looked at last, and when the dispatcher was told last.
    pub(crate) sleeps_on: WakeClass,
    pub(crate) sleeps_on_told: WakeClass,
    /// The factor of its nice values.
    pub(crate) nice: NiceFactor,
    /// How it stood as a loser at the last decision, where hybrid lottery scheduling is in force.
    pub(crate) outlook: Option<Outlook>,
    /// That stays as it is until the client wakes: asleep, it only falls further below its due.
    pub(crate) outlook_holds: bool,
    /// It competes though it is asleep, because of what it took in advance.
    pub(crate) pays_debt: bool,
    /// Turns in a row in which it was never found asleep. A new client counts as busy.
    pub(crate) busy_turns: u32,
    pub(crate) treatment: Treatment,
    /// The treatment has not reached all its processes and threads.
    pub(crate) unsettled: bool,
    /// Since when children run on because their parents have yet to stop, on the monotonic clock.
    pub(crate) stopping_since_ns: Option<u64>,
    /// Its control group, once it has one.
    pub(crate) control_group: Option<ControlGroup>,
    /// All its processes are in that group, and are treated at once.
    pub(crate) grouped: bool,
    /// Until when processes may be on their way to that group, on the monotonic clock.
    pub(crate) moving_until_ns: u64,
    /// This user may not move some of its processes to that group.
    pub(crate) lacks_right: bool,
    /// The log says why some of its processes could not be put in a group.
    pub(crate) lacks_group: bool,
    /// CPUs that it is to be bound to, and those that it is bound to.
    pub(crate) place: Option<CpuSet>,
    pub(crate) bound: Option<CpuSet>,
    /// How far it is behind its due, while there is load outside.
    pub(crate) lag: Lag,
    pub(crate) lag_ns: i64,
    /// It has been bound at some time.
    pub(crate) was_bound: bool,
    /// The treatment failed for some process: its user had stopped it, or its return was
    /// refused.
    pub(crate) defied: bool,
    /// When it was last sampled, last found to have run, and last looked at, on the monotonic
    /// clock.
    pub(crate) sampled_ns: u64,
    pub(crate) ran_ns: u64,
    pub(crate) looked_ns: u64,
    /// It has had a process. Without any left it has exited.
    pub(crate) had_processes: bool,
    /// How many of its processes' children were noticed, those included that were about to end and
    /// could not join.
    pub(crate) births: u64,
    /// Its activity as last told to the directory.
    pub(crate) activity_told: Option<ClientActivity>,
    /// The living process that the engine waits for.
    pub(crate) watched: Option<ProcessId>,
}

impl Client {
    pub(crate) fn new(id: ClientId, now_ns: u64) -> Self {
        Self {
            id,
            processes: Vec::new(),
            foster_parents: Vec::new(),
            slumber_from: 0,
            reaped_since_ns: None,
            users: Users::default(),
            gives_way: false,
            usable: CpuSet::new(),
            affinity: None,
            affinity_told: None,
            suspended: false,
            has_slots: false,
            limit: Limit::None,
            runnable: 0,
            runnable_told: 0,
            usage_ns: (0, 0),
            uncharged_ns: 0,
            uncharged_in_slots_ns: 0,
            quantum_ns: None,
            quantum_told_ns: None,
            turn_ends_ns: 0,
            turn_began_ns: 0,
            cpus: 0,
            won_before: false,
            advance_ns: 0,
            answers_signal: false,
            answering_ns: 0,
            answered_before: false,
            sleeps_on: WakeClass::User,
            sleeps_on_told: WakeClass::User,
            nice: NiceFactor::default(),
            outlook: None,
            outlook_holds: false,
            pays_debt: false,
            busy_turns: BUSY_TURNS,
            treatment: Treatment::Normal,
            unsettled: false,
            stopping_since_ns: None,
            control_group: None,
            grouped: false,
            moving_until_ns: 0,
            lacks_right: false,
            lacks_group: false,
            place: None,
            bound: None,
            lag: Lag::default(),
            lag_ns: 0,
            was_bound: false,
            defied: false,
            sampled_ns: now_ns,
            ran_ns: now_ns,
            looked_ns: 0,
            had_processes: false,
            births: 0,
            activity_told: None,
            watched: None,
        }
    }

    /// Adds a process before its children, which may have joined earlier. The process's own parent
    /// may stand behind those children, and so may the parent that a process gets as an orphan.
    pub(crate) fn add_process(&mut self, process: Process) {
        let is_child = |other: &Process| other.parent == process.id.pid;
        let first_child = self.processes.iter().position(is_child);
        let index = first_child.unwrap_or(self.processes.len());
        self.processes.insert(index, process);
    }

    /// Reads the CPU clocks of its processes, and moves those that are gone to `gone`.
    pub(crate) fn sample(&mut self, sampling: Sampling, now_ns: u64, gone: &mut Vec<Process>) {
        let sampled_before_ns = std::mem::replace(&mut self.sampled_ns, now_ns);
        let window_ns = now_ns - sampled_before_ns;
        let (used, any_gone) = self.sample_processes(sampling, now_ns, window_ns);
        let used_ns = used.all_ns;
        if any_gone {
            self.bury(gone);
        }
        if used_ns > 0 {
            self.ran_ns = now_ns;
        }
        self.account_slots(used.in_slots_ns);
        self.account(used_ns - used.in_slots_ns);
        self.answered_before = self.is_answering();
        self.answering_ns = self.answering_ns.saturating_sub(window_ns / FORGOTTEN_IN);
        self.usage_ns = match window_ns {
            // Sampled twice at a time.
            0 => (self.usage_ns.0 + used_ns, self.usage_ns.1),
            _ => (used_ns, window_ns),
        };
    }

    /// Moves processes that are gone to `gone` and hands their accounts to
    /// their parents.
    fn bury(&mut self, gone: &mut Vec<Process>) {
        let first = gone.len();
        gone.extend(self.processes.extract_if(.., |process| process.gone));
        // A child before its parent: the parent hands on the child's account too.
        for index in (first..gone.len()).rev() {
            let (parent, life_ns) = (gone[index].parent, gone[index].life_ns());
            let mut heirs = gone[first..index]
                .iter_mut()
                .chain(&mut self.processes)
                .map(|process| (process.id.pid, &mut process.waited))
                .chain(
                    self.foster_parents
                        .iter_mut()
                        .map(|f| (f.id.pid, &mut f.waited)),
                );
            if let Some((_, waited)) = heirs.find(|(pid, _)| *pid == parent) {
                waited.child_gone(life_ns);
            }
        }
    }

    /// Counts runnable threads, as far as they could run on so many CPUs, and finds out which
    /// processes waited for children. Cost: 1.5 us for each process that ran or is asleep, more with
    /// many threads.
    pub(crate) fn look(&mut self, now_ns: u64, cpus: u32, journal: &mut Journal) -> Look {
        let limit = self.thread_limit(cpus);
        self.looked_ns = now_ns;
        let mut look = Look::default();
        let mut in_kernel = false;
        for process in &mut self.processes {
            if process.is_left_in_peace() {
                look.alive = true;
                continue;
            }
            // A process that did not run has not waited for children. Once enough threads are
            // runnable, it need not be looked at.
            if !process.progressed && look.runnable >= limit && !process.is_held_down() {
                look.alive = true;
                look.any_reaped |= process.reaped;
                continue;
            }
            let Ok(stat) = process.look() else { continue };
            if process.adopts {
                process.waited = Waited::since(stat.waited_ns);
            }
            process.reaped |= process.waited.has_grown(stat.waited_ns);
            look.any_reaped |= process.reaped;
            look.alive |= !stat.has_ended();
            look.moved |= stat.session != process.session;
            in_kernel |= stat.sleeps_in_kernel();
            process.reassert(&stat, journal);
            if !process.is_stopped_by_us() && look.runnable < limit {
                let wanted = limit - look.runnable;
                let held_down = process.is_held_down();
                look.runnable += process.runnable_threads(&stat, wanted, journal);
                self.unsettled |= process.is_held_down() != held_down;
            }
        }
        self.find_nice_factor();
        look.awake = look.runnable > 0;
        self.sleeps_on = match in_kernel {
            true => WakeClass::Other,
            false => WakeClass::User,
        };
        look
    }

    /// Asleep at the moment of a look, a client may have been busy for most of the time, as ended
    /// children used so much.
    pub(crate) fn count_busy(&self, look: &mut Look, waited_ns: u64, cpus: u32) {
        let limit = self.thread_limit(cpus);
        let (used_ns, window_ns) = self.usage_ns;
        let busy = (used_ns + waited_ns + window_ns / 2) / window_ns.max(1);
        look.runnable = look
            .runnable
            .max(u32::try_from(busy).unwrap_or(limit))
            .min(limit);
    }

    /// Charges CPU time. During a suspension neither the time of its processes is charged, nor
    /// that of children that they waited for.
    pub(crate) fn account(&mut self, used_ns: u64) {
        if self.suspended {
            return;
        }
        self.uncharged_ns += used_ns;
        if self.cpus == 0 {
            // An early client is not a loser that takes time in advance. Its lead bounds it.
            if !self.is_early() {
                self.advance_ns += used_ns;
            }
            if self.answered_before || self.is_answering() {
                self.answering_ns += used_ns;
            }
        }
    }

    /// Charges CPU time in slots: no loser takes that in advance, since tokens pay for it.
    fn account_slots(&mut self, used_ns: u64) {
        if !self.suspended {
            self.uncharged_ns += used_ns;
            self.uncharged_in_slots_ns += used_ns;
        }
    }

    /// Undoes all deeds.
    pub(crate) fn let_go(&mut self, journal: &mut Journal) {
        self.place = None;
        self.treat(Treatment::Normal, journal);
        self.settle_in_place(journal);
        self.disperse();
    }

    /// Binds its threads to the CPUs that it is to have, or unbinds them.
    pub(crate) fn settle_in_place(&mut self, journal: &mut Journal) {
        self.bound = self.place;
        self.was_bound |= self.bound.is_some();
        let left_in_peace = |process: &Process| self.place.is_some() && process.is_left_in_peace();
        for process in self.processes.iter_mut().filter(|p| !left_in_peace(p)) {
            let result = process.bind(self.place.as_ref(), journal);
            // A process that may not be bound runs on all its CPUs, and is charged for that.
            // But a binding must be undone.
            self.defied |= self.place.is_none() && result == Err(Failure::Refused);
        }
    }

    /// To be called when all births so far have been noticed.
    pub(crate) fn forget_the_past(&mut self) {
        for process in &mut self.processes {
            process.forget_the_past();
        }
    }

    /// What a child of this process may have inherited, if the process is the client's.
    pub(crate) fn heritage_of(&self, parent: u32) -> Option<Heritage> {
        let parent = self.processes.iter().find(|p| p.id.pid == parent)?;
        Some(parent.threads.lock().heritage())
    }

    /// Finds out which of these CPUs its processes may use when they are not bound.
    pub(crate) fn find_usable(&mut self, cpus: &CpuSet) {
        self.usable = CpuSet::new();
        for process in &self.processes {
            if let Ok(own) = process.threads.lock().own_cpus() {
                members(&intersection(&own, cpus)).for_each(|cpu| self.usable.set(cpu));
            }
        }
        self.affinity = affinity_of(&self.usable, cpus);
    }

    /// The same after one more process.
    pub(crate) fn find_usable_with(&mut self, process: &Process, cpus: &CpuSet) {
        if let Ok(own) = process.threads.lock().own_cpus() {
            members(&intersection(&own, cpus)).for_each(|cpu| self.usable.set(cpu));
        }
        self.affinity = affinity_of(&self.usable, cpus);
    }

    /// How many threads could run at a time on so many CPUs.
    pub(crate) fn thread_limit(&self, cpus: u32) -> u32 {
        self.usable.count().clamp(1, cpus)
    }

    pub(crate) fn is_stopped_by_us(&self) -> bool {
        self.processes.iter().any(Process::is_stopped_by_us)
    }

    pub(crate) fn is_stopped_by_signal(&self) -> bool {
        self.processes.iter().any(Process::is_stopped_by_signal)
    }

    /// Whether an event could tell of its end, and is not waited for.
    pub(crate) fn lacks_watch(&self) -> bool {
        let mut processes = self.processes.iter();
        self.watched.is_none() && processes.any(|process| process.handle.kept().is_some())
    }

    /// Whether any of its processes used CPU time between the last two samples, or may have: one
    /// that is new or gone.
    pub(crate) fn has_progressed(&self) -> bool {
        let mut processes = self.processes.iter();
        self.processes.is_empty() || self.unsettled || processes.any(|process| process.progressed)
    }

    /// The CPU clocks of its processes, slumbering ones left out, together: as of the last sample.
    pub(crate) fn sampled_clocks_ns(&self) -> u64 {
        let awake = self.processes.iter().filter(|process| !process.slumbers);
        awake.map(|process| process.clock_ns).sum()
    }

    /// The same now, by which it shows whether any of them ran. Cost: 1 us for each process.
    pub(crate) fn clocks_ns(&self) -> u64 {
        let awake = self.processes.iter().filter(|process| !process.slumbers);
        let clocks_ns = awake.filter_map(|process| scheduler::cpu_time_ns(process.id.pid));
        clocks_ns.sum()
    }

    /// Asks the dispatcher how it stands as a loser.
    pub(crate) fn find_outlook(&mut self, dispatcher: &Dispatcher) {
        self.outlook = dispatcher.outlook(self.id, self.sleeps_on);
        let is_asleep = self.runnable_told == 0 && self.sleeps_on == WakeClass::User;
        self.outlook_holds = is_asleep && self.is_early();
    }

    /// Whether it is early, and so not held down though it has not won (1999, 3.1 and 3.3).
    pub(crate) fn is_early(&self) -> bool {
        self.outlook.is_some_and(|outlook| outlook.is_early)
    }

    pub(crate) fn is_winner(&self) -> bool {
        self.cpus > 0
    }

    pub(crate) fn activity(&self) -> ClientActivity {
        if self.suspended {
            ClientActivity::Suspended
        } else if self.is_paused() {
            ClientActivity::Limited
        } else if self.is_winner() {
            ClientActivity::Running
        } else if self.runnable > 0 {
            ClientActivity::Waiting
        } else {
            ClientActivity::Blocked
        }
    }
}

/// What a look at a client found.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Look {
    /// Threads that are runnable, or were for most of the time.
    pub(crate) runnable: u32,
    /// Some thread is runnable at this moment.
    pub(crate) awake: bool,
    /// Some process has not ended.
    pub(crate) alive: bool,
    /// Some process has changed its session.
    pub(crate) moved: bool,
    /// Some process waited for children, and their time is not charged yet.
    pub(crate) any_reaped: bool,
}
