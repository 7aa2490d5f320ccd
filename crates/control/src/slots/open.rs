//! The open table: decisions, their draft, and the public file.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use prorata_bulletin::{Rows, Writer};
use prorata_core::ids::ClientId;
use prorata_core::slots::account::Tokens;
use prorata_core::slots::admission::Grant;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::error::SlotError;
use prorata_core::slots::geometry::{Cell, Geometry, Tick};
use prorata_core::slots::image::{Deed, Image};
use prorata_core::slots::level::{LEVELS, Level};
use prorata_core::slots::notice::{Notice, Outcome};
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::{Claimed, Timetable};

use super::call::{Call, LASTS_NS, SlotsCall, Wanted};
use super::kept::KeptTable;

/// How often the daemon looks whether processes that have slots live, and which CPUs are there.
pub(crate) const LOOK_NS: u64 = 1_000_000_000;

/// What a call did.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Done {
    Claimed(Claimed),
    /// Cells that were not freed.
    Freed(Vec<Cell>),
    Tokens(Account, [Tokens; LEVELS]),
    Donated(u64),
    Reserved(usize),
    /// Tokens by a policy.
    Granted,
}

/// Ends of claims, and slots that became free.
#[derive(Default, Debug)]
pub(crate) struct Ends {
    pub notices: Vec<Notice>,
    pub freed: Vec<Cell>,
}

impl Ends {
    fn take<T>(&mut self, outcome: Outcome<T>) -> T {
        self.notices.extend(outcome.notices);
        self.freed.extend(outcome.freed);
        outcome.value
    }
}

/// An open table.
pub(crate) struct OpenTable {
    table: Timetable,
    /// The CPU of each row.
    pub cpus: Vec<u32>,
    writer: Writer,
    /// Rows with changes that the readers waiting for them were not woken for.
    unheard: Rows,
    /// Cells in which the journal's image may differ from the table.
    behind: BTreeSet<usize>,
    /// When to look at processes and CPUs again.
    look_at_ns: u64,
    /// How the engine enforces the table, or why it does not.
    pub enforcement: Result<String, String>,
}

/// A decision that nobody has seen yet.
pub(crate) struct Draft {
    table: Timetable,
    pub done: Done,
    ends: Ends,
    /// What the journal has to know.
    pub deeds: Vec<Deed>,
}

impl OpenTable {
    /// Opens the table of an image, under a path that programs know.
    pub fn open(kept: &KeptTable, path: &Path, now_ns: u64) -> io::Result<Self> {
        let now = kept.image.geometry().tick_at(now_ns);
        let table = Timetable::restore(&kept.image, now);
        let mut table = table.map_err(io::Error::other)?;
        // What the image has and the table has not.
        let behind = table.changed().iter().copied().collect();
        let writer = Writer::create(path, &mut table, &kept.cpus)?;
        Ok(Self {
            table,
            cpus: kept.cpus.clone(),
            writer,
            unheard: Rows::default(),
            behind,
            look_at_ns: now_ns,
            enforcement: Err("the engine enforces no timetable".into()),
        })
    }

    /// A new table with nothing claimed, and the same reservation in each row.
    pub fn image(geometry: Geometry, reserve: Reservation) -> Result<Image, SlotError> {
        let mut table = Timetable::open(geometry);
        let caller = administrator();
        for row in 0..geometry.rows() {
            table.reserve_slots(&caller, row, reserve, Onset::Lazy, 0)?;
        }
        let mut image = Image::empty(geometry);
        for deed in image.behind(&table, &BTreeSet::new(), 0) {
            image.apply(&deed);
        }
        Ok(image)
    }

    pub fn table(&self) -> &Timetable {
        &self.table
    }

    fn tick(&self, now_ns: u64) -> Tick {
        self.table.geometry().tick_at(now_ns)
    }

    /// When to call [`OpenTable::advance`] next.
    pub fn wakes_at_ns(&self) -> u64 {
        let geometry = self.table.geometry();
        let next = self.table.wakes_at().map(|tick| geometry.begin_ns(tick));
        next.map_or(self.look_at_ns, |next| next.min(self.look_at_ns))
    }

