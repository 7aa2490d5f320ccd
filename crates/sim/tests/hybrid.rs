//! Hybrid lottery scheduling (1999): what is promised to a client that wakes, and to the
//! clients beside it.

mod common;

use common::{parse, run, run_checked};
use prorata_core::hybrid::LEAD_BOUND_NS;
use prorata_core::policy::PolicyName;
use prorata_scenario::Scenario;
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Observer};

const MS: u64 = 1_000_000;
const QUANTUM_NS: u64 = 20 * MS;
const ALL: &str = "kernel-priorities = true, abbreviated-quanta = true, ticket-boost = true";
/// The policies under which a client's error is bounded.
const EXACT: [PolicyName; 3] = [
    PolicyName::Stride,
    PolicyName::HierarchicalStride,
    PolicyName::Eevdf,
];

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

fn scenario(policy: PolicyName, mechanisms: &str, rest: &str) -> Scenario {
    parse(&format!(
        r#"
        duration = "120s"
        machine = {{ policy = "{policy}", hybrid = {{ {mechanisms} }} }}
        {rest}
        "#
    ))
}

fn beside_a_hog(policy: PolicyName, mechanisms: &str, steps: &str) -> Scenario {
    let rest = format!(
        r#"
        client = [
            {{ name = "other", tickets = 100, program = "other" }},
            {{ name = "hog", tickets = 100 }},
        ]
        [program.other]
        steps = [{{ loop = {{ steps = [{steps}] }} }}]
        "#
    );
    scenario(policy, mechanisms, &rest)
}

/// Follows the first client and the second.
#[derive(Default)]
struct Watch {
    /// CPU time of the first client less half of the time, now and at its least so far.
    ahead_ns: i64,
    least_ns: i64,
    /// The most that the first client got beyond half of any interval.
    most_ns: i64,
    /// When the second client last ran, and its longest wait since.
    ran_ns: u64,
    longest_ns: u64,
    /// Waits of the first client's threads after wakes, from the 20th second on.
    latencies_ns: Vec<u64>,
    now_ns: u64,
}

impl Watch {
    fn pass_time(&mut self, now_ns: u64) {
        self.ahead_ns -= (now_ns - self.now_ns) as i64 / 2;
        self.now_ns = now_ns;
        self.least_ns = self.least_ns.min(self.ahead_ns);
    }
}

impl Observer for Watch {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, _machine: &Machine) {
        match event {
            Event::Ran {
                client: 0, used_ns, ..
            } => {
                // An interval that begins with this run.
                self.pass_time(now_ns - used_ns.min(now_ns - self.now_ns));
                self.pass_time(now_ns);
                self.ahead_ns += used_ns as i64;
                self.most_ns = self.most_ns.max(self.ahead_ns - self.least_ns);
            }
            Event::Ran {
                client: 1, used_ns, ..
            } => {
                let waited_ns = (now_ns - used_ns).saturating_sub(self.ran_ns);
                self.longest_ns = self.longest_ns.max(waited_ns);
                self.ran_ns = now_ns;
            }
            Event::Dispatched {
                client: 0,
                ready_ns,
                ..
            } if now_ns > 20_000 * MS => {
                self.latencies_ns.push(now_ns - ready_ns);
            }
            _ => {}
        }
    }
}

fn watch(scenario: &Scenario, seed: u64) -> (Machine, Watch) {
    run(scenario, seed, Watch::default())
}

