//! Load outside: what programs without a client leave of each CPU.
//!
//! Where nothing but clients computes, the kernel places the clients' threads, and each CPU gives
//! its winner a whole CPU. Otherwise, `/proc/stat` shows that CPUs were busy for longer than clients
//! were charged for. The engine then binds each winner, and so learns what each CPU gives:
//!
//! ```text
//!   capacity of a CPU = what the clients bound to it used + its idle time
//! ```
//!
//! The winner that is furthest behind gets the freest CPU ([`prorata_core::placement`]), and what
//! clients are due follows ([`prorata_core::capacity`]).

use prorata_core::capacity::WHOLE_CPU;
use rustix::thread::CpuSet;

use crate::client::Client;
use crate::procfs::IdleTimes;
use crate::scheduler::members;
use crate::time::{MILLISECOND_NS, SECOND_NS};

/// How often the engine looks for load outside. `/proc/stat` counts clock ticks of 10 ms.
const LOOK_INTERVAL_NS: u64 = 100 * MILLISECOND_NS;

/// Longer intervals tell nothing of the present.
const LONGEST_INTERVAL_NS: u64 = SECOND_NS;

/// Load that is put up with, for the whole machine: one part in so many of a CPU. The kernel's own
/// work and the engine's are part of it.
const TOLERATED: u64 = 10;

/// Time that programs outside take from clients, beyond what is tolerated, before winners are
/// bound: so much, and so much for each CPU. Rounding to clock ticks accounts for the latter.
const NOTICED_NS: i64 = 50 * MILLISECOND_NS as i64;
const NOTICED_FOR_EACH_CPU_NS: i64 = 10 * MILLISECOND_NS as i64;

/// A new measurement of a capacity counts for one part in so many.
const SMOOTHING: i64 = 4;

/// The least capacity that is told of a CPU: its winner must have a chance to be measured.
const LEAST_CAPACITY: u32 = WHOLE_CPU / 64;

/// Load outside on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutsideLoad {
    /// The CPU's number.
    pub cpu: u32,
    /// The part of its time that other programs use, in percent.
    pub percent: u32,
}

/// Looks for load outside.
#[derive(Debug)]
pub(crate) struct Outside {
    /// The shared CPUs.
    cpus: Vec<usize>,
    /// None with a single CPU, which leaves nothing to choose, and without `/proc/stat`.
    idle_times: Option<IdleTimes>,
    /// When the present interval began, on the monotonic clock, and the idle times then.
    begun_ns: u64,
    idle_ns: Vec<u64>,
    /// The same now, between [`Self::look`] and [`Self::conclude`].
    now: Option<(u64, Vec<u64>)>,
    /// What clients used in this interval on each CPU, and on CPUs that are not known.
    used_ns: Vec<u64>,
    unplaced_ns: u64,
    /// What programs outside took from clients, less what is tolerated: never below zero, and not
    /// far above what is noticed.
    excess_ns: i64,
    /// What each CPU has to give, while there is load outside.
    capacities: Option<Vec<u32>>,
    /// Some were measured since winners are bound; before, all count as equal.
    measured: bool,
}

impl Outside {
    /// On these CPUs.
    pub(crate) fn new(cpus: &CpuSet) -> Self {
        let cpus: Vec<usize> = members(cpus).collect();
        let last = cpus.last().copied().unwrap_or(0);
        Self {
            idle_times: match cpus.len() {
                0 | 1 => None,
                _ => IdleTimes::open(last).ok(),
            },
            begun_ns: 0,
            idle_ns: vec![0; cpus.len()],
            now: None,
            used_ns: vec![0; cpus.len()],
            unplaced_ns: 0,
            excess_ns: 0,
            capacities: None,
            measured: false,
            cpus,
        }
    }

    /// What each of the shared CPUs has to give, in parts of [`WHOLE_CPU`], while there is load
    /// outside.
    pub(crate) fn capacities(&self) -> Option<&[u32]> {
        self.capacities.as_deref()
    }

    /// CPUs on which there is load worth telling.
    pub(crate) fn loads(&self) -> Vec<OutsideLoad> {
        let capacities = self.capacities.iter().flatten();
        let loads = self.cpus.iter().zip(capacities).map(|(&cpu, capacity)| {
            let part = u64::from(WHOLE_CPU - capacity) * 100;
            OutsideLoad {
                cpu: cpu as u32,
                percent: ((part + u64::from(WHOLE_CPU) / 2) / u64::from(WHOLE_CPU)) as u32,
            }
        });
        loads.filter(|load| load.percent >= 5).collect()
    }

