//! The timetable of a scenario, with its names looked up and its first claims made.

use std::collections::BTreeSet;

use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee};
use prorata_core::slots::geometry::{
    CELLS, COLUMNS, Cell, Geometry, LONGEST_NS, SHORTEST_NS, Tick,
};
use prorata_core::slots::level;
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::staging::STAGES;
use prorata_core::slots::timetable::Timetable;

use super::timeline::{Directory, check_times};
use super::{client_id, group_of, limits};
use crate::file::slots::{Claim, Fraction, Free, Reserve, SetTokens};
use crate::file::{Action, Assertion, KeyPath, Problem, Scenario, ScenarioError, Time};
use crate::world::slots::{Place, PlannedClaim};

/// Of a claim, or a deed to the timetable, where there is none.
pub(super) const NO_TIMETABLE: &str = "there is no timetable: write [slots]";

type Result<T> = core::result::Result<T, ScenarioError>;

/// A timetable whose first claims are in force, and the time of a run.
#[derive(Clone, Debug)]
pub struct SlotPlan {
    /// The timetable.
    pub timetable: Timetable,
    /// The tick at the start of the run, of column 0: the first claims were made before.
    first_tick: Tick,
    /// What was done to the timetable before the run.
    before: Vec<SlotDeed>,
}

impl SlotPlan {
    /// The tick under way at a time of the run.
    pub fn tick_at(&self, now_ns: u64) -> Tick {
        self.first_tick + now_ns / self.timetable.geometry().slot_ns()
    }

    /// When a tick begins that is not before the run.
    pub fn begin_ns(&self, tick: Tick) -> u64 {
        let ticks = tick - self.first_tick;
        ticks.saturating_mul(self.timetable.geometry().slot_ns())
    }

    /// The same timetable for a machine whose clock is at `now_ns`, where the run starts. Its
    /// ticks are those of the plan, unless the machine's clock has not come so far yet.
    pub fn open_at(&self, now_ns: u64) -> Result<Timetable> {
        let place = KeyPath::default().key("slots");
        let planned = self.timetable.geometry();
        let (rows, columns, slot_ns) = (planned.rows(), planned.columns(), planned.slot_ns());
        let epoch_ns = now_ns.saturating_sub(self.first_tick.saturating_mul(slot_ns));
        let geometry = Geometry::new(rows, columns, slot_ns, epoch_ns);
        let geometry =
            geometry.map_err(|error| place.problem(Problem::Timetable(error.to_string())))?;
        let mut timetable = Timetable::open(geometry);
        for deed in &self.before {
            apply_whole(&mut timetable, deed, &place)?;
        }
        timetable.advance(geometry.tick_at(now_ns));
        Ok(timetable)
    }

    /// The claims that are made before the run.
    pub fn claims(&self) -> impl Iterator<Item = &PlannedClaim> {
        self.before.iter().filter_map(SlotDeed::claim)
    }

    /// Does something before the run.
    fn prepare(&mut self, deed: SlotDeed, place: &KeyPath) -> Result<()> {
        apply_whole(&mut self.timetable, &deed, place)?;
        self.before.push(deed);
        Ok(())
    }

    /// The first tick that begins at or after a time.
    fn tick_from(&self, time: Time) -> Tick {
        self.first_tick + time.0.div_ceil(self.timetable.geometry().slot_ns())
    }
}

/// An event from outside that concerns the timetable.
#[derive(Clone, PartialEq, Debug)]
pub enum SlotDeed {
    /// Claims slots.
    Claim(PlannedClaim),
    /// Frees slots of a client; all, if none are named.
    Free(Caller, Option<Vec<Cell>>),
    /// Sets the tokens of clients.
    SetTokens(Vec<Account>, level::Level, u32, Option<u32>),
    /// Moves tokens of a client.
    Donate(Caller, Account, level::Level, u32),
    /// Keeps slots of these rows unclaimed.
    Reserve(Vec<u32>, Reservation, Onset),
}

impl SlotDeed {
    /// The claim, if it is one.
    pub fn claim(&self) -> Option<&PlannedClaim> {
        match self {
            SlotDeed::Claim(claim) => Some(claim),
            _ => None,
        }
    }
}

