//! Clients with limited CPU time, on a machine with a clock: turns end when they are over, and CPUs
//! are given away when a pause ends.

use proptest::prelude::*;
use prorata_core::allowance::PERIOD_NS;
use prorata_core::cpu_limit::CpuLimit;

use super::*;

const MS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A dispatcher whose clients run until their turns end.
struct Clocked {
    bench: Bench,
    now_ns: u64,
}

impl Clocked {
    fn new(cpus: u32, policy: PolicyName) -> Self {
        Self {
            bench: Bench::new(cpus, policy),
            now_ns: 0,
        }
    }

    fn limit(&mut self, client: ClientId, percent: Option<u32>) {
        let max = percent.map(|percent| CpuLimit::from_thousandths(percent * 10).expect("legal"));
        self.bench.apply(Operation::LimitClient { client, max });
    }

    fn limited_client(&mut self, tickets: u32, threads: u32, percent: u32) -> ClientId {
        let client = self.bench.base_client(tickets);
        self.bench.dispatcher.set_runnable(client, threads);
        self.limit(client, Some(percent));
        client
    }

    /// Gives CPUs away, lets winners run until the first turn or pause ends, and charges them.
    fn step(&mut self, until_ns: u64) {
        let Bench {
            dispatcher,
            winners,
        } = &mut self.bench;
        dispatcher.fill(self.now_ns, winners);
        for winner in winners.iter() {
            assert!(!dispatcher.is_paused(winner.client) && winner.until_ns > self.now_ns);
        }
        let ends_ns = winners.iter().map(|winner| winner.until_ns);
        let resumes_ns = dispatcher.next_resumption_ns();
        let end_ns = ends_ns.chain(resumes_ns).fold(until_ns, u64::min);
        assert!(end_ns > self.now_ns);
        for winner in winners.iter() {
            let used_ns = (end_ns - self.now_ns) * u64::from(winner.cpus);
            dispatcher.charge(winner.client, used_ns);
            if winner.until_ns <= end_ns {
                dispatcher.end_turn(winner.client);
            }
        }
        self.now_ns = end_ns;
    }

    fn run(&mut self, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        while self.now_ns < until_ns {
            self.step(until_ns);
        }
    }

    fn received_ns(&self, client: ClientId) -> u64 {
        self.bench.dispatcher.usage(client).received_ns
    }

    /// CPUs that a client had in the mean since it had received so much.
    fn rate_since(&self, client: ClientId, before_ns: u64, elapsed_ns: u64) -> f64 {
        (self.received_ns(client) - before_ns) as f64 / elapsed_ns as f64
    }
}

#[test]
fn a_limited_client_gets_its_limit_on_cpus_that_would_idle() {
    for (policy, _) in POLICIES {
        for (cpus, threads, percent) in
            [(1, 1, 30), (1, 1, 99), (2, 1, 1), (4, 4, 150), (4, 3, 299)]
        {
            let mut machine = Clocked::new(cpus, policy);
            let client = machine.limited_client(10, threads, percent);
            machine.run(20 * SECOND_NS);
            let full_ns = PERIOD_NS / 100 * u64::from(percent);
            let limit_ns = 20 * SECOND_NS / 100 * u64::from(percent);
            let received_ns = machine.received_ns(client);
            assert!(
                (limit_ns - full_ns..=limit_ns + full_ns + 4).contains(&received_ns),
                "{policy}: {received_ns} for {percent} % on {cpus} CPUs"
            );
        }
    }
}

#[test]
fn a_limit_above_what_a_client_can_use_changes_nothing() {
    let mut machine = Clocked::new(2, PolicyName::Stride);
    let client = machine.limited_client(10, 1, 100);
    machine.run(SECOND_NS);
    assert_eq!(machine.received_ns(client), SECOND_NS);
    assert_eq!(machine.bench.dispatcher.next_resumption_ns(), None);
}

#[test]
fn others_share_what_a_limited_client_may_not_use() {
    for (policy, error) in POLICIES {
        let mut machine = Clocked::new(1, policy);
        let limited = machine.limited_client(600, 1, 20);
        let others = [300, 100].map(|tickets| machine.bench.base_client(tickets));
        let elapsed_ns = 100 * SECOND_NS;
        machine.run(elapsed_ns);
        let quanta = (elapsed_ns / QUANTUM_NS) as f64;
        for (client, due) in [(limited, 0.2), (others[0], 0.6), (others[1], 0.2)] {
            let rate = machine.rate_since(client, 0, elapsed_ns);
            // A client without luck in a lottery regains no more than a period's worth, and
            // others get the rest.
            let is_lottery = matches!(policy, PolicyName::Lottery | PolicyName::ClassLottery);
            let luck = if is_lottery { 0.03 } else { 0.0 };
            // A period's worth, and what the policy's error allows.
            let allowed = 0.003 + error(quanta) / quanta + luck;
            assert!((rate - due).abs() < allowed, "{policy}: {rate} for {due}");
            assert!(client != limited || rate < 0.2003, "{policy}: {rate}");
            let usage = machine.bench.dispatcher.usage(client);
            assert!((usage.share - due).abs() < 1e-6, "{}", usage.share);
            let specified = usage.specified_ns as f64 / elapsed_ns as f64;
            assert!(
                (specified - due).abs() < 1e-3,
                "{policy}: {specified} for {due}"
            );
        }
    }
}

