//! A scenario, played by processes.

mod clock;
mod crew;
mod deeds;
mod looks;
mod report;
mod scene;
mod slots;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use prorata_core::dispatcher::Usage;
use prorata_core::policy::PolicyName;
use prorata_scenario::measure::{PointReport, SlotMeasures};
use prorata_scenario::plan::{Code, Deed, Group, Plan, SlotPlan, client_id};
use prorata_scenario::world::{Objects, Onwards, Rules, Waiting as _};
use prorata_scenario::{Report, Scenario};

use self::clock::Clock;
pub use self::clock::cpu_ticks;
use self::crew::{Crew, permit_sockets};
use self::looks::Looks;
use self::scene::Scene;
use self::slots::Slots;
use crate::cast::Cast;
use crate::engine::ProcessEngine;
use crate::error::StageError;
use crate::message::{self, Order};
use crate::refusal::check;
use crate::stage::Stage;
use crate::worker::Script;

type Result<T> = std::result::Result<T, StageError>;

/// A watcher of a run.
pub trait Watch {
    /// So much of the scenario's time is over. Returns whether the run is to continue.
    fn goes_on(&mut self, now_ns: u64, end_ns: u64) -> bool;

    /// A point of the time series was measured, so long after the beginning in real
    /// time.
    fn sampled(&mut self, _stage: &Stage, _real_ns: u64, _point: &PointReport) {}
}

impl Watch for () {
    fn goes_on(&mut self, _: u64, _: u64) -> bool {
        true
    }
}

/// Longest time without a look at the clocks, and shortest between two.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(5));

/// A run may take so many times its length, plus so many nanoseconds.
const TOO_BUSY: (u64, u64) = (50, 120_000_000_000);

/// How long it may take an engine to notice that all processes have ended.
const TIME_TO_NOTICE: Duration = Duration::from_secs(10);

/// Something due at a time of the scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Start {
        group: u32,
    },
    /// Something from outside.
    Deed {
        index: u32,
    },
    /// A client's tickets change by its rule.
    Rule {
        client: u32,
    },
    /// A time that an assertion speaks of.
    Mark,
    /// A point of the time series.
    Sample,
}

/// A run under way. Dropped, it ends all processes.
struct Run {
    // Before the engine, which else would have to let them all go.
    crew: Crew,
    stage: Stage,
    /// The timetable, once it is open.
    slots: Option<Slots>,
    slot_plan: Option<SlotPlan>,
    kind: &'static ProcessEngine,
    clock: Clock,
    looks: Looks,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    /// Number of entries of `due` so far: events of one time happen in the order in which
    /// they were scheduled.
    said: u64,
    code: Code,
    groups: Vec<Group>,
    timeline: Vec<(u64, Deed)>,
    rules: Rules,
    sample_every_ns: Option<u64>,
    end_ns: u64,
    seed: u64,
    /// Threads so far.
    made: u64,
    /// The current policy, and the number of policies so far.
    policy: (PolicyName, u64),
    next_look: Instant,
    /// Real time that it took, once it is over.
    took_ns: u64,
}

/// Runs a scenario on real processes, with an engine of its own.
///
/// # Errors
///
/// If the engine cannot do what the scenario asks for, or the run cannot continue to its
/// end; not if an assertion fails.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    kind: &'static ProcessEngine,
    watch: &mut dyn Watch,
) -> Result<Report> {
    run_cast(scenario, seed, kind, None, watch)
}

/// Like [`run`], with a program of the system in every part.
///
/// # Errors
///
/// As [`run`]; and if such a program ends with a failure.
pub fn run_cast(
    scenario: &Scenario,
    seed: u64,
    kind: &'static ProcessEngine,
    cast: Option<Cast>,
    watch: &mut dyn Watch,
) -> Result<Report> {
    check(scenario, kind)?;
    let mut run = Run::new(Plan::new(scenario)?, seed, kind, cast)?;
    run.prepare(watch)?;
    run.play(watch)?;
    run.finish()?;
    Ok(run.report(scenario, kind))
}

