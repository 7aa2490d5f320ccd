//! Thousands of clients.

use std::collections::HashSet;

use prorata_core::ids::ClientId;
use prorata_user::{ClientActivity, ProcessId};

use crate::Tests;
use crate::support::{MS, Program, World, wait_until};

pub const TESTS: Tests = &[("two thousand clients are managed", crowd)];

/// As many as a slow machine bears.
const CLIENTS: u32 = 2_000;

fn crowd() {
    let world = World::new(None, 20 * MS);
    let mut parent = Program::start(&["crowd", &CLIENTS.to_string()]);
    let pids = parent.hear();
    let pids: Vec<u32> = pids
        .split(' ')
        .map(|pid| pid.parse().expect("a pid"))
        .collect();
    let clients: Vec<ClientId> = (0..)
        .zip(&pids)
        .map(|(number, &pid)| {
            let client = world.client(&format!("client {number}"), 1);
            let process = ProcessId::of(pid).expect("it runs");
            world
                .engine()
                .manage(client, process)
                .expect("there is room");
            client
        })
        .collect();
    assert!((0..CLIENTS as usize).all(|n| world.engine().find(pids[n]) == Some(clients[n])));
    let hogs = world.hogs(&[3, 1]);
    wait_until("hogs compete, and the others sleep", || {
        let state = |client: &ClientId| world.engine().state(*client);
        let asleep = |client: &ClientId| state(client) == Some(ClientActivity::Blocked);
        let hogs = hogs.iter().filter_map(|hog| world.engine().find(hog.pid()));
        hogs.filter(|hog| !asleep(hog)).count() == 2 && clients.iter().all(asleep)
    });
    // All ends are noticed, also of clients that no decision concerned for a long time.
    drop(parent);
    let mut ended = HashSet::new();
    wait_until("all ends are noticed", || {
        ended.extend(world.engine().take_exited());
        ended.len() == clients.len()
    });
    assert!(pids.iter().all(|&pid| world.engine().find(pid).is_none()));
}
