//! Hybrid lottery scheduling (1999) over every policy.

use proptest::prelude::*;
use prorata_core::choice::Reason;
use prorata_core::hybrid::{LEAD_BOUND_NS, Mechanisms, WakeClass};
use prorata_core::ids::ClientId;
use prorata_core::policy::PolicyName;

use super::{Bench, QUANTUM_NS};

const MS: u64 = 1_000_000;

/// One CPU with clients that run for so long and stop.
struct Cpu {
    bench: Bench,
    clients: Vec<ClientId>,
    now_ns: u64,
}

impl Cpu {
    fn new(policy: PolicyName, mechanisms: Mechanisms, tickets: &[u32]) -> Self {
        let mut bench = Bench::new(1, policy);
        bench.dispatcher.set_mechanisms(mechanisms);
        let clients = tickets.iter().map(|&tickets| bench.base_client(tickets));
        let clients = clients.collect();
        Self {
            bench,
            clients,
            now_ns: 0,
        }
    }

    /// The client that is next, and why.
    fn next(&mut self) -> (ClientId, Reason) {
        let choice = self
            .bench
            .dispatcher
            .next(0, self.now_ns)
            .expect("one waits");
        (ClientId::from_parts(choice.client.0, 0), choice.why)
    }

    /// The client that has the turn used CPU time.
    fn run(&mut self, client: ClientId, used_ns: u64) {
        self.pass(used_ns);
        self.bench.dispatcher.charge(client, used_ns);
    }

    fn pass(&mut self, time_ns: u64) {
        self.now_ns += time_ns;
        self.bench.dispatcher.advance(self.now_ns);
    }

    fn end_turn(&mut self, client: ClientId) {
        self.bench.dispatcher.end_turn(client);
    }

    /// The next turn lasts for so long.
    fn turn(&mut self, used_ns: u64) -> ClientId {
        let (client, _) = self.next();
        self.run(client, used_ns);
        self.end_turn(client);
        client
    }

    /// Winners of so many turns of different lengths, and what all received.
    fn future(&mut self) -> (Vec<ClientId>, Vec<u64>) {
        let lengths = [QUANTUM_NS, QUANTUM_NS / 2, QUANTUM_NS, 3 * MS];
        let winners = (0..60).map(|i| self.turn(lengths[i % lengths.len()]));
        let winners = winners.collect();
        let clients = self.clients.iter();
        let received = clients.map(|&client| self.bench.dispatcher.usage(client).received_ns);
        (winners, received.collect())
    }
}

const KERNEL: Mechanisms = Mechanisms {
    kernel_priorities: true,
    ..Mechanisms::NONE
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// 1999, Figure 1: a client that runs for alpha, sleeps on a lock, and runs for beta by
    /// its kernel priority leaves the scheduler as if it had run for alpha and beta at once.
    /// EEVDF is left out: it rounds lags when clients join, and a nanosecond decides which
    /// client is eligible.
    #[test]
    fn figure_1_a_kernel_priority_leaves_no_trace(
        alpha_ns in 1..QUANTUM_NS,
        beta_ns in 1..QUANTUM_NS,
        between_ns in 1..QUANTUM_NS,
        before in 0..4usize,
        tickets in prop::array::uniform3(1u32..1000),
    ) {
        for policy in PolicyName::BY_TICKETS.into_iter().filter(|&policy| policy != PolicyName::Eevdf) {
            let future = |interrupted: bool| {
                let mut cpu = Cpu::new(policy, KERNEL, &tickets);
                (0..before).for_each(|_| {
                    cpu.turn(QUANTUM_NS);
                });
                let (sendmail, _) = cpu.next();
                if interrupted {
                    cpu.run(sendmail, alpha_ns);
                } else {
                    cpu.run(sendmail, alpha_ns + beta_ns);
                }
                cpu.bench.dispatcher.set_runnable(sendmail, 0);
                cpu.turn(between_ns);
                let class = match interrupted {
                    true => WakeClass::Lock,
                    false => WakeClass::User,
                };
                cpu.bench.dispatcher.wake(sendmail, 1, class);
                if interrupted {
                    assert_eq!(cpu.next(), (sendmail, Reason::Early), "{policy}");
                    cpu.run(sendmail, beta_ns);
                    cpu.end_turn(sendmail);
                }
                cpu.future()
            };
            let (top, bottom) = (future(true), future(false));
            prop_assert!(top == bottom, "{policy}: {top:?}\n{bottom:?}");
        }
    }
}

#[test]
fn a_kernel_priority_lasts_for_one_turn() {
    for policy in PolicyName::BY_TICKETS {
        let mut cpu = Cpu::new(policy, KERNEL, &[1, 1_000_000]);
        let sleeper = cpu.clients[0];
        cpu.bench.dispatcher.set_runnable(sleeper, 0);
        cpu.pass(MS);
        cpu.bench.dispatcher.wake(sleeper, 1, WakeClass::Disk);
        assert_eq!(cpu.next(), (sleeper, Reason::Early), "{policy}");
        cpu.run(sleeper, QUANTUM_NS);
        cpu.end_turn(sleeper);
        assert_eq!(cpu.next().1, Reason::Policy, "{policy}");
    }
}

fn boost_alone() -> Mechanisms {
    Mechanisms {
        ticket_boost: true,
        ..Mechanisms::default()
    }
}

