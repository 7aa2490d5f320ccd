//! What machine is simulated.

use prorata_scenario::file::ScenarioError;

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