#[test]
fn no_adversary_gets_more_than_its_due_and_the_bound_and_a_quantum() {
    for policy in EXACT {
        for (compute, sleep) in ADVERSARIES {
            let steps = format!(r#"{{ compute = "{compute}ms" }}, {{ sleep = "{sleep}ms" }}"#);
            let (_, watch) = watch(&beside_a_hog(policy, ALL, &steps), 1);
            let bound_ns = (LEAD_BOUND_NS + QUANTUM_NS) as i64;
            assert!(
                watch.most_ns <= bound_ns,
                "{policy} ({compute}, {sleep}): {} ns",
                watch.most_ns
            );
        }
    }
}

#[test]
fn no_random_sleeper_gets_more_than_its_due_and_the_bound_and_a_quantum() {
    for policy in EXACT {
        for seed in 1..=8 {
            let steps = r#"
                { loop = { chance = 0.8, steps = [
                    { compute = { exponential = "8ms" } }, { sleep = { exponential = "9ms" } },
                ] } },
                { compute = { exponential = "700ms" } }, { sleep = { exponential = "500ms" } },
                { block = { for = { uniform = ["1ms", "90ms"] }, in = "disk" } }
            "#;
            let (_, watch) = watch(&beside_a_hog(policy, ALL, steps), seed);
            let bound_ns = (LEAD_BOUND_NS + QUANTUM_NS) as i64;
            assert!(
                watch.most_ns <= bound_ns,
                "{policy} {seed}: {} ns",
                watch.most_ns
            );
        }
    }
}

#[test]
fn under_lotteries_adversaries_get_no_more_than_their_due_on_average() {
    let lotteries = PolicyName::BY_TICKETS
        .into_iter()
        .filter(|policy| !EXACT.contains(policy));
    for policy in lotteries {
        for (compute, sleep) in ADVERSARIES {
            let steps = format!(r#"{{ compute = "{compute}ms" }}, {{ sleep = "{sleep}ms" }}"#);
            let (machine, _) = watch(&beside_a_hog(policy, ALL, &steps), 1);
            let quanta = machine.end_ns() as f64 / QUANTUM_NS as f64;
            // Six standard deviations of as many fair draws (1994, 2).
            let luck = 6.0 * 0.5 * quanta.sqrt() * QUANTUM_NS as f64;
            let due = machine.end_ns() as f64 / 2.0;
            let bound = due + luck + (LEAD_BOUND_NS + QUANTUM_NS) as f64;
            let received = machine.received_ns(0) as f64;
            assert!(
                received <= bound,
                "{policy} ({compute}, {sleep}): {received} ns"
            );
        }
    }
}

#[test]
fn an_equal_hog_waits_no_longer_than_two_bounds_and_a_quantum() {
    for policy in EXACT {
        for (compute, sleep) in ADVERSARIES {
            let steps = format!(r#"{{ compute = "{compute}ms" }}, {{ sleep = "{sleep}ms" }}"#);
            let (_, watch) = watch(&beside_a_hog(policy, ALL, &steps), 1);
            let bound_ns = 2 * LEAD_BOUND_NS + QUANTUM_NS;
            assert!(
                watch.longest_ns <= bound_ns,
                "{policy} ({compute}, {sleep}): {} ns",
                watch.longest_ns
            );
        }
    }
}

#[test]
fn a_client_that_sleeps_half_of_its_due_gets_what_it_asks() {
    // Due half a CPU, each asks for 37.5 % at most.
    for policy in PolicyName::BY_TICKETS {
        for (compute, sleep) in [(6, 10), (60, 100), (2, 98)] {
            let steps = format!(r#"{{ compute = "{compute}ms" }}, {{ sleep = "{sleep}ms" }}"#);
            let (machine, _) = watch(&beside_a_hog(policy, ALL, &steps), 1);
            let asked = machine.end_ns() as f64 * compute as f64 / (compute + sleep) as f64;
            let received = machine.received_ns(0) as f64;
            assert!(
                received > 0.97 * asked,
                "{policy} ({compute}, {sleep}): {received} ns"
            );
        }
    }
}

#[test]
fn clients_that_never_sleep_share_as_without_the_mechanisms() {
    let rest = r#"client = [
        { name = "A", tickets = 3 }, { name = "B", tickets = 2 }, { name = "C", tickets = 1 },
    ]"#;
    for policy in EXACT {
        let received = |mechanisms: &str| {
            let (machine, _) = run(&scenario(policy, mechanisms, rest), 1, ());
            [0, 1, 2].map(|client| machine.received_ns(client))
        };
        let hybrid = received(ALL);
        assert_eq!(hybrid, received(""), "{policy}");
        if policy == PolicyName::Stride {
            let second_ns = 1_000 * MS;
            assert_eq!(hybrid, [60 * second_ns, 40 * second_ns, 20 * second_ns]);
        }
    }
}

/// An editor, beside eight hogs with as many tickets each.
fn editor(policy: PolicyName, mechanisms: &str) -> Scenario {
    let rest = r#"
        client = [
            { name = "editor", tickets = 100, program = "editor" },
            { name = "hog", count = 8, tickets = 100 },
        ]
        [program.editor]
        steps = [{ loop = { steps = [{ compute = "2ms" }, { sleep = "98ms" }] } }]
    "#;
    scenario(policy, mechanisms, rest)
}

#[test]
fn an_editor_beside_eight_hogs_runs_at_once() {
    for policy in PolicyName::BY_TICKETS {
        let (_, watch) = watch(&editor(policy, ALL), 1);
        let late = watch
            .latencies_ns
            .iter()
            .filter(|&&latency_ns| latency_ns > 0);
        assert_eq!(late.count(), 0, "{policy}");
        assert!(watch.latencies_ns.len() > 900);
    }
}

#[test]
fn without_abbreviated_quanta_an_editor_waits_for_the_running_turn() {
    let longest = |mechanisms: &str| {
        let (_, watch) = watch(&editor(PolicyName::Stride, mechanisms), 1);
        watch.latencies_ns.into_iter().max()
    };
    let boosted = longest("ticket-boost = true");
    assert!(boosted > Some(0) && boosted <= Some(QUANTUM_NS));
}

#[test]
fn a_wake_preempts_only_for_a_gain_of_a_millisecond() {
    // The hog runs for a quantum before the sleeper computes, and again while it sleeps.
    let preempts = |compute_us: u64| {
        let rest = format!(
            r#"
            client = [
                {{ name = "sleeper", tickets = 100, program = "sleeper", start = "1ms" }},
                {{ name = "hog", tickets = 100 }},
            ]
            [program.sleeper]
            steps = [
                {{ compute = "{compute_us}us" }}, {{ sleep = "5ms" }}, {{ compute = "1s" }}
            ]
            "#
        );
        let scenario = scenario(PolicyName::Stride, "abbreviated-quanta = true", &rest);
        let (_, wakes) = run_checked(&scenario, 1, Wakes::default());
        let slept_ns = QUANTUM_NS + compute_us * 1_000;
        wakes.again_ns.map(|ns| ns - slept_ns)
    };
    // The hog used 19 ms since the sleeper came, and what it uses alone is due to it alone.
    let (wake, end) = (Some(5 * MS), Some(QUANTUM_NS));
    assert_eq!(preempts(18_500), end);
    assert_eq!(preempts(18_010), end);
    assert_eq!(preempts(17_990), wake);
    assert_eq!(preempts(1_000), wake);
}

/// When the first client ran for the second time.
#[derive(Default)]
struct Wakes {
    ran: bool,
    again_ns: Option<u64>,
}

impl Observer for Wakes {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, _machine: &Machine) {
        if let Event::Dispatched { client: 0, .. } = event
            && std::mem::replace(&mut self.ran, true)
        {
            self.again_ns.get_or_insert(now_ns);
        }
    }
}

#[test]
fn clients_with_kernel_priorities_run_in_the_order_of_their_classes() {
    let classes = ["other", "disk", "lock"];
    let clients: Vec<_> = classes
        .map(|class| format!(r#"{{ name = "{class}", tickets = 100, program = "{class}" }},"#))
        .into();
    // All wake at the same time; each used so much that it has no boost.
    let programs: Vec<_> = classes
        .map(|class| {
            format!(
                r#"
                [program.{class}]
                steps = [
                    {{ compute = "100ms" }}, {{ lock = "m" }}, {{ unlock = "m" }},
                    {{ block = {{ for = {{ trace = ["START"] }}, in = "{class}" }} }},
                    {{ compute = "1ms" }},
                ]
                "#
            )
            .replace("START", "1s")
        })
        .into();
    let text = format!(
        r#"
        duration = "2s"
        machine = {{ cpus = 4, hybrid = {{ kernel-priorities = true }} }}
        client = [ {} {{ name = "hog", count = 4, tickets = 1000000, start = "200ms" }} ]
        mutex.m = {{}}
        {}
        "#,
        clients.join(" "),
        programs.join("\n")
    );
    let mut order = Order::default();
    order = run_checked(&parse(&text), 1, order).1;
    assert_eq!(order.0, ["lock", "disk", "other"]);
}

/// Names of the clients that run after the first second, but for hogs.
#[derive(Default)]
struct Order(Vec<String>);

impl Observer for Order {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if let Event::Dispatched { client, .. } = event
            && now_ns >= 1_000 * MS
        {
            let name = machine.client_name(client).into_owned();
            if !name.starts_with("hog") {
                self.0.push(name);
            }
        }
    }
}

#[test]
fn a_waiter_of_a_kernel_lock_runs_before_hogs() {
    let received_ns = |kernel: bool| {
        let rest = format!(
            r#"
            client = [
                {{ name = "waiter", tickets = 100, program = "worker" }},
                {{ name = "hog", tickets = 1000 }},
                {{ name = "holder", tickets = 100, program = "worker" }},
            ]
            mutex.m = {{ kernel = {kernel} }}
            [program.worker]
            steps = [{{ loop = {{ steps = [
                {{ compute = "3ms" }}, {{ lock = "m" }}, {{ compute = "3ms" }},
                {{ block = {{ for = "5ms", in = "disk" }} }}, {{ unlock = "m" }},
            ] }} }}]
            "#
        );
        let mechanisms = "kernel-priorities = true";
        let (machine, _) = watch(&scenario(PolicyName::Stride, mechanisms, &rest), 1);
        machine.received_ns(0) + machine.received_ns(2)
    };
    assert!(received_ns(true) > received_ns(false));
}
