//! Answers that describe: what each asker may see, in the protocol's terms.

use std::sync::Mutex;

use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::{BOOST_ONE, Balance};
use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{
    ClientView, CurrencyView, Ledger, Principal, Target, TicketView, TransferView,
};
use prorata_protocol::{
    ClientReport, ClientState, CurrencyReport, EngineChoice, EventReport, HybridReport, NiceReport,
    ProcessReport, ProcessesReport, StatusReport, TicketReport, TransferReport, TurnsReport,
    UsersReport,
};

use crate::engine::{ClientAccount, Engine, lock};
use crate::host::Host;
use crate::process::ProcessId;
use crate::state::State;
use crate::users::Census;

/// Whether `who` may see a client: its owner may, and so may every reader of a
/// currency that funds it.
pub(crate) fn may_see_client(ledger: &Ledger, who: &Principal, client: &ClientView<'_>) -> bool {
    who.acts_for(client.owner)
        || ledger
            .funding(client.id)
            .filter_map(|ticket| ledger.ticket(ticket))
            .any(|ticket| ledger.may_read(who, ticket.currency))
}

/// Which engine runs, and what differs from the user's choices.
#[derive(Clone, Default, Debug)]
pub(crate) struct RunningChoice {
    pub engine: EngineChoice,
    /// One sentence, where another engine was chosen.
    pub trouble: Option<String>,
    /// One sentence, where the journal does not lie in the state directory.
    pub journal_trouble: Option<String>,
}

/// Answers for one client of the daemon. Never asks the engine while it holds
/// the dispatcher.
pub(crate) struct Reporter<'a> {
    pub state: &'a State,
    pub dispatcher: &'a Mutex<Dispatcher>,
    pub engine: &'a dyn Engine,
    pub choice: &'a RunningChoice,
    pub host: &'a dyn Host,
    pub census: &'a Census,
    pub who: &'a Principal,
}

