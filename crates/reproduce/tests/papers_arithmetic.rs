//! What the arithmetic of the stride paper comes to where ours differs from
//! it: `stride1 / tickets` is a whole number there (1995, Figure 1), and the
//! remainder that it drops makes up the difference.

const STRIDE1: u64 = 1 << 20;
const ALLOCATIONS: u64 = 1_000_000;

/// What a million allocations came to.
struct Outcome {
    /// Response times, by client; without the first.
    times: Vec<Vec<u64>>,
    /// Largest absolute error of the first client, in quanta.
    largest_error: f64,
}

/// Selects the client of the least pass, ties going to the first, as the
/// paper's Figure 1; a stride is `stride1` over the tickets, rounded down.
fn allocate(tickets: &[u64], stride1: u64) -> Outcome {
    let strides: Vec<u64> = tickets.iter().map(|tickets| stride1 / tickets).collect();
    let mut passes = strides.clone();
    let mut last = vec![None; tickets.len()];
    let mut times = vec![Vec::new(); tickets.len()];
    let part = tickets[0] as f64 / tickets.iter().sum::<u64>() as f64;
    let (mut received, mut largest_error) = (0u64, 0f64);
    for now in 1..=ALLOCATIONS {
        let current = (0..passes.len()).min_by_key(|&client| passes[client]);
        let current = current.expect("there are clients");
        passes[current] += strides[current];
        received += u64::from(current == 0);
        largest_error = largest_error.max((received as f64 - now as f64 * part).abs());
        if let Some(before) = last[current].replace(now) {
            times[current].push(now - before);
        }
    }
    Outcome {
        times,
        largest_error,
    }
}

fn deviation(times: &[u64]) -> f64 {
    let count = times.len() as f64;
    let mean = times.iter().sum::<u64>() as f64 / count;
    let squares = times.iter().map(|&time| (time as f64 - mean).powi(2));
    (squares.sum::<f64>() / count).sqrt()
}

/// 1995, Figure 12(d): 0.01 is printed.
#[test]
fn a_few_response_times_are_longer_by_a_quantum() {
    let times = &allocate(&[19, 1], STRIDE1).times[1];
    let longer = times.iter().filter(|&&time| time == 21).count();
    let regular = times.iter().filter(|&&time| time == 20).count();
    assert_eq!((longer, regular), (3, times.len() - 3));
    assert_eq!(format!("{:.2}", deviation(times)), "0.01");
}

/// 1995, Figure 13(b): 4 is printed.
#[test]
fn the_large_client_is_half_a_quantum_further_ahead() {
    assert_eq!(
        allocate(&[7, 1, 1, 1, 1, 1, 1, 1], STRIDE1).largest_error,
        4.0
    );
}

/// With a `stride1` that the tickets divide, nothing is dropped: then it comes
/// to our numbers.
#[test]
fn without_remainders_it_comes_to_ours() {
    let times = &allocate(&[19, 1], 19).times[1];
    assert_eq!(deviation(times), 0.0);
    assert_eq!(allocate(&[7, 1, 1, 1, 1, 1, 1, 1], 7).largest_error, 3.5);
}

/// MQ's speedups on eight CPUs over two (2001, Table 5) are what is left if a
/// seventh of the work runs on one CPU at a time: about the same part in all
/// three configurations of Chat.
#[test]
fn a_seventh_of_the_work_does_not_scale_under_mq() {
    for (speedup, percent) in [(2.21, 16.0), (2.29, 14.0), (2.22, 15.0)] {
        // Of a part s on one CPU at a time, n CPUs make s + (1 - s) / n.
        let serial: f64 = (0.5 - speedup / 8.0) / (speedup * 7.0 / 8.0 - 0.5);
        let time = |cpus: f64| serial + (1.0 - serial) / cpus;
        assert!((time(2.0) / time(8.0) - speedup).abs() < 1e-9);
        assert_eq!((serial * 100.0).round(), percent);
    }
}

