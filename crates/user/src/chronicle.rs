//! The last events of clients, for people to read: turns that ended, sleeps and wakes.
//!
//! The engine looks at clients now and then. Sleeps and wakes between two looks are not seen, and an
//! event has the time of the look that showed it.

use std::collections::VecDeque;

use prorata_core::hybrid::WakeClass;
use prorata_core::ids::ClientId;

use crate::client::Client;
use crate::procfs;
use crate::tree::Tree;

/// Events that are kept.
pub const MOST_EVENTS: usize = 1_000;

/// Sleeps of one decision of which the function in the kernel is found out, at some 2 us each.
const MOST_PLACES: u32 = 4;

/// Why a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnEnd {
    /// The quantum was over.
    Quantum,
    /// All threads of the client slept.
    Sleep,
    /// The tickets or the clients changed, so that all turns ended.
    Change,
    /// The client exhausted the allowance of its limit.
    Limit,
    /// The user took the client out of the competition.
    Suspended,
}

/// What happened to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happening {
    /// It was found awake.
    Woke {
        /// Whether it is early, and so not held down.
        is_early: bool,
        /// Whether it slept in the kernel, uninterruptibly.
        from_kernel: bool,
    },
    /// It was found asleep.
    Slept {
        /// Whether it sleeps in the kernel, uninterruptibly.
        in_kernel: bool,
        /// The function of the kernel that it sleeps in, where that was found out.
        place: Option<Box<str>>,
    },
    /// It is early no longer, though it did not sleep.
    EarlyEnded,
    /// Its turn ended.
    TurnEnded {
        /// The reason.
        reason: TurnEnd,
        /// Length of the turn.
        lasted_ns: u64,
    },
}

/// Something that happened to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientEvent {
    /// When the engine saw it, on the monotonic clock.
    pub time_ns: u64,
    /// The client.
    pub client: ClientId,
    /// What happened.
    pub what: Happening,
}

/// Events of a decision, on their way to the directory.
#[derive(Default, Debug)]
pub(crate) struct Chronicle {
    events: Vec<ClientEvent>,
    /// Places found out in this decision.
    places: u32,
}

impl Chronicle {
    pub(crate) fn begin_decision(&mut self) {
        self.places = 0;
    }

