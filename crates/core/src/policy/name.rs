//! The policies by name: one list for files, requests and commands.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::baseline::{DecayUsage, Eevdf};
use super::lottery::{ClassLottery, ListLottery, ListOrder, TreeLottery};
use super::{HierarchicalStride, Policy, Race, Stride};

/// The policy that picks the client which runs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PolicyName {
    /// Stride scheduling (1995, 2).
    #[default]
    Stride,
    /// Lottery scheduling (1994), as an exponential race.
    Lottery,
    /// Hierarchical stride scheduling (1995, 4).
    HierarchicalStride,
    /// Lottery over a list with move-to-front (1994, 4.2).
    ListLottery,
    /// Lottery over a tree of partial sums (1994, 4.2).
    TreeLottery,
    /// Lottery in constant time over power-of-two ticket classes.
    ClassLottery,
    /// A baseline: earliest eligible virtual deadline first, as in Linux.
    Eevdf,
    /// A baseline: the decay-usage scheduler of 4.4BSD. It knows nice values, not tickets.
    DecayUsage,
}

impl PolicyName {
    /// Every policy.
    pub const ALL: [Self; 8] = [
        Self::Stride,
        Self::Lottery,
        Self::HierarchicalStride,
        Self::ListLottery,
        Self::TreeLottery,
        Self::ClassLottery,
        Self::Eevdf,
        Self::DecayUsage,
    ];

    /// Every policy that shares CPUs in proportion to tickets.
    pub const BY_TICKETS: [Self; 7] = [
        Self::Stride,
        Self::Lottery,
        Self::HierarchicalStride,
        Self::ListLottery,
        Self::TreeLottery,
        Self::ClassLottery,
        Self::Eevdf,
    ];

    /// Whether it is only there to compare with.
    pub const fn is_baseline(self) -> bool {
        matches!(self, Self::Eevdf | Self::DecayUsage)
    }

    /// Whether the mechanisms of 1999 can be as the paper prints them: under the lotteries
    /// whose tickets a boost can multiply, and under 4.4BSD's scheduler, from which kernel
    /// priorities are.
    pub const fn runs_as_printed(self) -> bool {
        matches!(
            self,
            Self::ListLottery | Self::TreeLottery | Self::ClassLottery | Self::DecayUsage
        )
    }

    /// The name in files, requests and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stride => "stride",
            Self::Lottery => "lottery",
            Self::HierarchicalStride => "hierarchical-stride",
            Self::ListLottery => "list-lottery",
            Self::TreeLottery => "tree-lottery",
            Self::ClassLottery => "class-lottery",
            Self::Eevdf => "eevdf",
            Self::DecayUsage => "decay-usage",
        }
    }

    /// The policy, without clients. A lottery draws all its lots from `seed`.
    pub fn policy(self, seed: u64) -> Box<dyn Policy + Send> {
        let lots = Xoshiro256PlusPlus::seed_from_u64(seed);
        match self {
            Self::Stride => Box::new(Stride::new()),
            Self::Lottery => Box::new(Race::new(lots)),
            Self::HierarchicalStride => Box::new(HierarchicalStride::new()),
            Self::ListLottery => Box::new(ListLottery::new(ListOrder::MoveToFront, lots)),
            Self::TreeLottery => Box::new(TreeLottery::new(lots)),
            Self::ClassLottery => Box::new(ClassLottery::new(lots)),
            Self::Eevdf => Box::new(Eevdf::new()),
            Self::DecayUsage => Box::new(DecayUsage::new()),
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a policy: choose one of {names}", names = PolicyName::ALL.map(PolicyName::as_str).join(", "))]
pub struct UnknownPolicy(pub String);

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let mut names = Self::ALL.into_iter();
        let named = names.find(|name| name.as_str() == text);
        named.ok_or_else(|| UnknownPolicy(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for name in PolicyName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
            #[cfg(feature = "serde")]
            assert_eq!(
                serde_json::to_value(name).expect("a name"),
                serde_json::Value::from(name.as_str())
            );
        }
        let error = "fair".parse::<PolicyName>().expect_err("unknown");
        assert!(
            error
                .to_string()
                .contains("\"fair\" is not a policy: choose one of stride, lottery,")
        );
    }
}
