//! Lists of CPUs as Linux writes them: `0-3,7`.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most CPUs that a list may name, and so the highest number plus one.
pub const MAX_LISTED: u32 = 4096;

/// Why a text is not a list of CPUs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CpuListError {
    /// A part is neither a number nor a range.
    #[error("{0:?} is no CPU and no range of CPUs: write a list like 0-3,7")]
    Part(String),
    /// A range that goes back.
    #[error("{first}-{last} is no range of CPUs: write {last}-{first}")]
    Backwards {
        /// Where it begins.
        first: u32,
        /// Where it ends.
        last: u32,
    },
    /// A CPU number beyond the highest.
    #[error("CPU {0} is out of range: CPUs are numbered below {MAX_LISTED}")]
    Number(u32),
}

/// The CPUs of a list, in ascending order, each once.
///
/// # Errors
/// The first part that is wrong.
pub fn parse(text: &str) -> Result<Vec<u32>, CpuListError> {
    let text = text.trim();
    let mut cpus = Vec::new();
    if text.is_empty() {
        return Ok(cpus);
    }
    for part in text.split(',') {
        let wrong = || CpuListError::Part(part.to_owned());
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u32>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(CpuListError::Backwards { first, last });
        }
        if last >= MAX_LISTED {
            return Err(CpuListError::Number(last));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The list that names these CPUs, which are in ascending order.
pub fn text(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|before, next| before + 1 == *next);
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [cpu] => format!("{cpu}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_in_any_order() {
        assert_eq!(parse("0-3,7\n"), Ok([0, 1, 2, 3, 7].to_vec()));
        assert_eq!(parse("2,0-2,1"), Ok([0, 1, 2].to_vec()));
        assert_eq!(parse("\n"), Ok(Vec::new()));
        assert_eq!(parse("4095"), Ok([4095].to_vec()));
    }

    #[test]
    fn the_text_of_a_list_names_its_cpus() {
        for list in ["", "0", "0-1", "0-3,7", "1,3-4,9"] {
            assert_eq!(text(&parse(list).unwrap()), list);
        }
    }

    #[test]
    fn a_malformed_list_is_refused_by_its_wrong_part() {
        for wrong in ["x", "0,,1", "1-", "-1", "+1", "0-1-2", "4294967296", "0 1"] {
            assert!(
                matches!(parse(wrong), Err(CpuListError::Part(_))),
                "{wrong}"
            );
        }
        let backwards = CpuListError::Backwards { first: 3, last: 1 };
        assert_eq!(parse("3-1"), Err(backwards));
        assert_eq!(parse("0-4096"), Err(CpuListError::Number(4096)));
        assert_eq!(
            parse("0;1").map_err(|error| alloc::format!("{error}")),
            Err("\"0;1\" is no CPU and no range of CPUs: write a list like 0-3,7".to_owned())
        );
    }
}
