//! Times in a period, and slots as people write them.

use std::fmt;

use prorata_core::slots::geometry::Cell;
use prorata_scenario::file::{BadTime, Time};
use serde::Deserialize;

use crate::args::timetable::{Places, Range};

/// A time in each period, or before a deadline, such as `4ms/20ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct TimeOf {
    pub time: Time,
    pub of: Time,
}

/// Text that is no time in a period.
#[derive(Debug, thiserror::Error)]
pub enum BadTimeOf {
    #[error("\"{0}\" has no period: write a time and a period, such as 4ms/20ms")]
    Form(String),
    #[error(transparent)]
    Time(#[from] BadTime),
    #[error("\"{0}\" is more than all of the period: take at most all")]
    AboveOne(String),
}

impl TryFrom<String> for TimeOf {
    type Error = BadTimeOf;

    fn try_from(text: String) -> Result<TimeOf, BadTimeOf> {
        let Some((time, of)) = text.split_once('/') else {
            return Err(BadTimeOf::Form(text));
        };
        let (time, of): (Time, Time) = (time.parse()?, of.parse()?);
        if time > of {
            return Err(BadTimeOf::AboveOne(text));
        }
        Ok(TimeOf { time, of })
    }
}

impl fmt::Display for TimeOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.time, self.of)
    }
}

/// Slots in order, by CPUs.
pub fn places_of(cells: &[Cell]) -> Vec<Places> {
    let mut places: Vec<Places> = Vec::new();
    for &Cell { row, column } in cells {
        if places.last().is_none_or(|last| last.cpu != row) {
            places.push(Places {
                cpu: row,
                columns: Vec::new(),
            });
        }
        let columns = &mut places.last_mut().expect("one is there").columns;
        match columns.last_mut() {
            Some(range) if range.last + 1 == column => range.last = column,
            _ => columns.push(Range {
                first: column,
                last: column,
            }),
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_told_as_they_are_named() {
        let cells = [(0, 1), (0, 2), (0, 5), (3, 5), (3, 6)];
        let cells = cells.map(|(row, column)| Cell { row, column });
        let places = places_of(&cells);
        let told: Vec<String> = places.iter().map(Places::to_string).collect();
        assert_eq!(told, ["0:1-2,5", "3:5-6"]);
        for places in places {
            assert_eq!(places.to_string().parse(), Ok(places));
        }
        assert_eq!(places_of(&[]), []);
    }

    #[test]
    fn times_of_periods_survive_print_and_parse() {
        let time = TimeOf::try_from("4ms/20ms".to_owned()).unwrap();
        assert_eq!(time.to_string(), "4ms/20ms");
        for text in [
            "",
            "4ms",
            "4ms/",
            "/20ms",
            "4/20",
            "21ms/20ms",
            "4ms/20ms/3ms",
        ] {
            assert!(TimeOf::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }
}
