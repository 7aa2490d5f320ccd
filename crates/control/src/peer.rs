//! Who is at the other end of a connection.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use prorata_core::ledger::Principal;
use rustix::net::sockopt::socket_peercred;

/// Most groups that a user is in (`NGROUPS_MAX`, limits.h).
const MAX_GROUPS: usize = 65_536;

/// Who has connected, as the kernel recorded it then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// User and groups.
    pub principal: Principal,
    /// Pid, which may have another process by now.
    pub pid: u32,
}

impl Peer {
    /// Who is at the other end of `stream` (`SO_PEERCRED` and
    /// `SO_PEERGROUPS`, unix(7)).
    pub fn of(stream: &UnixStream) -> io::Result<Peer> {
        let credentials = socket_peercred(stream)?;
        let mut gids = supplementary_groups(stream)?;
        let primary = credentials.gid.as_raw();
        if !gids.contains(&primary) {
            gids.push(primary);
        }
        Ok(Peer {
            principal: Principal {
                uid: credentials.uid.as_raw(),
                gids,
            },
            pid: credentials.pid.as_raw_nonzero().get().unsigned_abs(),
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
        let Peer { principal, pid } = Peer::of(&stream).unwrap();
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
}
