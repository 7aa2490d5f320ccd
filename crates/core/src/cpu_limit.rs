//! The most CPU time that a client may get: its limit.
//!
//! A limit is a percentage of one CPU, as in `50%` or `250%`. It holds even
//! where CPUs idle.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

/// A CPU, in the unit of limits.
pub const CPU_THOUSANDTHS: u32 = 1000;

/// The most CPU time that a client may get, in thousandths of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "alloc::string::String", into = "alloc::string::String")
)]
pub struct CpuLimit(NonZeroU32);

impl CpuLimit {
    /// A thousandth of a CPU.
    pub const LEAST: CpuLimit = CpuLimit(NonZeroU32::MIN);

    /// 65,536 CPUs.
    pub const MOST: CpuLimit = CpuLimit(NonZeroU32::new((1 << 16) * CPU_THOUSANDTHS).unwrap());

    /// So many thousandths of a CPU, from [`Self::LEAST`] to [`Self::MOST`].
    pub fn from_thousandths(thousandths: u32) -> Option<CpuLimit> {
        let limit = CpuLimit(NonZeroU32::new(thousandths)?);
        (limit <= Self::MOST).then_some(limit)
    }

    /// In thousandths of a CPU.
    pub fn thousandths(self) -> u32 {
        self.0.get()
    }
}

/// As in `12.5%`.
impl fmt::Display for CpuLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, tenths) = (self.thousandths() / 10, self.thousandths() % 10);
        match tenths {
            0 => f.pad(&alloc::format!("{percent}%")),
            _ => f.pad(&alloc::format!("{percent}.{tenths}%")),
        }
    }
}

/// A text that is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a limit is a percentage of a CPU from {} to {}, with at most one decimal: write one such as 50%",
    CpuLimit::LEAST,
    CpuLimit::MOST
)]
pub struct BadCpuLimit;

impl FromStr for CpuLimit {
    type Err = BadCpuLimit;

    fn from_str(text: &str) -> Result<Self, BadCpuLimit> {
        let number = text.strip_suffix('%').ok_or(BadCpuLimit)?;
        let (percent, tenths) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        if !digits(percent) || !digits(tenths) || tenths.len() > 1 {
            return Err(BadCpuLimit);
        }
        let percent: u32 = percent.parse().map_err(|_| BadCpuLimit)?;
        let tenths: u32 = tenths.parse().map_err(|_| BadCpuLimit)?;
        let thousandths = percent.checked_mul(10).and_then(|t| t.checked_add(tenths));
        let limit = thousandths.and_then(Self::from_thousandths);
        limit.ok_or(BadCpuLimit)
    }
}

#[cfg(feature = "serde")]
impl TryFrom<alloc::string::String> for CpuLimit {
    type Error = BadCpuLimit;

    fn try_from(text: alloc::string::String) -> Result<Self, BadCpuLimit> {
        text.parse()
    }
}

#[cfg(feature = "serde")]
impl From<CpuLimit> for alloc::string::String {
    fn from(limit: CpuLimit) -> Self {
        alloc::format!("{limit}")
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CpuLimit {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "CpuLimit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A percentage of one CPU from 0.1% to 6553600%, such as 50%.",
            "type": "string",
            "pattern": "^[0-9]+(\\.[0-9])?%$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn limits_are_read_as_they_are_written() {
        for (text, thousandths) in [
            ("0.1%", 1),
            ("1%", 10),
            ("12.5%", 125),
            ("100%", 1000),
            ("6553600%", 65_536_000),
        ] {
            let limit: CpuLimit = text.parse().unwrap();
            assert_eq!(limit.thousandths(), thousandths);
            assert_eq!(limit.to_string(), text);
        }
        assert_eq!("50.0%".parse::<CpuLimit>().unwrap().to_string(), "50%");
    }

    #[test]
    fn one_past_each_end_and_other_texts_are_refused() {
        for text in [
            "0%",
            "0.0%",
            "6553600.1%",
            "6553601%",
            "99999999999999%",
            "50",
            "%",
            ".5%",
            "5.%",
            "0.05%",
            "-1%",
            "+1%",
            "1e3%",
            "50 %",
            "none",
            "",
        ] {
            assert_eq!(text.parse::<CpuLimit>(), Err(BadCpuLimit), "{text}");
        }
        assert_eq!(CpuLimit::from_thousandths(0), None);
        assert_eq!(CpuLimit::from_thousandths(65_536_001), None);
    }
}
