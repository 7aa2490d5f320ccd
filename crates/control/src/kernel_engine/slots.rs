//! The timetable in the kernel: a thread follows the public file, and tells the scheduler.
//!
//! ```text
//!   public file --- sequence, words, owners ---> thread --- schedulees by number, words ---> kernel
//! ```
//!
//! A change is decided two slots before it is in force. The thread runs before slots do, where all of the
//! machine is scheduled, and writes the kernel's words within that time. If it is late, the change takes
//! effect in the kernel with the next slot.
//!
//! A claim of another user is a gift: it costs its schedulee no tickets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use prorata_bulletin::{Owners, Reader, now_ns};
use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Tick;
use prorata_core::slots::word::Word;
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{InSlot, RowTally};
use prorata_user::{outrank_slots, procfs};

use super::Shared;
use super::kernel_side::KernelSide;

/// How often the thread looks at CPUs that came back, and whether it is to end.
const LOOK_NS: u64 = 250_000_000;

/// Numbers for schedulees, from 1 on.
const NUMBERS: u32 = 65_536;

/// A schedulee, and whether its claim is a gift.
type Named = (Schedulee, bool);

/// What the kernel was told of schedulees.
#[derive(Default, Debug)]
struct Numbers {
    numbers: BTreeMap<Named, u32>,
    free: Vec<u32>,
    /// The numbers in the words that were published, by the ticks from which they are in force: those
    /// that CPUs may use now or later.
    published: Vec<(Tick, BTreeSet<u32>)>,
}

impl Numbers {
    fn number(&self, named: Named) -> Option<u32> {
        self.numbers.get(&named).copied()
    }

    /// A free number; none if all are taken.
    fn vacant(&mut self) -> Option<u32> {
        let next = self.numbers.len() as u32 + 1;
        self.free.pop().or((next < NUMBERS).then_some(next))
    }

    /// These numbers are published, in force from a tick on. Numbers that no CPU uses from now on are
    /// free.
    fn publish(&mut self, from: Tick, numbers: BTreeSet<u32>, now: Tick) {
        match self.published.last_mut() {
            // A change that joins another one: some words of both may have been read.
            Some((last, all)) if *last == from => all.extend(numbers),
            _ => self.published.push((from, numbers)),
        }
        while self.published.get(1).is_some_and(|(from, _)| *from < now) {
            self.published.remove(0);
        }
        let (published, free) = (&self.published, &mut self.free);
        self.numbers.retain(|_, number| {
            let stays = published.iter().any(|(_, used)| used.contains(number));
            if !stays {
                free.push(*number);
            }
            stays
        });
    }
}

/// The open table, as the engine tells it to the kernel.
#[derive(Debug)]
pub(super) struct Slots {
    reader: Arc<Reader>,
    owners: Owners,
    numbers: Numbers,
    /// The change of the file that the kernel was told last.
    sequence: Option<u32>,
}

impl KernelSide {
    /// Opens a table in the kernel, in the place of any other, or closes it.
    /// Does nothing while no scheduler is loaded.
    pub(super) fn set_timetable(&mut self, reader: Option<Arc<Reader>>) -> Result<(), KernelError> {
        self.slots = None;
        let Some(scheduler) = &self.scheduler else {
            return Ok(());
        };
        match reader {
            None => scheduler.close_timetable(),
            Some(reader) => {
                scheduler.open_timetable(reader.geometry(), reader.cpus())?;
                self.slots = Some(Slots {
                    reader,
                    owners: Owners::default(),
                    numbers: Numbers::default(),
                    sequence: None,
                });
                let followed = self.follow_slots();
                if followed.is_err() {
                    self.set_timetable(None)?;
                }
                followed
            }
        }
    }

    /// A scheduler that was loaded again knows no table.
    pub(super) fn open_timetable_again(&mut self) {
        let Some(slots) = self.slots.take() else {
            return;
        };
        if let Err(error) = self.set_timetable(Some(slots.reader)) {
            tracing::warn!("slots are not enforced any more: {error}");
        }
    }

    /// Tells the kernel what has changed in the file since the last time. Fails only if the scheduler
    /// was unloaded.
    pub(super) fn follow_slots(&mut self) -> Result<(), KernelError> {
        let (Some(mut slots), Some(scheduler)) = (self.slots.take(), &self.scheduler) else {
            return Ok(());
        };
        let sequence = slots.reader.sequence();
        let mut told = scheduler.look_after_slots();
        if told.is_ok() && slots.sequence != Some(sequence) && slots.owners.look(&slots.reader) {
            let is_whole = self.tell_slots(&mut slots);
            // What could not be told is tried again at the next look.
            let is_told = is_whole.as_ref().is_ok_and(|is_whole| *is_whole);
            slots.sequence = is_told.then_some(sequence);
            told = is_whole.map(drop);
        }
        self.slots = Some(slots);
        told
    }

