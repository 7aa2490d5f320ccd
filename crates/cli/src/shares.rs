//! What clients received between two looks, as parts of the machine.

use prorata_protocol::ClientReport;

/// For each client of `now`, the part of the machine that it received since
/// `before`: its part of all CPU time that clients received, in proportion to
/// what all of them together should get. So it is to be compared with
/// [`ClientReport::share`], whatever other programs do on the machine.
/// Clients that are new count from their beginning.
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
            share,
            specified_ns: 0,
            received_ns,
            error_quanta: 0.0,
            turns: None,
        }
    }

    #[test]
    fn only_the_time_between_counts() {
        let before = [client("c1", 0.5, 1000), client("c2", 0.5, 9000)];
        let now = [client("c1", 0.75, 1300), client("c2", 0.25, 9100)];
        assert_eq!(received(&before, &now), [0.75, 0.25]);
    }

    #[test]
    fn a_machine_that_is_half_used_counts_half() {
        // One client of one thread, on two CPUs.
        assert_eq!(received(&[], &[client("c1", 0.5, 700)]), [0.5]);
    }

    #[test]
    fn nothing_received_is_no_share() {
        let clients = [client("c1", 0.5, 10), client("c2", 0.5, 10)];
        assert_eq!(received(&clients, &clients), [0.0, 0.0]);
    }

    #[test]
    fn newcomers_and_those_gone_do_no_harm() {
        let before = [client("gone", 1.0, 500)];
        assert_eq!(received(&before, &[client("new", 1.0, 10)]), [1.0]);
    }
}
