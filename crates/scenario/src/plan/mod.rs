//! A plan: a scenario made ready to run. All names are looked up, all rules checked, and
//! the ledger is filled.

mod affinity;
mod code;
mod compile;
pub mod limits;
mod names;
mod pools;
mod rights;
mod slots;
mod timeline;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use prorata_core::affinity::Affinity;
use prorata_core::hybrid::Nice;
use prorata_core::ids::{ClientId, CurrencyId, TicketId};
use prorata_core::ledger::Ledger;

pub use code::{Code, Entry, Instruction};
use compile::{Vocabulary, compile};
use names::Names;
pub use pools::PoolPlan;

pub use slots::{SlotDeed, SlotPlan};
pub use timeline::{Deed, PlannedTransfer};

use crate::file::{
    Action, Assertion, KeyPath, MachineSpec, MutexKind, Problem, Rule, Scenario, ScenarioError,
    Tickets, Time,
};

/// A scenario that is ready to run once.
#[derive(Debug)]
pub struct Plan {
    /// The machine of the file.
    pub machine: MachineSpec,
    /// At least one.
    pub pools: Vec<PoolPlan>,
    /// The pool of each client; empty if there is only one pool.
    pub homes: Vec<u8>,
    /// How long it runs.
    pub duration_ns: u64,
    /// The rights of all clients. Clients are numbered as in the scenario, each copy by
    /// itself; none is active.
    pub ledger: Ledger,
    /// The programs.
    pub code: Code,
    /// The scenario's clients, in its order.
    pub groups: Vec<Group>,
    /// By number.
    pub mutexes: Vec<MutexPlan>,
    /// Capacities, by pipe.
    pub pipes: Vec<u32>,
    /// By number.
    pub services: Vec<ServicePlan>,
    /// Number of signals.
    pub signals: usize,
    /// The timetable, if there is one.
    pub slots: Option<SlotPlan>,
    /// Events in the order of their times, and for equal times in the order of the file.
    pub timeline: Vec<(u64, Deed)>,
    /// Times that assertions name.
    pub marks_ns: BTreeSet<u64>,
    /// Time between two points of the time series, if there is one.
    pub sample_every_ns: Option<u64>,
    /// Pairs whose relative error is measured.
    pub pairs: Vec<(u32, u32)>,
}

/// One client of the scenario file with its copies.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// As in the file.
    pub name: String,
    /// Their numbers, in the ledger as in every engine.
    pub clients: Range<u32>,
    /// Whether they are copies. Copies have no names in the ledger: names would take more
    /// room than the clients.
    pub copies: bool,
    /// Their program.
    pub program: u32,
    /// When they begin.
    pub start_ns: u64,
    /// The CPUs that they may use, if not all.
    pub affinity: Option<Affinity>,
    /// Their nice value.
    pub nice: Nice,
    /// Their user.
    pub user: u32,
    /// The rule that changes their tickets.
    pub rule: Option<Rule>,
    /// The tickets that the rule changes, by client.
    pub ruled: Vec<TicketId>,
}

/// A mutex.
#[derive(Clone, PartialEq, Debug)]
pub struct MutexPlan {
    /// As in the file.
    pub name: String,
    /// The mutex currency and the inheritance ticket issued in it, if waiting threads hold
    /// lotteries (1994, 6.1).
    pub lottery: Option<(CurrencyId, TicketId)>,
    /// A thread that releases it after a lottery does not yield.
    pub keeps_cpu: bool,
    /// It is a lock of the kernel.
    pub kernel: bool,
}

/// A service.
#[derive(Clone, PartialEq, Debug)]
pub struct ServicePlan {
    /// As in the file.
    pub name: String,
    /// The clients that take its calls.
    pub servers: Vec<u32>,
}

