//! The process at the other end of a connection, as the kernel tells.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// `SO_PEERCRED` of unix(7) as it comes. (rustix takes for granted that there is a pid.)
pub fn peer_credentials(stream: &UnixStream) -> io::Result<libc::ucred> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut bytes = size_of_val(&credentials) as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, the size of `credentials`, and any bytes
    // make valid numbers.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut bytes,
        )
    };
    match result {
        0 => Ok(credentials),
        _ => Err(io::Error::last_os_error()),
    }
}
