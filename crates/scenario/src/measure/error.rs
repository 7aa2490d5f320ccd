//! The errors of service against the ideal, in quanta (1995, 2).

use prorata_core::dispatcher::Usage;
use serde::Serialize;

/// The absolute error of a client: the difference between its received and its specified
/// CPU time.
///
/// Specified time grows steadily; received time grows when a turn of the client is charged.
/// So the error is largest just before or just after one of its turns is charged, and looks
/// at the beginnings and ends of turns miss nothing.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AbsoluteError {
    /// Largest so far.
    pub largest: f64,
    /// The error at the last look; positive for a client ahead of its due.
    pub last: f64,
    /// Mean magnitude over the ends of its turns.
    #[serde(skip)]
    sum: f64,
    #[serde(skip)]
    count: u64,
}

impl AbsoluteError {
    /// Notes what a client has received and is due now.
    pub fn note(&mut self, usage: Usage, quantum_ns: u64) {
        let charged_ns = usage.received_ns - usage.uncharged_ns;
        let ahead_ns = charged_ns as f64 - usage.specified_ns as f64;
        self.last = ahead_ns / quantum_ns as f64;
        self.largest = self.largest.max(self.last.abs());
    }

    /// A turn of the client ended: its error counts for the mean.
    pub fn count_turn(&mut self) {
        self.sum += self.last.abs();
        self.count += 1;
    }

    /// Mean magnitude over the ends of its turns.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum / self.count as f64
        }
    }
}

/// The relative error of two clients: the absolute error in the subsystem of
/// only the two.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RelativeError {
    /// The two clients.
    pub clients: (u32, u32),
    /// Largest so far, in quanta.
    pub largest: f64,
    /// Now; positive if the first is ahead.
    pub last: f64,
    /// Their values when both competed last.
    values: Option<(f64, f64)>,
    /// By how much the first is ahead.
    ahead_ns: f64,
}

impl RelativeError {
    /// Of two clients that have received nothing yet.
    pub fn new(clients: (u32, u32)) -> RelativeError {
        RelativeError {
            clients,
            largest: 0.0,
            last: 0.0,
            values: None,
            ahead_ns: 0.0,
        }
    }

    /// The two do not compete for the same CPUs.
    pub fn apart(&mut self) {
        self.values = None;
    }

    /// Notes the values of both from now on, and whether both compete.
    pub fn note(&mut self, first: f64, second: f64, both_compete: bool) {
        if first > 0.0 && second > 0.0 {
            self.values = Some((first, second));
        } else if !both_compete {
            // While one of them is away, the service of the other is no error. The turn
            // that just ended is counted before this.
            self.values = None;
        }
    }

    /// Counts the CPU time of a turn of one of the two, by the values from before its end.
    pub fn count_turn(&mut self, client: u32, used_ns: u64, quantum_ns: u64) {
        let Some((first, second)) = self.values else {
            return;
        };
        let used_ns = used_ns as f64;
        let received_ns = if client == self.clients.0 {
            used_ns
        } else {
            0.0
        };
        self.ahead_ns += received_ns - used_ns * first / (first + second);
        self.last = self.ahead_ns / quantum_ns as f64;
        self.largest = self.largest.max(self.last.abs());
    }
}
