//! Reflex: threads pass tokens round, and yield before they pass one on (2001,
//! 5.3).

use std::num::NonZeroU32;

use prorata_scenario::Scenario;
use prorata_scenario::file::{Distribution, Loop, Pipe, Step, Time, Varying};
use serde::Deserialize;

use super::{add_process, empty, repeat};

/// The benchmark, but for the number of active sets.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reflex {
    /// Threads that pass a token round.
    pub threads_of_a_set: NonZeroU32,
    /// Active sets of a process. There are as many processes as it takes.
    pub sets_of_a_process: NonZeroU32,
    /// The probability that a round ends in a yield and not in passing the token.
    pub yields: f64,
    /// Mean CPU time of a round, exponential. The paper's rounds compute nothing.
    #[serde(default)]
    pub compute: Time,
}

impl Reflex {
    /// So many active sets. One thread of each is runnable at any time.
    pub fn scenario(&self, active_sets: u32) -> Scenario {
        let mut scenario = empty(&format!("Reflex, {active_sets} active sets"));
        let mut threads = Vec::new();
        for set in 0..active_sets {
            for place in 0..self.threads_of_a_set.get() {
                let own = format!("{set}.{place}");
                let next = format!("{set}.{}", (place + 1) % self.threads_of_a_set);
                let receive = Step::Receive(own.clone());
                let compute = self.compute();
                let yields = Step::Loop(Loop {
                    times: None,
                    until: None,
                    chance: Some(self.yields),
                    steps: compute.iter().cloned().chain([Step::Yield]).collect(),
                });
                let mut steps = vec![yields];
                steps.extend(compute);
                steps.push(Step::Send(next));
                // The first thread has the token.
                let begins = if place == 0 { steps.len() } else { 0 };
                steps.insert(begins, receive);
                threads.push((format!("thread {own}"), vec![repeat(None, steps)]));
                scenario.pipes.insert(own, Pipe { capacity: 1 });
            }
            if (set + 1) % self.sets_of_a_process == 0 || set + 1 == active_sets {
                let name = format!("reflex.{}", set / self.sets_of_a_process);
                add_process(&mut scenario, &name, std::mem::take(&mut threads));
            }
        }
        scenario
    }

    /// The computing before a thread yields or passes the token.
    fn compute(&self) -> Option<Step> {
        let mean = (self.compute > Time::ZERO).then_some(self.compute)?;
        Some(Step::Compute(Distribution::Varying(Varying::Exponential(
            mean,
        ))))
    }
}
