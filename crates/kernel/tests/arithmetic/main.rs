//! What the scheduler in the kernel computes (`bpf/arithmetic.h`, `rights.h`, `feasible.h`,
//! `nice.h`, `allowance.h` and `window.h`, compiled natively) beside what the core computes.

mod allowance;
mod native;
mod nice;
mod rights;
mod slots;
mod window;

use std::convert::Infallible;

use native::{CONSTANTS, Constants, Worth, chanced, minus_ln, rescaled, service_in, wait_for};
use prorata_core::policy::credit::CUT_CREDIT_QUANTA;
use prorata_core::policy::{ClientIndex, Policy as _, Race, Stride};
use prorata_kernel::observe::end_of;
use prorata_kernel::scheduler::{
    BASE, BUCKETS, CGROUP_NODES, LONGEST_WAIT_NS, MAX_DEPTH, MOST_LIMITS, OVERDUE_NS, PASS_BITS,
    ROAMERS, ROOT_TICKETS, TICKETS,
};
use rand_core::{Rng, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A generator that always yields the same number.
struct Always(u64);

impl TryRng for Always {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0 as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("the race draws whole words")
    }
}

fn numbers(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A random number with fewer bits than this; all numbers of bits are equally likely.
fn amount(numbers: &mut Xoshiro256PlusPlus, bits: u32) -> u64 {
    let size = numbers.next_u64() % u64::from(bits);
    (1 << size) | (numbers.next_u64() & ((1 << size) - 1))
}

fn longest_wait() -> i64 {
    CONSTANTS.longest_wait as i64
}

fn same(found: f64, expected: f64, relative: f64) {
    let error = (found - expected).abs();
    assert!(error <= expected.abs() * relative, "{found} for {expected}");
}

#[test]
fn constants_are_those_of_the_headers() {
    let Constants {
        base,
        cgroup_nodes,
        cgroup_tickets,
        root_tickets,
        max_depth,
        buckets,
        pass_bits,
        longest_wait: _,
        longest_wait_ns,
        overdue_ns,
        roamers,
        cut_credit_quanta,
        most_limits,
        period_ns: _,
        by_claim: _,
        schedulees: _,
        cells_from: _,
        tally_words: _,
        lateness_buckets: _,
    } = CONSTANTS;
    assert_eq!(u64::from(BASE), base);
    assert_eq!(u64::from(CGROUP_NODES), cgroup_nodes);
    assert_eq!(TICKETS as u64 + 1, cgroup_tickets);
    assert_eq!(ROOT_TICKETS, root_tickets);
    assert_eq!(u64::from(MAX_DEPTH), max_depth);
    assert_eq!(BUCKETS as u64, buckets);
    assert_eq!(u64::from(PASS_BITS), pass_bits);
    assert_eq!(LONGEST_WAIT_NS, longest_wait_ns);
    assert_eq!(OVERDUE_NS, overdue_ns);
    assert_eq!(u64::from(ROAMERS), roamers);
    assert_eq!(CUT_CREDIT_QUANTA, cut_credit_quanta);
    assert_eq!(MOST_LIMITS as u64, most_limits);
}

#[test]
fn a_bucket_of_the_observer_holds_its_durations() {
    let mut numbers = numbers(13);
    let powers = (0..64).flat_map(|bit| {
        let power = 1u64 << bit;
        [power - 1, power, power + power / 3, power | (power - 1)]
    });
    let random = std::iter::repeat_with(|| amount(&mut numbers, 64)).take(10_000);
    for duration in powers.chain(random) {
        let bucket = native::bucket_of(duration) as usize;
        assert!(duration <= end_of(bucket), "{duration} in {bucket}");
        assert!(
            bucket == 0 || duration > end_of(bucket - 1),
            "{duration} in {bucket}"
        );
    }
}

#[test]
fn a_chance_is_the_core_race_s_bit_for_bit() {
    let mut random = numbers(1);
    for round in 0..300_000 {
        let bits = match round % 3 {
            0 => random.next_u64(),
            1 => random.next_u64() >> (random.next_u64() % 64),
            _ => !(random.next_u64() >> (random.next_u64() % 64)),
        };
        let mut race = Race::new(Always(bits));
        race.join(ClientIndex(0), 1).unwrap();
        // The first wait is a stride times the chance: exact in the format.
        let core = race.pass(ClientIndex(0)).unwrap() * 2f64.powi(40);
        assert_eq!(minus_ln(bits) as f64, core, "{bits:#x}");
    }
}

#[test]
fn chances_multiply_service() {
    let mut random = numbers(2);
    for _ in 0..100_000 {
        let bits = random.next_u64();
        let service = amount(&mut random, 34);
        let counted = service.min(u32::MAX.into());
        let exact = counted as f64 * minus_ln(bits) as f64 / 2f64.powi(40);
        let error = (chanced(service, bits) as f64 - exact).abs();
        assert!(
            error <= 1.0 + counted as f64 / 2f64.powi(26),
            "{service} {bits:#x}"
        );
    }
}

#[test]
fn worths_are_right_to_30_bits() {
    let mut random = numbers(3);
    for _ in 0..300_000 {
        let (a, b) = (amount(&mut random, 64), amount(&mut random, 64));
        let (a, b) = (a as f64, b as f64);
        let (x, y) = (Worth::of(a as u64), Worth::of(b as u64));
        let bound = 2f64.powi(-30);
        same(x.to_f64(), a, bound);
        same(x.plus(y).to_f64(), a + b, bound);
        same(x.times(y).to_f64(), a * b, 2.0 * bound);
        same(x.over(y).to_f64(), a / b, 2.0 * bound);
    }
    assert_eq!(Worth::of(0).to_f64(), 0.0);
    assert_eq!(Worth::of(5).over(Worth::of(0)).to_f64(), 0.0);
    assert_eq!(Worth::of(0).plus(Worth::of(5)).to_f64(), 5.0);
}

/// A random history of charges: passes as the core's stride scheduling has
/// them, to one part in a billion.
#[test]
fn passes_are_the_core_s() {
    const QUANTUM_NS: u64 = 20_000_000;
    // The core counts in strides of a single ticket.
    let unit = QUANTUM_NS as f64 * 2f64.powi(PASS_BITS as i32);
    let mut random = numbers(5);
    let mut stride = Stride::new();
    let mut passes = Vec::new();
    let tickets: Vec<u64> = (0..20).map(|_| amount(&mut random, 24)).collect();
    for (index, &tickets) in tickets.iter().enumerate() {
        stride
            .join(ClientIndex(index as u32), tickets as u32)
            .unwrap();
        passes.push(wait_for(QUANTUM_NS, Worth::of(tickets)));
    }
    // All joined before any client ran: the global pass is still 0.
    for _ in 0..10_000 {
        let index = (random.next_u64() % 20) as usize;
        let used = random.next_u64() % QUANTUM_NS;
        stride
            .charge(ClientIndex(index as u32), used, QUANTUM_NS)
            .unwrap();
        passes[index] += wait_for(used, Worth::of(tickets[index]));
    }
    for (index, &pass) in passes.iter().enumerate() {
        let core = stride.pass(ClientIndex(index as u32)).unwrap();
        // Besides, each charge loses less than a unit.
        let error = (pass as f64 - core * unit).abs();
        assert!(error <= 10_000.0 + core * unit * 1e-9, "{pass} {core}");
    }
}

#[test]
fn a_rescaled_remain_gives_the_service_back() {
    let mut random = numbers(6);
    for _ in 0..100_000 {
        let (from, to) = (amount(&mut random, 30), amount(&mut random, 30));
        let remain = amount(&mut random, 50) as i64;
        let exact = remain as f64 * from as f64 / to as f64;
        let found = rescaled(remain, Worth::of(from), Worth::of(to));
        assert_eq!(rescaled(-remain, Worth::of(from), Worth::of(to)), -found);
        if exact < longest_wait() as f64 {
            assert!((found as f64 - exact).abs() <= 1.0 + exact * 2f64.powi(-28));
        } else {
            assert_eq!(found, longest_wait());
        }
        let service = amount(&mut random, 32);
        let tickets = Worth::of(amount(&mut random, 20));
        let back = service_in(wait_for(service, tickets), tickets);
        assert!(
            service.abs_diff(back) <= 1 + (service >> 28),
            "{service} {back}"
        );
    }
}

#[test]
fn the_ends_of_the_range() {
    let one = Worth::of(1);
    assert_eq!(wait_for(0, one), 0);
    assert_eq!(wait_for(1, one), 1 << PASS_BITS);
    assert_eq!(wait_for(1, Worth::of(0)), 0);
    // Service counts up to a limit, and waits are held at one.
    let most = u64::from(u32::MAX);
    assert_eq!(wait_for(most, one), most << PASS_BITS);
    assert_eq!(wait_for(most + 1, one), most << PASS_BITS);
    assert_eq!(wait_for(1, Worth::of(u64::MAX)), 0);
    let tiny = one.over(Worth::of(1 << 50));
    assert_eq!(wait_for(20_000_000, tiny), longest_wait() as u64);
    assert_eq!(rescaled(7, Worth::of(0), one), 7);
    assert_eq!(rescaled(7, one, Worth::of(0)), 7);
    assert_eq!(rescaled(longest_wait(), Worth::of(2), one), longest_wait());
    assert_eq!(service_in(0, one), 0);
}
