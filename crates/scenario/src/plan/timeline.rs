//! The timeline, with its names looked up.

use std::ops::Range;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::hybrid::Nice;
use prorata_core::ids::CurrencyId;
use prorata_core::ledger::{Ledger, Portion, Target};
use prorata_core::policy::PolicyName;

use super::names::Names;
use super::slots::{self, SlotDeed, SlotPlan};
use super::{Group, check_nice, check_quantum, client_id, find_clients, limits, rights};
use crate::file::{
    Action, Amount, Assertion, At, KeyPath, Problem, Scenario, ScenarioError, Time, TimeBound,
};

type Result<T> = core::result::Result<T, ScenarioError>;

/// An event from outside.
#[derive(Clone, PartialEq, Debug)]
pub enum Deed {
    /// Starts these clients, unless they have threads.
    Start(Range<u32>),
    /// Ends all threads of these clients.
    Stop(Range<u32>),
    /// Sets the face value of holders' tickets in a currency.
    SetTickets(Vec<Target>, CurrencyId, u32),
    /// Limits the CPU time of these clients, or ends their limits.
    SetMax(Range<u32>, Option<CpuLimit>),
    /// Gives these clients another nice value.
    SetNice(Range<u32>, Nice),
    /// Destroys holders' tickets in a currency.
    Unfund(Vec<Target>, CurrencyId),
    /// Begins a transfer.
    Transfer(PlannedTransfer),
    /// Ends the transfer that this event began.
    EndTransfer(String),
    /// Moves these clients to a pool.
    Move(Range<u32>, u8),
    /// Changes the policy.
    Policy(PolicyName),
    /// Changes the quantum, in nanoseconds.
    Quantum(u64),
    /// Wakes one thread that waits for the signal, now or later.
    Signal(u32),
    /// Changes the timetable.
    Slots(SlotDeed),
}

/// A loan of tickets.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedTransfer {
    /// The name by which it ends.
    pub name: String,
    /// The client that gives.
    pub from: u32,
    /// The amounts and their receivers.
    pub portion: Portion,
}

/// The tables of names.
pub(super) struct Directory<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) groups: &'a [Group],
    pub(super) signals: &'a Names,
    pub(super) pools: &'a Names,
}

impl Directory<'_> {
    pub(super) fn clients(&self, name: &str, place: &KeyPath) -> Result<Range<u32>> {
        find_clients(self.groups, name).ok_or_else(|| place.problem(self.unknown("client", name)))
    }

    pub(super) fn client(&self, name: &str, place: &KeyPath) -> Result<u32> {
        let clients = self.clients(name, place)?;
        if clients.len() > 1 {
            return Err(place.problem(Problem::Step(
                "the name stands for several clients: name one of them, by its number",
            )));
        }
        Ok(clients.start)
    }

    pub(super) fn pair(&self, pair: &(String, String), place: &KeyPath) -> Result<(u32, u32)> {
        let first = self.client(&pair.0, &place.index(0))?;
        let second = self.client(&pair.1, &place.index(1))?;
        if first == second {
            return Err(place.problem(Problem::Duplicate(pair.0.clone())));
        }
        Ok((first, second))
    }

    fn currency(&self, name: &str, place: &KeyPath) -> Result<CurrencyId> {
        let found = self.ledger.find_currency(name);
        found.ok_or_else(|| place.problem(rights::unknown_currency(self.ledger, name)))
    }

    /// A currency, or all copies of a client.
    fn holders(&self, name: &str, place: &KeyPath) -> Result<Vec<Target>> {
        if let Some(clients) = find_clients(self.groups, name) {
            return Ok(clients
                .map(|index| Target::Client(client_id(index)))
                .collect());
        }
        match self.ledger.find_currency(name) {
            Some(currency) => Ok(vec![Target::Currency(currency)]),
            None => Err(place.problem(self.unknown("client or currency", name))),
        }
    }

    fn unknown(&self, kind: &'static str, name: &str) -> Problem {
        let known: Vec<&str> = self
            .groups
            .iter()
            .map(|g| g.name.as_str())
            .take(8)
            .collect();
        Problem::Unknown {
            kind,
            name: name.to_owned(),
            fix: format!("name one that is written, such as {}", known.join(", ")),
        }
    }
}

/// The timeline in the order of time.
pub(super) fn plan(
    timeline: &[At],
    timetable: Option<&SlotPlan>,
    names: &Directory<'_>,
) -> Result<Vec<(u64, Deed)>> {
    let root = KeyPath::default().key("at");
    let deeds = timeline.iter().enumerate().map(|(i, at)| {
        let place = root.index(i).key("do");
        let deed = match slots::deed(&at.action, timetable, names, &place)? {
            Some(deed) => Deed::Slots(deed),
            None => deed(&at.action, names, &place)?,
        };
        Ok((at.time.0, deed))
    });
    let mut deeds: Vec<_> = deeds.collect::<Result<_>>()?;
    check_transfers(timeline, &root)?;
    deeds.sort_by_key(|deed| deed.0);
    Ok(deeds)
}