#[test]
fn a_limit_takes_effect_and_ends_at_once() {
    let mut machine = Clocked::new(1, PolicyName::Stride);
    let client = machine.bench.base_client(10);
    machine.run(SECOND_NS);
    assert_eq!(machine.received_ns(client), SECOND_NS);
    machine.limit(client, Some(10));
    machine.run(10 * SECOND_NS);
    let rate = machine.rate_since(client, SECOND_NS, 10 * SECOND_NS);
    assert!((rate - 0.1).abs() < 0.002, "{rate}");
    // In the middle of a pause.
    machine.run(50 * MS);
    assert!(machine.bench.dispatcher.is_paused(client));
    machine.limit(client, None);
    assert!(!machine.bench.dispatcher.is_paused(client));
    let before_ns = machine.received_ns(client);
    machine.run(SECOND_NS);
    assert_eq!(machine.received_ns(client), before_ns + SECOND_NS);
}

#[test]
fn a_restored_ledger_keeps_its_limits() {
    let mut machine = Clocked::new(1, PolicyName::Stride);
    let client = machine.limited_client(10, 1, 40);
    machine.bench.dispatcher.set_runnable(client, 0);
    let ledger = machine.bench.dispatcher.ledger().clone();
    machine.bench.dispatcher =
        Dispatcher::new(ledger, PolicyName::Stride.policy(SEED), 1, QUANTUM_NS);
    machine.bench.dispatcher.set_runnable(client, 1);
    machine.run(10 * SECOND_NS);
    let rate = machine.rate_since(client, 0, 10 * SECOND_NS);
    assert!((rate - 0.4).abs() < 0.005, "{rate}");
}

/// Something that happens between turns. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum Event {
    Limit(usize, Option<u32>),
    Runnable(usize, u32),
    /// CPU time without a turn, as of a client that answers a signal.
    Extra(usize, u64),
    Policy(usize),
    Replace(usize),
    Cpus(u32),
    EndTurns,
}

fn event() -> impl Strategy<Value = Event> {
    let any = any::<usize>;
    prop_oneof![
        3 => (any(), prop::option::weighted(0.8, 1u32..300)).prop_map(|(client, max)| Event::Limit(client, max)),
        4 => (any(), 0u32..4).prop_map(|(client, threads)| Event::Runnable(client, threads)),
        2 => (any(), 1..30 * MS).prop_map(|(client, used_ns)| Event::Extra(client, used_ns)),
        1 => any().prop_map(Event::Policy),
        1 => any().prop_map(Event::Replace),
        1 => (1u32..5).prop_map(Event::Cpus),
        1 => Just(Event::EndTurns),
    ]
}

/// A client of a random history: its limit holds from a time on.
struct Subject {
    client: ClientId,
    threads: u32,
    /// Since when it has its limit in percent, and received and extra time then.
    limit: Option<(u32, u64, u64)>,
    extra_ns: u64,
}

impl Clocked {
    fn happen(&mut self, event: Event, subjects: &mut [Subject]) {
        let n = subjects.len();
        match event {
            Event::Limit(which, percent) => {
                let subject = &mut subjects[which % n];
                self.limit(subject.client, percent);
                let received_ns = self.received_ns(subject.client);
                subject.limit = percent.map(|percent| (percent, self.now_ns, received_ns));
                subject.extra_ns = 0;
            }
            Event::Runnable(which, threads) => {
                let subject = &mut subjects[which % n];
                subject.threads = threads;
                let dispatcher = &mut self.bench.dispatcher;
                dispatcher.set_runnable(subject.client, threads);
            }
            Event::Extra(which, used_ns) => {
                let subject = &mut subjects[which % n];
                if subject.threads > 0 {
                    self.bench.dispatcher.charge(subject.client, used_ns);
                    subject.extra_ns += used_ns;
                }
            }
            Event::Policy(which) => {
                let (policy, _) = POLICIES[which % POLICIES.len()];
                self.bench.dispatcher.set_policy(policy.policy(SEED));
            }
            Event::Replace(which) => {
                let client = subjects[which % n].client;
                self.bench.apply(Operation::DestroyClient { client });
                subjects[which % n] = self.subject();
            }
            Event::Cpus(cpus) => self.bench.dispatcher.set_cpus(cpus),
            Event::EndTurns => self
                .bench
                .dispatcher
                .decide(self.now_ns, &mut self.bench.winners),
        }
    }

    fn subject(&mut self) -> Subject {
        Subject {
            client: self.bench.base_client(100),
            threads: 1,
            limit: None,
            extra_ns: 0,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2010),
        cases: 192,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_no_client_gets_more_than_its_limit(
        events in prop::collection::vec((event(), 1..400 * MS), 1..80),
    ) {
        let mut machine = Clocked::new(2, PolicyName::Stride);
        let mut subjects: Vec<Subject> = (0..4).map(|_| machine.subject()).collect();
        for (event, for_ns) in events {
            machine.happen(event, &mut subjects);
            machine.run(for_ns);
            for subject in &subjects {
                let Some((percent, since_ns, before_ns)) = subject.limit else { continue };
                let worth = |time_ns: u64| time_ns * u64::from(percent) / 100;
                let received_ns = machine.received_ns(subject.client) - before_ns;
                let turn_ns = subject.extra_ns + 4 * QUANTUM_NS;
                let most_ns = worth(machine.now_ns - since_ns) + worth(PERIOD_NS) + turn_ns;
                prop_assert!(received_ns <= most_ns, "{received_ns} of {most_ns}");
                let dispatcher = &machine.bench.dispatcher;
                let (pauses, runs) = (dispatcher.is_paused(subject.client), dispatcher.runs(subject.client));
                prop_assert!(!pauses || !runs);
            }
        }
    }
}
