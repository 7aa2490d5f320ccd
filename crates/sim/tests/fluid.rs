//! Against exact fluid shares: generalised processor sharing, where each runnable
//! client is served at once, at a rate in proportion to its tickets.

mod common;

use common::{parse, run};
use proptest::prelude::*;
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Observer};

const QUANTUM_MS: f64 = 10.0;

/// A client that computes from its start to its stop.
#[derive(Clone, Debug)]
struct Job {
    tickets: u32,
    start_ms: u64,
    stop_ms: u64,
}

/// CPU time of each job at a time, served as a fluid by `cpus` CPUs, none of
/// which gives more than its whole to one job.
fn fluid(jobs: &[Job], cpus: u32, at_ms: u64) -> Vec<f64> {
    let mut received = vec![0.0; jobs.len()];
    let mut edges: Vec<u64> = jobs
        .iter()
        .flat_map(|job| [job.start_ms, job.stop_ms])
        .collect();
    edges.extend([0, at_ms]);
    edges.sort_unstable();
    edges.dedup();
    for span in edges.windows(2).filter(|span| span[1] <= at_ms) {
        let alive =
            |job: &&usize| jobs[**job].start_ms <= span[0] && span[1] <= jobs[**job].stop_ms;
        let all: Vec<usize> = (0..jobs.len()).collect();
        let alive: Vec<usize> = all.iter().filter(alive).copied().collect();
        for (job, rate) in alive.iter().zip(rates(jobs, &alive, cpus)) {
            received[*job] += rate * (span[1] - span[0]) as f64;
        }
    }
    received
}

/// CPUs that each of those alive gets: in proportion to tickets, but at most
/// one, and what one cannot use goes to the others.
fn rates(jobs: &[Job], alive: &[usize], cpus: u32) -> Vec<f64> {
    let mut full = vec![false; alive.len()];
    loop {
        let taken = full.iter().filter(|full| **full).count() as f64;
        let tickets = |i: usize| f64::from(jobs[alive[i]].tickets);
        let total: f64 = (0..alive.len()).filter(|i| !full[*i]).map(tickets).sum();
        let rate = |i: usize| {
            if full[i] {
                1.0
            } else {
                tickets(i) / total * (f64::from(cpus) - taken)
            }
        };
        match (0..alive.len())
            .filter(|i| !full[*i])
            .find(|i| rate(*i) > 1.0)
        {
            Some(too_much) => full[too_much] = true,
            None => return (0..alive.len()).map(rate).collect(),
        }
    }
}

/// Service of every client each time a turn ends, for the worst difference.
struct Against<'a> {
    jobs: &'a [Job],
    cpus: u32,
    worst: f64,
}

impl Observer for Against<'_> {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if !matches!(event, Event::Sample | Event::Finished) {
            return;
        }
        let ideal = fluid(self.jobs, self.cpus, now_ns / 1_000_000);
        for (client, ideal) in (0..).zip(ideal) {
            let received = machine.received_ns(client) as f64 / 1e6;
            self.worst = self.worst.max((received - ideal).abs() / QUANTUM_MS);
        }
    }
}

fn text(jobs: &[Job], cpus: u32, policy: &str) -> String {
    let clients: String = jobs
        .iter()
        .enumerate()
        .map(|(i, job)| {
            format!(
                "[[client]]\nname = \"c{i}\"\ntickets = {}\nstart = \"{}ms\"\n\
                 [[at]]\ntime = \"{}ms\"\ndo = {{ stop = \"c{i}\" }}\n",
                job.tickets, job.start_ms, job.stop_ms
            )
        })
        .collect();
    format!(
        "duration = \"20s\"\n\
         machine = {{ cpus = {cpus}, quantum = \"10ms\", policy = \"{policy}\" }}\n\
         measure = {{ every = \"10ms\" }}\n{clients}"
    )
}

/// Largest difference from the fluid, in quanta.
fn worst(jobs: &[Job], cpus: u32, policy: &str) -> f64 {
    let scenario = parse(&text(jobs, cpus, policy));
    let watch = Against {
        jobs,
        cpus,
        worst: 0.0,
    };
    run(&scenario, 1, watch).1.worst
}

fn job() -> impl Strategy<Value = Job> {
    (1u32..1000, 0u64..500, 1u64..1000).prop_map(|(tickets, start, length)| Job {
        tickets,
        start_ms: start * 10,
        stop_ms: (start + length) * 10,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1995),
        cases: 24,
        ..ProptestConfig::default()
    })]

    /// 1995, 2: for n clients the absolute error of stride is O(n); each
    /// arrival and departure leaves at most a quantum more or less to share.
    #[test]
    fn stride_stays_near_the_fluid(jobs in prop::collection::vec(job(), 1..8), cpus in 1u32..4) {
        let worst = worst(&jobs, cpus, "stride");
        let n = jobs.len() as f64;
        prop_assert!(worst <= n, "{worst} quanta with {n} clients on {cpus} CPUs");
    }
}

