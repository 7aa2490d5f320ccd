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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use prorata_bulletin::{Owners, Reader, now_ns};
use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::word::Word;
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{GIFT, InSlot, RowTally};
use prorata_user::{outrank_slots, procfs};

use super::Shared;
use super::kernel_side::KernelSide;
use super::scheduler::InKernel;

/// How often the thread looks at CPUs that came back, and whether it is to end.
const LOOK_NS: u64 = 250_000_000;

/// The open table, as the engine tells it to the kernel.
#[derive(Debug)]
pub(super) struct Slots {
    reader: Arc<Reader>,
    owners: Owners,
    /// What the kernel was told of schedulees, by their numbers in the file. A number means another
    /// schedulee only once no word in force or published names it.
    named: BTreeMap<u32, Schedulee>,
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
                    named: BTreeMap::new(),
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
        // The same for all cells of a schedulee.
        let mut named = BTreeMap::new();
        let mut gifts = BTreeMap::new();
        let mut is_whole = true;
        for (index, cell) in cells.into_iter().enumerate() {
            let Some((word, schedulee)) = cell else {
                continue;
            };
            let number = word.schedulee;
            let is_named = match named.get(&number) {
                Some(is_named) => *is_named,
                None => self.name(scheduler.as_ref(), &mut slots.named, number, schedulee)?,
            };
            named.insert(number, is_named);
            // None: a claim that is newer than the list of all claims.
            let place = playbill.place(index, schedulee).filter(|_| is_named);
            let Some(place) = place else {
                is_whole = false;
                continue;
            };
            let user = playbill.parts[place].user;
            let is_gift = *gifts
                .entry((schedulee, user))
                .or_insert_with(|| user != 0 && !self.belongs_to(schedulee, user));
            let gift = if is_gift { GIFT } else { 0 };
            words[index] = Word {
                schedulee: number | gift,
                ..word
            }
            .pack();
        }
        scheduler.publish_slots(&words, from)?;
        Ok(is_whole)
    }

    /// Tells the kernel whose number this is, unless it knows. Returns false if there is no such
    /// schedulee any more.
    fn name(
        &self,
        scheduler: &dyn InKernel,
        named: &mut BTreeMap<u32, Schedulee>,
        number: u32,
        schedulee: Schedulee,
    ) -> Result<bool, KernelError> {
        if named.get(&number) == Some(&schedulee) {
            return Ok(true);
        }
        let Some(in_slot) = self.in_slot(schedulee) else {
            return Ok(false);
        };
        let is_named = scheduler.name_schedulee(number, in_slot)?;
        if is_named {
            named.insert(number, schedulee);
        }
        Ok(is_named)
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
