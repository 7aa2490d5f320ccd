//! Expectations that are written down together: the numbers of a paper's table, which
//! are all judged alike, and the differences that have one reason.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::expectation::{Differs, Expectation, Rule, Source};

/// Numbers of a paper that are judged alike.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExpectationTable {
    /// Where they stand, and why the tolerance is what it is.
    pub why: String,
    /// Where they are from.
    pub source: Source,
    /// In which direction ours may be off.
    #[serde(default)]
    pub rule: Rule,
    /// How far.
    #[serde(default)]
    pub tolerance: f64,
    /// How much further, as a part of each number.
    #[serde(default)]
    pub relative_tolerance: f64,
    /// Whether they are measured only in full.
    #[serde(default)]
    pub in_full: bool,
    /// Whether the paper's conclusions rest on them.
    #[serde(default)]
    pub headline: bool,
    /// What stands in the place of `*` in the metrics of each row.
    pub columns: Vec<String>,
    /// The numbers.
    pub rows: Vec<Row>,
}

/// A row of numbers.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Row {
    /// What was measured, with `*` for the column.
    pub metric: String,
    /// By column.
    pub paper: Vec<f64>,
}

/// Numbers that are known to be others than the paper's, for one reason.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Difference {
    /// Why.
    pub because: String,
    /// Whether the reason is open, in whole or in its main part.
    #[serde(default)]
    pub unexplained: bool,
    /// By metric: ours, to four digits behind the point.
    pub ours: BTreeMap<String, f64>,
}

impl ExpectationTable {
    /// Its expectations, row by row; or what is wrong with it.
    fn expectations(&self) -> Result<Vec<Expectation>, String> {
        let mut expectations = Vec::new();
        for row in &self.rows {
            if row.paper.len() != self.columns.len() {
                return Err(format!(
                    "has {} numbers of '{}' for {} columns: give one for each",
                    row.paper.len(),
                    row.metric,
                    self.columns.len()
                ));
            }
            let cells = self.columns.iter().zip(&row.paper);
            expectations.extend(cells.map(|(column, &paper)| Expectation {
                metric: row.metric.replace('*', column),
                paper,
                tolerance: self.tolerance + self.relative_tolerance * paper.abs(),
                rule: self.rule,
                source: self.source,
                why: self.why.clone(),
                in_full: self.in_full,
                on_processes: false,
                headline: self.headline,
                differs: None,
            }));
        }
        Ok(expectations)
    }
}

/// All expectations of a figure: those of tables first, then those that stand alone,
/// each with the difference of its metric, of which there may be several expectations;
/// or what is wrong with them.
pub(crate) fn all_expectations(
    tables: &[ExpectationTable],
    alone: &[Expectation],
    differences: &[Difference],
) -> Result<Vec<Expectation>, String> {
    let mut expectations = Vec::new();
    for table in tables {
        expectations.extend(table.expectations()?);
    }
    expectations.extend(alone.iter().cloned());
    for difference in differences {
        for (metric, &ours) in &difference.ours {
            let of_metric = expectations
                .iter_mut()
                .filter(|expectation| expectation.metric == *metric);
            let mut of_metric = of_metric.peekable();
            if of_metric.peek().is_none() {
                return Err(format!(
                    "says how '{metric}' differs, which is not printed: take it out"
                ));
            }
            for expectation in of_metric {
                if expectation.differs.is_some() {
                    return Err(format!(
                        "says twice how '{metric}' differs: take one of them out"
                    ));
                }
                expectation.differs = Some(Differs {
                    ours,
                    because: difference.because.clone(),
                    unexplained: difference.unexplained,
                });
            }
        }
    }
    Ok(expectations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ExpectationTable {
        ExpectationTable {
            why: "Table 1".into(),
            source: Source::Printed,
            rule: Rule::Within,
            tolerance: 1.0,
            relative_tolerance: 0.2,
            in_full: false,
            headline: false,
            columns: vec!["2 CPUs".into(), "4 CPUs".into()],
            rows: vec![Row {
                metric: "DSS, *: hold".into(),
                paper: vec![10.0, -20.0],
            }],
        }
    }

    fn difference(metric: &str) -> Difference {
        Difference {
            because: "of us".into(),
            unexplained: false,
            ours: BTreeMap::from([(metric.to_owned(), 3.0)]),
        }
    }

    #[test]
    fn a_row_is_a_claim_for_each_column() {
        let differences = [difference("DSS, 4 CPUs: hold")];
        let expectations = all_expectations(&[table()], &[], &differences).expect("it is right");
        let found: Vec<_> = expectations
            .iter()
            .map(|expectation| {
                (
                    expectation.metric.as_str(),
                    expectation.paper,
                    expectation.tolerance,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("DSS, 2 CPUs: hold", 10.0, 3.0),
                ("DSS, 4 CPUs: hold", -20.0, 5.0)
            ]
        );
        assert_eq!(expectations[0].differs, None);
        let differs = expectations[1].differs.as_ref().expect("it does");
        assert_eq!((differs.ours, differs.because.as_str()), (3.0, "of us"));
    }

    #[test]
    fn a_difference_is_of_all_claims_on_its_metric() {
        let tables = [table(), table()];
        let expectations = all_expectations(&tables, &[], &[difference("DSS, 4 CPUs: hold")]);
        let differ: Vec<bool> = expectations
            .expect("it is right")
            .iter()
            .map(|expectation| expectation.differs.is_some())
            .collect();
        assert_eq!(differ, [false, true, false, true]);
    }

    #[test]
    fn numbers_without_a_column_and_differences_of_nothing_are_refused() {
        let mut short = table();
        short.rows[0].paper.pop();
        let error = all_expectations(&[short], &[], &[]).expect_err("a number is missing");
        assert!(
            error.contains("1 numbers of 'DSS, *: hold' for 2"),
            "{error}"
        );
        let error = all_expectations(&[table()], &[], &[difference("PLS")]).expect_err("no such");
        assert!(error.contains("'PLS' differs"), "{error}");
        let twice = [
            difference("DSS, 2 CPUs: hold"),
            difference("DSS, 2 CPUs: hold"),
        ];
        let error = all_expectations(&[table()], &[], &twice).expect_err("it is said twice");
        assert!(error.contains("twice"), "{error}");
    }
}
