//! What a machine spends on its scheduler.

use prorata_scenario::file::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time that the kernel and the caches of a machine take, beside the
/// computing of programs.
///
/// The default is the machine of the 2001 paper, an eight-way Netfinity 8500R with
/// Pentium III at 700 MHz. It was calibrated once against the paper's numbers for
/// two CPUs (`docs/SIMULATOR.md`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SchedulerCosts {
    /// Scheduler code between two operations on locks, without the time to examine
    /// tasks and words.
    pub stretch: Time,
    /// The extra time of such code under a lock where tasks are sorted into levels:
    /// to find the right list, and to keep tasks in theirs.
    pub levels: Time,
    /// The extra time of such code under a lock because programs have driven the
    /// scheduler's data out of the cache.
    pub cold: Time,
    /// A look at a task whose data are in the cache.
    pub examine: Time,
    /// A look at a word in the cache: a list, a bitmap, a node of a tree, a
    /// published word.
    pub look: Time,
    /// The transfer of a cache line from another CPU or from memory: a lock, a task, a
    /// published word.
    pub transfer: Time,
    /// How many tasks' structures the second-level cache of a CPU holds; none are ever lost
    /// where this is zero. Linux 2.4 keeps each structure at the start of 8 KiB, so 2 MiB
    /// have room for 256.
    pub cached_tasks: u32,
    /// From sending an interrupt until the other CPU has taken it.
    pub interrupt: Time,
    /// A switch of a CPU from one task to another.
    pub context_switch: Time,
    /// The start of a task on another CPU, whose cache has none of its data.
    pub cache_refill: Time,
    /// A wake of a task, for the CPU that wakes it, beside the scheduler's decision: a
    /// segment, its acknowledgement, the soft interrupt, cold caches.
    pub wakeup: Time,
    /// A segment between the ends of a pipe, which is then a socket of TCP: sending it, the
    /// soft interrupt that receives it, its acknowledgement. Messages that wait for an
    /// acknowledgement share a segment (Nagle's algorithm). Without a time here there are no
    /// segments.
    pub segment: Time,
    /// Whether a thread that writes to a pipe holds the lock of a socket, and other writers
    /// sleep meanwhile, as `lock_sock()` makes them.
    pub socket_locks: bool,
    /// How long all that goes over the memory bus takes, in per cent: computing, system
    /// calls, segments, switches, refills and wakes, and transfers of cache lines. CPUs that
    /// share the bus slow one another down. The rest of the scheduler's code runs in caches.
    pub bus_percent: u32,
    /// A step of a program that is a system call.
    pub system_call: Time,
    /// A timer interrupt, one every `tick`.
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
            cached_tasks: 0,
            interrupt: ns(1_000),
            context_switch: ns(3_000),
            cache_refill: ns(5_000),
            wakeup: ns(0),
            segment: ns(0),
            socket_locks: false,
            bus_percent: 100,
            system_call: ns(2_700),
            timer: ns(2_000),
            tick: Time::from_ms(10),
        }
    }
}

impl SchedulerCosts {
    /// The costs of a machine of so many CPUs, if each beyond two slows the bus down by so
    /// many thousandths.
    pub fn slowed_down(mut self, thousandths: u32, cpus: u32) -> SchedulerCosts {
        let beyond = u64::from(cpus.saturating_sub(2));
        let percent = u64::from(self.bus_percent);
        let more = (percent * u64::from(thousandths)).saturating_mul(beyond) / 1_000;
        self.bus_percent = u32::try_from(percent + more).unwrap_or(u32::MAX);
        self
    }

    /// The duration on the slowed bus of what takes so long on an idle one.
    pub(crate) fn on_bus_ns(&self, ns: u64) -> u64 {
        ns * u64::from(self.bus_percent) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_beyond_two_slows_down_the_bus() {
        let costs = SchedulerCosts {
            bus_percent: 200,
            ..SchedulerCosts::default()
        };
        let percents = [1, 2, 3, 8].map(|cpus| costs.clone().slowed_down(90, cpus).bus_percent);
        assert_eq!(percents, [200, 200, 218, 308]);
        let same = SchedulerCosts {
            bus_percent: 200,
            ..costs.clone().slowed_down(90, 8)
        };
        assert_eq!(same, costs);
    }

    #[test]
    fn the_largest_slowdown_is_a_number() {
        let slowed = SchedulerCosts::default().slowed_down(u32::MAX, u32::MAX);
        assert_eq!(slowed.bus_percent, u32::MAX);
    }
}