#[test]
fn a_boost_lasts_until_the_lead_passes_the_bound() {
    let boost = boost_alone();
    for policy in PolicyName::BY_TICKETS {
        let mut cpu = Cpu::new(policy, boost, &[1, 1]);
        let sleeper = cpu.clients[0];
        cpu.bench.dispatcher.set_runnable(sleeper, 0);
        (0..100).for_each(|_| {
            cpu.turn(QUANTUM_NS);
        });
        cpu.bench.dispatcher.set_runnable(sleeper, 1);
        assert_eq!(cpu.bench.dispatcher.fraction(sleeper), 0);
        // The lead rises at half of the speed at which it runs.
        for turn in 1..=10 {
            assert_eq!(cpu.next(), (sleeper, Reason::Early), "{policy} {turn}");
            cpu.run(sleeper, QUANTUM_NS);
            cpu.end_turn(sleeper);
        }
        let lead_ns = cpu.bench.dispatcher.lead_ns(sleeper);
        assert!(
            lead_ns.abs_diff(LEAD_BOUND_NS + QUANTUM_NS / 2) < MS,
            "{policy} {lead_ns}"
        );
        assert_eq!(cpu.next().1, Reason::Policy, "{policy}");
    }
}

#[test]
fn a_client_that_sleeps_long_owes_no_more_than_its_lead() {
    let boost = boost_alone();
    for policy in PolicyName::BY_TICKETS {
        let mut cpu = Cpu::new(policy, boost, &[1, 1]);
        let sleeper = cpu.clients[0];
        // It runs early for 10 ms of each second, and so owes nothing.
        for _ in 0..200 {
            cpu.bench.dispatcher.set_runnable(sleeper, 0);
            (0..50).for_each(|_| {
                cpu.turn(QUANTUM_NS);
            });
            cpu.bench.dispatcher.set_runnable(sleeper, 1);
            let (client, _) = cpu.next();
            cpu.run(client, 10 * MS);
            cpu.end_turn(client);
        }
        // From now on it computes: it has its turns within the next 40 quanta.
        let before_ns = cpu.bench.dispatcher.usage(sleeper).received_ns;
        (0..100).for_each(|_| {
            cpu.turn(QUANTUM_NS);
        });
        let received_ns = cpu.bench.dispatcher.usage(sleeper).received_ns - before_ns;
        assert!(received_ns >= 30 * QUANTUM_NS, "{policy}: {received_ns} ns");
    }
}

const SEATS: [PolicyName; 3] = [
    PolicyName::ListLottery,
    PolicyName::TreeLottery,
    PolicyName::ClassLottery,
];

#[test]
fn as_printed_a_boost_is_a_chance_of_ten_thousand() {
    for policy in SEATS {
        let mut cpu = Cpu::new(policy, boost_alone(), &[1, 100]);
        cpu.bench.dispatcher.set_as_printed();
        let sleeper = cpu.clients[0];
        cpu.bench.dispatcher.set_runnable(sleeper, 0);
        (0..600).for_each(|_| {
            cpu.turn(QUANTUM_NS);
        });
        // With a hundredth of the tickets, it is a hundred times as likely to win. The seed is
        // fixed.
        cpu.bench.dispatcher.set_runnable(sleeper, 1);
        assert_eq!(cpu.next(), (sleeper, Reason::Policy), "{policy}");
        // A turn of a quantum is more than it is due in ten seconds, a tenth of one: no boost.
        cpu.run(sleeper, 10 * QUANTUM_NS);
        cpu.end_turn(sleeper);
        let wins = (0..1_000).filter(|_| cpu.turn(QUANTUM_NS) == sleeper);
        let wins = wins.count();
        assert!(wins < 50, "{policy}: {wins}");
    }
}

#[test]
fn as_printed_kernel_priorities_last_for_a_quantum_in_all() {
    for policy in SEATS {
        let mut cpu = Cpu::new(policy, KERNEL, &[1, 1_000_000]);
        cpu.bench.dispatcher.set_as_printed();
        let sleeper = cpu.clients[0];
        // Its lead is far beyond the bound, and does not count.
        for part in [QUANTUM_NS / 2, QUANTUM_NS / 4, QUANTUM_NS / 4] {
            cpu.bench.dispatcher.set_runnable(sleeper, 0);
            cpu.turn(MS);
            cpu.bench.dispatcher.wake(sleeper, 1, WakeClass::Other);
            assert_eq!(cpu.next(), (sleeper, Reason::Early), "{policy}");
            cpu.run(sleeper, part);
            cpu.end_turn(sleeper);
        }
        cpu.bench.dispatcher.set_runnable(sleeper, 0);
        cpu.turn(MS);
        cpu.bench.dispatcher.wake(sleeper, 1, WakeClass::Other);
        assert_eq!(cpu.next().1, Reason::Policy, "{policy}");
    }
}

#[test]
fn as_printed_each_wake_preempts() {
    let all = Mechanisms::ALL;
    for policy in SEATS {
        let mut cpu = Cpu::new(policy, all, &[1, 1]);
        cpu.bench.dispatcher.set_as_printed();
        let [first, second] = [cpu.clients[0], cpu.clients[1]];
        cpu.bench.dispatcher.set_runnable(first, 0);
        cpu.bench.dispatcher.set_runnable(second, 0);
        cpu.bench.dispatcher.wake(first, 1, WakeClass::Lock);
        assert_eq!(cpu.next(), (first, Reason::Early), "{policy}");
        cpu.bench.dispatcher.wake(second, 1, WakeClass::User);
        assert_eq!(
            cpu.bench.dispatcher.preempted_by(second),
            Some(first),
            "{policy}"
        );
    }
}
