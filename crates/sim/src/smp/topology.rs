//! A machine described: which of its CPUs share what, for pools by that (2001, 6:
//! "CPUs on individual compute nodes can be mapped to CPU pools").

use prorata_core::cpu_list::{self, CpuListError};
use prorata_core::topology::{CpuPlace, PoolsBy, Topology, TopologyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which CPUs of a machine are near one another. It says who is in which pool;
/// what is far takes as long as what is near.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Description {
    /// By package, and there by last-level cache: the CPUs that share it, as
    /// Linux lists them: `[["0-3", "4-7"], ["8-11", "12-15"]]`.
    pub packages: Vec<Vec<String>>,
}

/// What the CPUs of a pool share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shared {
    /// A last-level cache.
    LastLevelCache,
    /// A package.
    Package,
}

/// A description that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DescriptionError {
    /// Pools go by what nobody said.
    #[error("pools go by what CPUs share, which is not said: describe the machine by a topology")]
    Missing,
    /// It is of another machine.
    #[error("a topology of {described} CPUs is given for a machine of {cpus}: name each CPU once")]
    Cpus {
        /// CPUs that it names.
        described: usize,
        /// CPUs of the machine.
        cpus: u32,
    },
    /// A list of CPUs is none.
    #[error(transparent)]
    List(#[from] CpuListError),
    /// The lists together are no machine.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl Description {
    /// By CPU of a machine of so many, in the order of their numbers, its pool.
    pub(super) fn pools(&self, by: Shared, cpus: u32) -> Result<Vec<u32>, DescriptionError> {
        let topology = self.topology()?;
        let described = topology.cpus().len();
        if described != cpus as usize {
            return Err(DescriptionError::Cpus { described, cpus });
        }
        let by = match by {
            Shared::LastLevelCache => PoolsBy::LastLevelCache,
            Shared::Package => PoolsBy::Package,
        };
        Ok(topology.pools(&by)?)
    }

    fn topology(&self) -> Result<Topology, DescriptionError> {
        let mut places = Vec::new();
        let mut last_level_cache = 0;
        for (caches, package) in self.packages.iter().zip(0..) {
            for list in caches {
                let cpus = cpu_list::parse(list)?;
                places.extend(cpus.into_iter().map(|cpu| CpuPlace {
                    cpu,
                    last_level_cache,
                    package,
                    node: package,
                }));
                last_level_cache += 1;
            }
        }
        Ok(Topology::new(places)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(packages: &[&[&str]]) -> Description {
        let lists = |caches: &&[&str]| caches.iter().map(|&list| list.to_owned()).collect();
        Description {
            packages: packages.iter().map(lists).collect(),
        }
    }

    #[test]
    fn pools_go_by_what_is_shared_whatever_the_numbers() {
        let machine = described(&[&["0,4", "2,6"], &["1,5", "3,7"]]);
        let pools = |by| machine.pools(by, 8).expect("a machine");
        assert_eq!(pools(Shared::LastLevelCache), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(pools(Shared::Package), [0, 1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn what_is_no_description_of_the_machine_is_refused() {
        let refused = |packages: &[&[&str]], cpus| {
            let pools = described(packages).pools(Shared::Package, cpus);
            pools.expect_err("it is none").to_string()
        };
        assert_eq!(
            refused(&[&["0-3"]], 5),
            "a topology of 4 CPUs is given for a machine of 5: name each CPU once"
        );
        assert!(refused(&[&["0-3"], &["3-4"]], 5).starts_with("CPU 3 is described twice"));
        assert!(refused(&[], 1).starts_with("a machine of 0 CPUs"));
        assert!(refused(&[&["two"]], 1).contains("\"two\" is no CPU"));
    }
}
