//! The stride paper's own examples (1995): Figure 2, the 101 clients of
//! section 4, and Figure 13.

use prorata_core::policy::{ClientIndex, HierarchicalStride, Policy, Stride};

fn with_clients<P: Policy>(mut policy: P, tickets: &[u32]) -> P {
    for (index, &tickets) in tickets.iter().enumerate() {
        policy.join(ClientIndex(index as u32), tickets).unwrap();
    }
    policy
}

/// The client that runs in each of so many quanta.
fn run(policy: &mut impl Policy, quanta: usize) -> Vec<usize> {
    let mut winners = Vec::with_capacity(quanta);
    for _ in 0..quanta {
        let client = policy.pick().unwrap();
        policy.charge(client, 1, 1).unwrap();
        winners.push(client.0 as usize);
    }
    winners
}

/// The largest absolute error of one client (1995, 2), in quanta.
fn largest_error(winners: &[usize], tickets: &[u32], client: usize) -> f64 {
    let share = f64::from(tickets[client]) / f64::from(tickets.iter().sum::<u32>());
    let (mut received, mut largest) = (0.0, 0f64);
    for (done, &winner) in winners.iter().enumerate() {
        received += f64::from(u8::from(winner == client));
        largest = largest.max((received - (done + 1) as f64 * share).abs());
    }
    largest
}

/// Mean and standard deviation of the quanta between a client's turns
/// (1995, 5.3).
fn response_times(winners: &[usize], client: usize) -> (f64, f64) {
    let turns: Vec<usize> = (0..winners.len())
        .filter(|&i| winners[i] == client)
        .collect();
    let times: Vec<f64> = turns
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
    (mean, variance.sqrt())
}

#[test]
fn figure_2_three_to_two_to_one() {
    let winners = run(&mut with_clients(Stride::new(), &[3, 2, 1]), 600);
    for period in winners.chunks(6) {
        assert_eq!(period, [0, 1, 0, 0, 1, 2]);
    }
}

#[test]
fn section_4_one_large_client_and_a_hundred_small_ones() {
    let mut tickets = [1; 101];
    tickets[0] = 100;
    let plain = run(&mut with_clients(Stride::new(), &tickets), 20_000);
    assert_eq!(largest_error(&plain, &tickets, 0), 50.0);
    let tree = run(
        &mut with_clients(HierarchicalStride::new(), &tickets),
        20_000,
    );
    assert_eq!(largest_error(&tree, &tickets, 0), 4.5);
    for client in 1..tickets.len() {
        assert!(
            largest_error(&tree, &tickets, client) < 1.0,
            "client {client}"
        );
    }
}

#[test]
fn figure_13_response_times_of_eight_clients() {
    let tickets = [7, 1, 1, 1, 1, 1, 1, 1];
    let plain = run(&mut with_clients(Stride::new(), &tickets), 1_000_000);
    let tree = run(
        &mut with_clients(HierarchicalStride::new(), &tickets),
        1_000_000,
    );
    for (winners, deviation, error) in [(&plain, 2.45, 3.5), (&tree, 1.07, 1.5)] {
        let (mean, standard_deviation) = response_times(winners, 0);
        assert!((mean - 2.0).abs() < 0.005, "{mean}");
        assert!(
            (standard_deviation - deviation).abs() < 0.005,
            "{standard_deviation}"
        );
        assert_eq!(largest_error(winners, &tickets, 0), error);
        for client in 1..8 {
            assert_eq!(response_times(winners, client), (14.0, 0.0));
        }
    }
}

/// The paper reports an error of 4 quanta where ours is 3.5, seven quanta in a
/// row less the half that was due. Its Figure 1 drops the remainder of
/// `stride1 / tickets`, so that the large client gets a quantum too much in
/// the course of a million.
#[test]
fn figure_13_the_papers_own_arithmetic_drifts() {
    const STRIDE1: u64 = 1 << 20;
    let tickets = [7, 1, 1, 1, 1, 1, 1, 1];
    let strides = tickets.map(|tickets| STRIDE1 / u64::from(tickets));
    let mut passes = strides;
    let winners: Vec<usize> = (0..1_000_000)
        .map(|_| {
            let winner = (0..8).min_by_key(|&client| passes[client]).unwrap();
            passes[winner] += strides[winner];
            winner
        })
        .collect();
    assert_eq!(largest_error(&winners, &tickets, 0), 4.0);
}
