//! Policies by name.

use prorata_core::policy::baseline::Eevdf;
use prorata_core::policy::lottery::{ClassLottery, ListLottery, ListOrder, TreeLottery};
use prorata_core::policy::{HierarchicalStride, Policy, Race, Stride};

use crate::file::PolicyName;
use crate::stream::{Purpose, stream};

/// A policy without clients. It draws its lots from stream `index` of the
/// seed.
pub fn policy(name: PolicyName, seed: u64, index: u64) -> Box<dyn Policy + Send> {
    let lots = stream(seed, Purpose::Policy, index);
    match name {
        PolicyName::Stride => Box::new(Stride::new()),
        PolicyName::HierarchicalStride => Box::new(HierarchicalStride::new()),
        PolicyName::Lottery => Box::new(Race::new(lots)),
        PolicyName::ListLottery => Box::new(ListLottery::new(ListOrder::MoveToFront, lots)),
        PolicyName::TreeLottery => Box::new(TreeLottery::new(lots)),
        PolicyName::ClassLottery => Box::new(ClassLottery::new(lots)),
        PolicyName::Eevdf => Box::new(Eevdf::new()),
    }
}