    /// Reads how long CPUs have been idle, if that is due. Cost: some 20 us on few CPUs.
    pub(crate) fn look(&mut self, now_ns: u64) {
        if self.now.is_none()
            && now_ns >= self.begun_ns + LOOK_INTERVAL_NS
            && let Some(idle_times) = &mut self.idle_times
        {
            let mut idle_ns = self.idle_ns.clone();
            if idle_times.read(&self.cpus, &mut idle_ns).is_ok() {
                self.now = Some((now_ns, idle_ns));
            }
        }
    }

    /// Accounts for CPU time of a client. It used it where it is bound until now.
    pub(crate) fn charge(&mut self, client: &Client, used_ns: u64) {
        if self.idle_times.is_none() || used_ns == 0 {
            return;
        }
        let confined = client.affinity.is_some().then_some(client.usable);
        let Some(place) = client.bound.or(confined) else {
            self.unplaced_ns += used_ns;
            return;
        };
        // A client on several CPUs used them as far as each gives.
        let capacity = |index: usize| match &self.capacities {
            Some(capacities) => u64::from(capacities[index]),
            None => u64::from(WHOLE_CPU),
        };
        let held = (0..self.cpus.len()).filter(|&index| place.is_set(self.cpus[index]));
        let sum: u64 = held.clone().map(capacity).sum();
        for index in held {
            let part = u128::from(used_ns) * u128::from(capacity(index)) / u128::from(sum);
            self.used_ns[index] += part as u64;
        }
    }

    /// Draws conclusions if there was a look, and all clients are charged. Returns whether capacities
    /// changed.
    pub(crate) fn conclude(&mut self) -> bool {
        let Some((now_ns, idle_ns)) = self.now.take() else {
            return false;
        };
        let elapsed_ns = now_ns - self.begun_ns;
        let idle_before_ns = std::mem::replace(&mut self.idle_ns, idle_ns);
        let used_ns = std::mem::replace(&mut self.used_ns, vec![0; self.cpus.len()]);
        let unplaced_ns = std::mem::take(&mut self.unplaced_ns);
        self.begun_ns = now_ns;
        if elapsed_ns > LONGEST_INTERVAL_NS {
            return false;
        }
        let idle_since_ns = self.idle_ns.iter().zip(idle_before_ns);
        let interval = Interval {
            elapsed_ns,
            idle_ns: idle_since_ns
                .map(|(now, before)| now.saturating_sub(before))
                .collect(),
            used_ns,
            unplaced_ns,
        };
        let before = self.capacities.clone();
        self.judge(&interval);
        if self.capacities.is_some() {
            self.measure(&interval);
        }
        self.capacities != before
    }

    /// Finds out whether programs outside take time from clients.
    fn judge(&mut self, interval: &Interval) {
        let cpus = self.cpus.len() as i64;
        let noticed_ns = NOTICED_NS + cpus * NOTICED_FOR_EACH_CPU_NS;
        let excess_ns =
            self.excess_ns + interval.taken_ns() - (interval.elapsed_ns / TOLERATED) as i64;
        self.excess_ns = excess_ns.clamp(0, 2 * noticed_ns);
        if self.excess_ns == 0 {
            self.capacities = None;
        } else if self.excess_ns >= noticed_ns && self.capacities.is_none() {
            let given_ns = interval.idle_ns.iter().sum::<u64>() + interval.all_used_ns();
            let capacity = part(given_ns / cpus as u64, interval.elapsed_ns);
            self.capacities = Some(vec![capacity; cpus as usize]);
            self.measured = false;
        }
    }

    /// Learns what CPUs give to the clients bound to them.
    fn measure(&mut self, interval: &Interval) {
        // Losers that stand by use a little, wherever they are.
        if interval.unplaced_ns > interval.elapsed_ns / 20 {
            return;
        }
        let first = !std::mem::replace(&mut self.measured, true);
        let capacities = self.capacities.iter_mut().flatten();
        let given_ns = interval.idle_ns.iter().zip(&interval.used_ns);
        for (capacity, (idle_ns, used_ns)) in capacities.zip(given_ns) {
            let now = part(idle_ns + used_ns, interval.elapsed_ns);
            let change = i64::from(now) - i64::from(*capacity);
            *capacity = match first {
                true => now,
                false => (i64::from(*capacity) + change / SMOOTHING) as u32,
            };
        }
    }
}

