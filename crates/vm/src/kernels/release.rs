//! Names of kernels.

use std::cmp::Reverse;
use std::fmt;

/// The series to fetch a kernel of: the oldest that the scheduler supports, and
/// the current one. A release belongs to a series if it begins with its numbers.
pub const SERIES: [&str; 2] = ["6.18", "7"];

/// Debian's small kernels for virtual machines, with their drivers built in.
const FLAVOUR: &str = "-cloud-amd64";

/// The beginning of the packages' names.
pub const PACKAGE: &str = "linux-image-";

/// A kernel as `uname -r` names it, such as `6.18.15+deb13-cloud-amd64`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    name: String,
}

impl Release {
    /// The release in a package, if it has the flavour and a number. Packages
    /// without a number depend on the newest release.
    pub fn of_package(package: &str) -> Option<Self> {
        let name = package.strip_prefix(PACKAGE)?;
        let numbered = name.starts_with(|first: char| first.is_ascii_digit());
        (numbered && name.ends_with(FLAVOUR)).then(|| Self::named(name))
    }

    /// The release of this name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
        }
    }

    /// Whether it begins with these numbers, or has this name.
    pub fn is_of(&self, series: &str) -> bool {
        let rest = self.name.strip_prefix(series);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    }

    fn numbers(&self) -> Vec<u32> {
        let numbers = self.name.split(['+', '-']).next().unwrap_or_default();
        numbers
            .split('.')
            .map_while(|number| number.parse().ok())
            .collect()
    }

    /// Sorts releases, the newest first.
    pub fn sort(releases: &mut [Self]) {
        releases.sort_by_key(|release| (Reverse(release.numbers()), release.name.clone()));
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_flavour_hold_releases() {
        let release = Release::of_package("linux-image-6.18.15+deb13-cloud-amd64");
        assert_eq!(release, Some(Release::named("6.18.15+deb13-cloud-amd64")));
        for other in [
            "linux-image-cloud-amd64",
            "linux-image-6.18.15+deb13-amd64",
            "linux-image-6.18.15+deb13-cloud-amd64-unsigned",
            "linux-headers-6.18.15+deb13-cloud-amd64",
        ] {
            assert_eq!(Release::of_package(other), None, "{other}");
        }
    }

    #[test]
    fn a_series_is_a_prefix_of_whole_numbers() {
        let release = Release::named("7.12.3+deb14-cloud-amd64");
        for (series, is_of) in [
            ("7", true),
            ("7.12", true),
            ("7.12.3+deb14-cloud-amd64", true),
            ("7.1", false),
            ("12", false),
        ] {
            assert_eq!(release.is_of(series), is_of, "{series}");
        }
    }

    #[test]
    fn the_newest_release_comes_first() {
        let mut releases = [
            "7.2.9+deb13",
            "6.18.15+deb13",
            "7.2.13+deb14",
            "7.10.1+deb14",
        ]
        .map(Release::named);
        Release::sort(&mut releases);
        let names = releases.map(|release| release.to_string());
        assert_eq!(
            names,
            [
                "7.10.1+deb14",
                "7.2.13+deb14",
                "7.2.9+deb13",
                "6.18.15+deb13"
            ]
        );
    }
}
