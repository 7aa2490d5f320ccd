//! Decoding: what a request means, and whether it is allowed.
//!
//! Decoding changes nothing. The resulting [`Plan`] is checked completely:
//! carrying it out cannot be refused half-way.

mod clients;
mod currencies;
mod defaults;
mod draft;
mod names;
mod processes;
mod quota;
mod rest;
mod slots;
mod transfers;

use std::cell::Cell;
use std::time::Duration;

use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Operation, Principal};
use prorata_protocol::{HybridChoice, MOST_EVENTS, PolicyName, Request};

use crate::engine::Engine;
use crate::host::Host;
use crate::peer::Peer;
use crate::refusal::Refusal;
use crate::slots::SlotsCall;
use crate::state::{Change, MAX_QUANTUM_NS, MIN_QUANTUM_NS, Settings, State};
pub(crate) use defaults::USER_FUNDING;
use draft::Draft;
pub use names::name_of_program;
#[cfg(test)]
pub(crate) use quota::QUOTA;
pub(crate) use rest::{rest_of_user, unused_currency};

/// What to do and what to answer then.
#[derive(Debug)]
pub(crate) struct Plan {
    /// All of them, or none.
    pub changes: Vec<Change>,
    pub answer: Answer,
}

/// What to answer when the changes have been made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Done,
    /// What the last operation created.
    Created,
    Client(ClientId),
    Suspended(ClientId),
    Status,
    Clients,
    /// The client of a process.
    Found(Option<ClientId>),
    /// Of one client.
    Processes(ClientId),
    Currencies,
    /// Of one currency, or all.
    Tickets(Option<CurrencyId>),
    Transfers,
    /// So many.
    Events(u32),
    /// What the timetable says; it checks the rest.
    Slots(Box<SlotsCall>),
    /// Done, and the daemon ends.
    Stop,
}

/// What a request is decoded against.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub state: &'a State,
    pub engine: &'a dyn Engine,
    pub host: &'a dyn Host,
}

/// Decodes one request of `peer`.
pub(crate) fn decode(request: &Request, peer: &Peer, view: View<'_>) -> Result<Plan, Refusal> {
    let mut decoder = Decoder {
        view,
        who: &peer.principal,
        asker_pid: peer.pid,
        outside_at_ns: Some(&peer.outside_at_ns),
        draft: Draft::new(&view.state.ledger),
    };
    let answer = decoder.decode(request)?;
    let changes = decoder.draft.into_changes();
    let daemon_uid = view.host.own_uid();
    if !peer.principal.acts_for(daemon_uid) {
        quota::check(view.state, &changes, daemon_uid)?;
    }
    Ok(Plan { changes, answer })
}

/// One request on its way.
struct Decoder<'a> {
    view: View<'a>,
    who: &'a Principal,
    asker_pid: u32,
    /// [`Peer::outside_at_ns`]; none for the daemon itself.
    outside_at_ns: Option<&'a Cell<Option<u64>>>,
    draft: Draft<'a>,
}