/// By the locks of Chat (20,200) under one run queue (2001, Table 3) and its speedups on
/// eight CPUs over two (Table 5) each message takes the lock more often. A CPU that asks
/// finds the lock held for the part of the time that the n - 1 other CPUs hold it. The time
/// that all CPUs hold it, divided by the mean hold, is the number of acquisitions.
#[test]
fn locks_are_asked_for_more_often_for_each_message_on_more_cpus() {
    // Contention, and mean hold in microseconds.
    type Lock = (f64, f64);
    let requests = |(contention, hold): Lock, cpus: f64| contention * cpus / (cpus - 1.0) / hold;
    let growth = |two: Lock, eight: Lock, speedup: f64| {
        let growth = requests(eight, 8.0) / requests(two, 2.0) / speedup;
        (growth * 100.0).round() / 100.0
    };
    assert_eq!(growth((0.183, 15.0), (0.866, 22.0), 0.54), 3.41);
    assert_eq!(growth((0.037, 2.3), (0.507, 7.3), 1.43), 1.73);
}

/// By the peaks of Chat over DSS's (2001, 5.2) and the speedups over two CPUs (Table 5), PLS
/// and MQ send so many messages on two CPUs, for each of DSS. With 20 rooms that is a quarter
/// more under PLS, although differences are said to show up "immediately after 2 CPUs". By the
/// locks (Table 3) each message takes the lock as often under PLS as under DSS there.
#[test]
fn on_two_cpus_pls_decides_as_often_for_each_message_as_dss() {
    let on_two = |peak_over_dss: f64, dss: f64, speedup: f64| {
        (peak_over_dss * dss / speedup * 100.0).round() / 100.0
    };
    let pls = [(0.87, 1.88, 1.72), (1.34, 1.27, 1.32), (1.57, 1.11, 1.63)];
    assert_eq!(pls.map(|(p, d, s)| on_two(p, d, s)), [0.95, 1.29, 1.07]);
    let mq = [(1.13, 1.88, 2.31), (1.68, 1.27, 2.29), (2.24, 1.11, 2.22)];
    assert_eq!(mq.map(|(p, d, s)| on_two(p, d, s)), [0.92, 0.93, 1.12]);
    // Contention over hold, which is in proportion to requests a second.
    let requests = (0.037 / 2.3) / (0.183 / 15.0) / 1.29;
    assert_eq!((requests * 100.0_f64).round(), 102.0);
}

/// 1995, Appendix A: with ten bits of precision, 1001:1000 is told from 1:1.
#[test]
fn strides_of_twenty_bits_tell_1001_tickets_from_1000() {
    let times = &allocate(&[1001, 1000], STRIDE1).times;
    let [more, fewer] = [0, 1].map(|client| times[client].len() as f64 + 1.0);
    let error = more / fewer / 1.001 - 1.0;
    assert!(more > fewer && error.abs() < 1.0 / 1024.0, "{more} {fewer}");
    // A tenth of the bits would not do.
    let times = &allocate(&[1001, 1000], STRIDE1 >> 10).times;
    assert_eq!(times[0].len(), times[1].len());
}

/// 1995, Appendix A: passes of 32 bits overflow after some four thousand allocations to a client
/// with one ticket; with the smallest pass taken off all every two thousand allocations, they
/// choose the same clients as passes of 64 bits.
#[test]
fn passes_of_32_bits_choose_alike_if_they_are_adjusted() {
    let stride = STRIDE1 as u32;
    let fit = (1u32..).take_while(|&allocations| stride.checked_mul(allocations).is_some());
    assert_eq!(fit.count(), 4095);
    let strides = [1u32, 3, 7].map(|tickets| stride / tickets);
    let mut narrow = strides;
    let mut wide = strides.map(u64::from);
    for allocation in 1..=100_000 {
        let current = (0..3).min_by_key(|&client| narrow[client]);
        let current = current.expect("there are clients");
        assert_eq!(Some(current), (0..3).min_by_key(|&client| wide[client]));
        wide[current] += u64::from(strides[current]);
        let next = narrow[current].checked_add(strides[current]);
        narrow[current] = next.expect("the adjustment came in time");
        if allocation % 2000 == 0 {
            let least = narrow.into_iter().min().expect("there are clients");
            narrow = narrow.map(|pass| pass - least);
        }
    }
}
