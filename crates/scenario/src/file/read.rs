//! Reads scenarios from files; errors name the line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    Block, Distribution, KeyPath, ReadError, Scenario, ScenarioError, Segment, Step, Trace, Varying,
};
use crate::plan::Plan;

/// Longest scenario or trace file.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

struct Source<'a> {
    path: &'a Path,
    text: String,
}

impl Scenario {
    /// Reads a scenario and its trace files, which lie beside it, and checks all rules that
    /// can be checked before a run.
    pub fn read(path: &Path) -> Result<Scenario, ReadError> {
        Scenario::read_for(path, |_| Ok(()))
    }

    /// Like [`Scenario::read`], for an engine with further rules, which `check` checks.
    pub fn read_for(
        path: &Path,
        check: impl FnOnce(&Scenario) -> Result<(), ScenarioError>,
    ) -> Result<Scenario, ReadError> {
        let text = read_text(path)?;
        Scenario::parse_for(path, text, check)
    }

    /// Like [`Scenario::read`], but from text. `path` stands in messages; trace files lie
    /// beside it.
    pub fn parse(path: &Path, text: String) -> Result<Scenario, ReadError> {
        Scenario::parse_for(path, text, |_| Ok(()))
    }

    fn parse_for(
        path: &Path,
        text: String,
        check: impl FnOnce(&Scenario) -> Result<(), ScenarioError>,
    ) -> Result<Scenario, ReadError> {
        let source = Source { path, text };
        let mut scenario: Scenario = toml::from_str(&source.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            source.error_at(start, error.message().to_owned())
        })?;
        scenario.read_traces(path.parent().unwrap_or(Path::new("")))?;
        match Plan::new(&scenario).and_then(|_| check(&scenario)) {
            Ok(()) => Ok(scenario),
            Err(error) => Err(source.locate(&error)),
        }
    }

    fn read_traces(&mut self, directory: &Path) -> Result<(), ReadError> {
        let steps = self.programs.values_mut().map(|program| &mut program.steps);
        steps
            .into_iter()
            .try_for_each(|steps| read_traces_of(steps, directory))
    }
}

impl Source<'_> {
    /// Finds an error's place in the text: the innermost part that the file has.
    fn locate(&self, error: &ScenarioError) -> ReadError {
        let start = DeTable::parse(&self.text).map_or(0, |table| offset(&table, &error.place));
        self.error_at(start, error.to_string())
    }

    fn error_at(&self, offset: usize, what: String) -> ReadError {
        ReadError::at(self.path, &self.text, offset, what)
    }
}

impl ReadError {
    /// What is wrong at a byte of a file's text.
    pub fn at(path: &Path, text: &str, offset: usize, what: String) -> ReadError {
        let before = &text[..offset.min(text.len())];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ReadError::Line {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what,
        }
    }
}

fn offset(table: &Spanned<DeTable<'_>>, place: &KeyPath) -> usize {
    let Some((Segment::Key(first), rest)) = place.0.split_first() else {
        return table.span().start;
    };
    let Some((key, value)) = table.get_ref().get_key_value(first.as_str()) else {
        return table.span().start;
    };
    let (mut start, mut value) = (key.span().start, value);
    for segment in rest {
        let inner = match (segment, value.get_ref()) {
            (Segment::Key(key), DeValue::Table(table)) => table
                .get_key_value(key.as_str())
                .map(|(key, value)| (key.span().start, value)),
            (Segment::Index(index), DeValue::Array(array)) => {
                array.get(*index).map(|value| (value.span().start, value))
            }
            _ => None,
        };
        let Some(inner) = inner else { break };
        (start, value) = inner;
    }
    start
}

/// Reads a file that is not longer than [`MAX_FILE_BYTES`].
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    let file_error = |error| ReadError::File {
        path: path.to_owned(),
        error,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(file_error)?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(file_error)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLong {
            path: path.to_owned(),
        });
    }
    Ok(text)
}

fn read_traces_of(steps: &mut [Step], directory: &Path) -> Result<(), ReadError> {
    for step in steps {
        match step {
            Step::Compute(distribution)
            | Step::Sleep(distribution)
            | Step::Block(Block {
                time: distribution, ..
            }) => {
                if let Distribution::Varying(Varying::Trace(trace)) = distribution
                    && let Trace::File(file) = trace
                {
                    *trace = Trace::Times(read_trace(directory.join(file))?);
                }
            }
            Step::Serve(serve) => read_traces_of(&mut serve.steps, directory)?,
            Step::Loop(repeat) => read_traces_of(&mut repeat.steps, directory)?,
            _ => {}
        }
    }
    Ok(())
}

fn read_trace(path: PathBuf) -> Result<Vec<super::Time>, ReadError> {
    let text = read_text(&path)?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let first = line.split(',').next().unwrap_or_default();
            first
                .trim()
                .parse()
                .map_err(|error: super::BadTime| ReadError::Line {
                    path: path.clone(),
                    line: index + 1,
                    column: 1,
                    what: error.to_string(),
                })
        })
        .collect()
}
