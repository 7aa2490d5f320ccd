//! The functions of `native.c`.

pub mod allowance;
pub mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};

mod c {
    use super::Constants;

    // SAFETY: declared as in native.c. The functions of numbers are pure; the others use
    // variables that `Graph` guards.
    unsafe extern "C" {
        pub safe static prorata_constants: Constants;
        pub safe fn prorata_bucket_of(duration: u64) -> u32;
        pub safe fn prorata_schedulee_of(word: u64, period: u64) -> u32;
        pub safe fn prorata_is_gift(word: u64) -> bool;
        pub safe fn prorata_distance_of(word: u64) -> u32;
        pub safe fn prorata_charged_in_slot(
            service_ns: u64,
            ahead: u64,
            furthest: u64,
            worth: u64,
        ) -> u64;
        pub safe fn prorata_worth_of(amount: u64) -> u64;
        pub safe fn prorata_worth_add(a: u64, b: u64) -> u64;
        pub safe fn prorata_worth_multiply(a: u64, b: u64) -> u64;
        pub safe fn prorata_worth_divide(a: u64, b: u64) -> u64;
        pub safe fn prorata_wait_for(service_ns: u64, tickets: u64) -> u64;
        pub safe fn prorata_service_in(wait: u64, tickets: u64) -> u64;
        pub safe fn prorata_rescaled(remain: i64, from: u64, to: u64) -> i64;
        pub safe fn prorata_minus_ln(bits: u64) -> u64;
        pub safe fn prorata_chanced(service_ns: u64, bits: u64) -> u64;
        pub fn prorata_reset();
        pub fn prorata_write_ticket(index: u32, currency: u32, more: u32, amount: u64);
        pub fn prorata_fund(node: u32, list: u32);
        pub fn prorata_hold(node: u32, amount: i64);
        pub fn prorata_active(node: u32) -> i64;
        pub fn prorata_value(node: u32) -> u64;
        pub fn prorata_count_nice(node: u32, weight: u32, sign: i32);
        pub fn prorata_niced_value(node: u32) -> u64;
        pub fn prorata_all_worth() -> u64;
        pub fn prorata_run(node: u32, amount: u64, tasks: u32, first: u32, end: u32);
        pub fn prorata_readjust(cpus: u32, active: u64);
        pub fn prorata_feasible(amount: u64, tasks: u32) -> u64;
        pub fn prorata_limit(node: u32, amount: u64, tasks: u32, max: u32);
        pub fn prorata_feasible_part(node: u32, amount: u64, parts: u64) -> u64;
    }
}

pub use c::prorata_bucket_of as bucket_of;
pub use c::prorata_chanced as chanced;
pub use c::prorata_constants as CONSTANTS;
pub use c::prorata_distance_of as distance_of;
pub use c::prorata_is_gift as is_gift;
pub use c::prorata_minus_ln as minus_ln;
pub use c::prorata_schedulee_of as schedulee_of;

/// Constants of the headers, as in `native.c`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Constants {
    pub base: u64,
    pub cgroup_nodes: u64,
    pub cgroup_tickets: u64,
    pub root_tickets: u64,
    pub max_depth: u64,
    pub buckets: u64,
    pub pass_bits: u64,
    pub longest_wait: u64,
    pub longest_wait_ns: u64,
    pub overdue_ns: u64,
    pub roamers: u64,
    pub cut_credit_quanta: u64,
    pub most_limits: u64,
    pub period_ns: u64,
    pub by_claim: u64,
    pub schedulees: u64,
    pub cells_from: u64,
    pub tally_words: u64,
    pub lateness_buckets: u64,
}

#[derive(Clone, Copy)]
pub struct Worth(u64);

impl Worth {
    pub fn of(amount: u64) -> Self {
        Self(c::prorata_worth_of(amount))
    }

    pub fn plus(self, other: Self) -> Self {
        Self(c::prorata_worth_add(self.0, other.0))
    }

    pub fn times(self, other: Self) -> Self {
        Self(c::prorata_worth_multiply(self.0, other.0))
    }

    pub fn over(self, other: Self) -> Self {
        Self(c::prorata_worth_divide(self.0, other.0))
    }

    pub fn to_f64(self) -> f64 {
        let exponent = (self.0 >> 32) as u32;
        (self.0 as u32) as f64 * 2f64.powi(exponent.cast_signed())
    }
}

pub fn wait_for(service_ns: u64, tickets: Worth) -> u64 {
    c::prorata_wait_for(service_ns, tickets.0)
}

