//! Shares over time, as a drawing.

use std::ops::Range;

use prorata_report::plot::{Series, SharePlot};
use prorata_sim::Report;

/// Lines that a reader can still tell apart.
const LINES: usize = 12;

/// Received and specified shares between the points of the time series. The
/// copies of a client are drawn as one; the first clients only if there are
/// many.
pub fn shares(report: &Report, groups: &[(&str, Range<u32>)]) -> SharePlot {
    let duration_s = report.duration_ns as f64 / 1e9;
    let left_out = groups.len().saturating_sub(LINES);
    let more = match left_out {
        0 => String::new(),
        n => format!("; {n} more clients are not drawn"),
    };
    SharePlot {
        title: report.title.clone(),
        caption: format!(
            "{}, seed {}. Dashed: specified{more}.",
            how(report),
            report.seed
        ),
        duration_s,
        series: groups
            .iter()
            .take(LINES)
            .map(|(name, clients)| line(report, name, clients.clone()))
            .collect(),
        events: Vec::new(),
    }
}

fn how(report: &Report) -> String {
    match report.mechanism {
        None => "Simulated".to_owned(),
        Some(_) => format!("Real processes, engine {}", report.engine),
    }
}

fn line(report: &Report, name: &str, clients: Range<u32>) -> Series {
    let clients = clients.start as usize..clients.end as usize;
    let mut series = Series {
        name: name.to_owned(),
        ..Series::default()
    };
    let mut before = (0, 0, 0);
    for point in &report.series {
        let sum = |by_client: &[u64]| by_client[clients.clone()].iter().sum::<u64>();
        let (received_ns, specified_ns) = (sum(&point.received_ns), sum(&point.specified_ns));
        // What all CPUs could have given since the point before.
        let span_ns = (point.time_ns - before.0) as f64 * f64::from(report.cpus);
        let at_s = point.time_ns as f64 / 1e9;
        let part = |now: u64, then: u64| now.saturating_sub(then) as f64 / span_ns;
        series.received.push((at_s, part(received_ns, before.1)));
        // The part holds from the point before on.
        let since_s = before.0 as f64 / 1e9;
        series
            .specified
            .push((since_s, part(specified_ns, before.2)));
        before = (point.time_ns, received_ns, specified_ns);
    }
    series
}
