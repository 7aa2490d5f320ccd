//! The trace of decisions, replayed against the core.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_core::cpu_limit::CpuLimit;
use prorata_kernel::KernelError;
use prorata_kernel::replay::{Disallowed, Replay};
use prorata_kernel::scheduler::{
    Decision, DecisionKind, Options, Queues, Scheduler, Tap, Trace, possible_cpus,
};

use crate::hogs::Hog;
use crate::processors::{PER_CPU, bind};
use crate::world::{
    ABBREVIATED, HYBRID, QUANTUM_NS, STRIDE, TICK_NS, base, hog, hogs, place, settle, ticket,
};

/// The fewest picks from which a trace can be judged.
const ENOUGH: u64 = 100;

type Take<'a> = &'a dyn Fn() -> Result<Trace, KernelError>;

fn record(take: Take, time: Duration, decisions: &mut Vec<Decision>) -> Result<(), Failed> {
    let begin = Instant::now();
    while begin.elapsed() < time {
        thread::sleep(Duration::from_millis(50));
        let trace = take()?;
        if trace.lost > 0 {
            return Err(format!("{} decisions were lost", trace.lost).into());
        }
        decisions.extend(trace.decisions);
    }
    Ok(())
}

/// Returns the number of picks if all are allowed.
fn replay(decisions: &[Decision]) -> Result<u64, Disallowed> {
    let mut replay = Replay::new(TICK_NS, possible_cpus());
    decisions.iter().try_for_each(|told| replay.step(told))?;
    Ok(replay.picks())
}

fn check(decisions: &[Decision]) -> Result<(), Failed> {
    let picks = replay(decisions)?;
    eprintln!("    {picks} picks");
    match picks {
        ..ENOUGH => Err(format!("only {picks} picks").into()),
        ENOUGH.. => Ok(()),
    }
}

/// Judges what is decided in this time.
pub fn judge_for(time: Duration) -> Result<(), Failed> {
    let tap = Tap::open()?;
    let mut decisions = Vec::new();
    record(&|| tap.take_decisions(), time, &mut decisions)?;
    check(&decisions)
}

/// Three that compute, and two that sleep now and then.
fn programs(scheduler: &Scheduler) -> Result<Vec<Hog>, Failed> {
    let mut programs = hogs(scheduler, &[(1, 300), (2, 200), (3, 100)])?;
    for (node, tickets, sleeper) in [(4, 150, Hog::bursts(2, 3)), (5, 250, Hog::bursts(30, 20))] {
        place(scheduler, node, &[base(tickets)], &sleeper)?;
        programs.push(sleeper);
    }
    Ok(programs)
}

pub fn picks() -> Result<(), Failed> {
    picks_under(&STRIDE)
}

pub fn picks_in_abbreviated_quanta() -> Result<(), Failed> {
    picks_under(&ABBREVIATED)
}

fn picks_under(options: &Options) -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(options)?;
    let _programs = programs(&scheduler)?;
    check_for(&scheduler, Duration::from_secs(4), || ())
}

/// Judges what is decided in this time, while changes are made.
pub fn check_for(scheduler: &Scheduler, time: Duration, change: impl Fn()) -> Result<(), Failed> {
    let mut decisions = Vec::new();
    let take = || {
        change();
        scheduler.take_decisions()
    };
    record(&take, time, &mut decisions)?;
    check(&decisions)
}

/// With early tasks, some of them in clients with hogs. Wrong early picks are found.
pub fn early_picks() -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(&HYBRID)?;
    let mut programs = programs(&scheduler)?;
    for (node, sleeper) in [(1, Hog::bursts(1, 6)), (2, Hog::bursts(2, 9))] {
        scheduler.give(node, sleeper.pid())?;
        programs.push(sleeper);
    }
    let mut decisions = Vec::new();
    let take = || scheduler.take_decisions();
    record(&take, Duration::from_secs(4), &mut decisions)?;
    check(&decisions)?;
    let is_early = |told: &&Decision| is_pick(told) && told.early.is_some();
    let early = decisions.iter().filter(is_early).count() as u64;
    eprintln!("    {early} of them early");
    if early < ENOUGH {
        return Err(format!("only {early} early picks").into());
    }
    passed_over_is_found(&decisions)
}

/// The real trace, except that from the middle on a hog gets the turns of early tasks.
fn passed_over_is_found(decisions: &[Decision]) -> Result<(), Failed> {
    let mut changed = decisions.to_vec();
    let hog = decisions
        .iter()
        .find(|told| is_pick(told) && told.node == 3);
    let hog = *hog.ok_or("the hog never ran")?;
    let middle = decisions.len() / 2;
    for told in changed[middle..].iter_mut() {
        if is_pick(told) && told.early.is_some() {
            (told.node, told.tid, told.early) = (hog.node, hog.tid, None);
        }
    }
    match replay(&changed) {
        Err(Disallowed::Early { .. } | Disallowed::Pick { node: 3, .. }) => Ok(()),
        found => Err(format!("{found:?}").into()),
    }
}

