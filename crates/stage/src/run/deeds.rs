//! Scheduled events: starts, the timeline, rules, marks.

use prorata_scenario::plan::Deed;
use prorata_scenario::policy;
use prorata_scenario::world::{Deeds as _, Waiting as _, World as _};

use super::{Due, Result, Run, Watch};
use crate::error::StageError;

impl Run {
    pub(super) fn happen(&mut self, time_ns: u64, due: Due, watch: &mut dyn Watch) -> Result<()> {
        match due {
            Due::Start { group } => {
                let clients: Vec<u32> = self.groups[group as usize].clients.clone().collect();
                self.start(&clients, watch)?;
            }
            Due::Deed { index } => {
                let (_, deed) = self.timeline[index as usize].clone();
                self.do_deed(deed, watch)?;
            }
            Due::Rule { client } => self.rule_due(client, time_ns),
            Due::Mark => self.looks.mark(time_ns),
            Due::Sample => {
                let point = self.looks.sample(time_ns);
                watch.sampled(&self.stage, self.clock.real_ns(), point);
                if let Some(every_ns) = self.sample_every_ns {
                    self.plan(time_ns + every_ns, Due::Sample);
                }
            }
        }
        Ok(())
    }

    fn do_deed(&mut self, deed: Deed, watch: &mut dyn Watch) -> Result<()> {
        match deed {
            Deed::Start(clients) => self.start(&clients.collect::<Vec<_>>(), watch)?,
            Deed::Stop(clients) => clients.into_iter().for_each(|client| self.stop(client)),
            Deed::SetTickets(holders, currency, amount) => self.play_scene(|scene| {
                for holder in holders {
                    scene.set_tickets(holder, currency, amount);
                }
            }),
            Deed::SetMax(clients, max) => self.play_scene(|scene| {
                for client in clients {
                    scene.set_max(client, max);
                }
            }),
            Deed::Unfund(holders, currency) => self.play_scene(|scene| {
                for holder in holders {
                    scene.unfund(holder, currency);
                }
            }),
            Deed::Transfer(transfer) => self.play_scene(|scene| scene.begin_transfer(transfer)),
            Deed::EndTransfer(name) => self.play_scene(|scene| scene.end_named_transfer(&name)),
            Deed::Policy(name) => {
                let fresh = policy(name, self.seed, self.policy.1);
                self.policy = (name, self.policy.1 + 1);
                self.play_scene(|scene| {
                    scene.dispatcher().set_policy(fresh);
                    scene.rights_changed();
                });
                self.stage.configure(name);
            }
            Deed::Quantum(quantum_ns) => {
                self.play_scene(|scene| {
                    scene.dispatcher().set_quantum(quantum_ns);
                    scene.rights_changed();
                });
                self.stage.configure(self.policy.0);
            }
            Deed::Move(..) => unreachable!("pools are refused"),
            Deed::Slots(deed) => {
                if let Some(slots) = &mut self.slots {
                    slots.apply(&deed, &mut self.looks.run);
                }
            }
            Deed::SetNice(..) => unreachable!("nice values are refused"),
            Deed::Signal(signal) => self.play_scene(|scene| scene.signal(signal)),
        }
        Ok(())
    }

    /// Clients start afresh, unless they have threads.
    fn start(&mut self, clients: &[u32], watch: &mut dyn Watch) -> Result<()> {
        let mut clients = clients.to_vec();
        clients.retain(|&client| self.crew.clients[client as usize].threads == 0);
        let mut without = clients.clone();
        without.retain(|&client| self.crew.clients[client as usize].process.is_none());
        self.get_ready(&without, watch)?;
        for client in clients {
            let process = self.crew.clients[client as usize].process.as_mut();
            let Some(socket) = process.and_then(|(_, socket)| socket.take()) else {
                continue;
            };
            let failed = StageError::failed("listen to a process");
            let thread = self.crew.add(client, socket).map_err(failed)?;
            self.start_rule(client);
            self.begin(thread);
        }
        Ok(())
    }

    /// Ends all threads of a client.
    fn stop(&mut self, client: u32) {
        if self.crew.clients[client as usize].threads == 0 {
            return;
        }
        self.crew.let_end(client, true);
        for thread in self.crew.numbers(client) {
            self.remove(thread, client);
        }
    }

    fn start_rule(&mut self, client: u32) {
        if self.rules.begins(client) {
            self.follow_rule(client, self.clock.now_ns());
        }
    }

    fn rule_due(&mut self, client: u32, time_ns: u64) {
        if self.crew.clients[client as usize].threads > 0 {
            self.follow_rule(client, time_ns);
        } else {
            self.rules.rest(client);
        }
    }

    fn follow_rule(&mut self, client: u32, time_ns: u64) {
        let received_ns = self.crew.received_ns()[client as usize];
        let Some(change) = self.rules.follow(client, received_ns) else {
            return;
        };
        self.plan(time_ns + change.every_ns, Due::Rule { client });
        self.play_scene(|scene| {
            scene.apply(change.operation);
        });
    }
}
