//! Which CPUs of a machine share what, for pools by that (2001, 6: "CPUs on
//! individual compute nodes can be mapped to CPU pools").

use crate::run_queue::MAX_CPUS;
use prorata_core::cpu_list::{self, CpuListError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which CPUs of a machine are near one another. This decides the CPUs of each
/// pool. Access to a distant CPU takes no longer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Topology {
    /// By package, and there by last-level cache: the CPUs that share it, as
    /// Linux lists them: `[["0-3", "4-7"], ["8-11", "12-15"]]`.
    pub packages: Vec<Vec<String>>,
}

/// What the CPUs of a pool share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharedBy {
    /// A last-level cache.
    LastLevelCache,
    /// A package.
    Package,
}

/// A description that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum TopologyError {
    #[error("pools by what CPUs share need a topology: say which CPUs share what")]
    Missing,
    #[error("a machine of {0} CPUs cannot be described: it has 1 to {MAX_CPUS}")]
    Size(usize),
    #[error("CPU {0} is described twice: describe each once")]
    Twice(u32),
    #[error("a topology of {described} CPUs is given for a machine of {cpus}: name each CPU once")]
    Cpus { described: usize, cpus: u32 },
    #[error(transparent)]
    List(#[from] CpuListError),
}

impl Topology {
    /// By CPU of a machine of so many, in the order of their numbers, its pool.
    /// Pools are numbered in the order of their first CPUs.
    pub(crate) fn pools(&self, by: SharedBy, cpus: u32) -> Result<Vec<u32>, TopologyError> {
        let shared: Vec<u32> = self.shared(by)?.into_iter().map(|(_, of)| of).collect();
        let described = shared.len();
        if described != cpus as usize {
            return Err(TopologyError::Cpus { described, cpus });
        }
        let mut seen = Vec::new();
        let pool = |of: u32| {
            let known = seen.iter().position(|&other| other == of);
            known.unwrap_or_else(|| {
                seen.push(of);
                seen.len() - 1
            }) as u32
        };
        Ok(shared.into_iter().map(pool).collect())
    }

    /// Each CPU, in the order of their numbers, and the number of its cache or
    /// package.
    fn shared(&self, by: SharedBy) -> Result<Vec<(u32, u32)>, TopologyError> {
        let mut all = Vec::new();
        let mut cache = 0;
        for (caches, package) in self.packages.iter().zip(0..) {
            for list in caches {
                let of = match by {
                    SharedBy::LastLevelCache => cache,
                    SharedBy::Package => package,
                };
                all.extend(cpu_list::parse(list)?.into_iter().map(|cpu| (cpu, of)));
                cache += 1;
            }
        }
        if !(1..=MAX_CPUS as usize).contains(&all.len()) {
            return Err(TopologyError::Size(all.len()));
        }
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(TopologyError::Twice(pair[0].0)),
            None => Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(packages: &[&[&str]]) -> Topology {
        let lists = |caches: &&[&str]| caches.iter().map(|&list| list.to_owned()).collect();
        Topology {
            packages: packages.iter().map(lists).collect(),
        }
    }

    #[test]
    fn pools_follow_what_is_shared_whatever_the_numbers() {
        let machine = described(&[&["0,4", "2,6"], &["1,5", "3,7"]]);
        let pools = |by| machine.pools(by, 8).expect("a machine");
        assert_eq!(pools(SharedBy::LastLevelCache), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(pools(SharedBy::Package), [0, 1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_description_of_another_machine_is_refused() {
        let refused = |packages: &[&[&str]], cpus| {
            let pools = described(packages).pools(SharedBy::Package, cpus);
            pools.expect_err("it does not fit").to_string()
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