impl Decoder<'_> {
    fn decode(&mut self, request: &Request) -> Result<Answer, Refusal> {
        match request {
            Request::Status => Ok(Answer::Status),
            Request::Clients => Ok(Answer::Clients),
            Request::FindClient { pid } => Ok(Answer::Found(self.view.engine.find(*pid))),
            Request::Processes { client } => self.processes(client),
            Request::Currencies => Ok(Answer::Currencies),
            Request::Transfers => Ok(Answer::Transfers),
            Request::Events { count } => self.list_events(*count),
            Request::Tickets { currency } => self.list_tickets(currency.as_deref()),
            Request::Register {
                pid,
                name,
                funding,
                quantum_ns,
                max,
                adopts,
            } => {
                let client = self.register(*pid, name.as_deref(), funding)?;
                if max.is_some() {
                    self.limit(client, *max)?;
                }
                if quantum_ns.is_some() {
                    self.set_quantum_of(client, *quantum_ns)?;
                }
                if *adopts {
                    let parent = self.asking_parent(*pid)?;
                    self.draft.push(Change::Adopter { client, parent });
                }
                Ok(Answer::Client(client))
            }
            Request::Release { client } => self.release(client),
            Request::Suspend { client } => self.suspend(client),
            Request::Resume { client } => self.resume(client),
            Request::SetTickets { client, funding } => self.set_tickets(client, funding),
            Request::SetQuantum { client, quantum_ns } => self.set_quantum(client, *quantum_ns),
            Request::SetMax { client, max } => self.set_max(client, *max),
            Request::ChangeUser { client, user } => self.change_user(client, user),
            Request::CreateCurrency { name, owner, mode } => {
                self.create_currency(name, *owner, *mode)
            }
            Request::DestroyCurrency { name } => {
                let currency = self.currency(name)?;
                self.check_last(Operation::DestroyCurrency { currency })
            }
            Request::Issue { funding, target } => self.issue(funding, target.as_deref()),
            Request::DestroyTicket { ticket } => {
                let ticket = self.ticket(ticket)?;
                self.check_last(Operation::DestroyTicket { ticket })
            }
            Request::SetAmount { ticket, amount } => {
                let (ticket, amount) = (self.ticket(ticket)?, *amount);
                self.check_last(Operation::SetAmount { ticket, amount })
            }
            Request::Fund { ticket, target } => {
                let (ticket, target) = (self.ticket(ticket)?, self.target(target)?);
                self.check_last(Operation::Fund { ticket, target })
            }
            Request::Unfund { ticket } => {
                let ticket = self.ticket(ticket)?;
                self.check_last(Operation::Unfund { ticket })
            }
            Request::SetFunding { user, amount } => self.set_funding(user, *amount),
            Request::Transfer {
                from,
                portion,
                hold,
            } => self.transfer(from, portion, *hold),
            Request::EndTransfer { transfer } => {
                let transfer = self.transfer_id(transfer)?;
                self.check_last(Operation::EndTransfer { transfer })
            }
            Request::Configure {
                quantum_ns,
                policy,
                hybrid,
                stay,
                users,
            } => self.configure(*quantum_ns, *policy, *hybrid, *stay, *users),
            Request::Slots(request) => {
                let call = self.slots(request)?;
                Ok(Answer::Slots(Box::new(call)))
            }
            Request::Stop => self.stop(),
        }
    }

    fn check_last(&mut self, operation: Operation) -> Result<Answer, Refusal> {
        self.draft.check_last(self.who, operation)?;
        Ok(Answer::Done)
    }

    fn list_events(&self, count: u32) -> Result<Answer, Refusal> {
        if !(1..=MOST_EVENTS).contains(&count) {
            return Err(Refusal::EventCount(count));
        }
        match self.view.engine.keeps_events() {
            true => Ok(Answer::Events(count)),
            false => Err(Refusal::NoEvents(self.view.engine.status().engine)),
        }
    }

    fn configure(
        &mut self,
        quantum_ns: Option<u64>,
        policy: Option<PolicyName>,
        hybrid: Option<HybridChoice>,
        stay: bool,
        users: bool,
    ) -> Result<Answer, Refusal> {
        if users && self.view.host.own_uid() != 0 {
            return Err(Refusal::UsersNeedRoot);
        }
        let now = &self.view.state.settings;
        let status = self.view.engine.status();
        let hybrid = match (hybrid, status.hybrid) {
            (Some(wanted), Some(fixed)) if wanted != fixed => {
                return Err(Refusal::FixedHybrid {
                    wanted,
                    fixed,
                    engine: status.engine,
                });
            }
            // The engine has them, and the settings are those of another one.
            (_, Some(_)) => None,
            (wanted, None) => wanted,
        };
        let settings = Settings {
            quantum_ns: quantum_ns.unwrap_or(now.quantum_ns),
            policy: policy.unwrap_or(now.policy),
            hybrid: hybrid.or(now.hybrid),
            stays: stay || now.stays,
            users: users || now.users,
            ..now.clone()
        };
        if settings != *now {
            self.check_daemon_owner("change how the daemon decides")?;
            check_quantum(settings.quantum_ns)?;
            let known = self.view.engine.policies();
            if !known.contains(&settings.policy) {
                return Err(Refusal::Policy {
                    policy: settings.policy,
                    engine: status.engine,
                    known,
                });
            }
            self.draft.push(Change::Configure(settings));
        }
        Ok(Answer::Status)
    }

    /// All clients are released before the daemon ends. The next daemon stays,
    /// and manages what users run, only if it is started like this one.
    fn stop(&mut self) -> Result<Answer, Refusal> {
        self.check_daemon_owner("stop the daemon")?;
        let now = &self.view.state.settings;
        if now.stays || now.users {
            self.draft.push(Change::Configure(Settings {
                stays: false,
                users: false,
                ..now.clone()
            }));
        }
        if self.view.state.timetable.is_some() {
            self.draft.push(Change::Timetable(None));
        }
        for client in self.view.state.ledger.clients() {
            self.draft.push(Change::Ledger(Operation::DestroyClient {
                client: client.id,
            }));
        }
        Ok(Answer::Stop)
    }

    fn check_daemon_owner(&self, what: &'static str) -> Result<(), Refusal> {
        let owner = self.view.host.own_uid();
        match self.who.acts_for(owner) {
            true => Ok(()),
            false => Err(Refusal::NotDaemonOwner {
                uid: self.who.uid,
                what,
                owner,
            }),
        }
    }
}

/// Whether engines can enforce the quantum.
fn check_quantum(quantum_ns: u64) -> Result<(), Refusal> {
    match (MIN_QUANTUM_NS..=MAX_QUANTUM_NS).contains(&quantum_ns) {
        true => Ok(()),
        false => Err(Refusal::Quantum(Duration::from_nanos(quantum_ns))),
    }
}
