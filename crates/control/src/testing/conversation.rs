//! A daemon without a socket, a series of requests, and what holds after each.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};
use prorata_protocol::{Envelope, PROTOCOL_VERSION, Request, Response};

use super::requests::below;
use super::{ALICE, BOB, FakeEngine, FakeHost, control, fast_directory, image, user};
use crate::control::{Control, Held};
use crate::engine::lock;
use crate::peer::Peer;
use crate::state::State;

pub(crate) fn askers() -> [Peer; 3] {
    [user(ALICE), user(BOB), user(0)]
}

pub(crate) fn frame(request: Request) -> Vec<u8> {
    serde_json::to_vec(&Envelope {
        version: PROTOCOL_VERSION,
        request,
    })
    .unwrap()
}

/// The visible part of a state, apart from its history.
fn visible(state: &State) -> String {
    let ledger = &state.ledger;
    let views = (
        ledger.currencies().collect::<Vec<_>>(),
        ledger.tickets().collect::<Vec<_>>(),
        ledger.clients().collect::<Vec<_>>(),
        ledger.transfers().collect::<Vec<_>>(),
    );
    format!(
        "{views:?} {:?} {:?} {:?}",
        state.roots, state.suspended, state.held
    )
}

/// A daemon with many requests behind it, and the state that it should
/// remember.
pub(crate) struct Conversation {
    pub control: Control,
    engine: FakeEngine,
    directory: tempfile::TempDir,
    pub random: Xoshiro256PlusPlus,
    image: String,
    pub accepted: usize,
}

impl Conversation {
    pub fn new(seed: u64) -> Self {
        let directory = fast_directory();
        let engine = FakeEngine::default();
        let control = control(directory.path(), FakeHost::new(0), &engine);
        let image = image(&control.state);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            control,
            engine,
            directory,
            random,
            image,
            accepted: 0,
        }
    }

    /// Sends a request and checks all invariants.
    pub fn ask(&mut self, who: &Peer, bytes: &[u8], context: &str) {
        let outgoing = self.control.handle(who, bytes);
        let image_after = image(&self.control.state);
        let Response::Refused { message } = &outgoing.response else {
            self.image = image_after;
            self.accepted += 1;
            return;
        };
        assert!(
            message.lines().count() == 1 && !message.ends_with('.'),
            "{context}: {message:?}"
        );
        assert!(
            message.contains(": ") || message.contains(';'),
            "no fix in {message:?}"
        );
        if message.contains("it has just ended") {
            // Something was created and destroyed, which uses up identifiers.
            let before = serde_json::from_str(&self.image).unwrap();
            assert_eq!(
                visible(&before),
                visible(&self.control.state),
                "{context}: {message}"
            );
            self.image = image_after;
        } else {
            assert_eq!(self.image, image_after, "{context}: {message}");
        }
    }

    /// Events without a request: connections close, processes end.
    pub fn happen(&mut self) {
        let held = self.control.state.held.iter().copied().map(Held::Transfer);
        let table = Held::Timetable(self.control.slots.opened);
        let held: Vec<_> = held.chain([table]).collect();
        let processes: Vec<_> = self
            .control
            .state
            .roots
            .values()
            .flatten()
            .copied()
            .collect();
        match below(&mut self.random, 3) {
            0 => self.control.end_held(&held),
            1 if !processes.is_empty() => {
                self.engine
                    .end(processes[below(&mut self.random, processes.len())]);
                self.control.remove_exited();
            }
            _ => {}
        }
        self.image = image(&self.control.state);
    }

    pub fn check_agreement(&self, context: &str) {
        let ledger = serde_json::to_string(&self.control.state.ledger).unwrap();
        let shared = serde_json::to_string(lock(&self.control.dispatcher).ledger()).unwrap();
        assert_eq!(ledger, shared, "{context}: the dispatcher's ledger differs");
        // The next daemon reads from the journal what this one remembers.
        let successor = control(
            self.directory.path(),
            FakeHost::new(0),
            &FakeEngine::default(),
        );
        assert_eq!(
            self.image,
            image(&successor.state),
            "{context}: the journal differs"
        );
    }
}
