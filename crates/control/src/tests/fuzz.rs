//! Whatever comes in, nothing panics, a refusal changes nothing, and journal,
//! own ledger and dispatcher agree.

use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};

use crate::control::Control;
use crate::peer::Peer;
use crate::protocol::{Envelope, PROTOCOL_VERSION, Request, Response};
use crate::report::lock;
use crate::state::State;
use crate::testing::requests::{below, mutate, request};
use crate::testing::{ALICE, BOB, FakeEngine, FakeHost, control, fast_directory, image, user};

fn askers() -> [Peer; 3] {
    [user(ALICE), user(BOB), user(0)]
}

fn frame(request: Request) -> Vec<u8> {
    serde_json::to_vec(&Envelope {
        version: PROTOCOL_VERSION,
        request,
    })
    .unwrap()
}

/// Everything that can be seen of a state, however it came about.
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

/// A daemon that is asked for a long time, and what it should remember.
struct Conversation {
    control: Control,
    engine: FakeEngine,
    directory: tempfile::TempDir,
    random: Xoshiro256PlusPlus,
    image: String,
    accepted: usize,
}

impl Conversation {
    fn new(seed: u64) -> Self {
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

    /// Asks and checks what must always hold.
    fn ask(&mut self, who: &Peer, bytes: &[u8], context: &str) {
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
            // Something was made and destroyed, which uses up identifiers.
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

    /// What happens unasked: connections close, processes end.
    fn happen(&mut self) {
        let held: Vec<_> = self.control.state.held.iter().copied().collect();
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

    fn check_agreement(&self, context: &str) {
        let ledger = serde_json::to_string(&self.control.state.ledger).unwrap();
        let shared = serde_json::to_string(lock(&self.control.dispatcher).ledger()).unwrap();
        assert_eq!(ledger, shared, "{context}: the dispatcher's ledger differs");
        // A successor reads in the journal what this one remembers.
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

/// Asks for a long time, with `spoil` applied to each frame. Returns how many
/// requests were accepted.
fn converse(
    seed: u64,
    steps: usize,
    spoil: impl Fn(&mut Xoshiro256PlusPlus, &mut Vec<u8>),
) -> usize {
    let mut conversation = Conversation::new(seed);
    for step in 0..steps {
        let random = &mut conversation.random;
        let who = askers()[below(random, 3)].clone();
        let request = request(random);
        let context = format!(
            "seed {seed}, step {step}, user {}: {request:?}",
            who.principal.uid
        );
        let mut bytes = frame(request);
        spoil(random, &mut bytes);
        conversation.ask(&who, &bytes, &context);
        if step % 32 == 0 {
            conversation.happen();
        }
    }
    conversation.check_agreement(&format!("seed {seed}"));
    conversation.accepted
}

#[test]
fn sensible_requests_are_answered_or_refused_whole() {
    let accepted: usize = (0..40).map(|seed| converse(seed, 500, |_, _| {})).sum();
    assert!(accepted > 4_000, "only {accepted} of 20000 made sense");
}

#[test]
fn spoiled_requests_do_no_harm() {
    let spoil = |random: &mut Xoshiro256PlusPlus, bytes: &mut Vec<u8>| {
        if below(random, 4) > 0 {
            mutate(random, bytes);
        }
    };
    let accepted: usize = (100..160).map(|seed| converse(seed, 1_000, spoil)).sum();
    assert!(accepted > 3_000, "only {accepted} of 60000 made sense");
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let mut conversation = Conversation::new(200);
    for step in 0..30_000 {
        let length = below(&mut conversation.random, 64);
        let bytes: Vec<u8> = (0..length)
            .map(|_| conversation.random.next_u64() as u8)
            .collect();
        conversation.ask(&user(ALICE), &bytes, &format!("step {step}: {bytes:?}"));
    }
    assert_eq!(conversation.accepted, 0);
}
