//! Claims of a scenario: where a library's scheduler puts them (2005, 2.3), and what a run does
//! to its timetable.

use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Caller, Owner, Schedulee, SlotRequest, VECTOR};
use prorata_core::slots::geometry::{Cell, Tick};
use prorata_core::slots::level::Level;
use prorata_core::slots::notice::{Notice, Outcome, Why};
use prorata_core::slots::place::periodic::{Fit, Periodic};
use prorata_core::slots::place::{View, best_effort, cache, event, gang};
use prorata_core::slots::staging::STAGES;
use prorata_core::slots::timetable::{Claimed, Timetable};

use crate::event::Event;
use crate::plan::SlotDeed;

/// The administrator, for tokens and reservations.
const ADMINISTRATOR: Caller = Caller {
    owner: Owner {
        user: 0,
        client: None,
    },
    privileged: true,
};

/// A claim with its names looked up.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedClaim {
    /// The owner, with its user.
    pub caller: Caller,
    /// What runs.
    pub schedulee: Schedulee,
    /// Where.
    pub place: Place,
    /// The level of its tokens.
    pub level: Level,
    /// The first tick at which it is not valid any more.
    pub expires: Option<Tick>,
}

/// Where a claim wants its slots.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "as in the file")]
pub enum Place {
    Cells(Vec<Cell>),
    Gang {
        threads: u32,
        columns: Option<u32>,
        preferred: Vec<u32>,
    },
    Periodic {
        slots: u32,
        period: u32,
        cpu: Option<u32>,
    },
    Event {
        slots: u32,
        ticks: Tick,
        row: u32,
    },
    Cache(u32),
    BestEffort(u32),
}

/// One thread as a schedulee: in a scenario it is known by its client and its number there.
pub fn thread(client: u32, number: u32) -> Schedulee {
    Schedulee::Thread {
        tid: number,
        started: client.into(),
    }
}

impl PlannedClaim {
    /// How many slots it wants at least.
    pub fn slots(&self) -> usize {
        let slots = match &self.place {
            Place::Cells(cells) => return cells.len(),
            Place::Gang {
                threads, columns, ..
            } => threads * columns.unwrap_or(1),
            Place::Periodic { slots, .. }
            | Place::Event { slots, .. }
            | Place::Cache(slots)
            | Place::BestEffort(slots) => *slots,
        };
        slots as usize
    }

    /// The slots to ask for, and when they expire.
    fn cells(&self, timetable: &Timetable, now: Tick) -> (Vec<Cell>, Option<Tick>) {
        let view = View::unclaimed(timetable);
        let columns = view.columns();
        let cells = match &self.place {
            Place::Cells(cells) => cells.clone(),
            Place::Gang {
                threads,
                columns: wanted,
                preferred,
            } => {
                let wanted = wanted.unwrap_or(columns) as usize;
                gang::place(&view, wanted, *threads as usize, preferred).concat()
            }
            Place::Periodic { slots, period, cpu } => {
                let periodic = Periodic {
                    slots: *slots,
                    period: *period,
                    offset: 0,
                    jitter: None,
                };
                let mut rows = cpu.map_or(0..view.rows(), |cpu| cpu..cpu + 1);
                let on = |row| Some((row, periodic.place(&view, row, Fit::Harmonic)?));
                rows.find_map(on).map_or(Vec::new(), on_row)
            }
            Place::Event { slots, ticks, row } => {
                let deadline = now + ticks;
                let chosen = event::place(&view, *row, *slots, now + STAGES, deadline);
                let cells = chosen.map_or(Vec::new(), |columns| on_row((*row, columns)));
                return (cells, Some(deadline));
            }
            Place::Cache(length) => cache::place(&view, *length).map_or(Vec::new(), |first| {
                let column = |step| (first.column + step) % columns;
                on_row((first.row, (0..*length).map(column).collect()))
            }),
            Place::BestEffort(wanted) => {
                let rows: Vec<u32> = (0..view.rows()).collect();
                best_effort::place(&view, &rows, *wanted as usize)
            }
        };
        (cells, self.expires)
    }