    /// Whether it is time to look at processes and CPUs; the next time is a second later.
    pub fn looks(&mut self, now_ns: u64) -> bool {
        let looks = self.look_at_ns <= now_ns;
        if looks {
            self.look_at_ns = now_ns + LOOK_NS;
        }
        looks
    }

    /// Lets time pass.
    pub fn advance(&mut self, now_ns: u64) -> Ends {
        let mut ends = Ends::default();
        let now = self.tick(now_ns);
        ends.take(self.table.advance(now));
        self.show();
        ends
    }

    /// A client has ended.
    pub fn end_client(&mut self, client: ClientId, now_ns: u64) -> Ends {
        let mut ends = Ends::default();
        let now = self.tick(now_ns);
        ends.take(self.table.end_client(client, now));
        self.show();
        ends
    }

    /// All that runs in slots.
    pub fn schedulees(&self) -> BTreeSet<Schedulee> {
        let claims = self.table.table().claims();
        claims.map(|(_, claim)| claim.schedulee).collect()
    }

    /// Schedulees have ended, and their claims with them.
    pub fn end_schedulees(&mut self, ended: &[Schedulee], now_ns: u64) -> Ends {
        let mut ends = Ends::default();
        let now = self.tick(now_ns);
        for &schedulee in ended {
            ends.take(self.table.end_schedulee(schedulee, now));
        }
        self.show();
        ends
    }

    /// Notes which CPUs are there.
    pub fn set_online(&mut self, is_online: impl Fn(u32) -> bool) {
        for (row, &cpu) in (0..).zip(&self.cpus) {
            let set = self.table.set_online(row, is_online(cpu));
            debug_assert!(set.is_ok(), "each row is one of the table");
        }
        self.show();
    }

    /// Decides a call without any effect.
    pub fn decide(&self, call: &SlotsCall, image: &Image, now_ns: u64) -> Result<Draft, SlotError> {
        self.draft(image, now_ns, |table, ends| run(table, call, now_ns, ends))
    }

    /// The same for tokens that a policy gives.
    pub fn decide_grants(
        &self,
        grants: &[Grant],
        image: &Image,
        now_ns: u64,
    ) -> Result<Draft, SlotError> {
        let now = self.tick(now_ns);
        self.draft(image, now_ns, |table, ends| {
            for grant in grants {
                let (account, level) = (grant.account, grant.level);
                let (more, weight) = (Amount::Delta(grant.count.into()), Some(grant.weight));
                let caller = administrator();
                ends.take(table.set_tokens(&caller, account, level, more, weight, now)?);
            }
            Ok(Done::Granted)
        })
    }

    fn draft(
        &self,
        image: &Image,
        now_ns: u64,
        run: impl FnOnce(&mut Timetable, &mut Ends) -> Result<Done, SlotError>,
    ) -> Result<Draft, SlotError> {
        let mut table = self.table.clone();
        table.hold_back();
        let mut ends = Ends::default();
        let done = run(&mut table, &mut ends)?;
        let mut behind = self.behind.clone();
        behind.extend(table.changed());
        let lasts_until = table.geometry().tick_at(now_ns.saturating_add(LASTS_NS));
        Ok(Draft {
            deeds: image.behind(&table, &behind, lasts_until),
            table,
            done,
            ends,
        })
    }

    /// Makes a decision known that the journal has; it comes into force after `now_ns`.
    pub fn commit(&mut self, draft: Draft, now_ns: u64) -> (Done, Ends) {
        self.table = draft.table;
        // The image has all but claims that end soon, which it leaves out.
        self.behind.clear();
        let now = self.tick(now_ns);
        self.table.publish(now);
        self.show();
        (draft.done, draft.ends)
    }

    /// Decides a call and makes it known, without the journal: see [`Call::may_last`].
    pub fn call(&mut self, call: &SlotsCall, now_ns: u64) -> Result<(Done, Ends), SlotError> {
        let mut ends = Ends::default();
        let done = run(&mut self.table, call, now_ns, &mut ends)?;
        self.show();
        Ok((done, ends))
    }

    /// Closes this table for its readers, where another one has its path.
    pub fn give_way(self) {
        self.writer.give_way();
    }

    fn show(&mut self) {
        let (news, rows) = self.writer.write(&mut self.table);
        self.unheard = self.unheard | rows;
        self.behind.extend(news.claims);
    }

