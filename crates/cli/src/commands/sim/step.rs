//! Steps through a run, event by event.

use std::io::{self, BufRead};
use std::process::ExitCode;

use anyhow::Result;
use prorata_report::table::{Side, Table};
use prorata_scenario::Scenario;
use prorata_scenario::event::Event;
use prorata_scenario::file::Time;
use prorata_sim::machine::Machine;
use prorata_sim::trace::Line;
use prorata_sim::{Observer, Simulation};

use crate::output;

/// The lines of the events since the last printing.
#[derive(Default)]
struct EventLines {
    lines: Vec<String>,
    /// A client to wait for, and whether one of its events has come.
    client: Option<(u32, bool)>,
}

impl Observer for EventLines {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        let line = Line {
            now_ns,
            event,
            machine,
        };
        self.lines.push(line.to_string());
        if let Some((client, came)) = &mut self.client {
            *came |= event.client() == Some(*client);
        }
    }
}

enum Far {
    Events(u64),
    Until(Time),
    Client(u32),
}

/// `prorata sim --step`.
pub fn step(scenario: &Scenario, seed: u64) -> Result<ExitCode> {
    let mut stepper = Simulation::watched(scenario, seed, EventLines::default())?;
    print(&mut stepper)?;
    for command in io::stdin().lock().lines() {
        let command = command?;
        let far = match command.trim() {
            "q" => break,
            "p" => {
                show(stepper.machine())?;
                continue;
            }
            other => far(other, stepper.machine()),
        };
        match far {
            Some(far) => {
                if !go(&mut stepper, &far)? {
                    break;
                }
            }
            None => output::say(format_args!(
                "\"{command}\" is not a command: give a number of events, a time, a client, p or q"
            )),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn far(command: &str, machine: &Machine) -> Option<Far> {
    if command.is_empty() {
        return Some(Far::Events(1));
    }
    let client = || {
        let clients = machine.find_clients(command)?;
        Some(Far::Client(clients.start))
    };
    let time = || command.parse().ok().map(Far::Until);
    let events = || command.parse().ok().map(Far::Events);
    client().or_else(events).or_else(time)
}

/// Runs up to the end of the step; returns whether any events are left.
fn go(stepper: &mut Simulation<EventLines>, far: &Far) -> Result<bool> {
    let mut events = 0;
    stepper.observer_mut().client = match far {
        Far::Client(client) => Some((*client, false)),
        _ => None,
    };
    loop {
        let there = match far {
            Far::Events(number) => events >= *number,
            Far::Until(time) => stepper.machine().now_ns() >= time.0,
            Far::Client(_) => stepper.observer().client.is_some_and(|wanted| wanted.1),
        };
        if there {
            return Ok(true);
        }
        let left = stepper.step()?;
        print(stepper)?;
        if !left {
            return Ok(false);
        }
        events += 1;
    }
}

fn print(stepper: &mut Simulation<EventLines>) -> Result<()> {
    let lines = std::mem::take(&mut stepper.observer_mut().lines);
    lines.iter().try_for_each(|line| output::line(line))
}

fn show(machine: &Machine) -> Result<()> {
    let pooled = machine.pool_count() > 1;
    let mut columns = vec![
        ("NAME", Side::Left),
        ("VALUE", Side::Right),
        ("SPECIFIED", Side::Right),
        ("RECEIVED", Side::Right),
        ("ERROR", Side::Right),
        ("CAN RUN", Side::Right),
        ("CPUS", Side::Left),
    ];
    if pooled {
        columns.insert(1, ("POOL", Side::Left));
    }
    let mut table = Table::new(&columns);
    for client in 0..machine.client_count() {
        let id = machine.client_id(client);
        let specified_ns = machine.dispatcher().usage(id).specified_ns;
        let received_ns = machine.received_ns(client);
        let error_ns = received_ns as f64 - specified_ns as f64;
        let cpus = (0..machine.spec().cpus)
            .filter(|cpu| machine.running(*cpu).is_some_and(|(c, _)| c == client))
            .map(|cpu| cpu.to_string());
        let mut cells = vec![machine.client_name(client).into_owned()];
        cells.extend(pooled.then(|| machine.pool_name(machine.pool_of(client)).to_owned()));
        cells.extend([
            format!("{:.1}", machine.dispatcher().ledger().value(id).to_f64()),
            output::seconds(specified_ns),
            output::seconds(received_ns),
            output::quanta(error_ns / machine.spec().quantum.0 as f64),
            machine.runnable_threads(client).to_string(),
            cpus.collect::<Vec<_>>().join(","),
        ]);
        table.row(cells);
    }
    output::table(&table, "prorata: there are no clients")
}
