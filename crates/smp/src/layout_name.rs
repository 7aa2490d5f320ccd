//! Run queues by name, as scenario files write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SharedBy;

/// Where tasks wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutName {
    /// DSS, the default scheduler of Linux 2.4 (2001, 2).
    GlobalList,
    /// PLS, the priority level scheduler (2001, 3).
    PriorityLevels,
    /// MQ, the multi-queue scheduler (2001, 4).
    MultiQueue,
    /// MQ with a tournament among the queues instead of a scan of them all.
    MultiQueueTournament,
    /// A queue for each CPU, which takes tasks from no other: "schedulers
    /// incorporating only this phase" (2001, 4).
    LocalQueues,
    /// MQ within pools of so many CPUs each, with balancing among pools (2001, 6).
    Pools(u32),
    /// The same with a tournament in each.
    PoolsTournament(u32),
    /// MQ within pools of CPUs that share something, by the machine's topology,
    /// with balancing among pools.
    PoolsBy(SharedBy),
}

impl LayoutName {
    /// The name in tables and charts.
    pub fn title(self) -> String {
        match self {
            LayoutName::GlobalList => "DSS".to_owned(),
            LayoutName::PriorityLevels => "PLS".to_owned(),
            LayoutName::MultiQueue => "MQ".to_owned(),
            LayoutName::MultiQueueTournament => "MQ by tournament".to_owned(),
            LayoutName::LocalQueues => "local queues".to_owned(),
            LayoutName::Pools(cpus) => format!("pools of {cpus}"),
            LayoutName::PoolsBy(SharedBy::LastLevelCache) => "pools by cache".to_owned(),
            LayoutName::PoolsBy(SharedBy::Package) => "pools by package".to_owned(),
            LayoutName::PoolsTournament(cpus) => format!("pools of {cpus} by tournament"),
        }
    }
}
