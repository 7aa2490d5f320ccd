//! The loopback interface, the only network of the machine.

use std::ffi::c_short;
use std::io;
use std::os::fd::AsRawFd as _;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};

use super::{Result, step};

/// Brings `lo` up; the kernel gives it its addresses then.
pub fn bring_up() -> Result<()> {
    let socket = match socket(AddressFamily::INET, SocketType::DGRAM, None) {
        // A kernel without networks.
        Err(Errno::AFNOSUPPORT) => return Ok(()),
        socket => step("open a socket", socket)?,
    };
    // SAFETY: all bytes zero are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as c_short;
    // SAFETY: the request names an interface and its flags, as SIOCSIFFLAGS
    // takes them, and outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    let result = if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    };
    step("bring the loopback interface up", result)
}
