//! What happens in a run, as told to measures and recorders.

use prorata_core::ledger::LedgerError;

/// Something that happened. Clients, CPUs, pools, mutexes and services are
/// given by their numbers in the [plan](crate::Plan).
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names explain the rest")]
pub enum Event<'a> {
    /// The run is about to begin.
    Began,
    /// A client started, with one thread.
    Started {
        client: u32,
    },
    /// The last thread of a client is gone.
    Ended {
        client: u32,
    },
    /// A thread becomes runnable: it woke, or is new.
    Ready {
        /// The thread's or turn's client.
        client: u32,
        thread: u32,
    },
    TurnBegan {
        client: u32,
    },
    /// A thread was given a CPU.
    Dispatched {
        client: u32,
        thread: u32,
        cpu: u32,
        /// When it begins to run: after switch and interrupt.
        start_ns: u64,
        /// Since when it was ready.
        ready_ns: u64,
        /// Whether another thread ran there before.
        switched: bool,
        /// Whether it ran elsewhere before.
        migrated: bool,
    },
    /// A thread used CPU time until now.
    Ran {
        client: u32,
        thread: u32,
        cpu: u32,
        /// For how long.
        used_ns: u64,
    },
    /// A thread left its CPU; it ran until now.
    Left {
        client: u32,
        thread: u32,
        cpu: u32,
        why: Why,
    },
    /// A turn is over.
    TurnEnded {
        client: u32,
        /// CPU time used in it, on all CPUs.
        used_ns: u64,
    },
    /// A thread has a mutex now.
    Acquired {
        client: u32,
        thread: u32,
        mutex: u32,
        /// For how long it waited.
        waited_ns: u64,
    },
    /// A thread released a mutex.
    Released {
        client: u32,
        mutex: u32,
    },
    /// A client calls a service.
    Called {
        client: u32,
        service: u32,
    },
    Answered {
        client: u32,
        service: u32,
        /// Time from call to reply.
        took_ns: u64,
    },
    /// A client's ticket has a new face value, by rule or from outside.
    TicketsSet {
        client: u32,
        /// In the currency of that ticket.
        amount: u32,
    },
    /// A client belongs to another pool of CPUs from now on.
    Moved {
        client: u32,
        pool: u32,
    },
    /// A client's thread runs in a slot of the timetable (2005): it has the CPU at the
    /// beginning of the slot, or got it within.
    SlotBegan {
        client: u32,
        cpu: u32,
        /// Which slot.
        tick: u64,
        /// Time from the slot's beginning, or from the wake within, until it runs.
        late_ns: u64,
    },
    /// A client's thread no longer runs in slots of a CPU.
    SlotEnded {
        client: u32,
        cpu: u32,
    },
    /// A slot of a client is over in which it never ran: it was blocked, or had too few threads.
    SlotMissed {
        client: u32,
        cpu: u32,
    },
    /// A client's claim ended without its doing and before it expired.
    Revoked {
        client: u32,
        cpu: u32,
        column: u32,
    },
    /// The timetable refused what a client or an administrator asked for; the run continues.
    SlotsRefused {
        why: &'a str,
    },
    /// The ledger refused an operation; the run continues without it.
    Refused {
        error: &'a LedgerError,
    },
    /// Time for a point of the time series.
    Sample,
    /// A time that an assertion of the scenario names.
    Mark,
    /// The run is over.
    Finished,
}

impl Event<'_> {
    /// The client concerned, if it is one.
    pub fn client(&self) -> Option<u32> {
        match *self {
            Event::Started { client }
            | Event::Ended { client }
            | Event::Ready { client, .. }
            | Event::TurnBegan { client }
            | Event::Dispatched { client, .. }
            | Event::Ran { client, .. }
            | Event::Left { client, .. }
            | Event::TurnEnded { client, .. }
            | Event::Acquired { client, .. }
            | Event::Released { client, .. }
            | Event::Called { client, .. }
            | Event::Answered { client, .. }
            | Event::TicketsSet { client, .. }
            | Event::Moved { client, .. }
            | Event::SlotBegan { client, .. }
            | Event::SlotEnded { client, .. }
            | Event::SlotMissed { client, .. }
            | Event::Revoked { client, .. } => Some(client),
            Event::Began
            | Event::SlotsRefused { .. }
            | Event::Refused { .. }
            | Event::Sample
            | Event::Mark
            | Event::Finished => None,
        }
    }
}

/// Why a thread left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Its turn ended; it stays runnable.
    TurnEnded,
    /// Another client needs the CPU; it runs on at once on another CPU.
    Migrates,
    /// It gave the rest of its turn away; it stays runnable.
    Yielded,
    /// It sleeps.
    Sleeps,
    /// It waits for a signal, a pipe, a call or a reply.
    Waits,
    /// It waits for a mutex.
    WaitsForMutex,
    /// It exited.
    Exited,
}