impl Plan {
    /// Checks a scenario and makes it ready.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks, with its place.
    pub fn new(scenario: &Scenario) -> Result<Plan, ScenarioError> {
        check_machine(scenario)?;
        let mut words = vocabulary(scenario)?;
        let code = compile(&scenario.programs, &mut words)?;
        let groups = groups(scenario, &words)?;
        let mut builder = rights::Builder::new(groups);
        builder.currencies(&scenario.currencies)?;
        builder.clients(&scenario.clients)?;
        let mutexes = builder.mutexes(&scenario.mutexes)?;
        let (ledger, groups) = builder.finish();
        let pool_names = pools::names(&scenario.machine);
        let pools = pools::pools(&scenario.machine)?;
        let homes = pools::homes(&scenario.clients, &groups, &ledger, &pools, &pool_names)?;
        let names = timeline::Directory {
            ledger: &ledger,
            groups: &groups,
            signals: &words.signals,
            pools: &pool_names,
        };
        let slots = slots::plan(scenario, &names)?;
        let timeline = timeline::plan(&scenario.timeline, slots.as_ref(), &names)?;
        let pairs = pairs(scenario, &names)?;
        for (i, assertion) in scenario.assertions.iter().enumerate() {
            timeline::check_assertion(
                assertion,
                scenario,
                &names,
                &KeyPath::default().key("assert").index(i),
            )?;
        }
        let services = services(&words.services, &code, &groups);
        Ok(Plan {
            machine: scenario.machine.clone(),
            pools,
            homes,
            duration_ns: scenario.duration.0,
            code,
            mutexes,
            pipes: pipes(scenario)?,
            services,
            signals: words.signals.len(),
            slots,
            timeline,
            marks_ns: marks(&scenario.assertions),
            sample_every_ns: scenario.measure.every.map(|time| time.0),
            pairs,
            ledger,
            groups,
        })
    }
}

/// A client's identifier: clients are the ledger's first objects of their kind, and never
/// destroyed.
pub fn client_id(index: u32) -> ClientId {
    ClientId::from_parts(index, 0)
}

impl Group {
    /// The name of one of its copies: they are numbered from 1.
    pub fn copy_name(&self, client: u32) -> String {
        format!("{}{}", self.name, client - self.clients.start + 1)
    }

    pub(crate) fn find_copy(&self, name: &str) -> Option<u32> {
        let number = name.strip_prefix(self.name.as_str())?.parse().ok()?;
        let client = self
            .clients
            .start
            .checked_add(u32::checked_sub(number, 1)?)?;
        let exists = self.copies && self.clients.contains(&client);
        // A number can be written in several ways; only one of them is the copy's name.
        (exists && self.copy_name(client) == name).then_some(client)
    }
}

/// The line of the file that a client comes from.
pub fn group_of(groups: &[Group], client: u32) -> &Group {
    let index = groups.partition_point(|group| group.clients.end <= client);
    &groups[index]
}

/// A client's name; that of a copy is the file's and the copy's number.
pub fn client_name(groups: &[Group], client: u32) -> Cow<'_, str> {
    let group = group_of(groups, client);
    match group.copies {
        true => group.copy_name(client).into(),
        false => group.name.as_str().into(),
    }
}

/// The clients of a line of the file, or one copy.
pub fn find_clients(groups: &[Group], name: &str) -> Option<Range<u32>> {
    let group = groups.iter().find(|group| group.name == name);
    group.map(|group| group.clients.clone()).or_else(|| {
        let client = groups.iter().find_map(|group| group.find_copy(name))?;
        Some(client..client + 1)
    })
}

fn check_machine(scenario: &Scenario) -> Result<(), ScenarioError> {
    let root = KeyPath::default();
    let machine = root.key("machine");
    limits::within(
        "cpus",
        scenario.machine.cpus,
        1,
        limits::CPUS,
        &machine.key("cpus"),
    )?;
    check_quantum(scenario.machine.quantum, &machine.key("quantum"))?;
    check_as_printed(scenario, &root)?;
    limits::within(
        "duration",
        scenario.duration,
        Time(1),
        Time::MAX,
        &root.key("duration"),
    )?;
    if let Some(every) = scenario.measure.every {
        let place = root.key("measure").key("every");
        limits::within("every", every, Time(1), Time::MAX, &place)?;
        let points = scenario.duration.0 / every.0;
        limits::within(
            "the number of points",
            points,
            0,
            limits::POINTS.into(),
            &place,
        )?;
    }
    let steps = scenario.timeline.len();
    limits::at_most(
        "the number of events",
        steps,
        limits::TIMELINE,
        &root.key("at"),
    )
}

