//! 2005, Figure 4.2: round trips to servers that run only in the slots that a reservation keeps
//! unclaimed.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::event::Event;
use prorata_scenario::file::Time;
use prorata_scenario::file::slots::Fraction;
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::mean;

/// Round trips over reservations.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReservedLatency {
    /// The client of which there is one copy for each server.
    pub server: String,
    /// Numbers of servers that are compared.
    pub servers: Vec<u32>,
    /// CPU time of a message. A server is flooded: the next message is there when it replies.
    pub message: Time,
    /// Messages that are averaged, of each server.
    pub messages: u32,
    /// Reservations are 1 to this many of this many slots.
    pub of: u32,
}

/// When each of the first servers' messages is answered: when its server has had the CPU time.
struct Replies {
    first_server: u32,
    message_ns: u64,
    /// By server.
    received_ns: Vec<u64>,
    replied_ns: Vec<Vec<u64>>,
}

impl Observer for Replies {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, _: &Machine) {
        let Event::Ran {
            client, used_ns, ..
        } = event
        else {
            return;
        };
        let Some(server) = client.checked_sub(self.first_server) else {
            return;
        };
        let server = server as usize;
        let before_ns = self.received_ns[server];
        self.received_ns[server] += used_ns;
        let mut next_ns = (before_ns / self.message_ns + 1) * self.message_ns;
        while next_ns <= self.received_ns[server] {
            let left_ns = self.received_ns[server] - next_ns;
            self.replied_ns[server].push(now_ns - left_ns);
            next_ns += self.message_ns;
        }
    }
}

const MS: f64 = 1e6;

impl ReservedLatency {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut curves = Vec::new();
        for (place, &servers) in self.servers.iter().enumerate() {
            let mut points = Vec::new();
            for reserved in 1..=self.of {
                let trip_ms = self.round_trip_ms(context, servers, reserved)?;
                findings.add(self.metric(servers, reserved), trip_ms, "ms");
                points.push((f64::from(reserved) / f64::from(self.of), trip_ms));
            }
            self.compare(servers, &points, &mut findings);
            let name = format!("N = {servers}");
            curves.push(Curve::new(Shape::Line, place, &name, points));
        }
        findings.draw(
            "",
            &Chart {
                title: context.figure.scenario.title.clone(),
                caption: String::new(),
                x: Axis::up_to(1.0, "part of the slots that is reserved"),
                y: Axis::of("round trip (ms)"),
                curves,
                rules: Vec::new(),
            },
        );
        Ok(findings)
    }

    fn metric(&self, servers: u32, reserved: u32) -> String {
        format!("N = {servers}, {reserved} of {}", self.of)
    }

    /// The law y = 1/x up to a half, and what becomes of a doubled and a tripled reservation.
    fn compare(&self, servers: u32, points: &[(f64, f64)], findings: &mut Findings) {
        let half = points.iter().filter(|(part, _)| *part <= 0.5);
        let products: Vec<f64> = half.map(|(part, trip)| part * trip).collect();
        let middle = mean(&products);
        let furthest = products
            .iter()
            .map(|product| (product / middle - 1.0).abs());
        let furthest = furthest.fold(0.0, f64::max) * 100.0;
        let law = format!("N = {servers}: distance from y = 1/x up to a half");
        findings.add(law, furthest, "%");
        for (times, word) in [(2, "doubled"), (3, "tripled")] {
            let upto = points.len() / times;
            let fall = |place: usize| points[(place + 1) * times - 1].1 / points[place].1;
            let falls: Vec<f64> = (0..upto).map(fall).collect();
            let metric = format!("N = {servers}: round trip at a {word} reservation");
            findings.add(metric, mean(&falls), "times");
        }
    }

    /// The mean round trip of a server's first messages.
    fn round_trip_ms(&self, context: &mut Context<'_>, servers: u32, reserved: u32) -> Result<f64> {
        let mut scenario = context.scenario();
        let first_server = self.with_servers(context, &mut scenario, servers)?;
        let slots = scenario.slots.as_mut();
        let slots = slots.ok_or_else(|| context.malformed("needs [slots]"))?;
        slots.reserve = Some(Fraction {
            slots: reserved,
            of: self.of,
        });
        // All slots that are not reserved are claimed.
        let claimed = slots.columns / self.of * (self.of - reserved);
        match (scenario.claims.first_mut(), claimed) {
            (Some(_), 0) => scenario.claims.clear(),
            (Some(claim), claimed) => claim.best_effort = Some(claimed),
            (None, _) => return Err(context.malformed("needs a claim")),
        }
        let replies = Replies {
            first_server,
            message_ns: self.message.0,
            received_ns: vec![0; servers as usize],
            replied_ns: vec![Vec::new(); servers as usize],
        };
        let seed = context.seed(0);
        let (_, replies) = context.simulate(&scenario, seed, replies)?;
        let mut trips = Vec::new();
        for replied in &replies.replied_ns {
            let messages = self.messages as usize;
            let last = replied.get(messages - 1);
            let last = last.ok_or_else(|| context.malformed("is too short for the messages"))?;
            trips.push(*last as f64 / MS / f64::from(self.messages));
        }
        Ok(mean(&trips))
    }

    /// Has as many copies of the server; they come last. Returns the number of the first.
    fn with_servers(
        &self,
        context: &Context<'_>,
        scenario: &mut Scenario,
        servers: u32,
    ) -> Result<u32> {
        let count = scenario.clients.len() as u32;
        match scenario.clients.last_mut() {
            Some(last) if last.name == self.server => {
                last.count = Some(servers);
                Ok(count - 1)
            }
            _ => Err(context.malformed("has another client than the server last")),
        }
    }
}
