//! 1999, Figure 1: a client that runs for alpha, sleeps on a lock, and runs for beta by its
//! kernel priority leaves the scheduler in the same state as one that ran for alpha and beta
//! at once. Drives the dispatcher itself.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::{Mechanisms, WakeClass};
use prorata_core::ids::ClientId;
use prorata_core::policy::{Policy, PolicyName};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::plan::{Plan, client_id};
use serde::Deserialize;

use super::{Context, Result, policy_title};
use crate::finding::Findings;

/// Random histories, each in two pieces and in one.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TwoPieces {
    /// Histories under each policy.
    pub histories: u32,
    /// Turns after which states count as the same if winners and service were.
    pub turns: u32,
    /// The policies.
    pub policies: Vec<PolicyName>,
}

/// One history.
struct History {
    /// Turns before.
    before: u64,
    alpha_ns: u64,
    beta_ns: u64,
    /// How long P runs in between.
    between_ns: u64,
}

/// Winners, and CPU time that each client received.
type Future = (Vec<ClientId>, Vec<u64>);

const MECHANISMS: Mechanisms = Mechanisms {
    kernel_priorities: true,
    ..Mechanisms::NONE
};

impl TwoPieces {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let (plan, seed) = (context.plan()?, context.seed(0));
        let mut lots = Xoshiro256PlusPlus::seed_from_u64(seed);
        let quantum_ns = context.figure.scenario.machine.quantum.0;
        let mut drawn = None;
        for &policy in &self.policies {
            let mut same = 0;
            for _ in 0..self.histories {
                let time = |lots: &mut Xoshiro256PlusPlus| 1 + below(lots, quantum_ns - 1);
                let history = History {
                    before: below(&mut lots, 4),
                    alpha_ns: time(&mut lots),
                    beta_ns: time(&mut lots),
                    between_ns: time(&mut lots),
                };
                let future =
                    |in_pieces| self.future(&plan, policy.policy(seed), &history, in_pieces);
                let (top, bottom) = (future(true), future(false));
                same += u32::from(top == bottom);
                drawn.get_or_insert((top, bottom));
            }
            let metric = format!("{}: histories with the same state", policy_title(policy));
            findings.add(metric, f64::from(same), "");
        }
        if let Some((top, bottom)) = drawn {
            findings.draw("", &self.chart(context, &top, &bottom));
        }
        Ok(findings)
    }

    /// What comes after a history, in two pieces or in one.
    fn future(
        &self,
        plan: &Plan,
        lots: Box<dyn Policy + Send>,
        history: &History,
        in_pieces: bool,
    ) -> Future {
        let clients = plan.groups.last().map_or(0, |group| group.clients.end);
        let quantum_ns = plan.machine.quantum.0;
        let mut cpu = Cpu {
            dispatcher: Dispatcher::new(plan.ledger.clone(), lots, 1, quantum_ns),
            now_ns: 0,
        };
        cpu.dispatcher.set_mechanisms(MECHANISMS);
        (0..clients).for_each(|client| cpu.dispatcher.set_runnable(client_id(client), 1));
        for _ in 0..history.before {
            cpu.turn(quantum_ns);
        }
        let History {
            alpha_ns, beta_ns, ..
        } = *history;
        let sendmail = cpu.next();
        cpu.charge(
            sendmail,
            if in_pieces {
                alpha_ns
            } else {
                alpha_ns + beta_ns
            },
        );
        cpu.dispatcher.set_runnable(sendmail, 0);
        cpu.turn(history.between_ns);
        if in_pieces {
            cpu.dispatcher.wake(sendmail, 1, WakeClass::Lock);
            let next = cpu.next();
            cpu.charge(next, beta_ns);
            cpu.dispatcher.end_turn(next);
        } else {
            cpu.dispatcher.set_runnable(sendmail, 1);
        }
        // Turns of several lengths, so that compensation shows.
        let lengths = [quantum_ns, quantum_ns / 2, quantum_ns, quantum_ns / 7];
        let winners = lengths.into_iter().cycle().take(self.turns as usize);
        let winners = winners.map(|used_ns| cpu.turn(used_ns)).collect();
        let received = |client| cpu.dispatcher.usage(client_id(client)).received_ns;
        (winners, (0..clients).map(received).collect())
    }

    fn chart(&self, context: &Context<'_>, top: &Future, bottom: &Future) -> Chart {
        let clients = &context.figure.scenario.clients;
        let dots = |(winners, _): &Future, shift: f64| {
            let winners = winners.iter().enumerate();
            let winners =
                winners.map(|(turn, winner)| (turn as f64, f64::from(winner.index()) + shift));
            winners.collect::<Vec<_>>()
        };
        let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: format!("winners after a history: {}", names.join(", ")),
            x: Axis::of("turns"),
            y: Axis::of("winner"),
            curves: vec![
                Curve::new(
                    Shape::Dots,
                    0,
                    "after alpha, a sleep and beta",
                    dots(top, 0.05),
                ),
                Curve::new(
                    Shape::Dots,
                    1,
                    "after alpha and beta at once",
                    dots(bottom, -0.05),
                ),
            ],
            rules: Vec::new(),
        }
    }
}

/// One CPU whose clients run for as long as they are told.
struct Cpu {
    dispatcher: Dispatcher,
    now_ns: u64,
}

impl Cpu {
    fn next(&mut self) -> ClientId {
        let choice = self.dispatcher.next(0, self.now_ns);
        client_id(choice.map_or(0, |choice| choice.client.0))
    }

    fn charge(&mut self, client: ClientId, used_ns: u64) {
        self.now_ns += used_ns;
        self.dispatcher.advance(self.now_ns);
        self.dispatcher.charge(client, used_ns);
    }

    /// A turn of this length, and whose it was.
    fn turn(&mut self, used_ns: u64) -> ClientId {
        let client = self.next();
        self.charge(client, used_ns);
        self.dispatcher.end_turn(client);
        client
    }
}