#[test]
fn steady_clients_are_within_a_quantum_of_the_fluid() {
    let steady = |tickets| Job {
        tickets,
        start_ms: 0,
        stop_ms: 20_000,
    };
    for tickets in [vec![3, 2, 1], vec![7, 3], vec![19, 1], vec![1; 10]] {
        let jobs: Vec<Job> = tickets.iter().copied().map(steady).collect();
        let worst = worst(&jobs, 1, "stride");
        assert!(worst <= 1.0, "{tickets:?}: {worst}");
    }
}

#[test]
fn an_infeasible_share_is_cut_to_a_cpu() {
    let steady = |tickets| Job {
        tickets,
        start_ms: 0,
        stop_ms: 20_000,
    };
    // 1:2:10 on two CPUs: the last has one CPU, the others share one 1:2.
    let jobs = [steady(1), steady(2), steady(10)];
    assert!((fluid(&jobs, 2, 9000)[2] - 9000.0).abs() < 1e-6);
    assert!((fluid(&jobs, 2, 9000)[0] - 3000.0).abs() < 1e-6);
    let worst = worst(&jobs, 2, "stride");
    assert!(worst <= 2.0, "{worst}");
}

#[test]
fn hierarchical_stride_is_nearer_where_tickets_are_skewed() {
    let mut jobs = vec![
        Job {
            tickets: 1,
            start_ms: 0,
            stop_ms: 20_000,
        };
        41
    ];
    jobs[0].tickets = 40;
    let (plain, hierarchical) = (
        worst(&jobs, 1, "stride"),
        worst(&jobs, 1, "hierarchical-stride"),
    );
    // 1995, 4: half the big client's tickets against the height of the tree.
    assert!((15.0..=21.0).contains(&plain), "{plain}");
    assert!(hierarchical <= 6.0, "{hierarchical}");
}

/// A client that competes in one of two pools and goes to the other one.
#[derive(Clone, Debug)]
struct Mover {
    job: Job,
    pool: usize,
    move_ms: u64,
}

impl Mover {
    fn pool_at(&self, time_ms: u64) -> usize {
        match time_ms < self.move_ms {
            true => self.pool,
            false => 1 - self.pool,
        }
    }
}

/// Like [`fluid`], in two pools.
fn fluid_in_pools(movers: &[Mover], cpus: [u32; 2], at_ms: u64) -> Vec<f64> {
    let mut received = vec![0.0; movers.len()];
    let ends = |mover: &Mover| [mover.job.start_ms, mover.job.stop_ms, mover.move_ms];
    let mut edges: Vec<u64> = movers.iter().flat_map(ends).collect();
    edges.extend([0, at_ms]);
    edges.sort_unstable();
    edges.dedup();
    let jobs: Vec<Job> = movers.iter().map(|mover| mover.job.clone()).collect();
    for span in edges.windows(2).filter(|span| span[1] <= at_ms) {
        for (pool, cpus) in cpus.into_iter().enumerate() {
            let here = |i: &usize| {
                let mover = &movers[*i];
                let alive = mover.job.start_ms <= span[0] && span[1] <= mover.job.stop_ms;
                alive && mover.pool_at(span[0]) == pool
            };
            let alive: Vec<usize> = (0..movers.len()).filter(here).collect();
            for (mover, rate) in alive.iter().zip(rates(&jobs, &alive, cpus)) {
                received[*mover] += rate * (span[1] - span[0]) as f64;
            }
        }
    }
    received
}

/// Like [`Against`], in two pools.
struct AgainstPools<'a> {
    movers: &'a [Mover],
    cpus: [u32; 2],
    worst: f64,
}

impl Observer for AgainstPools<'_> {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if !matches!(event, Event::Sample | Event::Finished) {
            return;
        }
        let ideal = fluid_in_pools(self.movers, self.cpus, now_ns / 1_000_000);
        for (client, ideal) in (0..).zip(ideal) {
            let received = machine.received_ns(client) as f64 / 1e6;
            self.worst = self.worst.max((received - ideal).abs() / QUANTUM_MS);
        }
    }
}

fn worst_in_pools(movers: &[Mover], cpus: [u32; 2]) -> f64 {
    let clients = movers.iter().enumerate().map(|(i, mover)| {
        let Job {
            tickets,
            start_ms,
            stop_ms,
        } = mover.job;
        let (pool, to, move_ms) = (mover.pool, 1 - mover.pool, mover.move_ms);
        format!(
            "[[client]]\nname = \"c{i}\"\ntickets = {tickets}\nstart = \"{start_ms}ms\"\n\
             pool = \"p{pool}\"\n\
             [[at]]\ntime = \"{stop_ms}ms\"\ndo = {{ stop = \"c{i}\" }}\n\
             [[at]]\ntime = \"{move_ms}ms\"\ndo = {{ move = {{ client = \"c{i}\", to = \"p{to}\" }} }}\n"
        )
    });
    let clients: String = clients.collect();
    let [first, second] = cpus;
    let text = format!(
        "duration = \"20s\"\nmeasure = {{ every = \"10ms\" }}\n\
         [machine]\ncpus = {}\nquantum = \"10ms\"\n\
         pools = [{{ name = \"p0\", cpus = {first} }}, {{ name = \"p1\", cpus = {second} }}]\n{clients}",
        first + second
    );
    let watch = AgainstPools {
        movers,
        cpus,
        worst: 0.0,
    };
    run(&parse(&text), 1, watch).1.worst
}

