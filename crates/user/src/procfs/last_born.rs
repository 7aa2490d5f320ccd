//! `/proc/loadavg`: the number that the kernel gave out last, and how many threads are runnable.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

use super::{ProcPath, number};

/// An open `/proc/loadavg`. Its last field is the number that the kernel gave out last to a
/// process or thread of this pid namespace.
#[derive(Debug)]
pub struct LastBorn(OwnedFd);

impl LastBorn {
    /// Fails without a `/proc`.
    pub fn open() -> io::Result<Self> {
        let path = ProcPath::new(format_args!("/proc/loadavg"));
        Ok(Self(path.open(OFlags::RDONLY)?))
    }

    /// The number. Cost: 1.5 us.
    pub fn read(&self) -> io::Result<u32> {
        Ok(self.read_with_runnable()?.0)
    }

    /// The number, and how many threads of the whole system are runnable. This one is among them.
    pub(crate) fn read_with_runnable(&self) -> io::Result<(u32, u32)> {
        let mut buffer = [0; 128];
        let length = rustix::io::pread(&self.0, &mut buffer, 0)?;
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        parse(&buffer[..length]).ok_or_else(invalid)
    }
}

/// Parses a line of the form that `proc(5)` describes.
fn parse(line: &[u8]) -> Option<(u32, u32)> {
    let mut fields = line.trim_ascii_end().rsplit(|&b| b == b' ');
    let last = number(fields.next()?)?;
    let runnable = fields.next()?.split(|&b| b == b'/').next()?;
    Some((last, number(runnable)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed_from_its_end() {
        assert_eq!(parse(b"0.20 0.18 0.12 3/817 11206\n"), Some((11206, 3)));
        for line in [&b""[..], b"7", b"3/817 ", b"0.20 11206\n"] {
            assert_eq!(parse(line), None);
        }
    }

    #[test]
    fn births_show_in_the_pid_given_out_last() {
        let file = LastBorn::open().expect("/proc is readable");
        let mut child = std::process::Command::new("true").spawn().expect("spawns");
        // Other processes are born too, so only the order of the numbers is certain, unless they
        // wrap.
        let last = file.read().expect("readable");
        assert!(last >= child.id() || last < 1000);
        let (_, runnable) = file.read_with_runnable().expect("readable");
        assert!(runnable >= 1, "this thread runs");
        child.wait().expect("ends");
    }
}
