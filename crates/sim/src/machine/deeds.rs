//! Events of the timeline.

use prorata_core::policy::PolicyName;
use prorata_scenario::file::Time;
use prorata_scenario::plan::{Deed, client_id};
use prorata_scenario::policy;
use prorata_scenario::world::{Deeds as _, Waiting as _};

use super::Simulation;
use crate::observer::Observer;

impl<O: Observer> Simulation<O> {
    pub(super) fn deed_due(&mut self, index: u32) {
        // A scenario's timeline is short, and each deed happens once.
        let (_, deed) = self.machine.timeline[index as usize].clone();
        self.do_deed(deed);
    }

    pub(crate) fn do_deed(&mut self, deed: Deed) {
        match deed {
            Deed::Start(clients) => clients.into_iter().for_each(|client| self.start(client)),
            Deed::Stop(clients) => clients.into_iter().for_each(|client| self.stop(client)),
            Deed::SetTickets(holders, currency, amount) => {
                for holder in holders {
                    self.set_tickets(holder, currency, amount);
                }
            }
            Deed::SetMax(clients, max) => {
                clients
                    .into_iter()
                    .for_each(|client| self.set_max(client, max));
            }
            Deed::SetNice(clients, nice) => {
                // So the time before the change is due at the old rate.
                self.account_all();
                let dispatcher = &mut self.machine.dispatcher;
                clients
                    .map(client_id)
                    .for_each(|client| dispatcher.set_nice(client, nice));
            }
            Deed::Unfund(holders, currency) => {
                for holder in holders {
                    self.unfund(holder, currency);
                }
            }
            Deed::Transfer(transfer) => self.begin_transfer(transfer),
            Deed::EndTransfer(name) => self.end_named_transfer(&name),
            Deed::Move(clients, pool) => {
                clients
                    .into_iter()
                    .for_each(|client| self.move_client(client, pool));
            }
            Deed::Policy(name) => self.set_policy(name),
            Deed::Quantum(quantum_ns) => {
                self.machine.machine.quantum = Time(quantum_ns);
                self.machine.dispatcher.set_quantum(quantum_ns);
            }
            Deed::Signal(signal) => self.signal(signal),
            Deed::Slots(deed) => self.do_slot_deed(&deed),
        }
    }

    fn set_policy(&mut self, name: PolicyName) {
        self.end_all_turns();
        let machine = &mut self.machine;
        machine.machine.policy = name;
        for pool in 0..machine.pools.len() as u32 {
            let fresh = policy(name, machine.seed, machine.policies);
            machine.policies += 1;
            machine.dispatcher.set_policy_of(pool, fresh);
        }
    }
}
