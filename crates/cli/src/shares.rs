//! Shares that clients received between two samples.

use std::time::Duration;

use prorata_protocol::ClientReport;

/// For each client of `now`, its share since `before`: the client's part of
/// all CPU time that clients received, times the sum of their entitlements.
/// The result compares with [`ClientReport::share`] even if unmanaged programs
/// use CPU time. A new client counts from its registration.
pub fn received(before: &[ClientReport], now: &[ClientReport]) -> Vec<f64> {
    let since = |client: &ClientReport| {
        let earlier = before.iter().find(|earlier| earlier.id == client.id);
        client
            .received_ns
            .saturating_sub(earlier.map_or(0, |earlier| earlier.received_ns))
    };
    let times: Vec<u64> = now.iter().map(since).collect();
    let total: u64 = times.iter().sum();
    let whole: f64 = now.iter().map(|client| client.share).sum();
    times
        .iter()
        .map(|&time| {
            if total == 0 {
                0.0
            } else {
                time as f64 / total as f64 * whole
            }
        })
        .collect()
}

/// The CPU use of each client of `now` during the time since `before`; 1 is one CPU. It is 0
/// for a new client, and without any time.
pub fn cpu_use(before: &[ClientReport], now: &[ClientReport], time: Duration) -> Vec<f64> {
    let since = |client: &ClientReport| {
        let earlier = before.iter().find(|earlier| earlier.id == client.id)?;
        let used_ns = client.received_ns.saturating_sub(earlier.received_ns);
        let is_measured = !time.is_zero();
        is_measured.then(|| Duration::from_nanos(used_ns).as_secs_f64() / time.as_secs_f64())
    };
    now.iter()
        .map(|client| since(client).unwrap_or(0.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use prorata_protocol::ClientState;

    use super::*;

    fn client(id: &str, share: f64, received_ns: u64) -> ClientReport {
        ClientReport {
            id: id.to_owned(),
            name: id.to_owned(),
            owner: 0,
            pid: 1,
            processes: 1,
            state: ClientState::Running,
            tickets: Vec::new(),
            value: 0.0,
            quantum_ns: None,
            max: None,
            share,
            specified_ns: 0,
            received_ns,
            error_quanta: 0.0,
            turns: None,
            hybrid: None,
            nice: None,
        }
    }

    #[test]
    fn only_time_between_the_samples_counts() {
        let before = [client("c1", 0.5, 1000), client("c2", 0.5, 9000)];
        let now = [client("c1", 0.75, 1300), client("c2", 0.25, 9100)];
        assert_eq!(received(&before, &now), [0.75, 0.25]);
    }

    #[test]
    fn cpu_use_is_received_time_by_time_that_passed() {
        let before = [client("c1", 0.5, 1_000)];
        let now = [client("c1", 0.5, 1_150), client("c2", 0.5, 9_000)];
        let used = cpu_use(&before, &now, Duration::from_nanos(100));
        assert_eq!(used, [1.5, 0.0]);
    }

    #[test]
    fn shares_sum_to_the_clients_entitlements() {
        // One client of one thread on two CPUs is entitled to a half.
        assert_eq!(received(&[], &[client("c1", 0.5, 700)]), [0.5]);
    }

    #[test]
    fn without_received_time_all_shares_are_zero() {
        let clients = [client("c1", 0.5, 10), client("c2", 0.5, 10)];
        assert_eq!(received(&clients, &clients), [0.0, 0.0]);
    }

    #[test]
    fn clients_may_come_and_go_between_the_samples() {
        let before = [client("gone", 1.0, 500)];
        assert_eq!(received(&before, &[client("new", 1.0, 10)]), [1.0]);
    }
}
