//! The turns under way: apart from the clients, as a million clients have no
//! more turns at a time than there are CPUs.

use super::NONE;

/// Why threads have their CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The policy chose their client.
    Turn,
    /// The timetable says so. A gift is a slot that a stranger claimed for them.
    Slot { is_gift: bool },
}

/// A client's turn: from when it is given CPUs to when it has none. A thread in a slot has one of
/// its own.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) kind: Kind,
    /// When it ends at the latest.
    pub(super) end_ns: u64,
    /// CPU time used in it.
    pub(super) used_ns: u64,
    /// The first of the threads that have a CPU.
    pub(super) running: u32,
    /// CPUs that the client has: one for each of these threads.
    pub(super) cpus: u32,
}

/// TurnTable by number; a number is used again when its turn is over.
#[derive(Debug, Default)]
pub(super) struct TurnTable {
    all: Vec<Turn>,
    free: Vec<u32>,
}

impl TurnTable {
    /// Begins a turn.
    pub(super) fn begin(&mut self, end_ns: u64) -> u32 {
        self.add(Kind::Turn, end_ns)
    }

    /// Begins that of a thread in a slot. The timetable ends it.
    pub(super) fn begin_slot(&mut self, is_gift: bool) -> u32 {
        self.add(Kind::Slot { is_gift }, u64::MAX)
    }

    fn add(&mut self, kind: Kind, end_ns: u64) -> u32 {
        let turn = Turn {
            kind,
            end_ns,
            used_ns: 0,
            running: NONE,
            cpus: 0,
        };
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = turn;
                number
            }
            None => {
                self.all.push(turn);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Ends a turn. Returns the CPU time used in it.
    pub(super) fn end(&mut self, number: u32) -> u64 {
        self.free.push(number);
        self.all[number as usize].used_ns
    }

    /// Nothing for [`NONE`].
    pub(super) fn get(&self, number: u32) -> Option<&Turn> {
        self.all.get(number as usize)
    }

    /// A turn that lasts.
    pub(super) fn of(&mut self, number: u32) -> &mut Turn {
        &mut self.all[number as usize]
    }
}