/// The table, the tokens and the first claims; none if the file has no timetable.
pub(super) fn plan(scenario: &Scenario, names: &Directory<'_>) -> Result<Option<SlotPlan>> {
    let root = KeyPath::default();
    let Some(slots) = &scenario.slots else {
        return match scenario.claims.is_empty() {
            true => Ok(None),
            false => Err(root
                .key("claim")
                .index(0)
                .problem(Problem::Step(NO_TIMETABLE))),
        };
    };
    let place = root.key("slots");
    check_machine(scenario, &root)?;
    let geometry = geometry(scenario, &place)?;
    // A whole number of periods, so that the run begins with column 0.
    let columns = u64::from(geometry.columns());
    let mut plan = SlotPlan {
        timetable: Timetable::open(geometry),
        first_tick: columns * STAGES.div_ceil(columns),
        before: Vec::new(),
    };
    let each = slots.user_tokens.unwrap_or(geometry.cells() as u32);
    let users: BTreeSet<u32> = names.groups.iter().map(|group| group.user).collect();
    let users: Vec<Account> = users.into_iter().map(Account::User).collect();
    for level in level::Level::ALL {
        let deed = SlotDeed::SetTokens(users.clone(), level, each, Some(1));
        plan.prepare(deed, &place)?;
    }
    for (i, tokens) in slots.tokens.iter().enumerate() {
        let place = place.key("tokens").index(i);
        let deed = set_tokens(tokens, names, &place)?;
        plan.prepare(deed, &place)?;
    }
    if let Some(fraction) = slots.reserve {
        let place = place.key("reserve");
        let reservation = reservation(fraction, &geometry, &place)?;
        let rows = (0..geometry.rows()).collect();
        let deed = SlotDeed::Reserve(rows, reservation, Onset::Immediate);
        plan.prepare(deed, &place)?;
    }
    let place = root.key("claim");
    limits::at_most(
        "the number of claims",
        scenario.claims.len(),
        limits::CLAIMS,
        &place,
    )?;
    for (i, claim) in scenario.claims.iter().enumerate() {
        let place = place.index(i);
        let deed = SlotDeed::Claim(planned_claim(claim, &plan, names, &place)?);
        plan.prepare(deed, &place)?;
    }
    plan.timetable.advance(plan.first_tick);
    Ok(Some(plan))
}

/// What no engine has beside a timetable.
fn check_machine(scenario: &Scenario, root: &KeyPath) -> Result<()> {
    let machine = &scenario.machine;
    let place = root.key("machine");
    if !machine.pools.is_empty() {
        return Err(place.key("pools").problem(Problem::Step(
            "a timetable is of all CPUs: leave machine.pools out, or [slots]",
        )));
    }
    if !machine.hybrid.is_off() {
        return Err(place.key("hybrid").problem(Problem::Step(
            "hybrid scheduling beside a timetable is not simulated: leave one of them out",
        )));
    }
    const BOUND: &str = "clients with limits or CPUs of their own beside a timetable are not \
                         simulated: leave one of them out";
    for (i, client) in scenario.clients.iter().enumerate() {
        let place = root.key("client").index(i);
        for (key, is_said) in [
            ("max", client.max.is_some()),
            ("cpus", client.cpus.is_some()),
        ] {
            if is_said {
                return Err(place.key(key).problem(Problem::Step(BOUND)));
            }
        }
    }
    let limits = |action: &Action| matches!(action, Action::SetMax(_));
    match scenario.timeline.iter().position(|at| limits(&at.action)) {
        Some(i) => {
            let place = root.key("at").index(i).key("do").key("set-max");
            Err(place.problem(Problem::Step(BOUND)))
        }
        None => Ok(()),
    }
}

fn geometry(scenario: &Scenario, place: &KeyPath) -> Result<Geometry> {
    let (rows, slots) = (scenario.machine.cpus, scenario.slots.as_ref());
    let (columns, length) = slots.map_or((1, Time(1)), |slots| (slots.columns, slots.length));
    let most = COLUMNS.min(CELLS / rows);
    limits::within("columns", columns, 1, most, &place.key("columns"))?;
    let (shortest, longest) = (Time(SHORTEST_NS), Time(LONGEST_NS));
    limits::within("length", length, shortest, longest, &place.key("length"))?;
    let geometry = Geometry::new(rows, columns, length.0, 0);
    geometry.map_err(|error| place.problem(Problem::Timetable(error.to_string())))
}

fn reservation(fraction: Fraction, geometry: &Geometry, place: &KeyPath) -> Result<Reservation> {
    let columns = geometry.columns();
    limits::within("of", fraction.of, 1, columns, &place.key("of"))?;
    limits::within("slots", fraction.slots, 0, fraction.of, &place.key("slots"))?;
    Ok(Reservation {
        numerator: fraction.slots,
        denominator: fraction.of,
    })
}

