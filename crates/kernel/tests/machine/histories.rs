//! Random histories: programs that compute, sleep, yield and fork in clients of random tickets.
//! On one CPU their early picks are replayed. In all of the machine, where control groups have
//! random weights, no program waits for too long.

use std::ops::Range;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{Options, ROOT_TICKETS, Scheduler, Scope};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cgroups::Group;
use crate::early::{OVERDUE, check_pauses};
use crate::hogs::Hog;
use crate::replay::judge_for;
use crate::world::{HYBRID, base, place, ticket};

const SEEDS: Range<u64> = 0..3;
const TIME: Duration = Duration::from_secs(2);
const CLIENTS: u32 = 5;
/// Its clients share it, so what each is worth changes when another one sleeps.
const CURRENCY: u32 = 10;
const MOST_PROGRAMS: u64 = 3;

struct History(Xoshiro256PlusPlus);

impl History {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn one_to(&mut self, most: u64) -> u64 {
        1 + self.0.next_u64() % most
    }

    /// Of a control group.
    fn weight(&mut self) -> u32 {
        (self.one_to(100) * self.one_to(100)) as u32
    }

    /// Those of a client, each placed as soon as it runs. (Beside programs that compute and are not
    /// placed yet, those that are placed get no CPU, and may hold a lock that the next one needs to
    /// start.) The first two clients always want to run.
    fn programs(
        &mut self,
        number: u32,
        place: impl Fn(&Hog) -> Result<(), Failed>,
    ) -> Result<Vec<Hog>, Failed> {
        let count = self.one_to(MOST_PROGRAMS);
        let mut programs = Vec::new();
        for turn in 0..count {
            let mut program = self.program();
            if turn == 0 && number <= 2 {
                program = Hog::start();
            }
            place(&program)?;
            programs.push(program);
        }
        Ok(programs)
    }

    fn program(&mut self) -> Hog {
        match self.one_to(8) {
            1 => Hog::start(),
            2 => Hog::yields(self.one_to(4)),
            3 | 4 => Hog::relay(self.one_to(4)),
            _ => Hog::bursts(self.one_to(8), self.one_to(30)),
        }
    }
}

/// Most clients have early tasks beside tasks that wait.
pub fn early_picks() -> Result<(), Failed> {
    for seed in SEEDS {
        let scheduler = Scheduler::load_traced(&HYBRID)?;
        scheduler.set_tickets(CURRENCY, &[base(1000)])?;
        let mut history = History::new(seed);
        let mut programs = Vec::new();
        for node in 1..=CLIENTS {
            let tickets = [ticket(CURRENCY, history.one_to(1000))];
            programs.extend(
                history.programs(node, |program| place(&scheduler, node, &tickets, program))?,
            );
        }
        judge(&scheduler, seed)?;
    }
    Ok(())
}

fn judge(scheduler: &Scheduler, seed: u64) -> Result<(), Failed> {
    eprintln!("    seed {seed}");
    let judged = judge_for(TIME);
    if let Some(failure) = scheduler.failure() {
        return Err(failure.into());
    }
    judged.map_err(|failed| format!("seed {seed}: {}", failed.message().unwrap_or_default()).into())
}

const WHOLE: Options = Options {
    scope: Scope::All,
    ..HYBRID
};

/// Groups inside groups, and clients, all with early tasks beside tasks that wait.
pub fn whole() -> Result<(), Failed> {
    for seed in SEEDS {
        eprintln!("    seed {seed}");
        let scheduler = Scheduler::load(&WHOLE)?;
        let machine = Machine::new(&mut History::new(seed), &scheduler)?;
        let hogs: Vec<&Hog> = machine.hogs.iter().collect();
        check_pauses(&scheduler, &hogs, Duration::from_secs(15), OVERDUE)?;
    }
    Ok(())
}

/// Programs go before their groups, and groups before those that they are in.
#[derive(Default)]
struct Machine {
    hogs: Vec<Hog>,
    others: Vec<Hog>,
    inner: Vec<Group>,
    outer: Vec<Group>,
}

impl Machine {
    fn new(history: &mut History, scheduler: &Scheduler) -> Result<Self, Failed> {
        let mut machine = Self::default();
        for number in 0..4 {
            machine.add_group(history, number)?;
        }
        for node in 1..=2 {
            machine.add_client(history, scheduler, node)?;
        }
        Ok(machine)
    }

    fn add_group(&mut self, history: &mut History, number: u32) -> Result<(), Failed> {
        let weight = history.weight();
        let name = format!("group{number}");
        let (group, is_inner) = match self.outer.last() {
            Some(parent) if number % 2 == 1 => (Group::new(parent.path(), &name, weight)?, true),
            _ => (Group::top(&name, weight)?, false),
        };
        // A group that has groups inside holds no programs.
        if is_inner {
            self.hogs.push(group.hog()?);
            let others = history.programs(u32::MAX, |other| group.add(other))?;
            self.others.extend(others);
        }
        let groups = if is_inner {
            &mut self.inner
        } else {
            &mut self.outer
        };
        groups.push(group);
        Ok(())
    }

    fn add_client(
        &mut self,
        history: &mut History,
        scheduler: &Scheduler,
        node: u32,
    ) -> Result<(), Failed> {
        let tickets = [base(history.one_to(ROOT_TICKETS))];
        let place = |program: &Hog| place(scheduler, node, &tickets, program);
        let others = history.programs(u32::MAX, place)?;
        self.others.extend(others);
        let hog = Hog::start();
        place(&hog)?;
        self.hogs.push(hog);
        Ok(())
    }
}
