//! What a machine spends on scheduling.

use prorata_scenario::file::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernel and the caches of a machine take, beside what programs
/// compute.
///
/// [`SchedulerCosts::default`] is the machine of the 2001 paper, an eight-way Netfinity
/// 8500R with Pentium III at 700 MHz: calibrated once against what the paper
/// measured on two CPUs, and left alone for everything else (`docs/SIMULATOR.md`
/// says how).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SchedulerCosts {
    /// Scheduler code between two operations on locks, beside what it examines.
    pub stretch: Time,
    /// What such code takes longer while a lock is held where tasks are sorted
    /// into levels: to find the right list, and to keep tasks in theirs.
    pub levels: Time,
    /// What such code takes longer while a lock is held because the programs
    /// have driven the scheduler's data out of the cache.
    pub cold: Time,
    /// A task is examined whose data are in the cache.
    pub examine: Time,
    /// A list, a bitmap, a node of a tree or what another CPU published is
    /// looked at, if it is in the cache.
    pub look: Time,
    /// A cache line comes from another CPU: a lock, a task, a published value.
    pub transfer: Time,
    /// From sending an interrupt to another CPU until that has taken it.
    pub interrupt: Time,
    /// A CPU goes from one task to another.
    pub context_switch: Time,
    /// A task goes on on another CPU, whose cache has nothing of it.
    pub cache_refill: Time,
    /// A step of a program that is a system call.
    pub system_call: Time,
    /// A timer interrupt, one every [`SchedulerCosts::tick`].
    pub timer: Time,
    /// Time between two timer interrupts of a CPU (2001, 2).
    pub tick: Time,
}

impl Default for SchedulerCosts {
    fn default() -> SchedulerCosts {
        let ns = Time;
        SchedulerCosts {
            stretch: ns(250),
            levels: ns(700),
            cold: ns(0),
            examine: ns(140),
            look: ns(30),
            transfer: ns(170),
            interrupt: ns(1_000),
            context_switch: ns(3_000),
            cache_refill: ns(5_000),
            system_call: ns(2_700),
            timer: ns(2_000),
            tick: Time::from_ms(10),
        }
    }
}
