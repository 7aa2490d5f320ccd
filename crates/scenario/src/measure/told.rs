//! What threads tell of their waits, and the ledger of what it refused: the
//! same wherever the threads live.

use std::collections::BTreeMap;

use super::{Times, WaitReport};
use crate::event::Event;

/// Most refusals of the ledger that are kept word for word.
const REFUSALS: usize = 16;

/// By mutex or service, and client.
type Waits = BTreeMap<(u32, u32), Times>;

/// Waiting times at mutexes, times of calls, and refusals.
#[derive(Debug, Default)]
pub struct Told {
    mutex_waits: Waits,
    call_times: Waits,
    refused: Vec<String>,
}

impl Told {
    /// Notes what an event tells of these, if anything.
    pub fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Acquired {
                client,
                mutex,
                waited_ns,
                ..
            } => self
                .mutex_waits
                .entry((mutex, client))
                .or_default()
                .record(waited_ns),
            Event::Answered {
                client,
                service,
                took_ns,
            } => self
                .call_times
                .entry((service, client))
                .or_default()
                .record(took_ns),
            Event::Refused { error } if self.refused.len() < REFUSALS => {
                self.refused.push(error.to_string());
            }
            _ => {}
        }
    }

    /// Waiting times for each mutex, of each client that acquired it. Mutexes
    /// are named in the order of their numbers.
    pub fn mutexes<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        client_name: impl Fn(u32) -> String,
    ) -> Vec<WaitReport> {
        reports(&self.mutex_waits, names, client_name)
    }

    /// Times from call to reply of each service, of each client that called
    /// it. Services are named in the order of their numbers.
    pub fn services<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        client_name: impl Fn(u32) -> String,
    ) -> Vec<WaitReport> {
        reports(&self.call_times, names, client_name)
    }

    /// What the ledger refused, the first few.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

fn reports<'a>(
    waits: &Waits,
    names: impl Iterator<Item = &'a str>,
    client_name: impl Fn(u32) -> String,
) -> Vec<WaitReport> {
    let names: Vec<&str> = names.collect();
    let reports = waits.iter().map(|(&(number, client), times)| WaitReport {
        name: names[number as usize].to_owned(),
        client: client_name(client),
        times: times.summary(),
    });
    reports.collect()
}