/// What happens before the start succeeds whole, or the scenario is refused.
fn apply_whole(timetable: &mut Timetable, deed: &SlotDeed, place: &KeyPath) -> Result<()> {
    match deed.apply(timetable, 0).refused.into_iter().next() {
        Some(why) => Err(place.problem(Problem::Timetable(why))),
        None => Ok(()),
    }
}

fn caller(client: u32, names: &Directory<'_>) -> Caller {
    Caller {
        owner: Owner {
            user: group_of(names.groups, client).user,
            client: Some(client_id(client)),
        },
        privileged: false,
    }
}

fn planned_claim(
    claim: &Claim,
    plan: &SlotPlan,
    names: &Directory<'_>,
    place: &KeyPath,
) -> Result<PlannedClaim> {
    let owner = names.client(&claim.by, &place.key("by"))?;
    let runs = match &claim.runs {
        Some(runs) => names.client(runs, &place.key("runs"))?,
        None => owner,
    };
    let schedulee = match claim.thread {
        None => Schedulee::Client(client_id(runs)),
        Some(number) => {
            limits::within("thread", number, 1, limits::THREADS, &place.key("thread"))?;
            crate::world::slots::thread(runs, number)
        }
    };
    Ok(PlannedClaim {
        caller: caller(owner, names),
        schedulee,
        place: place_of(claim, plan.timetable.geometry(), place)?,
        level: claim.level.into(),
        expires: claim.expires.map(|time| plan.tick_from(time)),
    })
}

/// Where a claim wants its slots, which it says in one of several ways.
fn place_of(claim: &Claim, geometry: &Geometry, place: &KeyPath) -> Result<Place> {
    let (rows, columns) = (geometry.rows(), geometry.columns());
    let row = |what, cpu: u32, place: &KeyPath| limits::within(what, cpu, 0, rows - 1, place);
    let count = |count: u32, most: u32, place: &KeyPath| {
        limits::within("the number of slots", count, 1, most, place)
    };
    let mut ways = Vec::new();
    if let Some(slots) = &claim.slots {
        ways.push(Place::Cells(cells(slots, geometry, &place.key("slots"))?));
    }
    if let Some(gang) = &claim.gang {
        let place = place.key("gang");
        limits::within("threads", gang.threads, 1, rows, &place.key("threads"))?;
        for (i, &cpu) in gang.cpus.iter().enumerate() {
            row("the number of a CPU", cpu, &place.key("cpus").index(i))?;
        }
        if let Some(wanted) = gang.columns {
            count(wanted, columns, &place.key("columns"))?;
        }
        ways.push(Place::Gang {
            threads: gang.threads,
            columns: gang.columns,
            preferred: gang.cpus.clone(),
        });
    }
    if let Some(periodic) = &claim.periodic {
        let place = place.key("periodic");
        limits::within("period", periodic.period, 1, columns, &place.key("period"))?;
        count(periodic.slots, periodic.period, &place.key("slots"))?;
        if let Some(cpu) = periodic.cpu {
            row("cpu", cpu, &place.key("cpu"))?;
        }
        ways.push(Place::Periodic {
            slots: periodic.slots,
            period: periodic.period,
            cpu: periodic.cpu,
        });
    }
    if let Some(event) = &claim.event {
        let place = place.key("event");
        count(event.slots, columns, &place.key("slots"))?;
        row("cpu", event.cpu, &place.key("cpu"))?;
        ways.push(Place::Event {
            slots: event.slots,
            ticks: event.within.0 / geometry.slot_ns(),
            row: event.cpu,
        });
    }
    if let Some(slots) = claim.cache {
        count(slots, columns, &place.key("cache"))?;
        ways.push(Place::Cache(slots));
    }
    if let Some(slots) = claim.best_effort {
        count(slots, geometry.cells() as u32, &place.key("best-effort"))?;
        ways.push(Place::BestEffort(slots));
    }
    match (ways.len(), ways.pop()) {
        (1, Some(way)) => Ok(way),
        _ => Err(place.problem(Problem::Step(
            "a claim names slots in one way: write one of slots, gang, periodic, event, cache and \
             best-effort",
        ))),
    }
}

