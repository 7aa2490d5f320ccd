//! Which CPUs of a machine are near one another, and pools of CPUs by that
//! (2001, 6: pools of "any shape", those of NUMA nodes above all).

use alloc::vec;
use alloc::vec::Vec;

use crate::run_queue::MAX_CPUS;

/// A CPU and what it shares. Numbers name the same thing where they are equal,
/// and say nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuPlace {
    /// The machine's number of it.
    pub cpu: u32,
    /// Its last-level cache.
    pub last_level_cache: u32,
    /// Its package, which is the socket.
    pub package: u32,
    /// Its NUMA node.
    pub node: u32,
}

/// The CPUs of a machine, in the order of their numbers, which may have gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology(Vec<CpuPlace>);

/// What makes a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolsBy {
    /// A last-level cache.
    LastLevelCache,
    /// A package.
    Package,
    /// A NUMA node.
    Node,
    /// So many CPUs, in the order of their numbers; the last may be smaller.
    Size(u32),
    /// The machine's numbers of the CPUs of each pool.
    Lists(Vec<Vec<u32>>),
}

/// A topology or a division into pools that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopologyError {
    /// None, or too many.
    #[error("a machine of {0} CPUs cannot be described: it has 1 to {MAX_CPUS}")]
    Cpus(usize),
    /// Described more than once.
    #[error("CPU {0} is described twice: describe each once")]
    Twice(u32),
    /// Pools of nobody.
    #[error("pools of 0 CPUs cannot be made: give 1 or more")]
    NoSize,
    /// A list names a CPU that the machine has not.
    #[error("pool {pool} names CPU {cpu}, which this machine has not")]
    Unknown {
        /// The pool, from 0.
        pool: usize,
        /// The CPU.
        cpu: u32,
    },
    /// Lists overlap.
    #[error("CPU {0} is in two pools: name it in one")]
    Overlap(u32),
    /// Lists leave out a CPU.
    #[error("CPU {0} is in no pool: name it in one")]
    LeftOut(u32),
    /// A list is empty.
    #[error("pool {0} has no CPU: name one or leave the pool out")]
    Empty(usize),
}

impl Topology {
    /// A machine of these CPUs, in any order.
    ///
    /// # Errors
    /// None, too many, or one of them twice.
    pub fn new(mut cpus: Vec<CpuPlace>) -> Result<Self, TopologyError> {
        if !(1..=MAX_CPUS as usize).contains(&cpus.len()) {
            return Err(TopologyError::Cpus(cpus.len()));
        }
        cpus.sort_unstable_by_key(|place| place.cpu);
        match cpus.windows(2).find(|pair| pair[0].cpu == pair[1].cpu) {
            Some(pair) => Err(TopologyError::Twice(pair[0].cpu)),
            None => Ok(Self(cpus)),
        }
    }

    /// Its CPUs, by their numbers.
    pub fn cpus(&self) -> &[CpuPlace] {
        &self.0
    }

    /// By CPU, in the order of [`Topology::cpus`], the number of its pool, from 0
    /// without gaps, as [`Layout::Pools`](crate::run_queue::Layout::Pools) wants
    /// them.
    ///
    /// # Errors
    /// A size of nothing, or lists that are no division of the machine.
    pub fn pools(&self, by: &PoolsBy) -> Result<Vec<u32>, TopologyError> {
        match by {
            PoolsBy::LastLevelCache => Ok(self.pools_of(|place| place.last_level_cache)),
            PoolsBy::Package => Ok(self.pools_of(|place| place.package)),
            PoolsBy::Node => Ok(self.pools_of(|place| place.node)),
            PoolsBy::Size(0) => Err(TopologyError::NoSize),
            PoolsBy::Size(size) => Ok((0..self.0.len() as u32).map(|cpu| cpu / size).collect()),
            PoolsBy::Lists(lists) => self.pools_of_lists(lists),
        }
    }

