//! Arguments of the loads of `prorata demo --slots`, which starts them itself.

use std::time::Duration;

use clap::Args;

use super::slots_run::TimeOfPeriod;
use super::values::duration;

/// When a load measures, and how Linux schedules it.
#[derive(Clone, Copy, Args, Debug)]
pub struct PlayerArgs {
    /// Begin to measure at this time of the monotonic clock
    #[arg(long, value_name = "NS")]
    pub begin: u64,
    /// End at this time of the monotonic clock
    #[arg(long, value_name = "NS")]
    pub end: u64,
    /// Nice value
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub nice: Option<i32>,
}

/// `prorata load controller`.
#[derive(Clone, Copy, Args, Debug)]
pub struct ControllerArgs {
    /// CPU time of the work, and the period at whose end it must be done
    #[arg(long, value_name = "TIME/PERIOD")]
    pub work: TimeOfPeriod,
    /// Begin each period with a slot of this client in the public timetable
    #[arg(long)]
    pub in_slots: bool,
    /// Reserve this by SCHED_DEADLINE
    #[arg(long, value_name = "TIME/PERIOD")]
    pub deadline: Option<TimeOfPeriod>,
    #[command(flatten)]
    pub player: PlayerArgs,
}

/// `prorata load gang`.
#[derive(Clone, Copy, Args, Debug)]
pub struct GangArgs {
    /// Number of threads
    #[arg(long, value_name = "N")]
    pub threads: u32,
    /// CPU time of each thread between two barriers
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub work: Duration,
    /// Reserve this for each thread by SCHED_DEADLINE
    #[arg(long, value_name = "TIME/PERIOD")]
    pub deadline: Option<TimeOfPeriod>,
    #[command(flatten)]
    pub player: PlayerArgs,
}

/// `prorata load jobs`.
#[derive(Clone, Copy, Args, Debug)]
pub struct JobsArgs {
    /// Number of threads
    #[arg(long, value_name = "N")]
    pub threads: u32,
    #[command(flatten)]
    pub player: PlayerArgs,
}
