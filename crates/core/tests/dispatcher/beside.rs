//! Early clients beside the winners: what an engine does that looks at clients once a quantum.

use proptest::prelude::*;
use prorata_core::dispatcher::Winner;
use prorata_core::hybrid::{
    BOOST_ONE, FACTOR_ONE, LEAD_BOUND_NS, MAX_BOOST, Mechanisms, Outlook, WakeClass,
};
use prorata_core::ids::ClientId;
use prorata_core::policy::PolicyName;

use super::{Bench, QUANTUM_NS};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The policies under which a client's error is bounded.
const EXACT: [PolicyName; 3] = [
    PolicyName::Stride,
    PolicyName::HierarchicalStride,
    PolicyName::Eevdf,
];

/// A client that computes and sleeps by turns; without sleeps, a hog.
struct Program {
    client: ClientId,
    computes_ns: u64,
    sleeps_ns: u64,
    /// What is left of the present step.
    left_ns: u64,
    is_awake: bool,
    /// What the engine told the dispatcher last.
    told_awake: bool,
    /// CPU time since the last look, and in all.
    used_ns: u64,
    received_ns: u64,
    waited_ns: u64,
    longest_wait_ns: u64,
    may_run: bool,
    was_early: bool,
}

impl Program {
    fn new(client: ClientId, computes_ns: u64, sleeps_ns: u64) -> Self {
        Self {
            client,
            computes_ns,
            sleeps_ns,
            left_ns: computes_ns,
            is_awake: true,
            told_awake: true,
            used_ns: 0,
            received_ns: 0,
            waited_ns: 0,
            longest_wait_ns: 0,
            may_run: true,
            was_early: false,
        }
    }

    fn use_cpu(&mut self, used_ns: u64) {
        self.used_ns += used_ns;
        self.received_ns += used_ns;
        self.waited_ns = 0;
        self.left_ns = self.left_ns.saturating_sub(used_ns);
        if self.left_ns == 0 && self.sleeps_ns > 0 {
            (self.is_awake, self.left_ns) = (false, self.sleeps_ns);
        }
    }

    fn wait(&mut self, time_ns: u64) {
        if self.is_awake {
            self.waited_ns += time_ns;
            self.longest_wait_ns = self.longest_wait_ns.max(self.waited_ns);
            return;
        }
        self.left_ns = self.left_ns.saturating_sub(time_ns);
        if self.left_ns == 0 {
            (self.is_awake, self.left_ns) = (true, self.computes_ns);
        }
    }
}

/// One CPU under an engine that looks at its clients once a quantum. Between two looks the
/// winner, sleepers that are not ahead, and early clients share it equally; the others run
/// while it would idle.
struct Engine {
    bench: Bench,
    programs: Vec<Program>,
    now_ns: u64,
}

impl Engine {
    /// Of programs with tickets, times to compute and to sleep.
    fn new(policy: PolicyName, mechanisms: Mechanisms, programs: &[(u32, u64, u64)]) -> Self {
        let mut bench = Bench::new(1, policy);
        bench.dispatcher.set_mechanisms_beside(mechanisms);
        let program = |&(tickets, computes_ns, sleeps_ns): &(u32, u64, u64)| {
            Program::new(bench.base_client(tickets), computes_ns, sleeps_ns)
        };
        let programs = programs.iter().map(program).collect();
        Self {
            bench,
            programs,
            now_ns: 0,
        }
    }

    fn report(&mut self) {
        let dispatcher = &mut self.bench.dispatcher;
        dispatcher.advance(self.now_ns);
        for program in &mut self.programs {
            let used_ns = std::mem::take(&mut program.used_ns);
            if used_ns > 0 && !program.told_awake {
                dispatcher.wake(program.client, 1, WakeClass::User);
                program.told_awake = true;
            }
            dispatcher.charge(program.client, used_ns);
            if program.is_awake != program.told_awake {
                program.told_awake = program.is_awake;
                dispatcher.wake(program.client, u32::from(program.is_awake), WakeClass::User);
            }
        }
    }

    fn quantum(&mut self) {
        self.report();
        let Bench {
            dispatcher,
            winners,
        } = &mut self.bench;
        dispatcher.decide(self.now_ns, winners);
        for program in &mut self.programs {
            let has_won = |winner: &Winner| winner.client == program.client;
            let outlook = dispatcher.outlook(program.client, WakeClass::User);
            let Outlook { is_early, is_ahead } = outlook.unwrap_or_default();
            let is_free = is_early || !program.is_awake && !is_ahead;
            program.may_run = is_free || winners.iter().any(has_won);
            program.was_early |= is_early && program.is_awake;
        }
        for _ in 0..QUANTUM_NS / MS {
            self.now_ns += MS;
            self.share(MS);
        }
    }