    /// A pool for each thing that CPUs share, in the order of their first CPUs.
    fn pools_of(&self, shared: impl Fn(&CpuPlace) -> u32) -> Vec<u32> {
        let mut seen: Vec<u32> = Vec::new();
        let pool = |place| {
            let thing = shared(place);
            let known = seen.iter().position(|&other| other == thing);
            known.unwrap_or_else(|| {
                seen.push(thing);
                seen.len() - 1
            }) as u32
        };
        self.0.iter().map(pool).collect()
    }

    fn pools_of_lists(&self, lists: &[Vec<u32>]) -> Result<Vec<u32>, TopologyError> {
        let mut pools = vec![None; self.0.len()];
        for (pool, list) in lists.iter().enumerate() {
            if list.is_empty() {
                return Err(TopologyError::Empty(pool));
            }
            for &cpu in list {
                let place = self.0.binary_search_by_key(&cpu, |place| place.cpu);
                let place = place.map_err(|_| TopologyError::Unknown { pool, cpu })?;
                if pools[place].replace(pool as u32).is_some() {
                    return Err(TopologyError::Overlap(cpu));
                }
            }
        }
        let all = self.0.iter().zip(pools);
        all.map(|(place, pool)| pool.ok_or(TopologyError::LeftOut(place.cpu)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of a node and two caches each, two CPUs a cache; the
    /// second half of the CPUs are siblings of the first.
    fn machine() -> Topology {
        let place = |cpu: u32| CpuPlace {
            cpu,
            last_level_cache: cpu % 4,
            package: cpu % 4 / 2,
            node: 7 - cpu % 4 / 2,
        };
        Topology::new((0..8).map(place).collect()).unwrap()
    }

    #[test]
    fn pools_by_what_is_shared() {
        let pools = |by| machine().pools(&by).unwrap();
        assert_eq!(pools(PoolsBy::LastLevelCache), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(pools(PoolsBy::Package), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(pools(PoolsBy::Node), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(pools(PoolsBy::Size(3)), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(pools(PoolsBy::Size(u32::MAX)), [0; 8]);
        let lists = vec![vec![7, 0], vec![1, 2, 3, 4, 5, 6]];
        assert_eq!(pools(PoolsBy::Lists(lists)), [0, 1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn what_is_no_division_is_refused_by_name() {
        let refused = |by| machine().pools(&by).unwrap_err();
        assert_eq!(refused(PoolsBy::Size(0)), TopologyError::NoSize);
        let lists = |lists: &[&[u32]]| {
            refused(PoolsBy::Lists(
                lists.iter().map(|list| list.to_vec()).collect(),
            ))
        };
        let unknown = TopologyError::Unknown { pool: 1, cpu: 8 };
        assert_eq!(lists(&[&[0, 1], &[8]]), unknown);
        assert_eq!(lists(&[&[0, 1], &[1]]), TopologyError::Overlap(1));
        assert_eq!(lists(&[&[0, 1, 2, 3, 4, 6, 7]]), TopologyError::LeftOut(5));
        assert_eq!(lists(&[&[0], &[]]), TopologyError::Empty(1));
    }

    #[test]
    fn at_the_limit_of_cpus_and_one_past_it() {
        let machine = |cpus: u32| {
            let place = |cpu| CpuPlace {
                cpu: 2 * cpu,
                last_level_cache: 0,
                package: 0,
                node: 0,
            };
            Topology::new((0..cpus).map(place).collect())
        };
        assert_eq!(machine(0), Err(TopologyError::Cpus(0)));
        assert_eq!(machine(MAX_CPUS).unwrap().cpus().len(), 4096);
        assert_eq!(machine(MAX_CPUS + 1), Err(TopologyError::Cpus(4097)));
        let twice = machine(2).unwrap().cpus().repeat(2);
        assert_eq!(Topology::new(twice), Err(TopologyError::Twice(0)));
    }
}