/// Boosts multiply the tickets of some policies alone (1999, 3.3).
fn check_as_printed(scenario: &Scenario, root: &KeyPath) -> Result<(), ScenarioError> {
    if !scenario.machine.hybrid.as_printed {
        return Ok(());
    }
    let first = (root.key("machine").key("policy"), scenario.machine.policy);
    let later = scenario.timeline.iter().enumerate().filter_map(|(i, at)| {
        let place = root.key("at").index(i).key("do").key("policy");
        match at.action {
            Action::Policy(policy) => Some((place, policy)),
            _ => None,
        }
    });
    let mut all = std::iter::once(first).chain(later);
    match all.find(|(_, policy)| !policy.runs_as_printed()) {
        Some((place, _)) => Err(place.problem(Problem::Step(
            "as-printed is for list-lottery, tree-lottery and class-lottery, whose tickets a \
             boost can multiply, and for decay-usage: choose one of them, or leave it out",
        ))),
        None => Ok(()),
    }
}

/// A quantum is at least a microsecond, so that no turn is shorter than the machine's
/// resolution.
fn check_quantum(quantum: Time, place: &KeyPath) -> Result<(), ScenarioError> {
    limits::within(
        "quantum",
        quantum,
        Time(1_000),
        Time::from_secs(3600),
        place,
    )
}

fn check_nice(nice: i8, place: &KeyPath) -> Result<Nice, ScenarioError> {
    let (low, high) = (Nice::MIN.value(), Nice::MAX.value());
    limits::within("nice", nice, low, high, place)?;
    Ok(Nice::new(nice).unwrap_or_default())
}

fn vocabulary(scenario: &Scenario) -> Result<Vocabulary, ScenarioError> {
    let mut words = Vocabulary {
        programs: Names::new("program", "write a [program.NAME] with steps"),
        mutexes: Names::new("mutex", "write a [mutex.NAME]"),
        pipes: Names::new("pipe", "write a [pipe.NAME] with a capacity"),
        services: Names::new("service", "let a program serve it"),
        signals: Names::new("signal", "let a program or an event signal it"),
    };
    let root = KeyPath::default();
    for (kind, count) in [
        ("program", scenario.programs.len()),
        ("mutex", scenario.mutexes.len()),
        ("pipe", scenario.pipes.len()),
    ] {
        limits::at_most(
            "the number of objects of a kind",
            count,
            limits::OBJECTS,
            &root.key(kind),
        )?;
    }
    for name in scenario.mutexes.keys() {
        check_name(name, &root.key("mutex").key(name))?;
        words.mutexes.number(name);
    }
    for name in scenario.pipes.keys() {
        words.pipes.number(name);
    }
    for at in &scenario.timeline {
        if let Action::Signal(name) = &at.action {
            words.signals.number(name);
        }
    }
    Ok(words)
}

fn check_name(name: &str, place: &KeyPath) -> Result<(), ScenarioError> {
    let fits = (1..=crate::file::MAX_NAME_BYTES).contains(&name.len());
    if fits && !name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Ok(());
    }
    Err(place.problem(Problem::Name(name.to_owned())))
}

