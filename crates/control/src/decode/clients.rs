//! Requests about clients.

use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{LedgerError, Operation, Outcome, Target, TicketView};
use prorata_protocol::{CpuLimit, Funding};

use super::defaults::CLIENT_TICKETS;
use super::names::{check_new_name, name_of_program, unique_client_name};
use super::{Answer, Decoder, check_quantum};
use crate::process::{ProcessId, ProcessInfo};
use crate::refusal::Refusal;
use crate::state::Change;

impl Decoder<'_> {
    pub(super) fn register(
        &mut self,
        pid: u32,
        name: Option<&str>,
        funding: &Funding,
    ) -> Result<ClientId, Refusal> {
        let process = self.manageable(pid)?;
        self.check_no_shell_job(&process)?;
        let wanted = match name {
            Some(name) => {
                check_new_name(name)?;
                name.to_owned()
            }
            None => name_of_program(&process.name),
        };
        let currency = self.currency_or_default(funding, process.uid)?;
        let name = unique_client_name(self.ledger(), wanted);
        let create = Operation::CreateClient {
            name: Some(name),
            owner: process.uid,
        };
        let Outcome::Client(client) = self.draft.execute(self.who, create)? else {
            unreachable!("a client was asked for")
        };
        self.issue_to(currency, funding.amount, client)?;
        self.draft.push(Change::Roots {
            client,
            roots: vec![process.id],
        });
        Ok(client)
    }

    pub(super) fn release(&mut self, client: &str) -> Result<Answer, Refusal> {
        let client = self.client(client)?;
        self.check_not_rest(client, "release")?;
        self.check_last(Operation::DestroyClient { client })
    }

    pub(super) fn processes(&self, client: &str) -> Result<Answer, Refusal> {
        let client = self.own_client(client, "list the processes of")?;
        Ok(Answer::Processes(client))
    }

    pub(super) fn suspend(&mut self, client: &str) -> Result<Answer, Refusal> {
        let client = self.own_client(client, "suspend")?;
        self.check_not_rest(client, "suspend")?;
        if !self.view.state.suspended.contains(&client) {
            self.draft.push(Change::Suspend(client));
        }
        Ok(Answer::Suspended(client))
    }

    pub(super) fn resume(&mut self, client: &str) -> Result<Answer, Refusal> {
        let client = self.own_client(client, "resume")?;
        if self.view.state.suspended.contains(&client) {
            self.draft.push(Change::Resume(client));
        }
        Ok(Answer::Done)
    }

    pub(super) fn set_quantum(
        &mut self,
        client: &str,
        quantum_ns: Option<u64>,
    ) -> Result<Answer, Refusal> {
        let client = self.own_client(client, "change the quantum of")?;
        if self.view.state.quanta_ns.get(&client).copied() != quantum_ns {
            self.set_quantum_of(client, quantum_ns)?;
        }
        Ok(Answer::Done)
    }

    /// Sets the quantum of a client of the asker.
    pub(super) fn set_quantum_of(
        &mut self,
        client: ClientId,
        quantum_ns: Option<u64>,
    ) -> Result<(), Refusal> {
        quantum_ns.map_or(Ok(()), check_quantum)?;
        // A longer quantum makes other clients wait.
        if quantum_ns > Some(self.view.state.settings.quantum_ns) {
            self.check_daemon_owner("give a client a longer quantum than that of all")?;
        }
        self.draft.push(Change::Quantum { client, quantum_ns });
        Ok(())
    }

    pub(super) fn set_max(
        &mut self,
        client: &str,
        max: Option<CpuLimit>,
    ) -> Result<Answer, Refusal> {
        let client = self.own_client(client, "limit")?;
        if self.ledger().cpu_limit(client) != max {
            self.limit(client, max)?;
        }
        Ok(Answer::Done)
    }

    /// Whether the engine can hold another client, or this one, to a limit.
    fn check_room_for_limit(&self, client: ClientId) -> Result<(), Refusal> {
        let others = self.ledger().limited_clients();
        let others = others.filter(|(limited, _)| *limited != client).count();
        let most = self.view.engine.most_limits();
        if others < most {
            return Ok(());
        }
        let engine = self.view.engine.status().engine;
        Err(match most {
            0 => Refusal::NoLimits { engine },
            _ => Refusal::TooManyLimits { engine, most },
        })
    }

    /// Limits the CPU time of a client of the asker, or ends its limit.
    pub(super) fn limit(&mut self, client: ClientId, max: Option<CpuLimit>) -> Result<(), Refusal> {
        if max.is_some() {
            self.check_not_rest(client, "limit")?;
            self.check_room_for_limit(client)?;
            for root in self.roots_of(client) {
                self.check_may_pause(&root)?;
            }
        }
        let limit = Operation::LimitClient { client, max };
        self.draft.check_last(self.who, limit)
    }

    /// Inflates or deflates the one ticket that is meant; issues one to a
    /// client without any; registers a process without client.
    pub(super) fn set_tickets(
        &mut self,
        client: &str,
        funding: &Funding,
    ) -> Result<Answer, Refusal> {
        let client = match self.client(client) {
            Err(Refusal::NotManaged(pid)) => {
                return self.register(pid, None, funding).map(Answer::Client);
            }
            found => found?,
        };
        let tickets = self.own_tickets(client);
        let Some(first) = tickets.first() else {
            let owner = self.owner_of(client);
            let currency = self.currency_or_default(funding, owner)?;
            self.issue_to(currency, funding.amount, client)?;
            return Ok(Answer::Done);
        };
        let currency = match &funding.currency {
            Some(name) => self.currency(name)?,
            None => self.only_currency(client, &tickets, funding.amount)?,
        };
        let mut fitting = tickets.iter().filter(|ticket| ticket.currency == currency);
        match (fitting.next(), fitting.next()) {
            (Some(ticket), None) => self.check_last(Operation::SetAmount {
                ticket: ticket.id,
                amount: funding.amount,
            }),
            (Some(first), Some(second)) => Err(Refusal::SeveralTickets {
                client: self.name_of(client),
                first: first.id.to_string(),
                second: second.id.to_string(),
                currency: self.currency_name(currency),
            }),
            (None, _) => Err(Refusal::NotHeld {
                client: self.name_of(client),
                wanted: self.currency_name(currency),
                held: format!("'{}'", self.currency_name(first.currency)),
            }),
        }
    }

    /// The currency of all these tickets of a client, of which one is to get another amount.
    fn only_currency(
        &self,
        client: ClientId,
        tickets: &[TicketView],
        amount: u32,
    ) -> Result<CurrencyId, Refusal> {
        let first = &tickets[0];
        let mut others = tickets.iter();
        let Some(other) = others.find(|ticket| ticket.currency != first.currency) else {
            return Ok(first.currency);
        };
        // A caller who may change none of them need not choose.
        let refused = |ticket: &TicketView| {
            let set = Operation::SetAmount {
                ticket: ticket.id,
                amount,
            };
            self.ledger().check(self.who, set).err()
        };
        let refusals: Option<Vec<LedgerError>> = tickets.iter().map(refused).collect();
        Err(match refusals.and_then(|all| all.into_iter().next()) {
            Some(why) => why.into(),
            None => Refusal::SeveralCurrencies {
                client: self.name_of(client),
                first: self.currency_name(first.currency),
                second: self.currency_name(other.currency),
            },
        })
    }

    /// Replaces the tickets that the client holds by as many of the other
    /// user's currency. Registers a process without client.
    pub(super) fn change_user(&mut self, client: &str, user: &str) -> Result<Answer, Refusal> {
        let (client, user) = (self.client(client), self.user(user)?);
        let client = match client {
            Err(Refusal::NotManaged(pid)) => {
                let currency = self.currency_of_user(user)?;
                let funding = Funding {
                    amount: CLIENT_TICKETS,
                    currency: Some(self.currency_name(currency)),
                };
                return self.register(pid, None, &funding).map(Answer::Client);
            }
            found => found?,
        };
        let tickets = self.own_tickets(client);
        let total: u64 = tickets
            .iter()
            .map(|ticket| u64::from(ticket.amount) + u64::from(ticket.lent))
            .sum();
        let amount = match tickets.len() {
            0 => CLIENT_TICKETS,
            _ => u32::try_from(total).map_err(|_| Refusal::TooManyTickets {
                client: self.name_of(client),
                total,
            })?,
        };
        let currency = self.currency_of_user(user)?;
        self.issue_to(currency, amount, client)?;
        for ticket in tickets {
            self.draft
                .execute(self.who, Operation::DestroyTicket { ticket: ticket.id })?;
        }
        Ok(Answer::Done)
    }

    /// The currency that a request names, or the own one of `uid`.
    pub(super) fn currency_or_default(
        &mut self,
        funding: &Funding,
        uid: u32,
    ) -> Result<CurrencyId, Refusal> {
        match &funding.currency {
            Some(name) => self.currency(name),
            None => self.currency_of_user(uid),
        }
    }

    pub(super) fn issue_to(
        &mut self,
        currency: CurrencyId,
        amount: u32,
        client: ClientId,
    ) -> Result<(), Refusal> {
        let target = Some(Target::Client(client));
        self.draft
            .execute(
                self.who,
                Operation::Issue {
                    currency,
                    amount,
                    target,
                },
            )
            .map(drop)
    }

    /// The living processes from which the others of a client descend, also if this request
    /// registers the client.
    fn roots_of(&self, client: ClientId) -> Vec<ProcessInfo> {
        let known = self.view.state.roots.get(&client);
        let roots = known.or_else(|| self.draft.roots_of(client));
        let alive = |root: &ProcessId| {
            let process = self.view.host.process(root.pid);
            process.filter(|process| process.id == *root)
        };
        roots.into_iter().flatten().filter_map(alive).collect()
    }

    /// A client that the asker may change.
    fn own_client(&self, text: &str, what: &'static str) -> Result<ClientId, Refusal> {
        let client = self.client(text)?;
        let owner = self.owner_of(client);
        match self.who.acts_for(owner) {
            true => Ok(client),
            false => Err(Refusal::NotClientOwner {
                uid: self.who.uid,
                what,
                client: self.name_of(client),
                owner,
            }),
        }
    }

    /// Refuses what would let the programs of a user go without a share, or stop them by signals,
    /// though nobody named them.
    fn check_not_rest(&self, client: ClientId, what: &'static str) -> Result<(), Refusal> {
        match self.view.state.is_rest(client) {
            true => Err(Refusal::Rest {
                name: self.name_of(client),
                what,
            }),
            false => Ok(()),
        }
    }

    /// The client's tickets except those that were transferred to it.
    fn own_tickets(&self, client: ClientId) -> Vec<TicketView> {
        let ledger = self.ledger();
        let tickets = ledger.funding(client).filter_map(|id| ledger.ticket(id));
        tickets.filter(|ticket| ticket.transfer.is_none()).collect()
    }

    fn owner_of(&self, client: ClientId) -> u32 {
        self.ledger().client(client).expect("it was found").owner
    }

    pub(super) fn name_of(&self, client: ClientId) -> String {
        self.ledger()
            .client(client)
            .expect("it was found")
            .name
            .to_owned()
    }

    pub(super) fn currency_name(&self, currency: CurrencyId) -> String {
        self.ledger()
            .currency(currency)
            .expect("it was found")
            .name
            .to_owned()
    }
}
