//! An observer of any scheduler: how soon tasks run after a wake, and where they sleep
//! (`bpf/observe.bpf.c`; 1999, 5.2).

use std::collections::BTreeMap;

/// Buckets for each power of two.
const BUCKETS_OF_OCTAVE: usize = 32;

/// What to observe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct What {
    /// One process with all its threads; all processes if absent.
    pub process: Option<u32>,
    /// Sleeps too. That costs a walk through the stack of each task that falls asleep.
    pub sleeps: bool,
}

/// Waits between a wake and the turn that it leads to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// By bucket.
    pub(crate) counts: Vec<u64>,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
}

impl Waits {
    /// How many.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// So many per mille of the waits were no longer than this, to three parts in a hundred; `None`
    /// without any wait.
    pub fn quantile_ns(&self, per_mille: u64) -> Option<u64> {
        let count = self.count();
        let wanted = (count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bucket.map(|bucket| end_of(bucket).min(self.longest_ns))
    }
}

/// The longest duration in a bucket (`bpf/histogram.h`), in nanoseconds.
pub fn end_of(bucket: usize) -> u64 {
    let (octave, place) = (bucket / BUCKETS_OF_OCTAVE, bucket % BUCKETS_OF_OCTAVE);
    match octave {
        0 => place as u64,
        octave => {
            let next = (place + BUCKETS_OF_OCTAVE + 1) as u128;
            ((next << (octave - 1)) - 1).try_into().unwrap_or(u64::MAX)
        }
    }
}

/// Sleeps in one function of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sleeps {
    /// How many have ended.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// By power of two.
    octaves: Vec<u64>,
}

impl Sleeps {
    /// Half of the sleeps were no longer than this, a power of two.
    pub fn median_ns(&self) -> u64 {
        let mut seen = 0;
        let octave = self.octaves.iter().position(|count| {
            seen += count;
            2 * seen >= self.count
        });
        let end_ns = 1u64.checked_shl(octave.unwrap_or(0) as u32 + 1);
        end_ns.unwrap_or(u64::MAX).min(self.longest_ns)
    }

    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    fn add(&mut self, other: &Sleeps) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.octaves.resize(other.octaves.len(), 0);
        for (sum, count) in self.octaves.iter_mut().zip(&other.octaves) {
            *sum += count;
        }
    }
}

/// What was seen since the observer was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Waits after wakes.
    pub waits: Waits,
    /// Turns that ended with a switch to another task.
    pub switches: u64,
    /// By function of the kernel.
    pub sleeps: BTreeMap<String, Sleeps>,
    /// Sleeps that found no room.
    pub lost: u64,
}

#[cfg(feature = "bpf")]
pub use loaded::Observer;

/// Takes the observer's place in builds without the feature `bpf`.
#[cfg(not(feature = "bpf"))]
pub struct Observer(std::convert::Infallible);

#[cfg(not(feature = "bpf"))]
impl Observer {
    /// Always fails: this build has no programs in BPF.
    pub fn load(_: What) -> Result<Self, crate::KernelError> {
        Err(crate::KernelError::NotBuiltIn)
    }

    /// Cannot be called.
    pub fn seen(&self) -> Result<Seen, crate::KernelError> {
        match self.0 {}
    }
}

#[cfg(feature = "bpf")]
mod loaded {
    use libbpf_rs::skel::{OpenSkel as _, Skel as _, SkelBuilder as _};
    use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, ProgramType};

    use super::symbols::Symbols;
    use super::{Seen, Sleeps, What};
    use crate::observe_skeleton::{ObserveSkel, ObserveSkelBuilder};
    use crate::{KernelError, attach, warnings};

    const NAME: &str = "observe";
    /// Words in front of the counts of powers of two, as `struct sleeps` has them.
    const SLEEPS_HEAD: usize = 3;

    /// An observer, loaded. Dropping this ends it.
    pub struct Observer {
        skeleton: ObserveSkel<'static>,
    }

    impl Observer {
        /// Loads the observer. This needs root.
        ///
        /// # Errors
        /// If the kernel does not take it.
        pub fn load(what: What) -> Result<Self, KernelError> {
            warnings::begin();
            let refused = attach::refusal(NAME);
            let mut open = ObserveSkelBuilder::default()
                .open(attach::object())
                .map_err(&refused)?;
            if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
                constants.only_tgid = what.process.unwrap_or(0);
                constants.with_sleeps = what.sleeps;
            }
            // A part of the headers for schedulers, which an observer does not need.
            open.progs.scx_lib_init_probe.set_autoload(false);
            let mut skeleton = open.load().map_err(|error| match error.kind() {
                // The lack of a right says nothing about the kernel.
                ErrorKind::PermissionDenied => refused(error),
                _ if ProgramType::Tracing.is_supported().unwrap_or(true) => refused(error),
                _ => KernelError::NoTracing,
            })?;
            skeleton.attach().map_err(&refused)?;
            Ok(Self { skeleton })
        }

        /// What was seen so far. Allocates. Reading takes a system call for each bucket of waits
        /// and for each stack.
        ///
        /// # Errors
        /// If a map cannot be read.
        pub fn seen(&self) -> Result<Seen, KernelError> {
            let refused = attach::refusal(NAME);
            let maps = &self.skeleton.maps;
            let data = maps.bss_data.as_deref().expect("there are variables");
            let mut seen = Seen {
                switches: data.switches,
                lost: data.stacks_lost,
                ..Seen::default()
            };
            seen.waits.longest_ns = data.longest_wait_ns;
            for bucket in 0..maps.waits.max_entries() {
                let counts = maps
                    .waits
                    .lookup_percpu(&bucket.to_ne_bytes(), MapFlags::ANY)
                    .map_err(&refused)?;
                let counts = counts.iter().flatten().map(|count| words(count)[0]);
                seen.waits.counts.push(counts.sum());
            }
            let symbols = Symbols::read();
            for key in maps.sleeps_of.keys() {
                let (Ok(Some(sleeps)), Ok(Some(stack))) = (
                    maps.sleeps_of.lookup(&key, MapFlags::ANY),
                    maps.stacks.lookup(&key, MapFlags::ANY),
                ) else {
                    continue;
                };
                let sleeps = words(&sleeps);
                let function = symbols.sleeper(&words(&stack));
                seen.sleeps.entry(function).or_default().add(&Sleeps {
                    count: sleeps[0],
                    total_ns: sleeps[1],
                    longest_ns: sleeps[2],
                    octaves: sleeps[SLEEPS_HEAD..].to_vec(),
                });
            }
            Ok(seen)
        }
    }

    fn words(bytes: &[u8]) -> Vec<u64> {
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
    }
}

