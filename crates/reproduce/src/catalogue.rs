//! The figures that this build knows: their scenario files are part of it, so
//! that it needs no directory to be anywhere.

use std::path::Path;

use prorata_scenario::Scenario;

use crate::error::ReproduceError;
use crate::figure::Figure;

macro_rules! scenarios {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../../../scenarios/", $id, ".toml")))),*]
    };
}

/// Name and text of each file, in the papers' order.
const SCENARIOS: &[(&str, &str)] = scenarios![
    "1994/figure-1",
    "1994/figure-3",
    "1994/section-4.5",
    "1994/section-4.5-value",
    "1994/figure-4",
    "1994/figure-5",
    "1994/figure-6",
    "1994/figure-7",
    "1994/figure-8",
    "1994/figure-8-without-display",
    "1994/figure-9",
    "1994/section-5.6",
    "1994/figure-11",
    "1994/figure-11-yielding",
    "1994/section-6.2",
    "1995/figure-2",
    "1995/figure-4",
    "1995/section-4",
    "1995/section-4.1",
    "1995/figure-8",
    "1995/figure-9",
    "1995/figure-10",
    "1995/figure-11",
    "1995/figure-12",
    "1995/figure-13",
    "1995/figure-14",
    "1995/figure-15",
    "1995/section-6.1",
    "1995/figure-16",
    "1999/figure-1",
    "1999/figure-2",
    "1999/figure-3",
    "1999/figure-3-freebsd",
    "1999/figure-4",
    "1999/table-1",
    "1999/figure-7",
    "1999/table-2",
    "1999/figure-10",
    "1999/table-4",
    "1999/table-5",
    "2001/figure-1",
    "2001/table-2",
    "2001/figure-2",
    "2001/figure-3",
    "2001/figure-4",
    "2001/table-4",
    "2001/figure-6",
    "2001/figure-7",
    "2001/table-6",
    "2001/pools",
    "2001/pools-by-topology",
    "2005/figure-2.6",
    "2005/table-4.1",
    "2005/figure-4.1",
    "2005/figure-4.2",
    "2005/figure-4.3",
    "2005/figure-4.4",
    "2005/figure-4.5",
];

/// Names of all figures.
pub fn ids() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(id, _)| *id)
}

/// The figures that are asked for: all if none is named; else each name is a
/// figure's, the year of a paper, or a scenario file of one's own.
///
/// # Errors
///
/// The first name that is none of them, or file that is wrong.
pub fn find(names: &[String]) -> Result<Vec<Figure>, ReproduceError> {
    if names.is_empty() {
        return SCENARIOS.iter().map(built_in).collect();
    }
    let mut figures = Vec::new();
    for name in names {
        if name.ends_with(".toml") {
            let scenario = Scenario::read(Path::new(name))?;
            figures.push(Figure::new(name.trim_end_matches(".toml"), scenario)?);
            continue;
        }
        let in_year = |id: &str| id.split_once('/').is_some_and(|(year, _)| year == name);
        let found = SCENARIOS.iter().filter(|(id, _)| id == name || in_year(id));
        let count = figures.len();
        for scenario in found {
            figures.push(built_in(scenario)?);
        }
        if figures.len() == count {
            return Err(ReproduceError::Unknown {
                name: name.clone(),
                years: years().join(", "),
                near: near(name).join(", "),
            });
        }
    }
    Ok(figures)
}

/// The years of the papers.
fn years() -> Vec<&'static str> {
    let mut years: Vec<&str> = ids().filter_map(|id| Some(id.split_once('/')?.0)).collect();
    years.sort_unstable();
    years.dedup();
    years
}

/// The figures whose names begin most like this one, with or without the year.
fn near(name: &str) -> Vec<&'static str> {
    let likeness = |id: &&str| {
        let without_year = id.split_once('/').map_or(*id, |(_, figure)| figure);
        alike(name, id).max(alike(name, without_year))
    };
    let most = ids().map(|id| likeness(&id)).max().unwrap_or_default();
    ids()
        .filter(|id| likeness(id) == most)
        .take(MOST_NEAR)
        .collect()
}

/// How many near names an error lists.
const MOST_NEAR: usize = 5;

/// How many bytes both begin with.
fn alike(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(one, other)| one == other).count()
}

fn built_in((id, text): &(&str, &str)) -> Result<Figure, ReproduceError> {
    let path = format!("scenarios/{id}.toml");
    let scenario = Scenario::parse(Path::new(&path), (*text).to_owned())?;
    Figure::new(id, scenario)
}