/// Limited clients beside others, some of them with early tasks. Use during a pause is found.
pub fn limited_picks() -> Result<(), Failed> {
    const PAUSES: usize = 20;
    for options in [&STRIDE, &HYBRID] {
        let scheduler = Scheduler::load_traced(options)?;
        let mut programs = programs(&scheduler)?;
        let second = Hog::start();
        scheduler.give(1, second.pid())?;
        programs.push(second);
        for (node, percent) in [(1, 10), (4, 2), (5, 5)] {
            scheduler.set_limit(node, CpuLimit::from_thousandths(10 * percent))?;
        }
        let mut decisions = Vec::new();
        let take = || scheduler.take_decisions();
        let is_pause = |told: &&Decision| told.kind == DecisionKind::Pause;
        // A machine whose host is busy has fewer pauses in the same time.
        for _ in 0..15 {
            record(&take, Duration::from_secs(4), &mut decisions)?;
            if decisions.iter().filter(is_pause).count() >= PAUSES {
                break;
            }
        }
        check(&decisions)?;
        let pauses = decisions.iter().filter(is_pause).count();
        eprintln!("    {pauses} pauses");
        if pauses < PAUSES {
            return Err(format!("only {pauses} pauses").into());
        }
        // The real trace, except that no pause ends.
        decisions.retain(|told| told.kind != DecisionKind::Resume);
        match replay(&decisions) {
            Err(Disallowed::Limit { .. }) => {}
            found => return Err(format!("{found:?}").into()),
        }
    }
    Ok(())
}

/// From the midst of a history on, in which tickets, quanta and clients change.
pub fn picks_from_the_midst() -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(&STRIDE)?;
    let mut programs = programs(&scheduler)?;
    settle();
    let tap = Tap::open()?;
    let take = || tap.take_decisions();
    let mut decisions = Vec::new();
    let mut go_on = |seconds| record(&take, Duration::from_secs(seconds), &mut decisions);
    go_on(1)?;
    scheduler.set_tickets(1, &[base(50)])?;
    scheduler.set_tickets(6, &[base(400)])?;
    scheduler.set_tickets(2, &[base(20), ticket(6, 30)])?;
    scheduler.set_tickets(4, &[ticket(6, 10)])?;
    go_on(1)?;
    scheduler.set_client_quantum_ns(3, Some(2 * QUANTUM_NS))?;
    scheduler.set_quantum_ns(QUANTUM_NS / 2)?;
    scheduler.give(1, programs[1].pid())?;
    programs.push(hog(&scheduler, 7, &[base(500)])?);
    go_on(1)?;
    // Its number is another one's then.
    drop(programs.pop());
    while !scheduler.take_exited().contains(&7) {
        go_on(1)?;
    }
    scheduler.remove(7)?;
    programs.push(hog(&scheduler, 7, &[base(5)])?);
    go_on(1)?;
    let begins = decisions.first().map(|told| told.kind);
    if begins != Some(DecisionKind::Begin) {
        return Err(format!("it begins with {begins:?}").into());
    }
    check(&decisions)?;
    wrong_picks_are_found(&decisions)
}

/// The real trace, except that another client gets all turns of client 1 from the middle on.
fn wrong_picks_are_found(decisions: &[Decision]) -> Result<(), Failed> {
    let mut changed = decisions.to_vec();
    let (before, after) = changed.split_at_mut(decisions.len() / 2);
    let picks = before.iter().filter(|told| is_pick(told)).count() as u64;
    for told in after.iter_mut().filter(|told| is_pick(told)) {
        told.node = if told.node == 1 { 3 } else { told.node };
    }
    match replay(&changed) {
        Err(Disallowed::Pick { pick, node: 3, .. }) if pick <= picks + ENOUGH => Ok(()),
        found => Err(format!("after {picks} picks: {found:?}").into()),
    }
}

fn is_pick(told: &Decision) -> bool {
    told.kind == DecisionKind::Pick
}

pub fn picks_from_one_queue() -> Result<(), Failed> {
    picks_from(&STRIDE)
}

pub fn picks_from_queues_per_cpu() -> Result<(), Failed> {
    picks_from(&PER_CPU)
}

pub fn picks_in_abbreviated_quanta_from_queues_per_cpu() -> Result<(), Failed> {
    picks_from(&Options {
        queues: Queues::Cpu,
        ..ABBREVIATED
    })
}

