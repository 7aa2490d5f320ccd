//! Turns that are charged when they end, while clients join, leave and change their tickets: with
//! [`Policy::pass_time`], the winners are those of turns that are charged before each change.

use prorata_core::policy::{ClientIndex, Policy, PolicyName};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const QUANTUM_NS: u64 = 20_000_000;
const CLIENTS: u32 = 8;
const STEPS: usize = 400;

/// When a policy learns what a running client has used.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Charges {
    AtOnce,
    AtTheEnd { time_passes: bool },
}

/// CPUs on which clients run by a policy.
struct Machine {
    policy: Box<dyn Policy + Send>,
    charges: Charges,
    /// The client on each CPU, and what it used and was not charged for.
    running: Vec<(ClientIndex, u64)>,
    cpus: usize,
    /// Clients, each time that one begins to run.
    winners: Vec<u32>,
}

impl Machine {
    fn new(policy: PolicyName, charges: Charges, cpus: usize) -> Self {
        Self {
            policy: policy.policy(1),
            charges,
            running: Vec::new(),
            cpus,
            winners: Vec::new(),
        }
    }

    fn run(&mut self, time_ns: u64) {
        for (_, used_ns) in &mut self.running {
            *used_ns += time_ns;
        }
    }

    /// Clients or tickets are about to change.
    fn prepare(&mut self) {
        match self.charges {
            Charges::AtOnce => {
                for (client, used_ns) in &mut self.running {
                    let used_ns = std::mem::take(used_ns);
                    self.policy.charge(*client, used_ns, QUANTUM_NS).unwrap();
                    self.policy.take(*client).unwrap();
                }
            }
            Charges::AtTheEnd { time_passes } => {
                let uncharged_ns = self.running.iter().map(|(_, used_ns)| used_ns).sum();
                if time_passes {
                    self.policy.pass_time(uncharged_ns, QUANTUM_NS);
                }
            }
        }
    }

    fn leave(&mut self, client: ClientIndex) {
        self.prepare();
        match self
            .running
            .iter()
            .position(|(running, _)| *running == client)
        {
            Some(cpu) => {
                let (_, used_ns) = self.running.swap_remove(cpu);
                let charged = self.policy.charge_and_leave(client, used_ns, QUANTUM_NS);
                charged.unwrap();
            }
            None => self.policy.leave(client).unwrap(),
        }
    }

    fn end_turn(&mut self, cpu: usize) {
        if cpu < self.running.len() {
            let (client, used_ns) = self.running.swap_remove(cpu);
            self.policy.charge(client, used_ns, QUANTUM_NS).unwrap();
        }
    }

    fn fill(&mut self) {
        while self.running.len() < self.cpus
            && let Some(client) = self.policy.pick()
        {
            self.policy.take(client).unwrap();
            self.running.push((client, 0));
            self.winners.push(client.0);
        }
    }
}

/// The same history for each machine, with changes in the middle of turns.
fn play(seed: u64, machines: &mut [Machine]) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut joined = [false; CLIENTS as usize];
    for _ in 0..STEPS {
        let time_ns = random.next_u64() % (QUANTUM_NS / 4);
        let client = ClientIndex(random.next_u32() % CLIENTS);
        let tickets = 1 + random.next_u32() % 1_000;
        let change = random.next_u32() % 4;
        let cpu = random.next_u32() as usize % machines[0].cpus;
        let competes = &mut joined[client.0 as usize];
        for machine in &mut *machines {
            machine.run(time_ns);
            match (change, *competes) {
                (0, _) => machine.end_turn(cpu),
                (1, true) => {
                    machine.prepare();
                    machine.policy.set_tickets(client, tickets).unwrap();
                }
                (_, true) => machine.leave(client),
                (_, false) => {
                    machine.prepare();
                    machine.policy.join(client, tickets).unwrap();
                }
            }
            machine.fill();
        }
        if change > 1 || change == 1 && !*competes {
            *competes = !*competes;
        }
    }
}

/// Histories in which the winners are those of turns that are charged before each change.
fn agreements(policy: PolicyName, cpus: usize, time_passes: bool) -> usize {
    let agrees = |seed: &u64| {
        let charges = [Charges::AtOnce, Charges::AtTheEnd { time_passes }];
        let mut machines = charges.map(|charges| Machine::new(policy, charges, cpus));
        play(*seed, &mut machines);
        let [one, other] = machines.map(|machine| machine.winners);
        assert!(one.len() > 50, "{policy} {seed}: {} turns", one.len());
        one == other
    };
    (0..100).filter(agrees).count()
}

#[test]
fn the_time_at_which_a_turn_is_charged_changes_no_winner() {
    // On several CPUs the tree also looks at running clients to pick one that waits. Under EEVDF
    // the charge that ends a request says when the next one begins.
    for (policy, most_cpus) in [(PolicyName::Stride, 3), (PolicyName::HierarchicalStride, 1)] {
        for cpus in 1..=most_cpus {
            assert_eq!(agreements(policy, cpus, true), 100, "{policy}, {cpus} CPUs");
            // Histories of which this is not true would show nothing.
            let without = agreements(policy, cpus, false);
            assert!(without < 10, "{policy}, {cpus} CPUs: {without}");
        }
    }
}