    fn share(&mut self, time_ns: u64) {
        let runs = |may_run: bool| move |p: &&mut Program| p.is_awake && p.may_run == may_run;
        let mut running = self.programs.iter_mut().filter(runs(true)).count() as u64;
        let may_run = running > 0;
        if !may_run {
            running = self.programs.iter_mut().filter(runs(false)).count() as u64;
        }
        for program in &mut self.programs {
            match program.is_awake && program.may_run == may_run {
                true => program.use_cpu(time_ns / running),
                false => program.wait(time_ns),
            }
        }
    }

    /// Runs for a time. Returns the most that the first program got beyond a part of any
    /// interval.
    fn run(&mut self, time_ns: u64, (part, of): (u64, u64)) -> i64 {
        let end_ns = self.now_ns + time_ns;
        let (mut least_ns, mut most_ns) = (0, 0);
        while self.now_ns < end_ns {
            self.quantum();
            let due_ns = self.now_ns * part / of;
            let ahead_ns = self.programs[0].received_ns as i64 - due_ns as i64;
            most_ns = most_ns.max(ahead_ns - least_ns);
            least_ns = least_ns.min(ahead_ns);
        }
        most_ns
    }
}

#[test]
fn an_editor_beside_hogs_waits_for_no_quantum() {
    for policy in EXACT {
        let hog = (100, SECOND, 0);
        let mut engine = Engine::new(
            policy,
            Mechanisms::ALL,
            &[(100, 2 * MS, 98 * MS), hog, hog, hog],
        );
        engine.run(20 * SECOND, (1, 4));
        let editor = &engine.programs[0];
        // It asks for 2 ms of each 100 ms, and may have half of the CPU only while it runs.
        let received_ms = editor.received_ns / MS;
        assert!(
            (385..=400).contains(&received_ms),
            "{policy}: {received_ms}"
        );
        // The first second has no boost.
        assert!(editor.longest_wait_ns <= 4 * QUANTUM_NS, "{policy}");
        engine.programs[0].longest_wait_ns = 0;
        engine.run(20 * SECOND, (1, 4));
        assert_eq!(engine.programs[0].longest_wait_ns, 0, "{policy}");
    }
}

#[test]
fn clients_that_never_sleep_are_never_early_and_keep_their_shares() {
    for policy in EXACT {
        let programs = [3, 2, 1].map(|tickets| (tickets, SECOND, 0));
        let [received, alone] = [Mechanisms::ALL, Mechanisms::NONE].map(|mechanisms| {
            let mut engine = Engine::new(policy, mechanisms, &programs);
            engine.run(30 * SECOND, (1, 2));
            assert!(engine.programs.iter().all(|program| !program.was_early));
            let programs = engine.programs.iter();
            programs.map(|p| p.received_ns).collect::<Vec<_>>()
        });
        assert_eq!(received, alone, "{policy}");
    }
}

/// Times in milliseconds for which an adversary computes and sleeps.
const ADVERSARIES: [(u64, u64); 7] = [
    (19, 1),
    (10, 10),
    (60, 100),
    (200, 100),
    (500, 500),
    (5000, 5000),
    (1000, 11000),
];

/// What a client gains beyond its due, at most: the bound of leads, and what it uses between two
/// looks.
const MOST_AHEAD_NS: i64 = (LEAD_BOUND_NS + QUANTUM_NS) as i64;

fn check_bound(policy: PolicyName, tickets: u32, computes_ns: u64, sleeps_ns: u64) {
    let programs = [(tickets, computes_ns, sleeps_ns), (100, SECOND, 0)];
    let mut engine = Engine::new(policy, Mechanisms::ALL, &programs);
    let part = (tickets.into(), u64::from(tickets) + 100);
    let most_ns = engine.run(60 * SECOND, part);
    assert!(
        most_ns <= MOST_AHEAD_NS,
        "{policy}: {tickets} tickets, {computes_ns} and {sleeps_ns} ns: {most_ns}"
    );
    let longest_ns = engine.programs[1].longest_wait_ns;
    assert!(longest_ns <= 200 * MS + QUANTUM_NS, "{longest_ns}");
}