    pub(crate) fn note(&mut self, time_ns: u64, client: ClientId, what: Happening) {
        self.events.push(ClientEvent {
            time_ns,
            client,
            what,
        });
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = ClientEvent> {
        self.events.drain(..)
    }

    /// The dispatcher was told that a client woke from such a sleep, or fell asleep.
    pub(crate) fn note_report(
        &mut self,
        time_ns: u64,
        client: &Client,
        told_before: u32,
        woken_from: WakeClass,
    ) {
        match (told_before, client.runnable_told) {
            (0, 1..) => {
                let woke = Happening::Woke {
                    is_early: false,
                    from_kernel: woken_from != WakeClass::User,
                };
                self.note(time_ns, client.id, woke);
            }
            (1.., 0) => {
                let slept = Happening::Slept {
                    in_kernel: client.sleeps_on != WakeClass::User,
                    place: self.place_of(client),
                };
                self.note(time_ns, client.id, slept);
            }
            _ => {}
        }
    }

    /// Where the process sleeps that ran last.
    fn place_of(&mut self, client: &Client) -> Option<Box<str>> {
        if self.places >= MOST_PLACES {
            return None;
        }
        self.places += 1;
        let mut processes = client.processes.iter();
        let ran = processes.find(|process| process.progressed);
        let process = ran.or(client.processes.first())?;
        procfs::sleeping_place(process.id.pid)
    }

    /// A client's outlook changed with a decision.
    pub(crate) fn note_outlook(&mut self, time_ns: u64, client: &Client, was_early: bool) {
        if was_early && !client.is_early() && client.runnable_told > 0 {
            self.note(time_ns, client.id, Happening::EarlyEnded);
        }
    }

    /// Notes of the wakes of this decision whether the clients are early. Only their outlook tells.
    pub(crate) fn note_early_wakes(&mut self, time_ns: u64, tree: &Tree) {
        let events = self.events.iter_mut().rev();
        for event in events.take_while(|event| event.time_ns == time_ns) {
            if let Happening::Woke { is_early, .. } = &mut event.what {
                let client = tree.client(event.client);
                *is_early |= client.is_some_and(|c| c.runnable_told > 0 && c.is_early());
            }
        }
    }

    /// A client's turn ends.
    pub(crate) fn note_turn_end(&mut self, time_ns: u64, client: &Client) {
        let reason = if client.suspended {
            TurnEnd::Suspended
        } else if client.is_paused() {
            TurnEnd::Limit
        } else if client.runnable == 0 {
            TurnEnd::Sleep
        } else if client.turn_ends_ns == 0 {
            TurnEnd::Change
        } else {
            TurnEnd::Quantum
        };
        let ended = Happening::TurnEnded {
            reason,
            lasted_ns: time_ns.saturating_sub(client.turn_began_ns),
        };
        self.note(time_ns, client.id, ended);
    }
}

/// The last events, the oldest first.
#[derive(Default, Debug)]
pub(crate) struct LastEvents(VecDeque<ClientEvent>);

impl LastEvents {
    pub(crate) fn push(&mut self, event: ClientEvent) {
        if self.0.len() == MOST_EVENTS {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    pub(crate) fn all(&self) -> Vec<ClientEvent> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64) -> ClientEvent {
        ClientEvent {
            time_ns,
            client: ClientId::from_parts(0, 0),
            what: Happening::EarlyEnded,
        }
    }

    #[test]
    fn the_last_events_are_kept_and_no_more() {
        let mut last = LastEvents::default();
        (0..MOST_EVENTS as u64).for_each(|time_ns| last.push(event(time_ns)));
        assert_eq!(last.all().len(), MOST_EVENTS);
        assert_eq!(last.all()[0], event(0));
        last.push(event(MOST_EVENTS as u64));
        assert_eq!(last.all().len(), MOST_EVENTS);
        assert_eq!(last.all()[0], event(1));
        assert_eq!(last.all()[MOST_EVENTS - 1], event(MOST_EVENTS as u64));
    }

    #[test]
    fn the_end_of_a_turn_has_its_reason() {
        let id = ClientId::from_parts(3, 0);
        let mut client = Client::new(id, 0);
        client.turn_began_ns = 5;
        (client.runnable, client.turn_ends_ns) = (1, 20);
        let mut chronicle = Chronicle::default();
        let mut reason_of = |client: &Client| {
            chronicle.note_turn_end(12, client);
            match chronicle.drain().next().expect("one").what {
                Happening::TurnEnded {
                    reason,
                    lasted_ns: 7,
                } => reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reason_of(&client), TurnEnd::Quantum);
        client.turn_ends_ns = 0;
        assert_eq!(reason_of(&client), TurnEnd::Change);
        client.runnable = 0;
        assert_eq!(reason_of(&client), TurnEnd::Sleep);
        client.suspended = true;
        assert_eq!(reason_of(&client), TurnEnd::Suspended);
    }

    #[test]
    fn places_of_sleeps_are_found_out_for_few() {
        let mut chronicle = Chronicle::default();
        let mut client = Client::new(ClientId::from_parts(0, 0), 0);
        for _ in 0..=MOST_PLACES {
            chronicle.note_report(0, &client, 1, WakeClass::User);
        }
        assert_eq!(chronicle.places, MOST_PLACES);
        chronicle.begin_decision();
        client.runnable_told = 1;
        chronicle.note_report(0, &client, 0, WakeClass::User);
        assert_eq!(chronicle.places, 0);
        assert_eq!(chronicle.drain().count(), MOST_PLACES as usize + 2);
    }
}
