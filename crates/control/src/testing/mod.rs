//! A made-up machine, and an engine that enforces nothing, for the tests above
//! them.

pub(crate) mod conversation;
mod engine;
mod host;
pub(crate) mod requests;

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ledger::Principal;
use prorata_protocol::{Envelope, PROTOCOL_VERSION, Request, Response};

use crate::control::Control;
use crate::host::Host;
use crate::journal::Journal;
use crate::peer::Peer;
use crate::policy;
use crate::report::RunningChoice;
use crate::roots::RootWatch;
use crate::slots::Slots;
use crate::state::State;
use crate::users::Census;

#[cfg(test)]
pub(crate) use engine::CURSED;
pub(crate) use engine::FakeEngine;
pub(crate) use host::{DAEMON, FakeHost};

/// Users of the made-up machine.
pub(crate) const ALICE: u32 = 1000;
pub(crate) const BOB: u32 = 1001;

/// The asking process.
pub(crate) const ASKER: u32 = 90;

/// A user without supplementary groups.
pub(crate) fn user(uid: u32) -> Peer {
    Peer {
        outside_at_ns: Cell::new(None),
        principal: Principal {
            uid,
            gids: vec![uid],
        },
        pid: ASKER,
    }
}

/// A daemon without a socket on a made-up machine, with its journal in
/// `directory`.
pub(crate) fn control(directory: &Path, host: impl Host + 'static, engine: &FakeEngine) -> Control {
    let opened = Journal::open(directory.join("journal"), "boot".into()).unwrap();
    let state = match opened.found {
        Some((state, _)) => state,
        None => State::new(host.own_uid(), host.own_uid()),
    };
    let dispatcher = Dispatcher::new(
        state.ledger.clone(),
        policy::new(state.settings.policy),
        1,
        state.settings.quantum_ns,
    );
    Control {
        state,
        journal: opened.journal,
        dispatcher: Arc::new(Mutex::new(dispatcher)),
        engine: Box::new(engine.clone()),
        choice: RunningChoice::default(),
        host: Box::new(host),
        roots: RootWatch::new().unwrap(),
        census: Census::default(),
        resumed_until: None,
        slots: Slots::new(directory.join("slots")),
    }
}

/// Sends a request like a client, and returns the answer.
pub(crate) fn ask(control: &mut Control, who: &Peer, request: Request) -> Response {
    let envelope = Envelope {
        version: PROTOCOL_VERSION,
        request,
    };
    control
        .handle(who, &serde_json::to_vec(&envelope).unwrap())
        .response
}

/// The whole memory of a daemon, for comparison.
pub(crate) fn image(state: &State) -> String {
    serde_json::to_string(state).unwrap()
}

/// A directory in which flushing costs nothing.
pub(crate) fn fast_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}
