//! Picks by the timetable (2005, 2.2).
//!
//! A CPU looks at its row when a claimed slot begins or ends. Until it looks again, a pick by the
//! timetable is of the schedulee that it found. Where the CPU tells that the schedulee does not want to
//! run, so that the fallback decides, no task of the schedulee waits. (This is judged on one CPU, and if
//! the schedulee is a client.)

use std::collections::{HashMap, HashSet};

use super::Disallowed;
use crate::scheduler::{BASE, BY_CLAIM, Decision};

/// The slots that CPUs are in.
#[derive(Default, Debug)]
pub struct Slots {
    slots: HashMap<u32, Slot>,
    /// Tasks that got the CPU of a slot. If the slot is over before such a task begins to run, or comes
    /// back after a task of another class, it is stopped at once.
    given: HashSet<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    is_claimed: bool,
    /// The schedulee: a client, a thread, or neither if it is a process.
    node: u32,
    tid: u32,
}

impl Slots {
    /// A CPU looks at its row.
    pub fn begin(&mut self, decision: &Decision) {
        let slot = Slot {
            is_claimed: decision.node != BASE || decision.tid != 0,
            node: decision.node,
            tid: match decision.is_bound {
                true => 0,
                false => decision.tid,
            },
        };
        self.slots.insert(decision.cpu, slot);
    }

    /// A task gets the CPU of its slot.
    pub fn give(&mut self, decision: &Decision) {
        self.given.insert(decision.tid);
    }

    /// The client whose slot a CPU is in.
    pub fn client_on(&self, cpu: u32) -> Option<u32> {
        let slot = self.slots.get(&cpu)?;
        (slot.node != BASE).then_some(slot.node)
    }

    /// Judges the `pick`-th pick if the timetable decided. Returns whether it did.
    pub fn pick(&mut self, pick: u64, decision: &Decision) -> Result<bool, Disallowed> {
        let was_given = self.given.remove(&decision.tid);
        if decision.queue != BY_CLAIM {
            return Ok(false);
        }
        let slot = self.slots.get(&decision.cpu);
        let is_own = slot.is_some_and(|slot| {
            let of_client = slot.node == BASE || slot.node == decision.node;
            slot.is_claimed && of_client && (slot.tid == 0 || slot.tid == decision.tid)
        });
        if is_own {
            self.given.insert(decision.tid);
        }
        match is_own || was_given {
            true => Ok(true),
            false => Err(Disallowed::Slot {
                pick,
                node: decision.node,
                cpu: decision.cpu,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cpu: u32, node: u32, tid: u32, queue: u32) -> Decision {
        Decision {
            cpu,
            node,
            tid,
            queue,
            ..Decision::default()
        }
    }

    #[test]
    fn only_the_schedulee_of_the_slot_is_picked_by_the_timetable() {
        let mut slots = Slots::default();
        let refused = |slots: &mut Slots, cpu, node, tid| {
            slots.pick(7, &told(cpu, node, tid, BY_CLAIM))
                == Err(Disallowed::Slot { pick: 7, node, cpu })
        };
        assert!(refused(&mut slots, 0, 3, 30), "no slot has begun");
        slots.begin(&told(0, 3, 0, 0));
        assert_eq!(slots.pick(7, &told(0, 3, 30, BY_CLAIM)), Ok(true));
        assert_eq!(slots.pick(7, &told(0, 4, 40, 0)), Ok(false));
        assert!(refused(&mut slots, 0, 4, 40) && refused(&mut slots, 1, 3, 31));
        slots.begin(&told(0, BASE, 50, 0));
        assert_eq!(slots.pick(7, &told(0, 9, 50, BY_CLAIM)), Ok(true));
        assert_eq!(slots.pick(7, &told(0, 9, 50, BY_CLAIM)), Ok(true));
        slots.begin(&told(0, BASE, 0, 0));
        assert_eq!(
            slots.pick(7, &told(0, 9, 50, BY_CLAIM)),
            Ok(true),
            "it comes back"
        );
        assert!(refused(&mut slots, 0, 9, 50), "the slot has ended");
    }

    #[test]
    fn any_task_may_be_one_of_a_process() {
        let mut slots = Slots::default();
        let process = Decision {
            is_bound: true,
            ..told(0, BASE, 50, 0)
        };
        slots.begin(&process);
        assert_eq!(slots.pick(7, &told(0, 9, 51, BY_CLAIM)), Ok(true));
    }
}