impl Run {
    fn new(
        mut plan: Plan,
        seed: u64,
        kind: &'static ProcessEngine,
        cast: Option<Cast>,
    ) -> Result<Run> {
        let objects = Objects::new(&mut plan, seed);
        let clients = plan.groups.last().map_or(0, |group| group.clients.end);
        let looks = Looks::new(clients, &plan.pairs);
        let rules = Rules::new(&plan.groups, seed);
        let name = plan.machine.policy;
        let (cpus, quantum_ns) = (plan.machine.cpus, plan.machine.quantum.0);
        let stage = Stage::new(kind, plan.ledger, (name, seed), cpus, quantum_ns)?;
        let script = Script {
            code: plan.code.clone(),
            seed,
        };
        permit_sockets(kind.most_threads);
        let crew = Crew::new(&plan.groups, objects, &script, cast, stage.cpus())
            .map_err(StageError::failed("write what processes are to do"))?;
        let mut run = Run {
            crew,
            clock: Clock::new(stage.cpus()),
            kind,
            stage,
            slots: None,
            slot_plan: plan.slots,
            looks,
            due: BinaryHeap::new(),
            said: 0,
            code: plan.code,
            groups: plan.groups,
            timeline: plan.timeline,
            rules,
            sample_every_ns: plan.sample_every_ns,
            end_ns: plan.duration_ns,
            seed,
            made: 0,
            policy: (name, 1),
            next_look: Instant::now(),
            took_ns: 0,
        };
        run.plan_all(plan.marks_ns);
        Ok(run)
    }

    /// Writes down everything that is known to be due. In this order, as the
    /// simulator does.
    fn plan_all(&mut self, marks_ns: impl IntoIterator<Item = u64>) {
        for group in 0..self.groups.len() as u32 {
            self.plan(self.groups[group as usize].start_ns, Due::Start { group });
        }
        for index in 0..self.timeline.len() as u32 {
            self.plan(self.timeline[index as usize].0, Due::Deed { index });
        }
        for mark_ns in marks_ns {
            self.plan(mark_ns, Due::Mark);
        }
        if let Some(every_ns) = self.sample_every_ns {
            self.plan(every_ns, Due::Sample);
        }
    }

    fn plan(&mut self, time_ns: u64, due: Due) {
        self.said += 1;
        self.due.push(Reverse((time_ns, self.said, due)));
    }

    /// Starts the processes of all clients that will start by themselves, so that no later
    /// event waits for them.
    fn prepare(&mut self, watch: &mut dyn Watch) -> Result<()> {
        let soon = self.groups.iter().filter(|g| g.start_ns < self.end_ns);
        let clients: Vec<u32> = soon.flat_map(|group| group.clients.clone()).collect();
        self.get_ready(&clients, watch)?;
        if let Some(plan) = &self.slot_plan {
            let clients = self.crew.clients.len() as u32;
            self.slots = Some(Slots::open(plan, &self.timeline, &self.stage)?);
            self.looks.run.slots = Some(Box::new(SlotMeasures::new(clients)));
        }
        self.clock = Clock::new(self.stage.cpus());
        Ok(())
    }

    /// Starts processes, all at once, and puts them under the engine.
    fn get_ready(&mut self, clients: &[u32], watch: &mut dyn Watch) -> Result<()> {
        let failed = StageError::failed("start a process");
        for &client in clients {
            self.crew.spawn(client).map_err(&failed)?;
        }
        for &client in clients {
            if !watch.goes_on(self.clock.now_ns(), self.end_ns) {
                return Err(StageError::Interrupted);
            }
            let process = self.crew.await_ready(client).map_err(&failed)?;
            self.stage.manage(client_id(client), process)?;
        }
        Ok(())
    }

    /// From the beginning to the end.
    fn play(&mut self, watch: &mut dyn Watch) -> Result<()> {
        loop {
            self.look()?;
            while let Some(Reverse((time_ns, _, due))) = self.due.peek().copied()
                && time_ns <= self.clock.now_ns().min(self.end_ns)
            {
                self.due.pop();
                self.happen(time_ns, due, watch)?;
            }
            if self.clock.now_ns() >= self.end_ns {
                self.looks.mark(self.end_ns);
                if let Some(slots) = self.slots.take() {
                    slots.close(&self.stage, &mut self.looks.run)?;
                }
                self.took_ns = self.clock.real_ns();
                return Ok(());
            }
            if !watch.goes_on(self.clock.now_ns(), self.end_ns) {
                return Err(StageError::Interrupted);
            }
            self.listen()?;
        }
    }

    fn look(&mut self) -> Result<()> {
        self.stage.check()?;
        self.crew.bury()?;
        if let Some(slots) = &mut self.slots {
            slots.advance(&mut self.looks.run);
        }
        self.stage.look();
        let received_ns = self.crew.received_ns();
        let usages = self.usages();
        let clients = self.crew.clients.len() as u32;
        let blocked = !(0..clients).any(|client| self.stage.competes(client_id(client)));
        let now_ns = self.clock.look(received_ns.iter().sum(), blocked);
        let dispatcher = self.stage.dispatcher();
        self.looks.look(&received_ns, usages, &dispatcher);
        let quantum = Duration::from_nanos(dispatcher.quantum_ns());
        drop(dispatcher);
        self.next_look = Instant::now() + quantum.clamp(LOOK.1, LOOK.0);
        let real_ns = self.clock.real_ns();
        let (times, more_ns) = TOO_BUSY;
        if real_ns > self.end_ns.saturating_mul(times).saturating_add(more_ns) {
            return Err(StageError::TooBusy {
                after_s: real_ns / 1_000_000_000,
                had_s: now_ns / 1_000_000_000,
            });
        }
        Ok(())
    }