fn deed(action: &Action, names: &Directory<'_>, place: &KeyPath) -> Result<Deed> {
    Ok(match action {
        Action::Start(client) => Deed::Start(names.clients(client, &place.key("start"))?),
        Action::Stop(client) => Deed::Stop(names.clients(client, &place.key("stop"))?),
        Action::SetTickets(set) => {
            let place = place.key("set-tickets");
            let currency = names.currency(&set.tickets.currency, &place.key("tickets"))?;
            let holders = names.holders(&set.of, &place.key("of"))?;
            Deed::SetTickets(holders, currency, set.tickets.amount)
        }
        Action::SetMax(set) => {
            let place = place.key("set-max");
            Deed::SetMax(names.clients(&set.of, &place.key("of"))?, set.max)
        }
        Action::SetNice(set) => {
            let place = place.key("set-nice");
            let nice = check_nice(set.nice, &place.key("nice"))?;
            Deed::SetNice(names.clients(&set.of, &place.key("of"))?, nice)
        }
        Action::Unfund(unfund) => {
            let place = place.key("unfund");
            let currency = names.currency(&unfund.currency, &place.key("currency"))?;
            Deed::Unfund(names.holders(&unfund.of, &place.key("of"))?, currency)
        }
        Action::Transfer(transfer) => {
            let place = place.key("transfer");
            let to = place.key("to");
            let mut receivers = Vec::new();
            for (i, name) in transfer.to.iter().enumerate() {
                receivers.extend(names.holders(name, &to.index(i))?);
            }
            Deed::Transfer(PlannedTransfer {
                name: transfer.name.clone(),
                from: names.client(&transfer.from, &place.key("from"))?,
                portion: portion(receivers, transfer.tickets.as_ref(), names, &place)?,
            })
        }
        Action::EndTransfer(name) => Deed::EndTransfer(name.clone()),
        Action::Move(to) => {
            let place = place.key("move");
            let pool = names.pools.find(&to.to, &place.key("to"))?;
            Deed::Move(names.clients(&to.client, &place.key("client"))?, pool as u8)
        }
        Action::Policy(policy) => Deed::Policy(*policy),
        Action::Quantum(quantum) => {
            check_quantum(*quantum, &place.key("quantum"))?;
            Deed::Quantum(quantum.0)
        }
        Action::Signal(name) => Deed::Signal(names.signals.find(name, &place.key("signal"))?),
        Action::Claim(_)
        | Action::Free(_)
        | Action::SetTokens(_)
        | Action::Donate(_)
        | Action::Reserve(_) => {
            return Err(place.problem(Problem::Step(slots::NO_TIMETABLE)));
        }
    })
}

fn portion(
    receivers: Vec<Target>,
    tickets: Option<&Amount>,
    names: &Directory<'_>,
    place: &KeyPath,
) -> Result<Portion> {
    let Some(tickets) = tickets else {
        return Ok(Portion::Whole(receivers));
    };
    let currency = names.currency(&tickets.currency, &place.key("tickets"))?;
    let shares = receivers
        .into_iter()
        .map(|receiver| (receiver, tickets.amount));
    Ok(Portion::Part {
        currency: Some(currency),
        shares: shares.collect(),
    })
}

/// Checks that every ended transfer has begun, and that a name means one transfer.
fn check_transfers(timeline: &[At], root: &KeyPath) -> Result<()> {
    let mut begun: Vec<&str> = Vec::new();
    for (i, at) in timeline.iter().enumerate() {
        if let Action::Transfer(transfer) = &at.action {
            if begun.contains(&transfer.name.as_str()) {
                let place = root.index(i).key("do").key("transfer").key("name");
                return Err(place.problem(Problem::Duplicate(transfer.name.clone())));
            }
            begun.push(&transfer.name);
        }
    }
    for (i, at) in timeline.iter().enumerate() {
        if let Action::EndTransfer(name) = &at.action
            && !begun.contains(&name.as_str())
        {
            let place = root.index(i).key("do").key("end-transfer");
            return Err(place.problem(Problem::Unknown {
                kind: "transfer",
                name: name.clone(),
                fix: "let an event begin it".to_owned(),
            }));
        }
    }
    Ok(())
}

/// Names and times of an assertion.
pub(super) fn check_assertion(
    assertion: &Assertion,
    scenario: &Scenario,
    names: &Directory<'_>,
    place: &KeyPath,
) -> Result<()> {
    let span = |from: Option<Time>, to: Option<Time>, place: &KeyPath| {
        let to = to.unwrap_or(scenario.duration);
        limits::within("to", to, Time(1), scenario.duration, &place.key("to"))?;
        let from = from.unwrap_or_default();
        limits::within("from", from, Time::ZERO, Time(to.0 - 1), &place.key("from"))
    };
    match assertion {
        Assertion::Share(share) => {
            let place = place.key("share");
            names.clients(&share.client, &place.key("client"))?;
            limits::within("is", share.is, 0.0, 1.0, &place.key("is"))?;
            span(share.from, share.to, &place)
        }
        Assertion::Ratio(ratio) => {
            let place = place.key("ratio");
            names.clients(&ratio.of.0, &place.key("of"))?;
            names.clients(&ratio.of.1, &place.key("of"))?;
            span(ratio.from, ratio.to, &place)
        }
        Assertion::AbsoluteError(bound) => {
            let place = place.key("absolute-error").key("client");
            names.clients(&bound.client, &place).map(|_| ())
        }
        Assertion::RelativeError(bound) => {
            let place = place.key("relative-error").key("of");
            names.pair(&bound.of, &place).map(|_| ())
        }
        Assertion::DispatchLatency(bound) => {
            check_times(bound, names, &place.key("dispatch-latency"))
        }
        Assertion::ResponseTime(bound) => check_times(bound, names, &place.key("response-time")),
        Assertion::Conservation(_) => Ok(()),
        of_slots => slots::check_assertion(of_slots, scenario, names, place),
    }
}

/// A bound on a client's times.
pub(super) fn check_times(bound: &TimeBound, names: &Directory<'_>, place: &KeyPath) -> Result<()> {
    limits::within(
        "percentile",
        bound.percentile,
        0.0,
        100.0,
        &place.key("percentile"),
    )?;
    let clients = names.clients(&bound.client, &place.key("client"));
    clients.map(|_| ())
}
