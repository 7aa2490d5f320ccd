//! The process that listens on a socket, and whether it still does anything.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::credentials::peer_credentials;

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    /// Zero if it is in another pid namespace.
    pub pid: u32,
    /// The user that it ran as when it began to listen.
    pub user: u32,
}

impl Listener {
    /// The process that listened when `stream` connected (`SO_PEERCRED`, unix(7)).
    pub fn of(stream: &UnixStream) -> io::Result<Listener> {
        let credentials = peer_credentials(stream)?;
        Ok(Listener {
            pid: u32::try_from(credentials.pid).unwrap_or(0),
            user: credentials.uid,
        })
    }

    /// CPU time that it has used, in clock ticks; `None` if it cannot be seen.
    pub fn cpu_ticks(self) -> Option<u64> {
        let path = Path::new("/proc").join(self.pid.to_string()).join("stat");
        Some(Activity::read(&path)?.cpu_ticks)
    }

    /// Whether it has not run since `cpu_ticks` were used, and no thread of it waits for a CPU or
    /// a disk: it is stopped, frozen or stuck.
    pub fn is_idle_since(self, cpu_ticks: Option<u64>) -> bool {
        let threads = Path::new("/proc").join(self.pid.to_string()).join("task");
        let Ok(threads) = fs::read_dir(threads) else {
            return false;
        };
        let is_busy = |state| matches!(state, 'R' | 'D');
        let any_is_busy = threads
            .flatten()
            .filter_map(|thread| Activity::read(&thread.path().join("stat")))
            .any(|thread| is_busy(thread.state));
        !any_is_busy && cpu_ticks.is_some() && self.cpu_ticks() == cpu_ticks
    }
}

/// What `/proc` tells of a process or thread.
pub(crate) struct Activity {
    /// Its state, such as `R` (proc_pid_stat(5)).
    pub state: char,
    /// CPU time that it has used.
    pub cpu_ticks: u64,
}

impl Activity {
    /// Reads a file such as `/proc/PID/stat`.
    pub fn read(path: &Path) -> Option<Activity> {
        let stat = fs::read_to_string(path).ok()?;
        // The name may hold spaces and parentheses: it ends at the last one. The
        // first field after it is the third of proc_pid_stat(5).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Activity {
            state: fields.first()?.chars().next()?,
            cpu_ticks: ticks(14)? + ticks(15)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;
    use crate::testing::Script;

    #[test]
    fn a_process_that_sleeps_is_idle_and_one_that_computes_is_not() {
        let (sleeps, computes) = (
            Script::start("exec sleep 600"),
            Script::start("while :; do :; done"),
        );
        let listeners = [&sleeps, &computes].map(|script| Listener {
            pid: script.0.id(),
            user: 0,
        });
        // The first has started its program by then.
        sleep(Duration::from_millis(500));
        let before = listeners.map(Listener::cpu_ticks);
        assert!(before.iter().all(Option::is_some));
        sleep(Duration::from_millis(100));
        let [sleeps, computes] = [0, 1].map(|n| listeners[n].is_idle_since(before[n]));
        assert!(sleeps && !computes);
    }

    #[test]
    fn the_listener_is_the_process_behind_the_socket() {
        let (stream, _other) = UnixStream::pair().unwrap();
        assert_eq!(Listener::of(&stream).unwrap().pid, std::process::id());
        let unseen = Listener { pid: 0, user: 0 };
        assert!(!unseen.is_idle_since(unseen.cpu_ticks()));
    }
}
