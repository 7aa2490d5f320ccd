//! Tokens by a policy file, without an administrator's call for each program (2005, 2.4.1).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use prorata_protocol::slots::{
    Class, Level, Members, Policy, SlotsAnswer, SlotsReport, SlotsRequest,
};
use serde::Deserialize;

use super::{ask, table, unexpected};
use crate::args::slots_run::Percent;
use crate::args::timetable::AdmitArgs;
use crate::caller::{Caller, user_number};

/// Longest file: some thousand classes.
const MAX_BYTES: u64 = 1 << 20;

/// A policy file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    class: Vec<ClassTable>,
}

/// One `[[class]]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct ClassTable {
    user: Option<String>,
    group: Option<String>,
    client: Option<String>,
    level: Level,
    count: u32,
    #[serde(default = "one")]
    weight: u32,
    /// A part of all slots of the table.
    most: Option<String>,
}

const fn one() -> u32 {
    1
}

/// `prorata slots admit`.
pub fn admit(caller: &Caller, args: &AdmitArgs) -> Result<()> {
    let mut connection = caller.open()?;
    let policy = read(&args.file, &table(&mut connection)?)?;
    match ask(&mut connection, SlotsRequest::Admit { policy })? {
        SlotsAnswer::Admitted => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn read(path: &Path, report: &SlotsReport) -> Result<Policy> {
    let cannot = || format!("cannot read {}", path.display());
    let length = fs::metadata(path).with_context(cannot)?.len();
    ensure!(
        length <= MAX_BYTES,
        "{} is no policy: it has {length} bytes",
        path.display()
    );
    let text = fs::read_to_string(path).with_context(cannot)?;
    let cells = report.cpus.len() as u64 * u64::from(report.columns);
    parse(&text, cells).with_context(|| path.display().to_string())
}

/// The policy in a text, for a table of so many slots.
fn parse(text: &str, cells: u64) -> Result<Policy> {
    let file: PolicyFile = toml::from_str(text)?;
    let classes = (1..)
        .zip(file.class)
        .map(|(number, class)| resolve(class, cells).with_context(|| format!("class {number}")));
    Ok(Policy {
        classes: classes.collect::<Result<_>>()?,
    })
}

fn resolve(class: ClassTable, cells: u64) -> Result<Class> {
    let members = match (class.user, class.group, class.client) {
        (Some(user), None, None) => Members::User(user_number(&user)?),
        (None, Some(group), None) => Members::Group(group_number(&group)?),
        (None, None, Some(client)) => Members::Client(client),
        _ => bail!("it has no members, or several kinds: give one of user, group and client"),
    };
    let most = match class.most {
        None => cells,
        Some(most) => {
            let Percent(percent) = most.parse().map_err(anyhow::Error::msg)?;
            cells * u64::from(percent) / 100
        }
    };
    Ok(Class {
        members,
        level: class.level,
        count: class.count,
        weight: class.weight,
        most,
    })
}

fn group_number(group: &str) -> Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let found = nix::unistd::Group::from_name(group)
        .with_context(|| format!("cannot look up group {group:?}"))?;
    match found {
        Some(found) => Ok(found.gid.as_raw()),
        None => bail!("there is no group {group:?}: give a group's name or a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prorata_core::rng::{SeedableRng as _, Xoshiro256PlusPlus, below};

    const GOOD: &str = "\
[[class]]
user = \"root\"
level = \"hard\"
count = 4

[[class]]
group = \"100\"
level = \"soft-1\"
count = 12
weight = 3
most = \"30%\"

[[class]]
client = \"player\"
level = \"gang\"
count = 2
";

    #[test]
    fn classes_are_read_with_their_defaults() {
        let policy = parse(GOOD, 240).unwrap();
        let members: Vec<Members> = policy
            .classes
            .iter()
            .map(|class| class.members.clone())
            .collect();
        let expected = [
            Members::User(0),
            Members::Group(100),
            Members::Client("player".into()),
        ];
        assert_eq!(members, expected);
        let numbers = policy.classes.iter();
        let numbers: Vec<_> = numbers
            .map(|class| (class.count, class.weight, class.most))
            .collect();
        assert_eq!(numbers, [(4, 1, 240), (12, 3, 72), (2, 1, 240)]);
        assert_eq!(parse("", 240).unwrap(), Policy::default());
    }

    #[test]
    fn a_wrong_class_is_named() {
        for (text, why) in [
            ("[[class]]\nlevel = \"hard\"\ncount = 1", "class 1"),
            (
                "[[class]]\nuser = \"0\"\nclient = \"a\"\nlevel = \"hard\"\ncount = 1",
                "class 1",
            ),
            (
                "[[class]]\nuser = \"0\"\nlevel = \"hardest\"\ncount = 1",
                "hardest",
            ),
            (
                "[[class]]\nuser = \"0\"\nlevel = \"hard\"\ncount = -1",
                "count",
            ),
            (
                "[[class]]\nuser = \"0\"\nlevel = \"hard\"\ncount = 1\nmost = \"0%\"",
                "0%",
            ),
            (
                "[[class]]\nuser = \"0\"\nlevel = \"hard\"\ncount = 1\ntypo = 1",
                "typo",
            ),
            (
                "[[class]]\nuser = \"nobody at all\"\nlevel = \"hard\"\ncount = 1",
                "no user",
            ),
        ] {
            let error = format!("{:#}", parse(text, 240).unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn spoiled_files_are_refused_or_read_without_harm() {
        for seed in 0..2_000 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut bytes = GOOD.as_bytes().to_vec();
            for _ in 0..1 + below(&mut rng, 4) {
                if bytes.is_empty() {
                    break;
                }
                let place = below(&mut rng, bytes.len() as u64) as usize;
                match below(&mut rng, 3) {
                    0 => drop(bytes.remove(place)),
                    1 => bytes[place] = below(&mut rng, 128) as u8,
                    _ => bytes.truncate(place.max(1)),
                }
            }
            let _ = parse(&String::from_utf8_lossy(&bytes), 240);
        }
    }
}
