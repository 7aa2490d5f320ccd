//! A process belongs to one daemon.
//!
//! Two daemons that share out the CPU time of one process would undo each other's decisions. So a
//! command that has a process managed first asks the other daemons that this process may belong
//! to. These are the daemons that environments name, the user's own one and root's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::{Result, bail};
use prorata_protocol::{Connection, DaemonPaths, Request, Response, SocketPath};
use prorata_user::{CLIENT_MARKER, SOCKET_MARKER, procfs};

use crate::caller::Caller;

/// Most ancestors of a process that are looked at.
const MAX_ANCESTORS: usize = 32;

/// Most daemons that are asked.
const MAX_DAEMONS: usize = 4;

/// Longest wait for the answer of one of them.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Refuses if another daemon than the caller's manages this process or an ancestor of the same
/// user: its children belong to the same client.
pub fn check_ancestors(caller: &Caller) -> Result<()> {
    let own = std::process::id();
    let user = procfs::real_uid(own);
    let parent = |pid: &u32| procfs::stat(*pid).ok().map(|stat| stat.parent);
    let pids = std::iter::successors(Some(own), parent)
        .take_while(|pid| *pid > 1 && procfs::real_uid(*pid) == user)
        .take(MAX_ANCESTORS);
    check(caller, &pids.collect::<Vec<_>>())
}

/// Refuses if another daemon than the caller's manages one of these processes. A daemon that does
/// not answer manages nothing.
pub fn check(caller: &Caller, pids: &[u32]) -> Result<()> {
    for socket in others(caller, pids).values() {
        let Ok(mut connection) = Connection::open_within(socket, LONGEST_WAIT) else {
            continue;
        };
        for &pid in pids {
            let Ok(answer) = connection.call(&Request::FindClient { pid }) else {
                break;
            };
            if let Response::Found(Some(client)) = answer {
                // Any program may listen there.
                let client = client.escape_default();
                bail!(
                    "process {pid} belongs to client {client} of the daemon on {socket}, and no \
                     process belongs to two daemons: use that one with --socket {socket}"
                );
            }
        }
    }
    Ok(())
}

/// The sockets of other daemons, by device and inode.
fn others(caller: &Caller, pids: &[u32]) -> BTreeMap<(u64, u64), SocketPath> {
    let marked = pids.iter().filter_map(|&pid| {
        procfs::environment_variable(pid, CLIENT_MARKER)?;
        SocketPath::new(procfs::environment_variable(pid, SOCKET_MARKER)?).ok()
    });
    let own = DaemonPaths::without_names().ok();
    let usual = own.into_iter().chain([DaemonPaths::of_root()]);
    let asked = identity(&caller.paths().socket);
    usual
        .map(|paths| paths.socket)
        .chain(marked)
        .filter_map(|socket| Some((identity(&socket)?, socket)))
        .filter(|(identity, _)| Some(*identity) != asked)
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .take(MAX_DAEMONS)
        .collect()
}

fn identity(socket: &SocketPath) -> Option<(u64, u64)> {
    let found = fs::metadata(socket.path()).ok()?;
    Some((found.dev(), found.ino()))
}
