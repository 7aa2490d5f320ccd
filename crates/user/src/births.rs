//! Noticing births: which threads and processes were born since the last look, without a walk
//! through `/proc`.

use std::io;
use std::ops::RangeInclusive;

use crate::procfs::LastBorn;

/// After more births than this between two looks, a walk is cheaper.
pub(crate) const MAX_BIRTHS: u32 = 256;

/// How often births are noticed after a deed that children inherit. If processes fork all the
/// while, the rest is left to a later look.
pub(crate) const MAX_NOTICES: u32 = 4;

/// What was born since the last look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Newborn {
    None,
    /// The processes and threads with these numbers, as far as they exist.
    Among(RangeInclusive<u32>),
    /// There were too many, or the numbers have wrapped.
    Unknown,
}

/// Watches the number that the kernel gave out last.
#[derive(Debug)]
pub(crate) struct Births {
    file: LastBorn,
    last: u32,
    runnable: u32,
}

impl Births {
    pub(crate) fn watch() -> io::Result<Self> {
        let file = LastBorn::open()?;
        let (last, runnable) = file.read_with_runnable()?;
        Ok(Self {
            file,
            last,
            runnable,
        })
    }

    /// The number that the kernel had given out last when births were noticed last.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// How many threads of the whole system were runnable then.
    pub(crate) fn runnable(&self) -> u32 {
        self.runnable
    }

    /// Cost: 1.5 us.
    pub(crate) fn since_last_look(&mut self) -> Newborn {
        match self.file.read_with_runnable() {
            Ok((now, runnable)) => {
                self.runnable = runnable;
                newborn(std::mem::replace(&mut self.last, now), now)
            }
            Err(_) => {
                self.runnable = u32::MAX;
                Newborn::Unknown
            }
        }
    }
}

fn newborn(before: u32, now: u32) -> Newborn {
    if now == before {
        Newborn::None
    } else if now > before && now - before <= MAX_BIRTHS {
        Newborn::Among(before + 1..=now)
    } else {
        Newborn::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_given_out_between_two_looks_are_newborn() {
        assert_eq!(newborn(7, 7), Newborn::None);
        assert_eq!(newborn(7, 9), Newborn::Among(8..=9));
        assert_eq!(
            newborn(7, 7 + MAX_BIRTHS),
            Newborn::Among(8..=7 + MAX_BIRTHS)
        );
        assert_eq!(newborn(7, 8 + MAX_BIRTHS), Newborn::Unknown);
        assert_eq!(newborn(9, 7), Newborn::Unknown);
    }

    #[test]
    fn a_child_is_among_the_newborn() {
        let mut births = Births::watch().expect("/proc is readable");
        let mut child = std::process::Command::new("true").spawn().expect("spawns");
        match births.since_last_look() {
            Newborn::Among(pids) => assert!(pids.contains(&child.id())),
            Newborn::Unknown => {}
            Newborn::None => panic!("a child was born"),
        }
        child.wait().expect("ends");
    }
}
