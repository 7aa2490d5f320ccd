//! The trace of decisions, replayed against the core: every pick must be one
//! that the core's stride scheduling allows.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_core::policy::{ClientIndex, Policy as _, Stride};
use prorata_kernel::scheduler::{Decision, DecisionKind, Scheduler};

use crate::hogs::Hog;
use crate::world::{QUANTUM_NS, STRIDE, TICK_NS, base, hog, place};

/// Tickets of the core's for each base ticket.
const SCALE: f64 = 1000.0;

/// How much time a pick may come too early by: what the kernel's rounding adds
/// up to.
const TOLERANCE_NS: f64 = 100_000.0;

/// Clients as the core sees them.
struct Replay {
    core: Stride,
    clients: HashMap<u32, Client>,
    /// Who was picked last, and what it has used since.
    turn: Option<(u32, u64)>,
    picks: u32,
}

struct Client {
    index: ClientIndex,
    tickets: u32,
    competes: bool,
}

impl Replay {
    fn step(&mut self, decision: &Decision) -> Result<(), Failed> {
        let tickets = (decision.tickets * SCALE).round() as u32;
        let next = ClientIndex(self.clients.len() as u32);
        let client = self.clients.entry(decision.node).or_insert(Client {
            index: next,
            tickets,
            competes: false,
        });
        let index = client.index;
        match decision.kind {
            DecisionKind::Join => {
                client.tickets = tickets;
                client.competes = true;
                self.core.join(index, tickets)?;
            }
            DecisionKind::Leave => {
                client.competes = false;
                self.core.leave(index)?;
                self.turn = self.turn.filter(|turn| turn.0 != decision.node);
            }
            DecisionKind::Tickets => {
                client.tickets = tickets;
                self.core.set_tickets(index, tickets)?;
            }
            DecisionKind::Charge => {
                self.core.charge(index, decision.service_ns, QUANTUM_NS)?;
                if let Some((node, used_ns)) = &mut self.turn
                    && *node == decision.node
                {
                    *used_ns += decision.service_ns;
                }
            }
            DecisionKind::Pick => self.pick(decision)?,
        }
        Ok(())
    }

    fn pick(&mut self, decision: &Decision) -> Result<(), Failed> {
        self.picks += 1;
        let resumes = self.turn.is_some_and(|(node, used_ns)| {
            // Tasks outside the scheduler came in between.
            node == decision.node && used_ns < QUANTUM_NS + TICK_NS
        });
        if resumes {
            return Ok(());
        }
        self.turn = Some((decision.node, 0));
        let total: f64 = self.core.total_tickets() as f64;
        let pass = |client: &Client| self.core.pass(client.index).unwrap_or(f64::MAX);
        let picked = pass(&self.clients[&decision.node]);
        for client in self.clients.values().filter(|client| client.competes) {
            // Passes are in quanta for each ticket.
            let early_ns = (picked - pass(client)) * total * QUANTUM_NS as f64;
            if early_ns > TOLERANCE_NS {
                return Err(
                    format!("pick {} came {early_ns} ns early: {decision:?}", self.picks).into(),
                );
            }
        }
        Ok(())
    }
}

pub fn picks() -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(&STRIDE)?;
    let _hogs = [
        hog(&scheduler, 1, &[base(300)])?,
        hog(&scheduler, 2, &[base(200)])?,
        hog(&scheduler, 3, &[base(100)])?,
    ];
    let sleepers = [Hog::bursts(2, 3), Hog::bursts(30, 20)];
    place(&scheduler, 4, &[base(150)], &sleepers[0])?;
    place(&scheduler, 5, &[base(250)], &sleepers[1])?;
    let mut replay = Replay {
        core: Stride::new(),
        clients: HashMap::new(),
        turn: None,
        picks: 0,
    };
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        thread::sleep(Duration::from_millis(50));
        let decisions = scheduler.take_decisions().ok_or("decisions were lost")?;
        for decision in &decisions {
            replay.step(decision)?;
        }
    }
    eprintln!("    {} picks", replay.picks);
    if replay.picks < 100 {
        return Err(format!("only {} picks", replay.picks).into());
    }
    Ok(())
}
