//! Arbitrary input causes no panic, a refusal changes nothing, and journal, own
//! ledger and dispatcher agree.

use prorata_core::rng::{Rng, Xoshiro256PlusPlus};

use crate::testing::conversation::{Conversation, askers, frame};
use crate::testing::requests::{below, mutate, request};
use crate::testing::{ALICE, user};

/// Sends many requests, with `spoil` applied to each frame. Returns the number
/// of accepted ones.
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
