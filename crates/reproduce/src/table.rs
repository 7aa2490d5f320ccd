//! Reproductions as tables for people.

use prorata_report::table::{Side, Table};

use crate::expectation::{Metric, Rule};
use crate::experiment::policy_title;
use crate::reproduction::Reproduction;

/// The paper's numbers beside ours.
pub fn table(reproduction: &Reproduction) -> Table {
    let (counts, spreads) = (counts(reproduction), spreads(reproduction));
    let mut columns = vec![
        ("METRIC", Side::Left),
        ("PAPER", Side::Right),
        ("OURS", Side::Right),
    ];
    columns.extend(spreads.then_some(("± 95 %", Side::Right)));
    columns.extend(counts.then_some(("COUNTED", Side::Right)));
    columns.extend([
        ("UNIT", Side::Left),
        ("TOLERANCE", Side::Right),
        ("", Side::Left),
        ("SOURCE", Side::Left),
    ]);
    let mut table = Table::new(&columns);
    for metric in &reproduction.metrics {
        let mut row = vec![
            metric.metric.clone(),
            number(metric.paper),
            number(metric.measured),
        ];
        row.extend(spreads.then(|| margin(metric)));
        row.extend(counts.then(|| counted(metric)));
        row.extend([
            metric.unit.to_owned(),
            tolerance(metric),
            metric.verdict.words().to_owned(),
            metric.origin(),
        ]);
        table.row(row);
    }
    table
}

/// Whether something was measured in several runs, each with its own chance.
pub(crate) fn spreads(reproduction: &Reproduction) -> bool {
    let mut metrics = reproduction.metrics.iter();
    metrics.any(|metric| metric.sample.is_some())
}

/// How far the mean of ours may be off in 95 % of cases.
pub(crate) fn margin(metric: &Metric) -> String {
    let margin = metric.sample.map(|sample| number(sample.margin()));
    margin.unwrap_or("-".to_owned())
}

/// Whether processes counted something themselves.
pub(crate) fn counts(reproduction: &Reproduction) -> bool {
    let mut metrics = reproduction.metrics.iter();
    metrics.any(|metric| metric.counted.is_some())
}

pub(crate) fn counted(metric: &Metric) -> String {
    metric.counted.map_or("-".to_owned(), number)
}

/// The same experiment under other policies, a column for each.
pub fn beyond_table(reproduction: &Reproduction) -> Table {
    let mut columns = vec![("METRIC", Side::Left), ("PAPER", Side::Right)];
    let policies = reproduction.beyond.iter();
    columns.extend(policies.map(|beyond| (policy_title(beyond.policy), Side::Right)));
    let mut table = Table::new(&columns);
    for (metric, cells) in beyond_rows(reproduction) {
        let mut row = vec![metric.metric.clone(), number(metric.paper)];
        row.extend(cells);
        table.row(row);
    }
    table
}

/// Each metric that other policies were measured by, and what each reached.
pub(crate) fn beyond_rows(reproduction: &Reproduction) -> Vec<(&Metric, Vec<String>)> {
    let measured = reproduction.metrics.iter().filter(|metric| {
        let mut beyond = reproduction
            .beyond
            .iter()
            .flat_map(|beyond| &beyond.metrics);
        beyond.any(|other| other.metric == metric.metric)
    });
    let rows = measured.map(|metric| {
        let cells = reproduction.beyond.iter().map(|beyond| {
            let found = beyond.metrics.iter().find(|m| m.metric == metric.metric);
            found.map_or("-".to_owned(), |metric| number(metric.measured))
        });
        (metric, cells.collect())
    });
    rows.collect()
}

pub(crate) fn tolerance(metric: &Metric) -> String {
    match metric.rule {
        Rule::Within | Rule::Draw => format!("± {}", number(metric.tolerance)),
        Rule::AtMost if metric.tolerance == 0.0 => "at most".to_owned(),
        Rule::AtMost => format!("at most + {}", number(metric.tolerance)),
        Rule::AtLeast if metric.tolerance == 0.0 => "at least".to_owned(),
        Rule::AtLeast => format!("at least - {}", number(metric.tolerance)),
        Rule::Law => "within ours".to_owned(),
        Rule::Above => "above".to_owned(),
        Rule::Below => "below".to_owned(),
    }
}

/// Four digits at most behind the point, and no zeros at the end.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text.as_str(),
    };
    // Rounding must not leave a sign on zero.
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        let printed = [
            0.0, -0.00001, 0.49, 2.0, 1.4286, 13.42, 450.04, 2409.18, 0.00123,
        ];
        assert_eq!(
            printed.map(number),
            [
                "0", "0", "0.49", "2", "1.429", "13.42", "450", "2409", "0.0012"
            ]
        );
    }
}