/// Names of the kernel's functions.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod symbols {
    /// Functions of the kernel by address, and the range of those that only sleep for others.
    pub struct Symbols {
        /// Sorted by address.
        functions: Vec<(u64, String)>,
        sleeping: std::ops::Range<u64>,
    }

    impl Symbols {
        /// Those of the running kernel; none without the right to see addresses.
        pub fn read() -> Self {
            Self::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
        }

        pub fn parse(text: &str) -> Self {
            let mut functions = Vec::new();
            let mut sleeping = 0..0;
            for line in text.lines() {
                let mut fields = line.split_whitespace();
                let (Some(address), Some(kind), Some(name)) =
                    (fields.next(), fields.next(), fields.next())
                else {
                    continue;
                };
                let Ok(address) = u64::from_str_radix(address, 16) else {
                    continue;
                };
                match name {
                    "__sched_text_start" => sleeping.start = address,
                    "__sched_text_end" => sleeping.end = address,
                    name if kind.eq_ignore_ascii_case("t") => {
                        functions.push((address, name.to_owned()));
                    }
                    _ => {}
                }
            }
            functions.sort_unstable();
            Self {
                functions,
                sleeping,
            }
        }

        /// The function that called the scheduler, from a stack with the innermost function first.
        pub fn sleeper(&self, stack: &[u64]) -> String {
            let stack = stack.iter().copied().filter(|&address| address != 0);
            let mut stack = stack.skip_while(|address| !self.sleeping.contains(address));
            let caller = stack.find(|address| !self.sleeping.contains(address));
            let caller = caller.and_then(|address| {
                let after = self
                    .functions
                    .partition_point(|(begin, _)| *begin <= address);
                self.functions.get(after.checked_sub(1)?)
            });
            caller.map_or("unknown", |(_, name)| name).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::symbols::Symbols;
    use super::*;

    #[test]
    fn a_bucket_ends_before_the_next_begins() {
        assert_eq!((end_of(0), end_of(31), end_of(32)), (0, 31, 32));
        assert_eq!((end_of(63), end_of(64), end_of(65)), (63, 65, 67));
        assert_eq!(end_of(60 * 32 - 1), u64::MAX);
    }

    #[test]
    fn quantiles_are_those_of_the_counts() {
        let mut waits = Waits::default();
        assert_eq!(waits.quantile_ns(500), None);
        waits.counts = vec![0; 64];
        waits.counts[5] = 990;
        waits.counts[40] = 9;
        waits.counts[50] = 1;
        waits.longest_ns = 50;
        let quantiles = [1, 500, 990, 991, 999, 1000].map(|part| waits.quantile_ns(part).unwrap());
        assert_eq!(quantiles, [5, 5, 5, 40, 40, 50]);
    }

    #[test]
    fn the_median_of_sleeps_is_a_power_of_two() {
        let mut sleeps = Sleeps {
            count: 3,
            longest_ns: 5000,
            octaves: vec![0; 64],
            ..Sleeps::default()
        };
        sleeps.octaves[3] = 1;
        sleeps.octaves[10] = 2;
        assert_eq!(sleeps.median_ns(), 2048);
        let mut sum = Sleeps::default();
        sum.add(&sleeps);
        sum.add(&sleeps);
        assert_eq!((sum.count, sum.median_ns()), (6, 2048));
    }

    #[test]
    fn a_sleeper_is_the_caller_of_the_scheduler() {
        let symbols = Symbols::parse(
            "0000000000000100 T do_wait\n0000000000000200 t pipe_read\n\
             0000000000000300 T __sched_text_start\n0000000000000300 T schedule\n\
             0000000000000380 T schedule_timeout\n0000000000000400 T __sched_text_end\n\
             0000000000000400 T tracer\nnonsense\n0000000000000500 D data\n",
        );
        assert_eq!(
            symbols.sleeper(&[0x410, 0x310, 0x390, 0x250, 0x110]),
            "pipe_read"
        );
        assert_eq!(symbols.sleeper(&[0x310, 0x110, 0, 0]), "do_wait");
        assert_eq!(symbols.sleeper(&[0x110, 0x210]), "unknown");
        assert_eq!(Symbols::parse("").sleeper(&[0x310]), "unknown");
    }
}
