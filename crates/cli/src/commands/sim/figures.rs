//! The report of a run as tables.

use anyhow::Result;
use prorata_report::table::{Side, Table};
use prorata_scenario::Report;
use prorata_scenario::measure::{ClientReport, Counts, Summary, Verdict, WaitReport};

use crate::args::Format;
use crate::output;

/// Largest number of listed clients.
const CLIENTS: usize = 40;

/// Prints a run, as JSON if asked for.
pub fn print(report: &Report, format: Format) -> Result<()> {
    if format.json {
        return output::json(report);
    }
    output::line(&heading(report))?;
    output::table(&clients(report), "prorata: there are no clients")?;
    if report.clients.len() > CLIENTS {
        let more = report.clients.len() - CLIENTS;
        output::line(&format!("and {more} more clients: see --json"))?;
    }
    if !report.pools.is_empty() {
        output::line("")?;
        output::table(&pools(report), "")?;
    }
    for pair in &report.pairs {
        let (first, second) = &pair.clients;
        let error = pair.largest_error;
        output::line(&format!(
            "relative error of {first} and {second}: at most {error:.2} quanta"
        ))?;
    }
    waits(&report.mutexes, ("MUTEX", "WAITED"))?;
    waits(&report.services, ("SERVICE", "CALLED"))?;
    output::line("")?;
    if let Some(counts) = &report.counts {
        output::line(&totals(report, counts))?;
    }
    let refused = report.refused.iter();
    refused
        .into_iter()
        .try_for_each(|refusal| output::line(&format!("refused: {refusal}")))?;
    report
        .verdicts
        .iter()
        .try_for_each(|v| output::line(&verdict(v)))?;
    not_judged(report)
}

/// Counts the assertions that the engine could not judge.
fn not_judged(report: &Report) -> Result<()> {
    let count = report.verdicts.iter().filter(|v| !v.judged).count();
    if count == 0 {
        return Ok(());
    }
    output::line(&format!(
        "{count} of {} assertions are not judged: run them on another engine",
        report.verdicts.len()
    ))
}

fn heading(report: &Report) -> String {
    let engine = match (report.engine, report.mechanism, report.took_ns) {
        (engine, Some(mechanism), Some(took_ns)) => format!(
            "; engine {engine} on real processes, mechanism {mechanism}, took {}",
            output::seconds(took_ns)
        ),
        (engine, ..) => format!("; engine {engine}"),
    };
    format!(
        "{}\n{} on {}, {}, quantum {}, seed {}{engine}\n",
        report.title,
        report.policy,
        output::count(u64::from(report.cpus), "CPU"),
        output::seconds(report.duration_ns),
        time(report.quantum_ns as f64),
        report.seed
    )
}

/// How busy the CPUs of each pool were.
fn pools(report: &Report) -> Table {
    let mut table = Table::new(&[
        ("POOL", Side::Left),
        ("CPUS", Side::Right),
        ("CLIENTS", Side::Right),
        ("USED", Side::Right),
        ("WAITING", Side::Right),
        ("AT MOST", Side::Right),
    ]);
    for pool in &report.pools {
        let time_ns = (report.duration_ns * u64::from(pool.cpus)).max(1);
        table.row(vec![
            pool.name.clone(),
            pool.cpus.to_string(),
            pool.clients.to_string(),
            output::percent(pool.busy_ns as f64 / time_ns as f64),
            format!("{:.1}", pool.mean_waiting_threads),
            pool.most_waiting_threads.to_string(),
        ]);
    }
    table
}

fn clients(report: &Report) -> Table {
    let mut columns = vec![
        ("NAME", Side::Left),
        ("SHARE", Side::Right),
        ("SPECIFIED", Side::Right),
        ("RECEIVED", Side::Right),
        ("WORST ERROR", Side::Right),
        ("TURNS", Side::Right),
        ("RESPONSE", Side::Right),
        ("P99", Side::Right),
        ("LATENCY", Side::Right),
        ("P99", Side::Right),
    ];
    if !report.pools.is_empty() {
        columns.insert(1, ("POOL", Side::Left));
    }
    let mut table = Table::new(&columns);
    for client in report.clients.iter().take(CLIENTS) {
        table.row(row(client));
    }
    table
}

fn row(client: &ClientReport) -> Vec<String> {
    let mut cells = vec![client.name.clone()];
    cells.extend(client.pool.clone());
    cells.extend([
        output::percent(client.share),
        output::seconds(client.specified_ns),
        output::seconds(client.received_ns),
        format!("{:.1}", client.largest_error),
        count(client.turns),
    ]);
    for summary in [client.response_time, client.dispatch_latency] {
        cells.extend(mean_and_p99(summary));
    }
    cells
}

fn count(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| count.to_string())
}

fn mean_and_p99(summary: Option<Summary>) -> [String; 2] {
    summary.map_or(["-".to_owned(), "-".to_owned()], |summary| {
        [time(summary.mean_ns), time(summary.p99_ns as f64)]
    })
}

fn waits(reports: &[WaitReport], headings: (&'static str, &'static str)) -> Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[
        (headings.0, Side::Left),
        ("CLIENT", Side::Left),
        ("TIMES", Side::Right),
        (headings.1, Side::Right),
        ("P99", Side::Right),
    ]);
    for report in reports.iter().take(CLIENTS) {
        let mut cells = vec![report.name.clone(), report.client.clone()];
        cells.push(report.times.map_or(0, |summary| summary.count).to_string());
        cells.extend(mean_and_p99(report.times));
        table.row(cells);
    }
    output::line("")?;
    output::table(&table, "")
}

fn totals(report: &Report, counts: &Counts) -> String {
    format!(
        "{} events, {} turns, {} context switches, {} migrations; {:.1} threads waited for a CPU, \
         at most {}\nbusy {}, overhead {}, idle {}",
        counts.events,
        counts.turns,
        counts.context_switches,
        counts.migrations,
        report.mean_waiting_threads.unwrap_or(0.0),
        report.most_waiting_threads.unwrap_or(0),
        output::seconds(counts.busy_ns),
        output::seconds(counts.overhead_ns),
        output::seconds(counts.idle_ns),
    )
}

fn verdict(verdict: &Verdict) -> String {
    if !verdict.judged {
        return format!(
            "not judged: {}: not measured by this engine",
            verdict.assertion
        );
    }
    let mark = if verdict.holds { "holds" } else { "FAILS" };
    let measured = verdict.measured.map_or("nothing measured".to_owned(), |m| {
        format!("{m:.4} {}", verdict.unit)
    });
    format!("{mark}: {}: {measured}", verdict.assertion)
}

/// A time in the largest unit that is not above it.
fn time(time_ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let unit = units.iter().find(|unit| time_ns >= unit.0);
    unit.map_or_else(
        || format!("{time_ns:.0} ns"),
        |(unit_ns, name)| format!("{:.1} {name}", time_ns / unit_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        let times = [0.0, 999.0, 1000.0, 1.5e6, 2.25e9].map(time);
        assert_eq!(times, ["0 ns", "999 ns", "1.0 us", "1.5 ms", "2.2 s"]);
    }
}
