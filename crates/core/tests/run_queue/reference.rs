//! Linux 2.4's rules, written plainly: each decision is compared with a look
//! at everybody.

use prorata_core::run_queue::{Cpu, End, Goodness, NOBODY, Rank, Ranking, Task};

use super::machine::{CPUS, Event, Machine};

/// A task that could run next on a CPU, as that CPU sees it.
#[derive(Clone, Debug)]
struct Seen {
    task: Task,
    /// It waits in the queue of another CPU than the one that it ran on last,
    /// so that its affinity to this one cannot be seen.
    is_away: bool,
    /// Number of the queue, if it is another CPU's: there only the best of
    /// those who wait is to be seen.
    behind: Option<u32>,
    runs_here: bool,
}

impl Seen {
    fn goodness(&self, ranking: &Goodness, cpu: Cpu, yields: bool) -> Rank {
        if self.runs_here && yields && !ranking.is_real_time(&self.task) {
            return -1;
        }
        let affinity = match self.is_away {
            true => 0,
            false => ranking.affinity(&self.task, cpu, None),
        };
        ranking.rank(&self.task) + affinity
    }
}

/// Everybody in the pool of `cpu` that does not run elsewhere.
fn candidates(machine: &Machine<Goodness>, cpu: Cpu, blocks: bool) -> Vec<Seen> {
    let shared = machine.queues.shared();
    let ranking = *shared.ranking();
    let own = shared.queue_of(cpu).0;
    let single = machine.queues.queues().len() == 1;
    let mut all = Vec::new();
    for (queue, number) in machine.queues.queues().iter().zip(0..) {
        let is_real_time_queue = !single && number >= CPUS;
        let pool = match is_real_time_queue {
            true => number - CPUS,
            false => shared.pool_of(Cpu(number)),
        };
        if pool != shared.pool_of(cpu) {
            continue;
        }
        let missed = shared.clock(cpu) - queue.recalculations();
        for (task, runs) in queue.tasks() {
            let runs_here = runs && task.cpu == cpu;
            if runs && (!runs_here || blocks) {
                continue;
            }
            let remote = !single && number != own && !is_real_time_queue;
            let mut seen = Seen {
                task: task.clone(),
                is_away: remote && task.cpu == cpu,
                behind: remote.then_some(number),
                runs_here,
            };
            if !is_real_time_queue {
                ranking.recalculate(&mut seen.task, missed);
            }
            all.push(seen);
        }
    }
    all
}

/// Has something happen, and compares the decision that it asks for, if any, with
/// what 2.4 would do with everybody in sight.
///
/// # Errors
/// What is otherwise.
pub fn compare_decision(machine: &mut Machine<Goodness>, event: Event) -> Result<(), String> {
    let (cpu, end) = match event {
        Event::Decide(cpu, end) => (Cpu(cpu), end),
        _ => {
            machine.happen(event);
            return Ok(());
        }
    };
    let ranking = *machine.queues.shared().ranking();
    let mut all = candidates(machine, cpu, end == End::Blocks);
    let goodness = |seen: &Seen| seen.goodness(&ranking, cpu, end == End::Yields);
    let best = |all: &[Seen], only_visible: bool| {
        let allowed = all.iter().filter(|seen| seen.task.allowed.contains(cpu));
        let seen = allowed.filter(|seen| !only_visible || !is_hidden(all, seen, &ranking));
        seen.map(goodness).max().unwrap_or(NOBODY)
    };
    // Who is hidden behind somebody who may not run here can be missed.
    let is_sure = best(&all, false) == best(&all, true);
    let expired = best(&all, false) == 0;
    if expired {
        for seen in &mut all {
            ranking.recalculate(&mut seen.task, 1);
        }
    }
    let is_sure = is_sure && best(&all, false) == best(&all, true);
    let decided = machine.happen(event);
    let (_, outcome) = &decided[0];
    let chosen = all
        .iter()
        .find(|seen| Some(seen.task.index) == outcome.next);
    let got = chosen.map_or(NOBODY, goodness);
    let is_same = match is_sure {
        true => outcome.recalculated == expired && got == best(&all, false),
        false if outcome.recalculated == expired => {
            (best(&all, true)..=best(&all, false)).contains(&got)
        }
        false => true,
    };
    match is_same {
        true => Ok(()),
        false => Err(format!("{outcome:?} on {cpu:?} of {all:?}")),
    }
}

/// Whether somebody of higher rank waits in the same queue of another CPU.
fn is_hidden(all: &[Seen], seen: &Seen, ranking: &Goodness) -> bool {
    let beside = all.iter().filter(|other| other.behind == seen.behind);
    let mut ranks = beside.map(|other| ranking.rank(&other.task));
    seen.behind.is_some() && ranks.any(|rank| rank > ranking.rank(&seen.task))
}