impl Reporter<'_> {
    /// The daemon and its engine.
    pub fn status(&self) -> StatusReport {
        let status = self.engine.status();
        let of_engine = status.trouble.or_else(|| self.choice.trouble.clone());
        let troubles = [
            of_engine,
            self.limits_trouble(),
            self.choice.journal_trouble.clone(),
        ];
        let troubles: Vec<String> = troubles.into_iter().flatten().collect();
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            engine: status.engine.to_owned(),
            engine_choice: self.choice.engine,
            mechanism: status.mechanism.to_owned(),
            queues: status.queues,
            hybrid: Some(status.hybrid.unwrap_or_else(|| {
                // The engine follows the dispatcher.
                self.state.settings.hybrid.unwrap_or_default()
            })),
            traced: status.traced,
            policy: self.state.settings.policy,
            quantum_ns: self.state.settings.quantum_ns,
            cpus: status.cpus,
            uptime_ns: status.uptime_ns,
            stays: self.state.settings.stays,
            users: self.state.settings.users.then(|| UsersReport {
                left_out: self.census.declined(),
            }),
            own_cpu_ns: status.own_cpu_ns,
            decisions: status.decisions,
            clients: (self.state.roots.len() + self.state.rests.len()) as u32,
            outside: status.outside,
            advice: status.advice.map(str::to_owned),
            trouble: (!troubles.is_empty()).then(|| troubles.join("; ")),
        }
    }

    /// Clients keep their limits when a daemon starts another engine, which may not hold them.
    fn limits_trouble(&self) -> Option<String> {
        let most = self.engine.most_limits();
        let (client, _) = self.state.ledger.limited_clients().nth(most)?;
        let engine = self.engine.status().engine;
        Some(format!(
            "the {engine} engine holds {most} limits of CPU time on this kernel, and not that of \
             client {client}: end limits with `prorata set CLIENT --max none`, or use the user engine"
        ))
    }

    /// All clients that the asker may see.
    pub fn clients(&self) -> Vec<ClientReport> {
        let ledger = &self.state.ledger;
        let clients = ledger.clients();
        let visible = clients.filter(|client| may_see_client(ledger, self.who, client));
        self.reports(visible.map(|client| client.id))
    }

    /// One client; nothing if it is gone. Does not check whether the asker may
    /// see it.
    pub fn client(&self, client: ClientId) -> Option<ClientReport> {
        self.reports(std::iter::once(client)).pop()
    }

    /// The processes of a client. Does not check whether the asker may see them.
    pub fn processes(&self, client: ClientId) -> ProcessesReport {
        self.engine.look();
        let processes = self.engine.processes(client).into_iter();
        ProcessesReport {
            client: client.to_string(),
            processes: processes
                .map(|process| ProcessReport {
                    pid: process.pid,
                    start_time_ticks: process.start_time_ticks,
                })
                .collect(),
        }
    }

    fn reports(&self, clients: impl Iterator<Item = ClientId>) -> Vec<ClientReport> {
        self.engine.look();
        let observed: Vec<Observed> = clients.map(|client| self.observe(client)).collect();
        let dispatcher = lock(self.dispatcher);
        observed
            .iter()
            .filter_map(|client| self.client_report(&dispatcher, client))
            .collect()
    }

    fn observe(&self, client: ClientId) -> Observed {
        let state = match self.state.suspended.contains(&client) {
            true => ClientState::Suspended,
            // Between its last process's end and its own a client is blocked.
            false => self.engine.state(client).unwrap_or(ClientState::Blocked),
        };
        let processes = self.engine.processes(client);
        Observed {
            client,
            state,
            processes: processes.len() as u32,
            first: processes.first().map(|process| process.pid),
            nice: self.nice(&processes),
            account: self.engine.account(client),
        }
    }

    fn nice(&self, processes: &[ProcessId]) -> Option<NiceReport> {
        let asked = processes.iter().take(MOST_NICE);
        let values = asked.filter_map(|process| self.host.nice(process.pid));
        values.fold(None, |before, nice| {
            let (least, greatest) = before.map_or((nice, nice), |report: NiceReport| {
                (report.least.min(nice), report.greatest.max(nice))
            });
            Some(NiceReport { least, greatest })
        })
    }

    fn client_report(&self, dispatcher: &Dispatcher, observed: &Observed) -> Option<ClientReport> {
        let ledger = dispatcher.ledger();
        let client = ledger.client(observed.client)?;
        let tickets = ledger
            .funding(client.id)
            .filter_map(|ticket| ledger.ticket(ticket));
        let readable = tickets.filter(|ticket| ledger.may_read(self.who, ticket.currency));
        let usage = dispatcher.usage(client.id);
        let (received_ns, specified_ns) = match &observed.account {
            Some(account) => (account.received_ns, account.specified_ns),
            None => (usage.received_ns, usage.specified_ns),
        };
        let difference_ns = i128::from(received_ns) - i128::from(specified_ns);
        Some(ClientReport {
            id: client.id.to_string(),
            name: client.name.to_owned(),
            owner: client.owner,
            pid: self.pid(client.id).or(observed.first)?,
            processes: observed.processes,
            state: observed.state,
            tickets: readable
                .map(|ticket| (ticket.amount, currency_name(ledger, ticket.currency)))
                .collect(),
            value: client.value.to_f64(),
            quantum_ns: self.state.quanta_ns.get(&client.id).copied(),
            max: client.max,
            share: usage.share,
            specified_ns,
            received_ns,
            error_quanta: difference_ns as f64 / dispatcher.quantum_ns() as f64,
            turns: observed.account.as_ref().map(turns_report),
            hybrid: match &observed.account {
                Some(account) => account.hybrid,
                None => dispatcher.balance(client.id).map(hybrid_report),
            },
            nice: observed.nice,
        })
    }

    /// Pid of a process from which the others of a client descend.
    fn pid(&self, client: ClientId) -> Option<u32> {
        let roots = self.state.roots.get(&client)?;
        Some(roots.first()?.pid)
    }

    /// All currencies that the asker may read.
    pub fn currencies(&self) -> Vec<CurrencyReport> {
        self.engine.look();
        let dispatcher = lock(self.dispatcher);
        let ledger = dispatcher.ledger();
        let currencies = ledger.currencies();
        let readable = currencies.filter(|currency| ledger.may_read(self.who, currency.id));
        readable
            .map(|currency| currency_report(ledger, &currency))
            .collect()
    }

    /// All tickets, or those of one currency, that the asker may read.
    pub fn tickets(&self, currency: Option<CurrencyId>) -> Vec<TicketReport> {
        self.engine.look();
        let dispatcher = lock(self.dispatcher);
        let ledger = dispatcher.ledger();
        let wanted = |ticket: &TicketView| {
            currency.is_none_or(|currency| ticket.currency == currency)
                && ledger.may_read(self.who, ticket.currency)
        };
        ledger
            .tickets()
            .filter(wanted)
            .map(|ticket| ticket_report(ledger, &ticket))
            .collect()
    }

    /// The last events of clients that the asker may see, the oldest first. Only the daemon's owner
    /// may see those of clients that are gone.
    pub fn events(&self, count: usize) -> Vec<EventReport> {
        let ledger = &self.state.ledger;
        let is_owner = self.who.acts_for(self.host.own_uid());
        let named = |(client, report): (ClientId, EventReport)| {
            let view = ledger.client(client);
            let name = match &view {
                Some(view) if may_see_client(ledger, self.who, view) => view.name.to_owned(),
                None if is_owner => "-".to_owned(),
                _ => return None,
            };
            Some(EventReport {
                client: Some(client.to_string()),
                name,
                ..report
            })
        };
        let mut events: Vec<EventReport> =
            self.engine.events().into_iter().filter_map(named).collect();
        events.drain(..events.len().saturating_sub(count));
        events
    }

    /// All transfers of which the asker may see a share, with those shares.
    pub fn transfers(&self) -> Vec<TransferReport> {
        let ledger = &self.state.ledger;
        let transfers = ledger.transfers().filter_map(|mut transfer| {
            transfer
                .shares
                .retain(|(_, currency, _)| ledger.may_read(self.who, *currency));
            let visible = !transfer.shares.is_empty();
            visible.then(|| transfer_report(ledger, &transfer))
        });
        transfers.collect()
    }
}

