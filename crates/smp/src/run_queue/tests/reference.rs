//! The rules of Linux 2.4, written plainly: each decision is compared with a look
//! at every task.

use super::super::goodness::NOBODY;
use super::super::{Cpu, Rank, Task, TurnEnd};
use super::machine::{Event, TestMachine, WITHOUT_MM};

/// A task that could run next on a CPU, as that CPU sees it.
#[derive(Clone, Debug)]
struct Seen {
    task: Task,
    /// The number of its queue.
    queue: u32,
    /// It waits in another queue than that of the CPU that it ran on last, so
    /// its affinity to that CPU cannot be seen before that queue is held.
    is_away: bool,
    runs_here: bool,
}

impl Seen {
    fn goodness(&self, cpu: Cpu, yields: bool) -> Rank {
        if self.runs_here && yields {
            return -1;
        }
        match self.is_away {
            true => self.task.rank(),
            false => self.goodness_when_held(cpu),
        }
    }

    /// What the task is worth to a CPU that holds its queue.
    fn goodness_when_held(&self, cpu: Cpu) -> Rank {
        self.task.rank() + WITHOUT_MM.affinity(&self.task, cpu, None)
    }
}

/// Every task in the pool of `cpu` that does not run elsewhere.
fn candidates(machine: &TestMachine, cpu: Cpu, blocks: bool) -> Vec<Seen> {
    let shared = &machine.queues.shared;
    let own = shared.queue_of(cpu).0;
    let single = machine.queues.queues().len() == 1;
    let mut all = Vec::new();
    for (queue, number) in machine.queues.queues().iter().zip(0..) {
        if shared.pool_of(Cpu(number)) != shared.pool_of(cpu) {
            continue;
        }
        let missed = shared.clock(cpu) - queue.recalculations();
        for (task, runs) in queue.tasks() {
            let runs_here = runs && task.cpu == cpu;
            if runs && (!runs_here || blocks) {
                continue;
            }
            let is_away = !single && number != own && task.cpu == cpu;
            let mut task = *task;
            task.recalculate(missed);
            all.push(Seen {
                task,
                queue: number,
                is_away,
                runs_here,
            });
        }
    }
    all
}

/// Whether a task wins by its affinity once its queue is held. That queue has the best offer of all, and
/// the task is the best there.
fn wins_when_held(chosen: &Seen, all: &[Seen], cpu: Cpu, best: Rank) -> bool {
    let there = || all.iter().filter(|seen| seen.queue == chosen.queue);
    let most = there().map(|seen| seen.goodness_when_held(cpu)).max();
    chosen.is_away
        && there().any(|seen| seen.goodness(cpu, false) == best)
        && Some(chosen.goodness_when_held(cpu)) == most
}

/// Has something happen. Compares the decision that this asks for, if any, with
/// what 2.4 would decide with every task in sight.
///
/// # Errors
///
/// The difference.
pub fn compare_decision(machine: &mut TestMachine, event: Event) -> Result<(), String> {
    let (cpu, end) = match event {
        Event::Decide(cpu, end) => (Cpu(cpu), end),
        _ => {
            machine.happen(event);
            return Ok(());
        }
    };
    let mut all = candidates(machine, cpu, end == TurnEnd::Blocks);
    let goodness = |seen: &Seen| seen.goodness(cpu, end == TurnEnd::Yields);
    let best = |all: &[Seen]| all.iter().map(goodness).max().unwrap_or(NOBODY);
    let expired = best(&all) == 0;
    if expired {
        all.iter_mut().for_each(|seen| seen.task.recalculate(1));
    }
    let decided = machine.happen(event);
    let (_, outcome) = &decided[0];
    let chosen = all
        .iter()
        .find(|seen| Some(seen.task.index) == outcome.next);
    let got = chosen.map_or(NOBODY, goodness);
    let best = best(&all);
    let is_best = got == best || chosen.is_some_and(|seen| wins_when_held(seen, &all, cpu, best));
    match machine.made[0].recalculated == expired && is_best {
        true => Ok(()),
        false => Err(format!("{outcome:?} on {cpu:?} of {all:?}")),
    }
}