/// Slots such as `1:3-8`.
fn cells(slots: &[String], geometry: &Geometry, place: &KeyPath) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for (i, text) in slots.iter().enumerate() {
        let place = place.index(i);
        let wrong = || place.problem(Problem::Slots(text.clone()));
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (row, columns) = text.split_once(':').ok_or_else(wrong)?;
        let (first, last) = columns.split_once('-').unwrap_or((columns, columns));
        let (row, first, last) = (number(row)?, number(first)?, number(last)?);
        let highest = geometry.columns() - 1;
        limits::within("the number of a CPU", row, 0, geometry.rows() - 1, &place)?;
        limits::within("the last column", last, 0, highest, &place)?;
        limits::within("the first column", first, 0, last, &place)?;
        cells.extend((first..=last).map(|column| Cell { row, column }));
    }
    if cells.is_empty() {
        return Err(place.problem(Problem::Step("there is no slot: name at least one")));
    }
    Ok(cells)
}

/// An event of the timeline that concerns the timetable; none if it concerns something else.
pub(super) fn deed(
    action: &Action,
    plan: Option<&SlotPlan>,
    names: &Directory<'_>,
    place: &KeyPath,
) -> Result<Option<SlotDeed>> {
    let Some(plan) = plan else {
        return Ok(None);
    };
    let geometry = plan.timetable.geometry();
    Ok(Some(match action {
        Action::Claim(claim) => {
            SlotDeed::Claim(planned_claim(claim, plan, names, &place.key("claim"))?)
        }
        Action::Free(free) => free_slots(free, geometry, names, &place.key("free"))?,
        Action::SetTokens(set) => set_tokens(set, names, &place.key("set-tokens"))?,
        Action::Donate(donate) => {
            let place = place.key("donate");
            let from = names.client(&donate.from, &place.key("from"))?;
            let to = client_id(names.client(&donate.to, &place.key("to"))?);
            let (level, count) = (donate.level.into(), donate.count);
            SlotDeed::Donate(caller(from, names), Account::Client(to), level, count)
        }
        Action::Reserve(reserve) => reserve_slots(reserve, geometry, &place.key("reserve"))?,
        _ => return Ok(None),
    }))
}

/// The names of an assertion on the timetable; other assertions are none of its business.
pub(super) fn check_assertion(
    assertion: &Assertion,
    scenario: &Scenario,
    names: &Directory<'_>,
    place: &KeyPath,
) -> Result<()> {
    let (key, client) = match assertion {
        Assertion::SlotLateness(bound) => ("slot-lateness", Some(&bound.client)),
        Assertion::Missed(bound) => ("missed", Some(&bound.client)),
        Assertion::Revocations(bound) => ("revocations", Some(&bound.client)),
        Assertion::GangSkew(bound) => ("gang-skew", Some(&bound.client)),
        Assertion::Blackout(bound) => ("blackout", Some(&bound.client)),
        Assertion::TokensConserved(_) => ("tokens-conserved", None),
        _ => return Ok(()),
    };
    let place = place.key(key);
    if scenario.slots.is_none() {
        return Err(place.problem(Problem::Step(NO_TIMETABLE)));
    }
    if let Assertion::SlotLateness(bound) = assertion {
        return check_times(bound, names, &place);
    }
    let clients = client.map(|client| names.clients(client, &place.key("client")));
    clients.transpose().map(|_| ())
}

fn free_slots(
    free: &Free,
    geometry: &Geometry,
    names: &Directory<'_>,
    place: &KeyPath,
) -> Result<SlotDeed> {
    let owner = names.client(&free.by, &place.key("by"))?;
    let named = free.slots.as_ref();
    let cells = named.map(|slots| cells(slots, geometry, &place.key("slots")));
    Ok(SlotDeed::Free(caller(owner, names), cells.transpose()?))
}

fn set_tokens(set: &SetTokens, names: &Directory<'_>, place: &KeyPath) -> Result<SlotDeed> {
    let clients = names.clients(&set.of, &place.key("of"))?;
    let accounts = clients.map(|client| Account::Client(client_id(client)));
    let (level, count) = (set.level.into(), set.count);
    Ok(SlotDeed::SetTokens(
        accounts.collect(),
        level,
        count,
        set.weight,
    ))
}

fn reserve_slots(reserve: &Reserve, geometry: &Geometry, place: &KeyPath) -> Result<SlotDeed> {
    let rows = geometry.rows();
    if let Some(cpu) = reserve.cpu {
        limits::within("cpu", cpu, 0, rows - 1, &place.key("cpu"))?;
    }
    let fraction = Fraction {
        slots: reserve.slots,
        of: reserve.of,
    };
    let onset = match reserve.lazy {
        true => Onset::Lazy,
        false => Onset::Immediate,
    };
    Ok(SlotDeed::Reserve(
        reserve
            .cpu
            .map_or_else(|| (0..rows).collect(), |cpu| vec![cpu]),
        reservation(fraction, geometry, place)?,
        onset,
    ))
}