/// Early tasks wait elsewhere, but their clients' passes move with their use.
pub fn picks_beside_early_tasks() -> Result<(), Failed> {
    let options = Options {
        queues: Queues::Cpu,
        ..HYBRID
    };
    let scheduler = Scheduler::load_traced(&options)?;
    let mut programs = programs(&scheduler)?;
    for node in [1, 2, 3] {
        let sleeper = Hog::bursts(1, 6);
        scheduler.give(node, sleeper.pid())?;
        programs.push(sleeper);
    }
    settle();
    let mut decisions = Vec::new();
    let take = || scheduler.take_decisions();
    record(&take, Duration::from_secs(4), &mut decisions)?;
    check(&decisions)?;
    waiting_early_is_found(&decisions)
}

/// The real trace, except that from the middle on a task waits that precedes all other early
/// tasks.
fn waiting_early_is_found(decisions: &[Decision]) -> Result<(), Failed> {
    let middle = decisions.len() / 2;
    let waits = |told: &Decision| told.kind == DecisionKind::WaitEarly && !told.is_bound;
    let place = decisions[middle..].iter().position(waits);
    let place = middle + place.ok_or("no early task waits")?;
    let mut changed = decisions.to_vec();
    let passed_over = Decision {
        tid: u32::MAX,
        early: Some(0),
        ..decisions[place]
    };
    changed.insert(place, passed_over);
    match replay(&changed) {
        Err(Disallowed::Early { instead_of, .. }) if instead_of == passed_over.node => Ok(()),
        found => Err(format!("{found:?}").into()),
    }
}

/// On several CPUs, with more tasks than CPUs, some of them in one node and some bound.
fn picks_from(options: &Options) -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(options)?;
    let mut programs = programs(&scheduler)?;
    for node in 10..16 {
        programs.push(hog(&scheduler, node, &[base(u64::from(node) * 10)])?);
    }
    for _ in 0..3 {
        let another = Hog::start();
        scheduler.give(10, another.pid())?;
        programs.push(another);
    }
    for (node, cpu) in [(11, 1), (12, 1), (13, 2)] {
        let bound = Hog::start();
        bind(&bound, cpu);
        scheduler.give(node, bound.pid())?;
        programs.push(bound);
    }
    settle();
    let tap = Tap::open()?;
    let take = || tap.take_decisions();
    let mut decisions = Vec::new();
    let mut go_on = |seconds| record(&take, Duration::from_secs(seconds), &mut decisions);
    go_on(2)?;
    scheduler.set_tickets(1, &[base(50)])?;
    scheduler.set_tickets(14, &[base(500)])?;
    scheduler.give(15, programs[1].pid())?;
    drop(programs.pop());
    go_on(2)?;
    check(&decisions)?;
    wrongly_taken_is_found(&decisions)
}

/// The real trace, except that a CPU once takes the last task of its queue.
fn wrongly_taken_is_found(decisions: &[Decision]) -> Result<(), Failed> {
    let mut waiting = BTreeMap::new();
    // The place of each CPU's last word, by now and when a CPU began to look.
    let (mut words, mut looks) = (BTreeMap::new(), BTreeMap::new());
    for (place, told) in decisions.iter().enumerate() {
        let taken = waiting.get(&told.tid).copied();
        match told.kind {
            DecisionKind::Wait => drop(waiting.insert(told.tid, (place, *told))),
            DecisionKind::Look => drop(looks.insert(told.cpu, words.clone())),
            DecisionKind::Take | DecisionKind::Go | DecisionKind::Pick => {
                waiting.remove(&told.tid);
            }
            _ => {}
        }
        words.insert(told.cpu, place);
        let (Some((since, taken)), DecisionKind::Take) = (taken, told.kind) else {
            continue;
        };
        // In its place before the look: its CPU had said something else by then.
        let was_there = |since: usize, cpu: u32| {
            let said: Option<&BTreeMap<u32, usize>> = looks.get(&told.cpu);
            said.and_then(|said| said.get(&cpu))
                .is_some_and(|last| *last > since)
        };
        let behind = |other: &Decision| other.key.wrapping_sub(taken.key).cast_signed();
        let others = waiting.values();
        let others = others.filter(|(since, other)| was_there(*since, other.cpu));
        let others = others.map(|(_, other)| *other);
        // Where others of a node run, its pass is known up to what they use.
        let others = others.filter(|other| other.queue == told.queue && other.tasks == 1);
        let Some(last) = others.max_by_key(behind) else {
            continue;
        };
        let lead_ns = behind(&last) as f64 / f64::from(1 << 20) * taken.tickets;
        let is_there = taken.tasks == 1 && was_there(since, taken.cpu);
        if !is_there || lead_ns < QUANTUM_NS as f64 / 10.0 {
            continue;
        }
        let mut changed = decisions.to_vec();
        changed[place] = Decision {
            kind: DecisionKind::Take,
            cpu: told.cpu,
            time_ns: told.time_ns,
            ..last
        };
        return match replay(&changed) {
            Err(Disallowed::Pick { node, .. }) if node == last.node => Ok(()),
            found => Err(format!("{last:?} instead of {taken:?}: {found:?}").into()),
        };
    }
    Err("no task stood behind another".into())
}
