//! Tables of names: each name once, numbered from 0.

use std::collections::BTreeMap;

use crate::file::{KeyPath, Problem, ScenarioError};

/// Longest list of names that a message gives.
const NAMES_IN_MESSAGE: usize = 8;

#[derive(Debug)]
pub(crate) struct Names {
    /// In the singular, for messages.
    kind: &'static str,
    /// How to make one, for messages.
    make: &'static str,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    pub(crate) fn new(kind: &'static str, make: &'static str) -> Names {
        Names {
            kind,
            make,
            numbers: BTreeMap::new(),
        }
    }

    /// The number of a name; a new name gets the next number.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        let next = self.numbers.len() as u32;
        match self.numbers.get(name) {
            Some(number) => *number,
            None => *self.numbers.entry(name.to_owned()).or_insert(next),
        }
    }

    /// The number of a known name.
    pub(crate) fn find(&self, name: &str, place: &KeyPath) -> Result<u32, ScenarioError> {
        let number = self.numbers.get(name).copied();
        number.ok_or_else(|| place.problem(self.unknown(name)))
    }

    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn by_number(&self) -> Vec<String> {
        let mut names = vec![String::new(); self.numbers.len()];
        for (name, &number) in &self.numbers {
            names[number as usize].clone_from(name);
        }
        names
    }

    fn unknown(&self, name: &str) -> Problem {
        let known: Vec<&str> = self.numbers.keys().map(String::as_str).collect();
        let fix = match known.len() {
            0 => self.make.to_owned(),
            1..=NAMES_IN_MESSAGE => format!("name one of {}", known.join(", ")),
            n => {
                let first = known[..NAMES_IN_MESSAGE].join(", ");
                format!("name one of {first} and {} more", n - NAMES_IN_MESSAGE)
            }
        };
        Problem::Unknown {
            kind: self.kind,
            name: name.to_owned(),
            fix,
        }
    }
}
