//! The trace of decisions, replayed against the core.

use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_kernel::KernelError;
use prorata_kernel::replay::{Disallowed, Replay};
use prorata_kernel::scheduler::{Decision, DecisionKind, Scheduler, Tap, Trace};

use crate::hogs::Hog;
use crate::world::{QUANTUM_NS, STRIDE, TICK_NS, base, hog, place, settle, ticket};

/// Picks in a trace below which it says nothing.
const ENOUGH: u64 = 100;

type Take<'a> = &'a dyn Fn() -> Result<Trace, KernelError>;

/// All that is decided in this time.
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

/// Gives back the picks, all of which are allowed.
fn replay(decisions: &[Decision]) -> Result<u64, Disallowed> {
    let mut replay = Replay::new(TICK_NS);
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

/// Three that compute, and two that sleep now and then.
fn programs(scheduler: &Scheduler) -> Result<Vec<Hog>, Failed> {
    let mut programs = vec![
        hog(scheduler, 1, &[base(300)])?,
        hog(scheduler, 2, &[base(200)])?,
        hog(scheduler, 3, &[base(100)])?,
    ];
    for (node, tickets, sleeper) in [(4, 150, Hog::bursts(2, 3)), (5, 250, Hog::bursts(30, 20))] {
        place(scheduler, node, &[base(tickets)], &sleeper)?;
        programs.push(sleeper);
    }
    Ok(programs)
}

pub fn picks() -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(&STRIDE)?;
    let _programs = programs(&scheduler)?;
    let mut decisions = Vec::new();
    let take = || scheduler.take_decisions();
    record(&take, Duration::from_secs(4), &mut decisions)?;
    check(&decisions)
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

/// What was real, but that somebody else has all turns of client 1 from the midst on.
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