fn mover() -> impl Strategy<Value = Mover> {
    (job(), 0usize..2, 0u64..2000).prop_map(|(job, pool, time)| Mover {
        job,
        pool,
        move_ms: time * 10,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2001),
        cases: 24,
        ..ProptestConfig::default()
    })]

    /// A move is a departure and an arrival: each client counts in both pools.
    #[test]
    fn stride_stays_near_the_fluid_in_each_pool(
        movers in prop::collection::vec(mover(), 1..8),
        cpus in (1u32..4, 1u32..4),
    ) {
        let worst = worst_in_pools(&movers, cpus.into());
        let n = movers.len() as f64;
        prop_assert!(worst <= 2.0 * n, "{worst} quanta with {n} clients on {cpus:?} CPUs");
    }
}

/// What each client is due by its tickets while it can run, served as a fluid.
#[derive(Default)]
struct Due<'a> {
    tickets: &'a [u32],
    cpus: u32,
    /// Since then these can run.
    since_ns: u64,
    runnable: Vec<usize>,
    due_ns: Vec<f64>,
}

impl Observer for Due<'_> {
    fn observe(&mut self, now_ns: u64, _event: Event<'_>, machine: &Machine) {
        let steady = |tickets: &u32| Job {
            tickets: *tickets,
            start_ms: 0,
            stop_ms: 0,
        };
        self.due_ns.resize(self.tickets.len(), 0.0);
        if now_ns > self.since_ns {
            let jobs: Vec<Job> = self.tickets.iter().map(steady).collect();
            let rates = rates(&jobs, &self.runnable, self.cpus);
            for (client, rate) in self.runnable.iter().zip(rates) {
                self.due_ns[*client] += rate * (now_ns - self.since_ns) as f64;
            }
        }
        self.since_ns = now_ns;
        let can_run = |client: &usize| machine.runnable_threads(*client as u32) > 0;
        self.runnable = (0..self.tickets.len()).filter(can_run).collect();
    }
}

/// Clients that compute, and clients that sleep at times but want more than they are due. The most
/// by which a client's CPU time, and its account of what is due, differ from the fluid, in quanta.
fn worst_beside_sleepers(tickets: &[u32], cpus: u32, machine: &str) -> (f64, f64) {
    let clients: String = tickets
        .iter()
        .enumerate()
        .map(|(i, tickets)| {
            let program = ["hog", "sleeper"][i % 2];
            format!("[[client]]\nname = \"c{i}\"\ntickets = {tickets}\nprogram = \"{program}\"\n")
        })
        .collect();
    let scenario = parse(&format!(
        r#"
        duration = "200s"
        machine = {{ cpus = {cpus}, quantum = "10ms", {machine} }}
        {clients}
        [program.hog]
        steps = [{{ compute = "1h" }}]
        [program.sleeper]
        steps = [{{ loop = {{ steps = [
            {{ compute = {{ exponential = "30ms" }} }}, {{ sleep = {{ exponential = "15ms" }} }},
        ] }} }}]
        "#
    ));
    let watch = Due {
        tickets,
        cpus,
        ..Due::default()
    };
    let (machine, watch) = run(&scenario, 1, watch);
    let worst = |measure: fn(&Machine, u32) -> u64| {
        let due = (0..).zip(&watch.due_ns);
        due.map(|(client, due_ns)| (measure(&machine, client) as f64 - due_ns).abs())
            .fold(0.0, f64::max)
            / (QUANTUM_MS * 1e6)
    };
    let specified = |machine: &Machine, client| {
        let client = machine.client_id(client);
        machine.dispatcher().usage(client).specified_ns
    };
    (worst(Machine::received_ns), worst(specified))
}

#[test]
fn a_sleeper_gets_its_due_of_the_time_in_which_it_can_run() {
    for policy in ["stride", "hierarchical-stride", "eevdf"] {
        for (tickets, cpus) in [
            (&[100, 100][..], 1),
            (&[300, 100, 200, 100], 1),
            (&[1; 8], 2),
        ] {
            for hybrid in ["", ", hybrid = { abbreviated-quanta = true }"] {
                let machine = format!("policy = \"{policy}\"{hybrid}");
                let (received, specified) = worst_beside_sleepers(tickets, cpus, &machine);
                let n = tickets.len() as f64;
                assert!(received <= n, "{machine} {tickets:?}: {received} quanta");
                assert!(
                    specified <= 0.01,
                    "{machine} {tickets:?}: {specified} quanta"
                );
            }
        }
    }
}
