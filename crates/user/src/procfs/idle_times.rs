//! How long CPUs have been idle, from `/proc/stat`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

use super::{ProcPath, TICK_NS, number};

/// An open `/proc/stat`, for the idle times of CPUs.
#[derive(Debug)]
pub(crate) struct IdleTimes {
    file: OwnedFd,
    buffer: Vec<u8>,
}

/// More than a line of a CPU takes with years of clock ticks in each field.
const CPU_LINE_BYTES: usize = 160;

impl IdleTimes {
    /// Of CPUs up to number `last`. Fails without a `/proc`.
    pub(crate) fn open(last: usize) -> io::Result<Self> {
        let path = ProcPath::new(format_args!("/proc/stat"));
        Ok(Self {
            file: path.open(OFlags::RDONLY)?,
            // A line for all CPUs comes first.
            buffer: vec![0; (last + 2) * CPU_LINE_BYTES],
        })
    }

    /// Reads how long these CPUs, in ascending order, have been idle since boot. Leaves the time of a
    /// CPU that is off. Cost: some 20 us on few CPUs.
    pub(crate) fn read(&mut self, cpus: &[usize], idle_ns: &mut [u64]) -> io::Result<()> {
        let length = rustix::io::pread(&self.file, &mut self.buffer[..], 0)?;
        parse_idle_times(&self.buffer[..length], cpus, idle_ns)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// Parses a text of the form that `proc(5)` describes for `/proc/stat`.
fn parse_idle_times(text: &[u8], cpus: &[usize], idle_ns: &mut [u64]) -> Option<()> {
    let mut lines = text.split(|&b| b == b'\n');
    for (cpu, idle_ns) in cpus.iter().zip(idle_ns) {
        let mut rest = lines.clone();
        let found = rest.find_map(|line| {
            let mut fields = line.strip_prefix(b"cpu")?.split(|&b| b == b' ');
            (number::<usize>(fields.next()?)? == *cpu).then_some(fields)
        });
        let Some(mut fields) = found else {
            continue;
        };
        lines = rest;
        // After user, nice and system time: idle, and idle while a disk works.
        let idle: u64 = number(fields.nth(3)?)?;
        let waiting: u64 = number(fields.next()?)?;
        *idle_ns = (idle + waiting) * TICK_NS;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_times_of_cpus_are_parsed_and_those_of_missing_cpus_stay() {
        let text = b"cpu  9 9 9 9 9 9 9 0 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\n\
            cpu12 1 2 3 400 50 6 7 8 0 0\ncpu13 1 2 3 4";
        let mut idle_ns = [0; 2];
        assert!(parse_idle_times(text, &[0, 12], &mut idle_ns).is_some());
        assert_eq!(idle_ns, [45 * TICK_NS, 450 * TICK_NS]);
        idle_ns = [7, 7];
        assert!(parse_idle_times(text, &[5, 12], &mut idle_ns).is_some());
        assert_eq!(idle_ns, [7, 450 * TICK_NS]);
        assert!(parse_idle_times(text, &[0, 13], &mut idle_ns).is_none());
        let mut idle_times = IdleTimes::open(0).expect("/proc is readable");
        assert!(idle_times.read(&[0], &mut idle_ns[..1]).is_ok() && idle_ns[0] > 0);
    }
}
