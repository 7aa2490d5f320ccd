//! Variables in the environment that tell to which client a process belongs.

use std::path::Path;

use prorata_core::ids::ClientId;

use crate::procfs;

/// Environment variable with the client's identifier as it prints (`c3`). It is set in a client's
/// program at the start, so that descendants that escape from their tree are found again. Each
/// daemon has identifiers of its own, so it counts only together with [`SOCKET_MARKER`].
pub const CLIENT_MARKER: &str = "PRORATA_CLIENT";

/// Environment variable that goes with [`CLIENT_MARKER`]: path of the daemon's socket.
pub const SOCKET_MARKER: &str = "PRORATA_SOCKET";

/// The client of the daemon on `socket` that the markers of a process name. A process's owner
/// can write anything into its environment.
pub fn marked_client(pid: u32, socket: &Path) -> Option<ClientId> {
    let client = procfs::environment_variable(pid, CLIENT_MARKER)?
        .parse()
        .ok()?;
    let marked = procfs::environment_variable(pid, SOCKET_MARKER)?;
    (Path::new(&marked) == socket).then_some(client)
}