pub fn charged_in_slot(service_ns: u64, ahead: u64, furthest: u64, tickets: Worth) -> u64 {
    c::prorata_charged_in_slot(service_ns, ahead, furthest, tickets.0)
}

pub fn service_in(wait: u64, tickets: Worth) -> u64 {
    c::prorata_service_in(wait, tickets.0)
}

pub fn rescaled(remain: i64, from: Worth, to: Worth) -> i64 {
    c::prorata_rescaled(remain, from.0, to.0)
}

/// The one graph of rights, empty at first.
pub struct Graph {
    _only: MutexGuard<'static, ()>,
    tickets: u32,
}

impl Graph {
    pub fn new() -> Self {
        static ONLY: Mutex<()> = Mutex::new(());
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the guard keeps other threads away.
        unsafe { c::prorata_reset() };
        Self {
            _only: only,
            tickets: 1,
        }
    }

    /// Makes these the tickets that fund a node: currency and amount.
    pub fn fund(&mut self, node: u32, tickets: &[(u32, u64)]) {
        let list = self.tickets;
        for (index, &(currency, amount)) in tickets.iter().enumerate() {
            let more = u32::from(index + 1 < tickets.len());
            // SAFETY: the guard keeps other threads away.
            unsafe { c::prorata_write_ticket(self.tickets, currency, more, amount) };
            self.tickets += 1;
        }
        let list = if tickets.is_empty() { 0 } else { list };
        // SAFETY: likewise.
        unsafe { c::prorata_fund(node, list) }
    }

    /// The tasks inside a node hold so many tickets more, or less.
    pub fn hold(&mut self, node: u32, amount: i64) {
        // SAFETY: the guard keeps other threads away.
        unsafe { c::prorata_hold(node, amount) }
    }

    pub fn active(&self, node: u32) -> i64 {
        // SAFETY: the guard keeps other threads away.
        unsafe { c::prorata_active(node) }
    }

    pub fn value(&mut self, node: u32) -> Worth {
        // SAFETY: the guard keeps other threads away.
        Worth(unsafe { c::prorata_value(node) })
    }

    /// A task of this weight joins a node (1) or leaves it (-1).
    pub fn count_nice(&mut self, node: u32, weight: u32, sign: i32) {
        // SAFETY: the guard keeps other threads away.
        unsafe { c::prorata_count_nice(node, weight, sign) }
    }

    /// The value as the nice values of the node's tasks change it.
    pub fn niced_value(&mut self, node: u32) -> Worth {
        // SAFETY: the guard keeps other threads away.
        Worth(unsafe { c::prorata_niced_value(node) })
    }

    /// What all competing nodes are worth.
    pub fn all_worth(&self) -> Worth {
        // SAFETY: the guard keeps other threads away.
        Worth(unsafe { c::prorata_all_worth() })
    }

    /// The feasible weights of these nodes, while as many of the tasks of those without limits
    /// as there are CPUs run, in this order.
    pub fn feasible(&mut self, claims: &[Claim], cpus: u32) -> Vec<f64> {
        let mut first = 0;
        for (node, claim) in (1..).zip(claims) {
            let Claim { weight, tasks, max } = *claim;
            if let Some(max) = max {
                // SAFETY: the guard keeps other threads away.
                unsafe { c::prorata_limit(node, weight, tasks, max) };
                continue;
            }
            let end = cpus.min(first + tasks);
            // SAFETY: the guard keeps other threads away.
            unsafe { c::prorata_run(node, weight, tasks, first, end) };
            first = end;
        }
        let all = claims.iter().map(|claim| claim.weight).sum();
        // SAFETY: likewise.
        unsafe { c::prorata_readjust(cpus, all) };
        let feasible = |(node, claim): (u32, &Claim)| {
            let Claim { weight, tasks, max } = *claim;
            let worth = match max {
                // SAFETY: likewise.
                Some(_) => unsafe { c::prorata_feasible_part(node, weight, PARTS) },
                // SAFETY: likewise.
                None => return Worth(unsafe { c::prorata_feasible(weight, tasks) }).to_f64(),
            };
            Worth(worth).to_f64() * PARTS as f64
        };
        (1..).zip(claims).map(feasible).collect()
    }
}

/// Parts of a limited node's value, of which one is looked at.
const PARTS: u64 = 3;

/// What a node's tasks ask of the CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub weight: u64,
    pub tasks: u32,
    /// The limit in thousandths of a CPU.
    pub max: Option<u32>,
}
