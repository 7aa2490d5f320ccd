//! What machine is simulated.

use prorata_scenario::file::ScenarioError;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::run_queue::{Comparison, LayoutError, QueueLayout};
use crate::{LayoutName, SchedulerCosts, Topology, TopologyError};

/// CPUs, their run queues and what the kernel costs.
#[derive(Clone, PartialEq, Debug)]
pub struct MachineModel {
    /// Number of CPUs.
    pub cpus: u32,
    /// Their run queues.
    pub layout: LayoutName,
    /// What the kernel and the caches take.
    pub costs: SchedulerCosts,
    /// Which CPUs share what, if pools go by that.
    pub topology: Option<Topology>,
    /// When a full pipe wakes its writers.
    pub writers: WritersWake,
}

/// When threads that wait to write to a full pipe wake.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WritersWake {
    /// As soon as one message fits.
    #[default]
    AnyRoom,
    /// Once a third of the pipe is free, as TCP of Linux 2.4 wakes the writers of a
    /// socket.
    AThirdFree,
}

impl WritersWake {
    /// Whether writers wake at so many messages in a pipe.
    pub(crate) fn wake(self, capacity: u32, messages: u32) -> bool {
        match self {
            WritersWake::AnyRoom => messages < capacity,
            WritersWake::AThirdFree => 3 * u64::from(messages) <= 2 * u64::from(capacity),
        }
    }
}

/// A simulation that cannot begin.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum SmpError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl MachineModel {
    pub(crate) fn queue_layout(&self) -> Result<QueueLayout, TopologyError> {
        let cpus = self.cpus;
        let pools = |of: u32| (0..cpus).map(|cpu| cpu / of.max(1)).collect();
        Ok(match self.layout {
            LayoutName::GlobalList => QueueLayout::GlobalList,
            LayoutName::PriorityLevels => QueueLayout::PriorityLevels,
            LayoutName::MultiQueue => QueueLayout::MultiQueue(Comparison::Scan),
            LayoutName::MultiQueueTournament => QueueLayout::MultiQueue(Comparison::Tournament),
            LayoutName::LocalQueues => QueueLayout::Pools(pools(1), Comparison::Scan),
            LayoutName::Pools(of) => QueueLayout::Pools(pools(of), Comparison::Scan),
            LayoutName::PoolsTournament(of) => {
                QueueLayout::Pools(pools(of), Comparison::Tournament)
            }
            LayoutName::PoolsBy(shared) => {
                let topology = self.topology.as_ref().ok_or(TopologyError::Missing)?;
                QueueLayout::Pools(topology.pools(shared, cpus)?, Comparison::Scan)
            }
        })
    }

    /// Whether tasks move among pools.
    pub(crate) fn balances(&self) -> bool {
        self.layout != LayoutName::LocalQueues
    }
}