    /// Returns whether all claims could be told.
    fn tell_slots(&self, slots: &mut Slots) -> Result<bool, KernelError> {
        let Some(scheduler) = &self.scheduler else {
            return Ok(true);
        };
        let (from, cells) = slots.reader.published();
        let playbill = slots.owners.playbill(cells.len());
        let mut words = vec![0; cells.len()];
        let mut present = BTreeSet::new();
        // The same for all cells of a schedulee: whether it is a gift, and whether it has no number.
        let mut gifts = BTreeMap::new();
        let mut nameless = BTreeSet::new();
        let mut is_whole = true;
        for (index, cell) in cells.into_iter().enumerate() {
            let Some((word, schedulee)) = cell else {
                continue;
            };
            // A claim that is newer than the list of all claims.
            let Some(place) = playbill.place(index, schedulee) else {
                is_whole = false;
                continue;
            };
            let user = playbill.parts[place].user;
            let is_gift = *gifts
                .entry((schedulee, user))
                .or_insert_with(|| user != 0 && !self.belongs_to(schedulee, user));
            let named = (schedulee, is_gift);
            let known = slots.numbers.number(named);
            if known.is_none() && nameless.contains(&named) {
                continue;
            }
            let number = match known {
                Some(number) => number,
                None => {
                    let number = slots.numbers.vacant();
                    let in_kernel = number.zip(self.in_slot(schedulee));
                    let is_named = match in_kernel {
                        Some((number, in_kernel)) => {
                            scheduler.name_schedulee(number, in_kernel, named.1)?
                        }
                        None => false,
                    };
                    let Some(number) = number.filter(|_| is_named) else {
                        slots.numbers.free.extend(number);
                        nameless.insert(named);
                        is_whole = false;
                        continue;
                    };
                    slots.numbers.numbers.insert(named, number);
                    number
                }
            };
            present.insert(number);
            words[index] = Word {
                schedulee: number,
                ..word
            }
            .pack();
        }
        let from = scheduler.publish_slots(&words, from)?;
        let now = slots.reader.geometry().tick_at(now_ns());
        slots.numbers.publish(from, present, now);
        Ok(is_whole)
    }

    /// What the kernel calls a schedulee; `None` for a client that has no node.
    fn in_slot(&self, schedulee: Schedulee) -> Option<InSlot> {
        Some(match schedulee {
            Schedulee::Client(client) => InSlot::Node(self.projection.node(client)?),
            Schedulee::Process { pid, started } => InSlot::Process { pid, started },
            Schedulee::Thread { tid, started } => InSlot::Thread { tid, started },
        })
    }

    /// Whether a schedulee is a user's own.
    fn belongs_to(&self, schedulee: Schedulee, user: u32) -> bool {
        match schedulee {
            Schedulee::Client(client) => {
                let client = self.clients.get(&client);
                client.is_some_and(|client| client.users.are_only(user))
            }
            Schedulee::Process { pid, .. } => procfs::real_uid(pid) == Some(user),
            Schedulee::Thread { tid, .. } => {
                let process = procfs::process_of_thread(tid).ok();
                process.and_then(procfs::real_uid) == Some(user)
            }
        }
    }

    /// What became of the slots of each row.
    pub(super) fn slot_tallies(&self) -> Vec<RowTally> {
        let scheduler = self.scheduler.as_ref();
        scheduler.map_or_else(Vec::new, |scheduler| scheduler.slot_tallies())
    }
}

/// The thread that follows the file. Dropping this ends it.
pub(super) struct Follower {
    reader: Arc<Reader>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    pub(super) fn start(shared: Arc<Shared>, reader: Arc<Reader>) -> std::io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ended);
        let of_thread = Arc::clone(&reader);
        let thread = std::thread::Builder::new()
            .name("kernel-slots".into())
            .spawn(move || {
                let reader = of_thread;
                outrank_slots();
                while !ends.load(Ordering::Acquire) && reader.is_open() {
                    let sequence = reader.sequence();
                    if let Err(error) = shared.side().follow_slots() {
                        // The watching thread loads the scheduler again.
                        tracing::debug!("the kernel was not told of slots: {error}");
                    }
                    // A thread that cannot wait for the file looks again later.
                    if reader.wait(sequence, Some(now_ns() + LOOK_NS)).is_err() {
                        std::thread::sleep(Duration::from_nanos(LOOK_NS));
                    }
                }
            })?;
        Ok(Self {
            reader,
            ended,
            thread: Some(thread),
        })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            self.reader.join(thread);
        }
    }
}