    /// Received and specified CPU time of each client.
    fn usages(&self) -> Vec<Usage> {
        let clients = 0..self.crew.clients.len() as u32;
        clients
            .map(|client| self.stage.usage(client_id(client)))
            .collect()
    }

    /// Handles messages of threads until the next look is due.
    fn listen(&mut self) -> Result<()> {
        loop {
            let next_ns = self.due.peek().map_or(self.end_ns, |Reverse(due)| due.0);
            let next_ns = next_ns.min(self.end_ns);
            // Scenario time passes no faster than real time.
            let left = Duration::from_nanos(next_ns.saturating_sub(self.clock.now_ns()));
            let until = self.next_look.saturating_duration_since(Instant::now());
            let speakers = self.crew.listen(left.min(until));
            if speakers.is_empty() || left.is_zero() {
                return Ok(());
            }
            for thread in speakers {
                self.hear(thread)?;
            }
            if Instant::now() >= self.next_look {
                return Ok(());
            }
        }
    }

    /// Handles one message of a thread, unless the thread has exited.
    fn hear(&mut self, thread: u32) -> Result<()> {
        let Some(Some(speaker)) = self.crew.threads.get_mut(thread as usize) else {
            return Ok(());
        };
        let client = speaker.client;
        match message::Report::receive(&speaker.socket) {
            Ok(None | Some(message::Report::Ready)) => {}
            Ok(Some(message::Report::Woke(late_ns))) => self.looks.woke(client, late_ns),
            Ok(Some(message::Report::Meets(instruction))) => {
                speaker.instruction = instruction;
                self.meet(thread, instruction);
            }
            Ok(Some(message::Report::Forks(socket))) => {
                let number = self.crew.thread_count() + 1;
                if number > self.kind.most_threads {
                    return Err(StageError::TooManyThreads {
                        client: self.crew.clients[client as usize].name.clone(),
                        number,
                        engine: self.kind.name,
                    });
                }
                let failed = StageError::failed("listen to a thread");
                let new = self.crew.add(client, socket).map_err(failed)?;
                self.begin(new);
                self.play_scene(|scene| scene.order(thread, Order::GoOn));
            }
            // The socket closes when the thread exits.
            Err(_) => self.remove(thread, client),
        }
        Ok(())
    }

    /// A thread has exited; with the last one its client ends.
    fn remove(&mut self, thread: u32, client: u32) {
        self.play_scene(|scene| scene.remove(thread));
        if self.crew.clients[client as usize].threads == 0
            && let Some(slots) = &mut self.slots
        {
            slots.end_client(client, &mut self.looks.run);
        }
    }

    /// A thread takes a step that involves others.
    fn meet(&mut self, thread: u32, instruction: u32) {
        let instruction = self.code.instructions[instruction as usize];
        self.play_scene(|scene| match scene.meet(thread, instruction) {
            Onwards::GoesOn => scene.order(thread, Order::GoOn),
            Onwards::Yields => scene.order(thread, Order::Yield),
            Onwards::Waits => {}
        });
    }

    fn begin(&mut self, thread: u32) {
        let number = self.made;
        self.made += 1;
        self.play_scene(|scene| scene.order(thread, Order::Begin(number)));
    }

    fn play_scene<'a>(&'a mut self, action: impl FnOnce(&mut Scene<'a>)) {
        let (crew, looks) = (&mut self.crew, &mut self.looks);
        Scene::play(&self.stage, crew, &self.code, looks, action);
    }

    /// Compares the charges of all clients with their clocks. A kernel's account is
    /// complete at each look; CPU time that threads use while exiting is on no clock of
    /// their process.
    fn finish(&mut self) -> Result<()> {
        if self.kind.decides_here {
            self.end_all()?;
        }
        self.stage.check()?;
        self.stage.look();
        let received_ns = self.crew.received_ns();
        let quantum_ns = self.stage.dispatcher().quantum_ns();
        self.looks.compare(&received_ns, &self.usages(), quantum_ns);
        Ok(())
    }

    /// Ends all processes, and waits until the engine has noticed and charged their last
    /// CPU time.
    fn end_all(&mut self) -> Result<()> {
        self.crew.end();
        let deadline = Instant::now() + TIME_TO_NOTICE;
        let clients = 0..self.crew.clients.len() as u32;
        while Instant::now() < deadline && clients.clone().any(|c| self.stage.manages(client_id(c)))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}
