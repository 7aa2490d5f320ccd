//! Totals of a simulated machine.

use serde::Serialize;

/// Totals since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Events handled.
    pub events: u64,
    /// Turns, that is, decisions by the policy.
    pub turns: u64,
    /// Times that a thread was put on a CPU.
    pub dispatches: u64,
    /// Dispatches after which another thread ran on the CPU than before.
    pub context_switches: u64,
    /// Dispatches of threads that ran on another CPU before.
    pub migrations: u64,
    /// Operations that the ledger refused.
    pub refused: u64,
    /// CPU time used by threads, all CPUs together.
    pub busy_ns: u64,
    /// CPU time spent on context switches and interrupts.
    pub overhead_ns: u64,
    /// Idle CPU time, counted when the CPU gets work again.
    pub idle_ns: u64,
}
