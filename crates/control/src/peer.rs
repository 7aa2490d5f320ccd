//! The process and user at the other end of a connection.

use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use prorata_core::ledger::Principal;
use prorata_protocol::peer_credentials;

/// Most groups that a user is in (`NGROUPS_MAX`, limits.h).
const MAX_GROUPS: usize = 65_536;

/// The client of a connection, as the kernel recorded it when it connected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// User and groups.
    pub principal: Principal,
    /// Pid; another process may have it by now.
    pub pid: u32,
    /// When the daemon last found neither the process nor an ancestor in a client, by the monotonic clock.
    pub outside_at_ns: Cell<Option<u64>>,
}

/// Why the client of a connection is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    /// The kernel has no pid for it here: pid_namespaces(7).
    #[error(
        "the daemon cannot see your process, which is in another pid namespace: ask from the \
         daemon's own, or start a daemon in yours with --socket"
    )]
    Hidden,
    /// The kernel does not say.
    #[error("the kernel does not tell which process has connected: {0}")]
    Unknown(#[from] io::Error),
}

impl Peer {
    /// The client at the other end of `stream` (`SO_PEERCRED` and
    /// `SO_PEERGROUPS`, unix(7)).
    pub fn of(stream: &UnixStream) -> Result<Peer, PeerError> {
        let credentials = peer_credentials(stream)?;
        let gids = supplementary_groups(stream)?;
        Self::from_credentials(credentials, gids)
    }

    fn from_credentials(credentials: libc::ucred, mut gids: Vec<u32>) -> Result<Peer, PeerError> {
        let pid = match u32::try_from(credentials.pid) {
            Ok(pid) if pid > 0 => pid,
            _ => return Err(PeerError::Hidden),
        };
        if !gids.contains(&credentials.gid) {
            gids.push(credentials.gid);
        }
        Ok(Peer {
            principal: Principal {
                uid: credentials.uid,
                gids,
            },
            pid,
            outside_at_ns: Cell::new(None),
        })
    }
}

fn supplementary_groups(stream: &UnixStream) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 32];
    loop {
        let mut bytes = libc::socklen_t::try_from(size_of_val(groups.as_slice()))
            .expect("at most 65536 groups of four bytes");
        // SAFETY: the kernel writes at most `bytes` bytes, the size of
        // `groups`, and any bytes make valid group ids.
        let result = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut bytes,
            )
        };
        if result == 0 {
            groups.truncate(bytes as usize / size_of::<libc::gid_t>());
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) || groups.len() >= MAX_GROUPS {
            return Err(error);
        }
        groups.resize(groups.len() * 8, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_credentials_come_back() {
        let (stream, _other) = UnixStream::pair().unwrap();
        let Peer { principal, pid, .. } = Peer::of(&stream).unwrap();
        assert_eq!(pid, std::process::id());
        assert_eq!(principal.uid, rustix::process::geteuid().as_raw());
        assert!(
            principal
                .gids
                .contains(&rustix::process::getegid().as_raw())
        );
        let own = rustix::process::getgroups().unwrap();
        for group in own {
            assert!(principal.gids.contains(&group.as_raw()));
        }
    }

    #[test]
    fn a_process_of_another_pid_namespace_is_refused() {
        let of = |pid| {
            let credentials = libc::ucred {
                pid,
                uid: 7,
                gid: 8,
            };
            Peer::from_credentials(credentials, vec![9])
        };
        assert!(matches!(of(0), Err(PeerError::Hidden)));
        assert!(matches!(of(-1), Err(PeerError::Hidden)));
        let Peer { principal, pid, .. } = of(1).unwrap();
        assert_eq!((pid, principal.uid), (1, 7));
        assert_eq!(principal.gids, [9, 8]);
    }
}
