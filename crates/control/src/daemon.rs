//! A daemon's life, from taking its place to giving it up.

use std::time::Duration;

use crate::place::Place;

/// What can be chosen about a daemon when it starts.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// CPUs to share out; those that the daemon may run on if not given.
    pub cpus: Option<Vec<u32>>,
    /// How losers are held back; chosen by trial if not given.
    pub mechanism: Option<Mechanism>,
    /// Goes after so long without clients and connections.
    pub linger: Duration,
}

impl Default for DaemonOptions {
    fn default() -> Self {
        Self {
            cpus: None,
            mechanism: None,
            linger: Duration::from_secs(5),
        }
    }
}

/// How the engine holds back losers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// SCHED_IDLE.
    Idle,
    /// SIGSTOP and SIGCONT.
    Stop,
}

/// Why a daemon did not start, or ended with a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// There is no place for it.
    #[error(transparent)]
    Place(#[from] crate::place::PlaceError),
}

/// Runs the daemon of `place` until nothing is left to manage, somebody stops
/// it, or a signal (TERM, INT or HUP) ends it. Whatever ends it, every process
/// goes on as if never managed.
pub fn daemon_main(place: Place, options: DaemonOptions) -> Result<(), DaemonError> {
    let _ = options;
    place.prepare()?;
    todo!()
}
