//! Affinities: the CPUs that a client may use.

use alloc::vec::Vec;

use crate::cpu_list::MAX_LISTED;

/// A set of CPUs, numbered from 0 within a machine.
///
/// An affinity without any of a machine's CPUs counts as all of them there: a
/// client has to run somewhere.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Affinity {
    /// A bit for each CPU. The last word is not zero, so equal sets have equal words.
    words: Vec<u64>,
}

impl Affinity {
    /// Whether the set has this CPU.
    #[inline]
    pub fn contains(&self, cpu: u32) -> bool {
        let word = self.words.get(cpu as usize / 64);
        word.is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// The CPUs, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.words.len() as u32 * 64).filter(|&cpu| self.contains(cpu))
    }

    /// Whether a client may use any of `cpus` CPUs: the set has all or none of them.
    pub fn is_whole(&self, cpus: u32) -> bool {
        let within = self.iter().take_while(|&cpu| cpu < cpus).count();
        within == 0 || within == cpus as usize
    }
}

impl FromIterator<u32> for Affinity {
    /// # Panics
    ///
    /// At a CPU beyond the limit of [`MAX_LISTED`].
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        let mut words = Vec::new();
        for cpu in cpus {
            assert!(cpu < MAX_LISTED, "CPU {cpu} is past the limit");
            let word = cpu as usize / 64;
            if word >= words.len() {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (cpu % 64);
        }
        Self { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_cpus_that_it_was_made_of() {
        let affinity: Affinity = [70, 2, 2, 63].into_iter().collect();
        assert_eq!(affinity.iter().collect::<Vec<_>>(), [2, 63, 70]);
        assert!(affinity.contains(63) && !affinity.contains(64) && !affinity.contains(4095));
        assert_eq!(affinity, [2, 63, 70].into_iter().collect());
    }

    #[test]
    fn a_set_of_all_or_none_of_the_cpus_is_whole() {
        let affinity: Affinity = [0, 1].into_iter().collect();
        assert!(affinity.is_whole(1) && affinity.is_whole(2) && !affinity.is_whole(3));
        let far: Affinity = [5].into_iter().collect();
        assert!(far.is_whole(4) && !far.is_whole(6));
        assert!(Affinity::default().is_whole(3));
        let last: Affinity = [MAX_LISTED - 1].into_iter().collect();
        assert!(last.contains(MAX_LISTED - 1));
    }

    #[test]
    #[should_panic(expected = "past the limit")]
    fn a_cpu_past_the_limit_is_refused() {
        let _: Affinity = [MAX_LISTED].into_iter().collect();
    }
}
