//! One client: its processes taken together.

use prorata_core::ids::ClientId;

use crate::decision::BUSY_TURNS;
use crate::directory::ClientActivity;
use crate::process::{Failure, Process, Treatment};
use crate::process_id::ProcessId;
use crate::procfs::StatFile;
use crate::table::Journal;
use crate::waited::Waited;

/// A process whose children are the client's though it is not: it started the
/// client and inherits its orphans.
#[derive(Debug)]
pub(crate) struct FosterParent {
    pub(crate) id: ProcessId,
    pub(crate) stat_file: StatFile,
    pub(crate) waited: Waited,
}

/// A client with at least one process.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    /// Parents stand before their children.
    pub(crate) processes: Vec<Process>,
    pub(crate) foster_parents: Vec<FosterParent>,
    /// Its user took it out of the competition.
    pub(crate) suspended: bool,
    /// Threads that want to run, up to the number of CPUs; zero is blocked.
    pub(crate) runnable: u32,
    /// What the dispatcher was told of that.
    pub(crate) runnable_told: u32,
    /// CPU time that the dispatcher was not told of yet.
    pub(crate) uncharged_ns: u64,
    /// CPUs that it won with the last decision; zero for everyone else.
    pub(crate) cpus: u32,
    /// Whether it had won the decision before that.
    pub(crate) won_before: bool,
    /// CPU time that it used since it last won while others were winners:
    /// what it took in advance.
    pub(crate) advance_ns: u64,
    /// It competes though it is asleep, because of what it took in advance.
    pub(crate) pays_debt: bool,
    /// Turns in a row in which it was never found asleep. Newcomers are
    /// trusted to be busy.
    pub(crate) busy_turns: u32,
    pub(crate) treatment: Treatment,
    /// Processes or threads joined that the treatment has not reached yet.
    pub(crate) unsettled: bool,
    /// It was in `SCHED_IDLE` at some time since the last enforcement, so what
    /// is born to it may be, too.
    pub(crate) idle_lately: bool,
    /// When it was last sampled, and last looked at, on the monotonic clock.
    pub(crate) sampled_ns: u64,
    pub(crate) looked_ns: u64,
    /// It has had a process: if none is left, it has ended.
    pub(crate) had_processes: bool,
    /// What the directory was told that it does.
    pub(crate) activity_told: Option<ClientActivity>,
    /// The living process whose end is waited for.
    pub(crate) watched: Option<ProcessId>,
}

impl Client {
    pub(crate) fn new(id: ClientId, now_ns: u64) -> Self {
        Self {
            id,
            processes: Vec::new(),
            foster_parents: Vec::new(),
            suspended: false,
            runnable: 0,
            runnable_told: 0,
            uncharged_ns: 0,
            cpus: 0,
            won_before: false,
            advance_ns: 0,
            pays_debt: false,
            busy_turns: BUSY_TURNS,
            treatment: Treatment::Normal,
            unsettled: false,
            idle_lately: false,
            sampled_ns: now_ns,
            looked_ns: 0,
            had_processes: false,
            activity_told: None,
            watched: None,
        }
    }

    /// Reads the CPU clocks of all its processes and returns what they used
    /// since the last sample. Processes that are gone are moved to `gone`.
    pub(crate) fn sample(&mut self, now_ns: u64, gone: &mut Vec<Process>) -> u64 {
        self.sampled_ns = now_ns;
        let mut used_ns = 0;
        let mut any_gone = false;
        for process in &mut self.processes {
            used_ns += process.sample();
            any_gone |= process.gone;
        }
        if any_gone {
            self.bury(gone);
        }
        self.account(used_ns);
        used_ns
    }

    /// Moves processes that are gone to `gone` and hands their accounts to
    /// their parents.
    fn bury(&mut self, gone: &mut Vec<Process>) {
        let first = gone.len();
        gone.extend(self.processes.extract_if(.., |process| process.gone));
        // A child before its parent, so that what it hands on is handed on.
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

    /// Finds out how many threads want to run, up to `limit`, and what ended
    /// children used. `window_ns` and `used_ns` are the time since the last
    /// sample but one and what was used in it. Cost: 1.5 us for each process
    /// that ran or is asleep, more where there are many threads.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        limit: u32,
        (used_ns, window_ns): (u64, u64),
        journal: &mut Journal,
    ) -> Look {
        self.looked_ns = now_ns;
        let mut look = Look::default();
        let mut waited_ns = 0;
        for process in &mut self.processes {
            // Whoever did not run has reaped nobody, and need not be asked
            // once enough are found that want to run.
            if !process.progressed && look.runnable >= limit && !process.is_touched() {
                look.alive = true;
                continue;
            }
            let Ok(stat) = process.look() else { continue };
            waited_ns += process.waited.read(stat.waited_ns);
            look.alive |= !stat.has_ended();
            look.moved |= stat.session != process.session;
            process.reassert(&stat, journal);
            if !process.is_stopped_by_us() && look.runnable < limit {
                let wanted = limit - look.runnable;
                let was_touched = process.is_touched();
                look.runnable += process.runnable_threads(&stat, wanted, self.idle_lately, journal);
                self.unsettled |= process.is_touched() != was_touched;
            }
        }
        for foster_parent in &mut self.foster_parents {
            if let Ok(stat) = foster_parent.stat_file.read() {
                waited_ns += foster_parent.waited.read(stat.waited_ns);
            }
        }
        self.account(waited_ns);
        look.awake = look.runnable > 0;
        // Asleep at this moment, but busy for most of the time.
        let busy = (used_ns + waited_ns + window_ns / 2) / window_ns.max(1);
        look.runnable = look
            .runnable
            .max(u32::try_from(busy).unwrap_or(limit))
            .min(limit);
        look
    }

    fn account(&mut self, used_ns: u64) {
        self.uncharged_ns += used_ns;
        if self.cpus == 0 {
            self.advance_ns += used_ns;
        }
    }

    /// Does what is to be done to all its processes. Parents are stopped
    /// before their children and continued after them, so that no shell sees
    /// a child stopped. Returns the processes that may not be touched.
    pub(crate) fn treat(&mut self, treatment: Treatment, journal: &mut Journal) -> u32 {
        self.idle_lately |= treatment == Treatment::Idle;
        self.treatment = treatment;
        self.unsettled = false;
        let mut refused = 0;
        let mut one = |process: &mut Process| {
            if process.out_of_reach {
                return;
            }
            if process.treat(treatment, journal) == Err(Failure::Refused) {
                process.out_of_reach = true;
                refused += 1;
            }
        };
        if treatment == Treatment::Normal {
            self.processes.iter_mut().rev().for_each(&mut one);
        } else {
            self.processes.iter_mut().for_each(&mut one);
        }
        refused
    }

    /// Whether any of its processes is stopped by us.
    pub(crate) fn is_stopped_by_us(&self) -> bool {
        self.processes.iter().any(Process::is_stopped_by_us)
    }

    pub(crate) fn is_winner(&self) -> bool {
        self.cpus > 0
    }
}

/// What a look at a client found.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Look {
    /// Threads that want to run, or wanted to for most of the time.
    pub(crate) runnable: u32,
    /// Some thread wants to run at this moment.
    pub(crate) awake: bool,
    /// Some process has not ended.
    pub(crate) alive: bool,
    /// Some process has changed its session.
    pub(crate) moved: bool,
}
