//! Random histories on one CPU, replayed: programs that compute, sleep, yield and fork in
//! clients of random tickets.

use std::ops::Range;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::Scheduler;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

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

    /// Those of a client. The first two clients always want to run.
    fn programs(&mut self, number: u32) -> Vec<Hog> {
        let count = self.one_to(MOST_PROGRAMS);
        let mut programs: Vec<Hog> = (0..count).map(|_| self.program()).collect();
        if number <= 2 {
            programs[0] = Hog::start();
        }
        programs
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
            for program in history.programs(node) {
                place(&scheduler, node, &tickets, &program)?;
                programs.push(program);
            }
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
