//! Lengths of run queues.

/// How often calls of `schedule()` found each length.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LengthHistogram {
    /// By length.
    counts: Vec<u64>,
}

impl LengthHistogram {
    pub(crate) fn count(&mut self, length: u32) {
        let length = length as usize;
        if length >= self.counts.len() {
            self.counts.resize(length + 1, 0);
        }
        self.counts[length] += 1;
    }

    /// How often each length was found, from zero on.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The mean; zero without calls.
    pub fn mean(&self) -> f64 {
        let lengths = self.counts.iter().zip(0u64..);
        let sum: u64 = lengths.map(|(count, length)| count * length).sum();
        sum as f64 / self.counts.iter().sum::<u64>().max(1) as f64
    }

    /// The longest.
    pub fn longest(&self) -> usize {
        self.counts.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_mean_and_a_longest() {
        let mut lengths = LengthHistogram::default();
        assert_eq!((lengths.mean(), lengths.longest()), (0.0, 0));
        [2, 0, 7]
            .into_iter()
            .for_each(|length| lengths.count(length));
        assert_eq!((lengths.mean(), lengths.longest()), (3.0, 7));
        assert_eq!(lengths.counts(), [1, 0, 1, 0, 0, 0, 0, 1]);
    }
}