/// What happened between two looks.
#[derive(Debug)]
struct Interval {
    elapsed_ns: u64,
    idle_ns: Vec<u64>,
    used_ns: Vec<u64>,
    unplaced_ns: u64,
}

impl Interval {
    fn all_used_ns(&self) -> u64 {
        self.used_ns.iter().sum::<u64>() + self.unplaced_ns
    }

    /// Time that programs outside had while no CPU was idle for clients, negative if more was idle.
    fn taken_ns(&self) -> i64 {
        let idle_ns: u64 = self.idle_ns.iter().sum();
        let all_ns = self.elapsed_ns * self.idle_ns.len() as u64;
        all_ns as i64 - self.all_used_ns() as i64 - 2 * idle_ns as i64
    }
}

/// The capacity of a CPU that gives so much of so much time.
fn part(given_ns: u64, elapsed_ns: u64) -> u32 {
    let part = u128::from(given_ns) * u128::from(WHOLE_CPU) / u128::from(elapsed_ns.max(1));
    part.clamp(LEAST_CAPACITY.into(), WHOLE_CPU.into()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND_NS;

    fn outside() -> Outside {
        let mut cpus = CpuSet::new();
        [3, 5].iter().for_each(|&cpu| cpus.set(cpu));
        Outside::new(&cpus)
    }

    /// 100 ms in which CPUs were idle and used by clients for so many milliseconds.
    fn pass(outside: &mut Outside, idle: [u64; 2], used: [u64; 2], unplaced: u64) -> bool {
        let idle_ns = outside
            .idle_ns
            .iter()
            .zip(idle)
            .map(|(before, idle)| before + idle * MS);
        outside.now = Some((outside.begun_ns + 100 * MS, idle_ns.collect()));
        outside.used_ns = used.map(|used| used * MS).to_vec();
        outside.unplaced_ns = unplaced * MS;
        outside.conclude()
    }

    fn percents(outside: &Outside) -> Vec<(u32, u32)> {
        let loads = outside.loads().into_iter();
        loads.map(|load| (load.cpu, load.percent)).collect()
    }

    #[test]
    fn clients_and_idle_time_are_no_load_outside() {
        let mut outside = outside();
        for _ in 0..1000 {
            // The kernel and the engine use 4 % of each CPU.
            assert!(!pass(&mut outside, [0, 0], [0, 0], 192));
            assert!(!pass(&mut outside, [50, 0], [46, 96], 0));
            // One other program beside an idle CPU takes nothing from clients.
            assert!(!pass(&mut outside, [0, 96], [0, 0], 0));
        }
        assert_eq!(outside.capacities(), None);
    }

    #[test]
    fn load_is_measured_once_winners_are_bound_and_forgotten_when_it_is_gone() {
        let mut outside = outside();
        assert!(!pass(&mut outside, [0, 0], [0, 0], 140));
        assert!(pass(&mut outside, [0, 0], [0, 0], 140));
        assert_eq!(percents(&outside), [(3, 30), (5, 30)], "not known where");
        assert!(pass(&mut outside, [0, 0], [20, 100], 0));
        assert_eq!(percents(&outside), [(3, 80)]);
        assert!(pass(&mut outside, [0, 0], [24, 100], 1));
        assert_eq!(percents(&outside), [(3, 79)]);
        // Winners that were not bound tell nothing.
        assert!(!pass(&mut outside, [0, 0], [0, 0], 120));
        let quiet = (0..100).take_while(|_| {
            pass(&mut outside, [0, 0], [100, 100], 0);
            outside.capacities().is_some()
        });
        assert!(quiet.count() < 20);
        assert_eq!(percents(&outside), []);
    }

    #[test]
    fn a_long_time_without_a_look_is_passed_over() {
        let mut outside = outside();
        outside.now = Some((3600 * SECOND_NS, vec![0, 0]));
        assert!(!outside.conclude());
        assert_eq!((outside.begun_ns, outside.excess_ns), (3600 * SECOND_NS, 0));
    }
}