    /// Places the claim and makes it, as far as there is room.
    pub fn make(&self, timetable: &mut Timetable, now: Tick) -> Outcome<Claimed> {
        let (cells, expires) = self.cells(timetable, now);
        let request = |cell| SlotRequest {
            cell,
            schedulee: self.schedulee,
            level: self.level,
            expires,
        };
        let requests: Vec<SlotRequest> = cells.into_iter().map(request).collect();
        let Outcome {
            generation,
            notices,
            freed,
            ..
        } = timetable.advance(now);
        let mut all = Outcome {
            value: Claimed::default(),
            generation,
            notices,
            freed,
        };
        for vector in requests.chunks(VECTOR) {
            let made = timetable.claim_slots(&self.caller, vector, Mode::BestEffort, None, now);
            let made = made.expect("a vector that is short enough, of any generation");
            all.value.claimed.extend(made.value.claimed);
            all.value.refused.extend(made.value.refused);
            all.generation = made.generation;
            all.notices.extend(made.notices);
            all.freed.extend(made.freed);
        }
        all
    }
}

fn on_row((row, columns): (u32, Vec<u32>)) -> Vec<Cell> {
    let cells = columns.into_iter().map(|column| Cell { row, column });
    cells.collect()
}

/// The claims of which clients were deprived.
pub fn revocations(notices: &[Notice]) -> impl Iterator<Item = Event<'static>> {
    let revoked = |notice: &&Notice| !matches!(notice.why, Why::Expired | Why::ScheduleeEnded);
    let event = |notice: &Notice| {
        let owner = notice.claim.owner.client?;
        Some(Event::Revoked {
            client: owner.index(),
            cpu: notice.cell.row,
            column: notice.cell.column,
        })
    };
    notices.iter().filter(revoked).filter_map(event)
}

/// The client that runs in a schedulee's slots; none for a process, which a scenario has not.
pub fn client_of(schedulee: Schedulee) -> Option<u32> {
    match schedulee {
        Schedulee::Client(client) => Some(client.index()),
        Schedulee::Thread { started, .. } => Some(started as u32),
        Schedulee::Process { .. } => None,
    }
}

/// What a deed did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Done {
    /// Ends of claims.
    pub notices: Vec<Notice>,
    /// What was refused, in words.
    pub refused: Vec<String>,
}

impl SlotDeed {
    /// Does it in the tick `now`.
    pub fn apply(&self, timetable: &mut Timetable, now: Tick) -> Done {
        let mut done = Done::default();
        match self {
            SlotDeed::Claim(claim) => {
                let outcome = claim.make(timetable, now);
                let Claimed { claimed, refused } = outcome.value;
                done.notices = outcome.notices;
                done.refused = refused.iter().map(|(_, error)| error.to_string()).collect();
                let (placed, wanted) = (claimed.len() + refused.len(), claim.slots());
                if placed < wanted {
                    let room = format!("there is room for {placed} of {wanted} slots: claim fewer");
                    done.refused.push(room);
                }
            }
            SlotDeed::Free(caller, named) => {
                let owned = timetable.table().claims();
                let owned = owned.filter(|(_, claim)| claim.owner == caller.owner);
                let all = || owned.map(|(cell, _)| cell).collect();
                let cells: Vec<Cell> = named.clone().unwrap_or_else(all);
                for vector in cells.chunks(VECTOR) {
                    note(&mut done, timetable.free_slots(caller, vector, now));
                }
            }
            SlotDeed::SetTokens(accounts, level, count, weight) => {
                for &account in accounts {
                    let amount = Amount::Absolute(*count);
                    let set =
                        timetable.set_tokens(&ADMINISTRATOR, account, *level, amount, *weight, now);
                    note(&mut done, set);
                }
            }
            SlotDeed::Donate(caller, to, level, count) => {
                note(
                    &mut done,
                    timetable.donate_tokens(caller, *to, *level, *count, now),
                );
            }
            SlotDeed::Reserve(rows, reservation, onset) => {
                for &row in rows {
                    let reserved =
                        timetable.reserve_slots(&ADMINISTRATOR, row, *reservation, *onset, now);
                    note(&mut done, reserved);
                }
            }
        }
        done
    }
}

fn note<T>(done: &mut Done, result: Result<Outcome<T>, prorata_core::slots::error::SlotError>) {
    match result {
        Ok(outcome) => done.notices.extend(outcome.notices),
        Err(error) => done.refused.push(error.to_string()),
    }
}
