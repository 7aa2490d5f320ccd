//! The mark that a client's processes carry in their environment, by which
//! those who escaped from their tree are found again.

use prorata_core::ids::ClientId;

use crate::process_id::ProcessId;
use crate::procfs;

/// Environment variable that holds the marker; see [`client_marker`].
pub const CLIENT_MARKER: &str = "PRORATA_CLIENT";

/// What to set [`CLIENT_MARKER`] to when starting a client's program: the
/// client as it prints (`c3`) and the process that it begins with. The latter
/// tells it from clients of the same name under another engine or before.
pub fn client_marker(client: &str, root: ProcessId) -> String {
    format!("{client}@{}.{}", root.pid, root.start_time_ticks)
}

/// A marker taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marker {
    pub(crate) client: ClientId,
    pub(crate) root: ProcessId,
}

impl Marker {
    /// The marker that a process carries, if we may read it.
    pub(crate) fn of(pid: u32) -> Option<Marker> {
        Self::parse(&procfs::environment_variable(pid, CLIENT_MARKER)?)
    }

    fn parse(text: &str) -> Option<Marker> {
        let (client, root) = text.split_once('@')?;
        let (pid, start_time_ticks) = root.split_once('.')?;
        Some(Marker {
            client: client.parse().ok()?,
            root: ProcessId {
                pid: pid.parse().ok()?,
                start_time_ticks: start_time_ticks.parse().ok()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_survive_the_environment() {
        let client = ClientId::from_parts(3, 1);
        let root = ProcessId {
            pid: 7,
            start_time_ticks: u64::MAX,
        };
        let text = client_marker(&client.to_string(), root);
        assert_eq!(Marker::parse(&text), Some(Marker { client, root }));
    }

    #[test]
    fn other_text_is_no_marker() {
        for text in [
            "", "c3", "c3@", "c3@7", "c3@7.", "@7.8", "t3@7.8", "c3@-7.8", "c3@7.8 ",
        ] {
            assert_eq!(Marker::parse(text), None, "{text:?}");
        }
    }
}