/// What the engine knows of a client.
struct Observed {
    client: ClientId,
    state: ClientState,
    processes: u32,
    /// Pid of one of them.
    first: Option<u32>,
    nice: Option<NiceReport>,
    account: Option<ClientAccount>,
}

/// So many processes of a client are asked for their nice values.
const MOST_NICE: usize = 64;

fn hybrid_report(balance: Balance) -> HybridReport {
    HybridReport {
        boost: Some(f64::from(balance.boost) / f64::from(BOOST_ONE)),
        lead_ns: balance.lead_ns,
    }
}

fn turns_report(account: &ClientAccount) -> TurnsReport {
    TurnsReport {
        turns: account.turns,
        migrations: account.migrations,
        waited_ns: account.waited_ns,
        wait_median_ns: shorter_than(&account.waits, 50),
        wait_99th_ns: shorter_than(&account.waits, 99),
    }
}

/// The least power of two below which so many percent of all waits were; zero
/// without any wait.
fn shorter_than(waits: &[u64], percent: u64) -> u64 {
    let total: u64 = waits.iter().sum();
    let mut left = total.saturating_mul(percent).div_ceil(100);
    for (class, count) in waits.iter().enumerate() {
        left = left.saturating_sub(*count);
        if left == 0 {
            return if total == 0 { 0 } else { 1 << class };
        }
    }
    0
}

fn currency_report(ledger: &Ledger, currency: &CurrencyView<'_>) -> CurrencyReport {
    CurrencyReport {
        id: currency.id.to_string(),
        name: currency.name.to_owned(),
        owner: currency.owner,
        mode: currency.mode.to_string(),
        issued: currency.issued_amount,
        active: currency.active_amount,
        value: currency.value.to_f64(),
        backing: ledger
            .backing(currency.id)
            .map(|ticket| ticket.to_string())
            .collect(),
    }
}

fn ticket_report(ledger: &Ledger, ticket: &TicketView) -> TicketReport {
    TicketReport {
        id: ticket.id.to_string(),
        currency: currency_name(ledger, ticket.currency),
        amount: ticket.amount,
        lent: ticket.lent,
        target: ticket.target.map(|target| target_name(ledger, target)),
        active: ticket.active,
        value: ticket.value.to_f64(),
        transfer: ticket.transfer.map(|(transfer, _)| transfer.to_string()),
    }
}

fn transfer_report(ledger: &Ledger, transfer: &TransferView) -> TransferReport {
    let shares = transfer.shares.iter().map(|(target, currency, amount)| {
        (
            target_name(ledger, *target),
            currency_name(ledger, *currency),
            *amount,
        )
    });
    TransferReport {
        id: transfer.id.to_string(),
        from: client_name(ledger, transfer.from),
        shares: shares.collect(),
    }
}

fn target_name(ledger: &Ledger, target: Target) -> String {
    match target {
        Target::Currency(currency) => format!("currency:{}", currency_name(ledger, currency)),
        Target::Client(client) => format!("client:{}", client_name(ledger, client)),
    }
}

fn currency_name(ledger: &Ledger, currency: CurrencyId) -> String {
    ledger
        .currency(currency)
        .map_or_else(|| currency.to_string(), |view| view.name.to_owned())
}

fn client_name(ledger: &Ledger, client: ClientId) -> String {
    ledger
        .client(client)
        .map_or_else(|| client.to_string(), |view| view.name.to_owned())
}