#[test]
fn no_choice_of_sleeps_gains_more_than_due_and_bound_and_a_quantum() {
    for policy in EXACT {
        for (computes, sleeps) in ADVERSARIES {
            check_bound(policy, 100, computes * MS, sleeps * MS);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_random_sleeper_gains_more_than_due_and_bound_and_a_quantum(
        policy in 0..EXACT.len(),
        tickets in 10u32..=100,
        computes in 1u64..1_500,
        sleeps in 1u64..1_500,
    ) {
        check_bound(EXACT[policy], tickets, computes * MS, sleeps * MS);
    }

    /// What an engine is told of a sleeper is what its wake decides.
    #[test]
    fn the_outlook_of_a_sleeper_is_what_its_wake_decides(
        steps in prop::collection::vec((0..3usize, 1u64..2_000, 0u64..400), 1..40),
    ) {
        let mut engine = Engine::new(
            PolicyName::Stride,
            Mechanisms::ALL,
            &[(3, 1, 1), (2, 1, 1), (1, 1, 1)],
        );
        let clients: Vec<ClientId> = engine.programs.iter().map(|p| p.client).collect();
        let dispatcher = &mut engine.bench.dispatcher;
        let mut now_ns = 0;
        for (index, passed, used) in steps {
            now_ns += passed * MS;
            dispatcher.advance(now_ns);
            let client = clients[index];
            if dispatcher.competes(client) {
                dispatcher.charge(client, used * MS);
                dispatcher.set_runnable(client, 0);
                continue;
            }
            let foreseen = dispatcher.outlook(client, WakeClass::User);
            let balance = dispatcher.balance(client);
            dispatcher.set_runnable(client, 1);
            prop_assert_eq!(dispatcher.outlook(client, WakeClass::User), foreseen);
            prop_assert_eq!(dispatcher.balance(client), balance);
            prop_assert_eq!(dispatcher.lead_ns(client), balance.unwrap().lead_ns);
        }
    }
}

#[test]
fn a_sleep_in_the_kernel_makes_a_client_early_for_a_quantum() {
    let kernel = Mechanisms {
        kernel_priorities: true,
        ..Mechanisms::NONE
    };
    let mut engine = Engine::new(PolicyName::Stride, kernel, &[(1, 1, 1), (1, 1, 1)]);
    let client = engine.programs[0].client;
    let dispatcher = &mut engine.bench.dispatcher;
    let is_early = |dispatcher: &prorata_core::dispatcher::Dispatcher, class| {
        dispatcher.outlook(client, class).unwrap().is_early
    };
    dispatcher.advance(2 * SECOND);
    dispatcher.set_runnable(client, 0);
    assert!(is_early(dispatcher, WakeClass::Disk));
    assert!(!is_early(dispatcher, WakeClass::User));
    dispatcher.wake(client, 1, WakeClass::Disk);
    assert!(is_early(dispatcher, WakeClass::User));
    dispatcher.advance(2 * SECOND + QUANTUM_NS - 1);
    assert!(is_early(dispatcher, WakeClass::User));
    dispatcher.advance(2 * SECOND + QUANTUM_NS);
    assert!(!is_early(dispatcher, WakeClass::User));
}

#[test]
fn mechanisms_change_while_clients_compete() {
    let hog = (1, SECOND, 0);
    let mut engine = Engine::new(
        PolicyName::Stride,
        Mechanisms::NONE,
        &[(1, 2 * MS, 98 * MS), hog],
    );
    let client = engine.programs[0].client;
    engine.run(5 * SECOND, (1, 2));
    assert_eq!(engine.bench.dispatcher.balance(client), None);
    assert_eq!(
        engine.bench.dispatcher.outlook(client, WakeClass::User),
        None
    );
    engine
        .bench
        .dispatcher
        .set_mechanisms_beside(Mechanisms::ALL);
    engine.run(5 * SECOND, (1, 2));
    let balance = engine.bench.dispatcher.balance(client).expect("it is kept");
    assert!(balance.is_early && balance.boost == MAX_BOOST);
    let quanta = Mechanisms {
        abbreviated_quanta: true,
        ..Mechanisms::NONE
    };
    // The account goes on, but nothing makes the client early.
    engine.bench.dispatcher.set_mechanisms_beside(quanta);
    let balance = engine.bench.dispatcher.balance(client).expect("it is kept");
    assert!(!balance.is_early && balance.boost > BOOST_ONE);
    engine
        .bench
        .dispatcher
        .set_mechanisms_beside(Mechanisms::NONE);
    assert_eq!(engine.bench.dispatcher.balance(client), None);
    engine.run(SECOND, (1, 2));
}

#[test]
fn a_client_that_is_niced_up_is_never_early() {
    let hog = (1, SECOND, 0);
    let mut engine = Engine::new(
        PolicyName::Stride,
        Mechanisms::ALL,
        &[(1, 2 * MS, 98 * MS), hog],
    );
    let client = engine.programs[0].client;
    engine.run(5 * SECOND, (1, 2));
    for (factor, is_early) in [(820, false), (FACTOR_ONE, true), (15, false), (1_277, true)] {
        engine.bench.dispatcher.set_nice_factor(client, factor);
        let outlook = engine.bench.dispatcher.outlook(client, WakeClass::User);
        assert_eq!(outlook.map(|o| o.is_early), Some(is_early), "{factor}");
    }
}
