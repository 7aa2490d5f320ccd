//! Drawings of a run: shares, relative errors and queue lengths over time, and
//! the distributions of response times and dispatch latencies.

use std::ops::Range;

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_report::plot::{Series, SharePlot};
use prorata_report::svg::{SERIES_COLOURS, Svg};
use prorata_scenario::Report;
use prorata_scenario::measure::ClientMeasures;
use prorata_scenario::measure::{PointReport, Times};
use prorata_sim::Measures;

/// Largest number of lines that a reader can tell apart.
const LINES: usize = 12;

/// Bins of a histogram.
const BINS: usize = 24;

/// The copies of each client, by the client's name.
type CopyGroups<'a> = [(&'a str, Range<u32>)];

/// All drawings of a run in one column, without those that would be empty.
/// `measures` are those of a simulation.
pub fn all(report: &Report, measures: Option<&Measures>, groups: &CopyGroups<'_>) -> Svg {
    let mut drawings = vec![shares(report, groups).draw()];
    if !report.pairs.is_empty() {
        drawings.push(relative_errors(report).draw());
    }
    let Some(measures) = measures else {
        return Svg::sheet(drawings);
    };
    drawings.push(queues(report).draw());
    let response = (
        "Response times",
        "From the end of a turn to the end of the next",
    );
    let latency = ("Dispatch latencies", "From a wake, or a start, to the CPU");
    let response_times: fn(&ClientMeasures) -> &Times = |client| &client.response_times;
    let latencies: fn(&ClientMeasures) -> &Times = |client| &client.dispatch_latencies;
    for (heads, times) in [(response, response_times), (latency, latencies)] {
        let histogram = histogram(heads, measures, groups, times);
        drawings.extend(histogram.map(|chart| chart.draw()));
    }
    Svg::sheet(drawings)
}

/// Magnitudes of the relative errors, as in 1995, Figure 10.
fn relative_errors(report: &Report) -> Chart {
    let pairs = report.pairs.iter().take(SERIES_COLOURS).enumerate();
    let curves = pairs.map(|(pair, named)| {
        let (first, second) = &named.clients;
        let error = |point: &PointReport| point.relative_errors[pair].abs();
        curve(report, format!("{first}/{second}"), pair, error)
    });
    over_time(
        "Relative errors",
        left_out(report.pairs.len(), "pairs"),
        "quanta",
        curves.collect(),
    )
}

/// Waiting threads, of each pool if there are pools.
fn queues(report: &Report) -> Chart {
    let curves = if report.pools.is_empty() {
        let waiting = |point: &PointReport| point.waiting_threads.unwrap_or(0) as f64;
        vec![curve(report, String::new(), 0, waiting)]
    } else {
        let pools = report.pools.iter().take(SERIES_COLOURS).enumerate();
        let curves = pools.map(|(pool, named)| {
            let waiting = |point: &PointReport| point.waiting_in_pools[pool] as f64;
            curve(report, named.name.clone(), pool, waiting)
        });
        curves.collect()
    };
    over_time(
        "Threads that wait for a CPU",
        left_out(report.pools.len(), "pools"),
        "threads",
        curves,
    )
}

fn left_out(count: usize, what: &str) -> String {
    match count.saturating_sub(SERIES_COLOURS) {
        0 => String::new(),
        more => format!("{more} more {what} are not drawn."),
    }
}

fn over_time(title: &str, caption: String, unit: &str, curves: Vec<Curve>) -> Chart {
    Chart {
        title: title.to_owned(),
        caption,
        x: Axis::of("time (s)"),
        y: Axis::of(unit),
        curves,
        rules: Vec::new(),
    }
}

fn curve(
    report: &Report,
    name: String,
    colour: usize,
    value: impl Fn(&PointReport) -> f64,
) -> Curve {
    let points = report.series.iter();
    let points = points.map(|point| (point.time_ns as f64 / 1e9, value(point)));
    Curve::new(Shape::Line, colour, name, points)
}

/// The distribution of each client's times, as bars side by side. `None` if no
/// client has times.
fn histogram(
    (title, what): (&str, &str),
    measures: &Measures,
    groups: &CopyGroups<'_>,
    times_of: fn(&ClientMeasures) -> &Times,
) -> Option<Chart> {
    let all = groups.iter().take(SERIES_COLOURS).map(|(name, clients)| {
        let clients = clients.start as usize..clients.end as usize;
        let mut times = Times::default();
        let members = measures.clients().get(clients).unwrap_or_default();
        members
            .iter()
            .for_each(|client| times.merge(times_of(client)));
        (*name, times)
    });
    let all: Vec<(&str, Times)> = all.filter(|(_, times)| times.count() > 0).collect();
    let longest = all
        .iter()
        .filter_map(|(_, times)| times.percentile_ns(99.0));
    let longest_ms = longest.max()?.max(1) as f64 / 1e6;
    let bin_ms = longest_ms / BINS as f64;
    let width = 0.9 * bin_ms / all.len() as f64;
    let curves = all.iter().enumerate().map(|(place, (name, times))| {
        let mut counts = [0; BINS];
        for (time_ns, count) in times.buckets() {
            let bin = (time_ns as f64 / 1e6 / bin_ms) as usize;
            if let Some(counted) = counts.get_mut(bin) {
                *counted += count;
            }
        }
        let points = counts.into_iter().enumerate().map(|(bin, count)| {
            let x = (bin as f64 + 0.05) * bin_ms + (place as f64 + 0.5) * width;
            (x, 100.0 * count as f64 / times.count() as f64)
        });
        Curve::new(Shape::Bars(width), place, *name, points)
    });
    let more = left_out(groups.len(), "clients");
    Some(Chart {
        title: title.to_owned(),
        caption: format!("{what}; the longest hundredth is left out. {more}"),
        x: Axis::up_to(longest_ms, "time (ms)"),
        y: Axis::of("% of its times"),
        curves: curves.collect(),
        rules: Vec::new(),
    })
}

/// Received and specified shares between the points of the time series. A line
/// stands for all copies of a client; only the first clients are drawn.
fn shares(report: &Report, groups: &CopyGroups<'_>) -> SharePlot {
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
        // The capacity of all CPUs since the previous point.
        let span_ns = (point.time_ns - before.0) as f64 * f64::from(report.cpus);
        let at_s = point.time_ns as f64 / 1e9;
        let part = |now: u64, then: u64| now.saturating_sub(then) as f64 / span_ns;
        series.received.push((at_s, part(received_ns, before.1)));
        // The share holds from the previous point on.
        let since_s = before.0 as f64 / 1e9;
        series
            .specified
            .push((since_s, part(specified_ns, before.2)));
        before = (point.time_ns, received_ns, specified_ns);
    }
    series
}