fn groups(scenario: &Scenario, words: &Vocabulary) -> Result<Vec<Group>, ScenarioError> {
    let place = KeyPath::default().key("client");
    if scenario.clients.is_empty() {
        return Err(place.problem(Problem::Step("there is no client: write at least one")));
    }
    let (mut groups, mut next) = (Vec::new(), 0);
    for (i, client) in scenario.clients.iter().enumerate() {
        let place = place.index(i);
        check_name(&client.name, &place.key("name"))?;
        let count = client.count.unwrap_or(1);
        limits::within("count", count, 1, limits::CLIENTS, &place.key("count"))?;
        limits::at_most(
            "the number of clients",
            (next + count) as usize,
            limits::CLIENTS,
            &place,
        )?;
        let rule = match &client.tickets {
            Tickets::Ruled(rule) => Some(rule.clone()),
            Tickets::Fixed(_) => None,
        };
        groups.push(Group {
            name: client.name.clone(),
            clients: next..next + count,
            copies: client.count.is_some(),
            program: words
                .programs
                .find(&client.program, &place.key("program"))?,
            start_ns: client.start.0,
            affinity: affinity::affinity(client, &scenario.machine, &place)?,
            nice: check_nice(client.nice, &place.key("nice"))?,
            user: client.user,
            rule,
            ruled: Vec::new(),
        });
        next += count;
    }
    check_copies(&groups)?;
    Ok(groups)
}

/// No client has the name of another's copy. Two lines of copies share a name
/// only if one has the other's first.
fn check_copies(groups: &[Group]) -> Result<(), ScenarioError> {
    let place = |i: usize| KeyPath::default().key("client").index(i).key("name");
    let mut copied = BTreeMap::new();
    for (i, group) in groups.iter().enumerate().filter(|(_, group)| group.copies) {
        if copied.insert(group.name.as_str(), group).is_some() {
            return Err(place(i).problem(Problem::Duplicate(group.name.clone())));
        }
    }
    for (i, group) in groups.iter().enumerate() {
        let name = match group.copies {
            true => group.copy_name(group.clients.start),
            false => group.name.clone(),
        };
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let others = (stem..name.len()).filter_map(|end| copied.get(&name[..end]));
        let mut others = others.filter(|other| other.name != group.name);
        if others.any(|other| other.find_copy(&name).is_some()) {
            return Err(place(i).problem(Problem::Duplicate(name)));
        }
    }
    Ok(())
}

fn services(names: &Names, code: &Code, groups: &[Group]) -> Vec<ServicePlan> {
    let services = names.by_number().into_iter().zip(0..);
    let services = services.map(|(name, service)| {
        let programs = code.servers(service);
        let serve = groups
            .iter()
            .filter(|group| programs.contains(&group.program));
        ServicePlan {
            name,
            servers: serve.flat_map(|group| group.clients.clone()).collect(),
        }
    });
    services.collect()
}

fn pipes(scenario: &Scenario) -> Result<Vec<u32>, ScenarioError> {
    let pipes = scenario.pipes.iter().map(|(name, pipe)| {
        let place = KeyPath::default().key("pipe").key(name).key("capacity");
        limits::within("capacity", pipe.capacity, 1, limits::PIPE, &place)?;
        Ok(pipe.capacity)
    });
    pipes.collect()
}

fn marks(assertions: &[Assertion]) -> BTreeSet<u64> {
    let spans = assertions.iter().flat_map(|assertion| match assertion {
        Assertion::Share(share) => [share.from, share.to],
        Assertion::Ratio(ratio) => [ratio.from, ratio.to],
        _ => [None, None],
    });
    spans.flatten().map(|time| time.0).collect()
}

fn pairs(
    scenario: &Scenario,
    names: &timeline::Directory<'_>,
) -> Result<Vec<(u32, u32)>, ScenarioError> {
    let place = KeyPath::default().key("measure").key("pairs");
    limits::at_most(
        "the number of pairs",
        scenario.measure.pairs.len(),
        limits::PAIRS,
        &place,
    )?;
    let pairs = scenario.measure.pairs.iter().enumerate();
    let pairs = pairs.map(|(i, pair)| names.pair(pair, &place.index(i)));
    pairs.collect()
}

fn needs_currency(kind: MutexKind) -> bool {
    kind == MutexKind::Lottery
}