    /// Wakes readers that wait for what changed.
    pub fn wake_readers(&mut self) {
        self.writer.wake(std::mem::take(&mut self.unheard));
    }
}

/// For what the daemon does by itself.
fn administrator() -> Caller {
    Caller {
        owner: Owner {
            user: 0,
            client: None,
        },
        privileged: true,
    }
}

fn run(
    table: &mut Timetable,
    call: &SlotsCall,
    now_ns: u64,
    ends: &mut Ends,
) -> Result<Done, SlotError> {
    let now = table.geometry().tick_at(now_ns);
    let caller = &call.caller;
    let granted = grant_defaults(table, call, now, ends);
    // A full bank keeps nobody from freeing and from looking.
    if !matches!(call.call, Call::Free { .. } | Call::Tokens { .. }) {
        granted?;
    }
    Ok(match &call.call {
        Call::Claim {
            wanted,
            mode,
            generation,
        } => {
            let requests = requests(table.geometry(), wanted, now_ns);
            let outcome = table.claim_slots(caller, &requests, *mode, *generation, now)?;
            Done::Claimed(ends.take(outcome))
        }
        Call::Free { cells } => Done::Freed(ends.take(table.free_slots(caller, cells, now)?)),
        Call::Tokens { account } => {
            let account = account.unwrap_or_else(|| paying(table, caller.owner));
            Done::Tokens(account, ends.take(table.get_tokens(account, now)))
        }
        &Call::SetTokens {
            account,
            level,
            amount,
            weight,
        } => {
            let known = table.bank().tokens(account, level).weight > 0;
            // Claims without a weight lose against all others.
            let weight = weight.or((!known).then_some(1));
            ends.take(table.set_tokens(caller, account, level, amount, weight, now)?);
            Done::Tokens(account, ends.take(table.get_tokens(account, now)))
        }
        &Call::Donate { to, level, count } => {
            let donated = ends.take(table.donate_tokens(caller, to, level, count, now)?);
            Done::Donated(donated.moved)
        }
        &Call::Reserve {
            row,
            reservation,
            onset,
        } => {
            let rows = row.map_or(0..table.geometry().rows(), |row| row..row.saturating_add(1));
            let mut revoked = 0;
            for row in rows {
                revoked += ends.take(table.reserve_slots(caller, row, reservation, onset, now)?);
            }
            Done::Reserved(revoked)
        }
        Call::Open { .. }
        | Call::Close
        | Call::Status
        | Call::Admit { .. }
        | Call::Watch { .. } => {
            unreachable!("these do not concern claims and tokens")
        }
    })
}

/// A user's first call gives it what everybody has: the lowest two levels, as many tokens as the
/// table has slots, weighed by the tickets behind the user (2005, 2.4.1).
fn grant_defaults(
    table: &mut Timetable,
    call: &SlotsCall,
    now: Tick,
    ends: &mut Ends,
) -> Result<(), SlotError> {
    let account = Account::User(call.caller.owner.user);
    let count = Amount::Absolute(table.geometry().cells() as u32);
    for level in [Level::Background, Level::BestEffort] {
        if table.bank().tokens(account, level) == Tokens::default() {
            let weight = Some(call.funding.max(1));
            ends.take(table.set_tokens(&administrator(), account, level, count, weight, now)?);
        }
    }
    Ok(())
}

/// The account of an owner: the client's if that has any tokens.
fn paying(table: &Timetable, owner: Owner) -> Account {
    let has_any = |&account: &Account| {
        let tokens = Level::ALL.map(|level| table.bank().tokens(account, level));
        tokens != [Tokens::default(); LEVELS]
    };
    let client = owner.client.map(Account::Client);
    client.filter(has_any).unwrap_or(Account::User(owner.user))
}

fn requests(geometry: &Geometry, wanted: &[Wanted], now_ns: u64) -> Vec<SlotRequest> {
    let expires = |expires_ns: u64| {
        let until_ns = now_ns.saturating_add(expires_ns).saturating_sub(1);
        geometry.tick_at(until_ns) + 1
    };
    let request = |wanted: &Wanted| SlotRequest {
        cell: wanted.cell,
        schedulee: wanted.schedulee,
        level: wanted.level,
        expires: wanted.expires_ns.map(expires),
    };
    wanted.iter().map(request).collect()
}
