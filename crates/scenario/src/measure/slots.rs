//! Measures of a timetable: how late slots begin, what was missed and revoked, and for how long
//! clients ran nowhere.

use prorata_core::slots::geometry::Tick;

use super::Times;
use crate::event::Event;

/// Everything measured of the timetable.
#[derive(Clone, Default, Debug)]
pub struct SlotMeasures {
    /// By client.
    pub clients: Vec<ClientSlots>,
    /// Whether no token came or went but by what sets tokens, at the end.
    pub tokens_conserved: bool,
    /// Whether the engine shows the beginning of each slot, and when a client runs nowhere.
    pub sees_slots: bool,
    /// Whether missed slots are known by client.
    pub counts_missed: bool,
}

/// Everything measured of one client's slots.
#[derive(Clone, Default, Debug)]
pub struct ClientSlots {
    /// From the beginning of a slot, or a wake in it, until the client runs there.
    pub lateness: Times,
    /// Slots in which it never ran: it was blocked, or had too few threads.
    pub missed: u64,
    /// Claims of which it was deprived.
    pub revocations: u64,
    /// Longest time from the first to the last beginning of its slots in one column.
    pub skew_ns: u64,
    /// Longest time in which it could run and no thread of it did.
    pub blackout_ns: u64,
    /// The column under way: its tick, and the least and the greatest lateness in it.
    column: Option<(Tick, u64, u64)>,
    /// Since when it could run and no thread of it does.
    dark_since_ns: Option<u64>,
}

impl SlotMeasures {
    /// Of so many clients.
    pub fn new(clients: u32) -> Self {
        Self {
            clients: vec![ClientSlots::default(); clients as usize],
            tokens_conserved: false,
            sees_slots: true,
            counts_missed: true,
        }
    }

    /// Notes an event of the timetable; ignores all others.
    pub fn note(&mut self, event: Event<'_>) {
        match event {
            Event::SlotBegan {
                client,
                tick,
                late_ns,
                ..
            } => self.clients[client as usize].begin(tick, late_ns),
            Event::SlotMissed { client, .. } => self.clients[client as usize].missed += 1,
            Event::Revoked { client, .. } => self.clients[client as usize].revocations += 1,
            _ => {}
        }
    }

    /// Notes whether a client can run and no thread of it does.
    pub fn look(&mut self, now_ns: u64, client: u32, is_dark: bool) {
        let client = &mut self.clients[client as usize];
        match client.dark_since_ns {
            None if is_dark => client.dark_since_ns = Some(now_ns),
            Some(since_ns) => {
                client.blackout_ns = client.blackout_ns.max(now_ns - since_ns);
                client.dark_since_ns = is_dark.then_some(since_ns);
            }
            None => {}
        }
    }
}

impl ClientSlots {
    fn begin(&mut self, tick: Tick, late_ns: u64) {
        self.lateness.record(late_ns);
        let (first_ns, last_ns) = match self.column {
            Some((of, first_ns, last_ns)) if of == tick => {
                (first_ns.min(late_ns), last_ns.max(late_ns))
            }
            _ => (late_ns, late_ns),
        };
        self.column = Some((tick, first_ns, last_ns));
        self.skew_ns = self.skew_ns.max(last_ns - first_ns);
    }
}
