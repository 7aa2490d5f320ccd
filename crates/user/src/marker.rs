//! Variables in the environment by which descendants that escaped from their
//! tree are found again.

use std::path::Path;

use prorata_core::ids::ClientId;

use crate::procfs;

/// Environment variable by which descendants that escaped from their tree are
/// found again: the client's identifier as it prints (`c3`), set by whoever
/// starts a client's program. Identifiers are the daemon's own, so it counts
/// only together with [`SOCKET_MARKER`].
pub const CLIENT_MARKER: &str = "PRORATA_CLIENT";

/// Environment variable that goes with [`CLIENT_MARKER`]: path of the socket of
/// the daemon whose client it is.
pub const SOCKET_MARKER: &str = "PRORATA_SOCKET";

/// The client of the daemon on `socket` whose markers a process carries. What
/// an environment says is whatever the process's owner wants it to.
pub fn marked_client(pid: u32, socket: &Path) -> Option<ClientId> {
    let client = procfs::environment_variable(pid, CLIENT_MARKER)?
        .parse()
        .ok()?;
    let marked = procfs::environment_variable(pid, SOCKET_MARKER)?;
    (Path::new(&marked) == socket).then_some(client)
}
