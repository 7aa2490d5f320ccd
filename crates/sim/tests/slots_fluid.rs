//! Slots beside tickets against a fluid: claims that tickets give, too, change nobody's share,
//! and larger ones take the rest of the others in proportion.

mod common;

use std::ops::Range;

use common::{measured, received_ms};
use proptest::prelude::*;

const QUANTUM_MS: f64 = 20.0;
const SLOT_MS: f64 = 10.0;

/// A client that computes, with some slots of each period.
#[derive(Clone, Debug)]
struct Job {
    tickets: u32,
    slots: u32,
}

/// A machine whose jobs claim slots one after the other, row by row, or spread.
fn scenario(jobs: &[Job], cpus: u32, columns: u32, spread: bool, periods: u32) -> String {
    let duration = f64::from(columns * periods) * SLOT_MS;
    let mut text = format!(
        "duration = \"{duration}ms\"\n[machine]\ncpus = {cpus}\n[slots]\ncolumns = {columns}\n"
    );
    let mut from = 0;
    for (i, job) in jobs.iter().enumerate() {
        text += &format!("[[client]]\nname = \"c{i}\"\ntickets = {}\n", job.tickets);
        if job.slots > 0 {
            let cell = |step: u32| {
                // Every seventh column in turn: seven and the columns have no divisor in common.
                let at = if spread { step * 7 % columns } else { step };
                format!("\"{}:{at}\"", i as u32 % cpus)
            };
            let slots: Vec<String> = (from..from + job.slots).map(cell).collect();
            text += &format!("[[claim]]\nby = \"c{i}\"\nslots = [{}]\n", slots.join(", "));
            from += job.slots;
        }
    }
    text
}

/// CPUs that each job gets: its claims, if these are more than its part of what is left, and at
/// most one; the others share the rest in proportion.
fn rates(jobs: &[Job], cpus: u32, columns: u32) -> Vec<f64> {
    let claim = |job: &Job| f64::from(job.slots) / f64::from(columns);
    let mut fixed: Vec<Option<f64>> = vec![None; jobs.len()];
    loop {
        let rest = f64::from(cpus) - fixed.iter().flatten().sum::<f64>();
        let shares = jobs.iter().zip(&fixed);
        let total: f64 = shares
            .filter(|(_, fixed)| fixed.is_none())
            .map(|(job, _)| f64::from(job.tickets))
            .sum();
        let rate = |i: usize| f64::from(jobs[i].tickets) / total * rest;
        let free = || (0..jobs.len()).filter(|i| fixed[*i].is_none());
        let next = free().find(|&i| rate(i) > 1.0).map(|i| (i, 1.0));
        let next = next.or_else(|| {
            let above = free().find(|&i| claim(&jobs[i]) > rate(i) + 1e-9);
            above.map(|i| (i, claim(&jobs[i])))
        });
        match next {
            Some((i, rate)) => fixed[i] = Some(rate),
            None => {
                return (0..jobs.len())
                    .map(|i| fixed[i].unwrap_or_else(|| rate(i)))
                    .collect();
            }
        }
    }
}

/// The largest difference of any job's service from the fluid's, in ms.
fn worst_ms(jobs: &[Job], cpus: u32, columns: u32, spread: bool, periods: u32) -> f64 {
    let (machine, _) = measured(&scenario(jobs, cpus, columns, spread, periods));
    let time_ms = f64::from(columns * periods) * SLOT_MS;
    let rates = rates(jobs, cpus, columns);
    let errors = rates
        .iter()
        .enumerate()
        .map(|(i, rate)| (received_ms(&machine, &format!("c{i}")) - rate * time_ms).abs());
    errors.fold(0.0, f64::max)
}

fn jobs(most: u32) -> impl Strategy<Value = Vec<Job>> {
    jobs_of(2..5, most)
}

fn jobs_of(count: Range<usize>, most: u32) -> impl Strategy<Value = Vec<Job>> {
    let job = (1..30_u32, 0..=most).prop_map(|(tickets, slots)| Job { tickets, slots });
    prop::collection::vec(job, count)
}

/// Cuts claims to what tickets give, and so that they fit in a row.
fn insulated(mut jobs: Vec<Job>, columns: u32) -> Vec<Job> {
    let total: u32 = jobs.iter().map(|job| job.tickets).sum();
    for job in &mut jobs {
        job.slots = job.slots.min(columns * job.tickets / total);
    }
    jobs
}

/// Cuts claims so that they fit in a row.
fn fitting(mut jobs: Vec<Job>, columns: u32) -> Vec<Job> {
    let mut left = columns;
    for job in &mut jobs {
        job.slots = job.slots.min(left);
        left -= job.slots;
    }
    jobs
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: prop::test_runner::RngSeed::Fixed(2005),
        ..ProptestConfig::with_cases(64)
    })]

    /// Insulation: the timetable moves service in time and nobody's share. The policy's bound is a
    /// quantum for each job, at any time, so at the end, too.
    #[test]
    fn claims_within_tickets_change_no_share(jobs in jobs(30), spread: bool, periods in 1..40_u32) {
        let jobs = insulated(jobs, 60);
        let bound = (jobs.len() as f64) * QUANTUM_MS + SLOT_MS;
        let worst = worst_ms(&jobs, 1, 60, spread, periods);
        prop_assert!(worst <= bound, "{worst} ms past {bound}: {jobs:?}");
    }

    /// Water-filling: who claims more gets it, and leads by a period and two quanta at most.
    #[test]
    fn claims_beyond_tickets_take_the_rest_in_proportion(jobs in jobs(50), spread: bool) {
        let (columns, periods) = (60, 40);
        let jobs = fitting(jobs, columns);
        let lead = f64::from(columns) * SLOT_MS + 2.0 * QUANTUM_MS;
        let bound = lead + (jobs.len() as f64) * QUANTUM_MS + SLOT_MS;
        let worst = worst_ms(&jobs, 1, columns, spread, periods);
        prop_assert!(worst <= bound, "{worst} ms past {bound}: {jobs:?}");
    }

    /// The same on two CPUs, where nobody is entitled to a whole one: weights are readjusted to all
    /// CPUs, not to what claims leave of them.
    #[test]
    fn shares_beside_claims_hold_on_two_cpus(jobs in jobs_of(3..6, 30), spread: bool) {
        let (columns, periods) = (60, 40);
        let jobs = fitting(jobs, columns);
        let lead = f64::from(columns) * SLOT_MS + 2.0 * QUANTUM_MS;
        let by_tickets: Vec<Job> = jobs.iter().map(|job| Job { slots: 0, ..*job }).collect();
        let whole = |jobs: &[Job]| rates(jobs, 2, columns).iter().any(|rate| *rate >= 1.0);
        prop_assume!(!whole(&jobs) && !whole(&by_tickets));
        let bound = 2.0 * lead + (jobs.len() as f64) * QUANTUM_MS + SLOT_MS;
        let worst = worst_ms(&jobs, 2, columns, spread, periods);
        prop_assert!(worst <= bound, "{worst} ms past {bound}: {jobs:?}");
    }
}
