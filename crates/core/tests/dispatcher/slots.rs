//! Slots of a timetable beside every policy: what they cost in tickets.

use prorata_core::hybrid::Mechanisms;

use super::*;

const SLOT_NS: u64 = 10_000_000;
const COLUMNS: u64 = 120;
const PERIOD_NS: u64 = COLUMNS * SLOT_NS;

/// One CPU, on which the first client has the first slots of each period.
struct Slotted {
    bench: Bench,
    clients: Vec<ClientId>,
    now_ns: u64,
}

impl Slotted {
    fn new(policy: PolicyName, tickets: &[u32]) -> Self {
        let mut bench = Bench::new(1, policy);
        let clients = tickets.iter().map(|&tickets| bench.base_client(tickets));
        let clients = clients.collect();
        bench.dispatcher.open_slots(PERIOD_NS);
        Self {
            bench,
            clients,
            now_ns: 0,
        }
    }

    fn dispatcher(&mut self) -> &mut Dispatcher {
        &mut self.bench.dispatcher
    }

    /// One period, of which the first client has so many slots.
    fn run_period(&mut self, slots: u64, is_gift: bool) {
        let first = self.clients[0];
        for _ in 0..slots {
            self.dispatcher().begin_slot(first);
            let now_ns = self.now_ns;
            assert_eq!(self.dispatcher().next(0, now_ns), None);
            self.dispatcher().charge_slot(first, SLOT_NS, is_gift);
            self.dispatcher().end_slot(first);
            self.now_ns += SLOT_NS;
        }
        self.run_fallback((COLUMNS - slots) * SLOT_NS);
    }

    /// The policy has the CPU. Returns when the first client first had a turn, if it did.
    fn run_fallback(&mut self, time_ns: u64) -> Option<u64> {
        let (end_ns, mut first_ns) = (self.now_ns + time_ns, None);
        while self.now_ns < end_ns {
            let now_ns = self.now_ns;
            let choice = self.dispatcher().next(0, now_ns).expect("all can run");
            let client = self.clients[choice.client.0 as usize];
            if client == self.clients[0] {
                first_ns.get_or_insert(now_ns);
            }
            self.now_ns = choice.until_ns.min(end_ns);
            let used_ns = self.now_ns - now_ns;
            self.dispatcher().charge(client, used_ns);
            self.dispatcher().end_turn(client);
        }
        first_ns
    }

    fn shares(&self) -> Vec<f64> {
        let usage = |client: &ClientId| self.bench.dispatcher.usage(*client);
        let received = self.clients.iter().map(|client| usage(client).received_ns);
        received.map(|ns| ns as f64 / self.now_ns as f64).collect()
    }

    /// The largest error of what is charged, in quanta.
    fn error_quanta(&self) -> f64 {
        let usages = self.clients.iter();
        let errors = usages.map(|client| {
            let usage = self.bench.dispatcher.usage(*client);
            let charged_ns = (usage.received_ns - usage.uncharged_ns) as f64;
            (charged_ns - usage.specified_ns as f64).abs() / QUANTUM_NS as f64
        });
        errors.fold(0.0, f64::max)
    }
}

/// Slots that tickets give, too, change nobody's share; more slots take the rest of others in
/// proportion.
#[test]
fn shares_are_those_of_tickets_or_of_claims() {
    let rows: [(&[u32], u64, [f64; 3]); 4] = [
        (&[30, 40, 30], 24, [0.3, 0.4, 0.3]),
        (&[30, 40, 30], 36, [0.3, 0.4, 0.3]),
        (&[10, 60, 30], 60, [0.5, 1.0 / 3.0, 1.0 / 6.0]),
        (&[1, 66, 33], 60, [0.5, 1.0 / 3.0, 1.0 / 6.0]),
    ];
    for policy in [PolicyName::Stride, PolicyName::Eevdf] {
        for (tickets, slots, expected) in rows {
            let mut slotted = Slotted::new(policy, tickets);
            (0..50).for_each(|_| slotted.run_period(slots, false));
            // The first client may be ahead by what it gets in a period and two quanta.
            let lead = (PERIOD_NS + 2 * QUANTUM_NS) as f64 / slotted.now_ns as f64 * 0.3;
            for (share, expected) in slotted.shares().into_iter().zip(expected) {
                let close = (share - expected).abs() <= lead;
                assert!(close, "{policy} {tickets:?} {slots}: {share} {expected}");
            }
        }
    }
}

/// A client that frees all its slots waits at most a period and two quanta longer than without slots.
#[test]
fn the_next_turn_after_freeing_comes_soon() {
    for policy in [PolicyName::Stride, PolicyName::Eevdf] {
        for tickets in [[30, 40, 30], [10, 60, 30], [1, 66, 33]] {
            for slots in [12, 60, 108] {
                let mut slotted = Slotted::new(policy, &tickets);
                (0..20).for_each(|_| slotted.run_period(slots, false));
                let freed_ns = slotted.now_ns;
                let turn_ns = slotted
                    .run_fallback(10 * PERIOD_NS)
                    .expect("it has tickets");
                let total: u32 = tickets.iter().sum();
                let between_turns_ns = QUANTUM_NS * u64::from(total / tickets[0]);
                let bound_ns = PERIOD_NS + 2 * QUANTUM_NS + between_turns_ns;
                let wait_ns = turn_ns - freed_ns;
                assert!(
                    wait_ns <= bound_ns,
                    "{policy} {tickets:?} {slots}: {wait_ns}"
                );
            }
        }
    }
}

/// The account counts the economy's time alone, and so stays within the policy's bound.
#[test]
fn the_error_of_what_is_charged_stays_bounded() {
    let mut slotted = Slotted::new(PolicyName::Stride, &[10, 60, 30]);
    for _ in 0..100 {
        slotted.run_period(60, false);
        let room = (PERIOD_NS / QUANTUM_NS + 2) as f64 * 0.1;
        assert!(slotted.error_quanta() <= room + 1.0);
    }
}

/// A gift charges nobody's tickets: the shares of the rest are as without it.
#[test]
fn a_gift_charges_no_tickets() {
    let mut slotted = Slotted::new(PolicyName::Stride, &[30, 40, 30]);
    (0..50).for_each(|_| slotted.run_period(24, true));
    let first = slotted.bench.dispatcher.usage(slotted.clients[0]);
    assert_eq!(first.in_slots_ns, 50 * 24 * SLOT_NS);
    assert_eq!(first.uncharged_ns, first.in_slots_ns);
    assert!(slotted.error_quanta() <= 2.0);
    let expected = [0.2 + 0.8 * 0.3, 0.8 * 0.4, 0.8 * 0.3];
    for (share, expected) in slotted.shares().into_iter().zip(expected) {
        assert!((share - expected).abs() < 0.001, "{share} {expected}");
    }
}

/// Where a policy has no memory, slots come on top of tickets.
#[test]
fn slots_come_on_top_of_tickets_without_memory() {
    for policy in [PolicyName::ListLottery, PolicyName::ClassLottery] {
        let mut slotted = Slotted::new(policy, &[30, 40, 30]);
        (0..50).for_each(|_| slotted.run_period(24, false));
        let shares = slotted.shares();
        assert!((shares[0] - 0.44).abs() < 0.03, "{policy}: {shares:?}");
    }
}

/// A client of several threads competes with those that are in no slot.
#[test]
fn threads_in_slots_do_not_compete() {
    let mut bench = Bench::new(3, PolicyName::Stride);
    let (first, second) = (bench.base_client(100), bench.base_client(100));
    bench.dispatcher.set_runnable(first, 2);
    bench.dispatcher.open_slots(PERIOD_NS);
    bench.dispatcher.begin_slot(first);
    let cpus = |bench: &mut Bench| {
        bench.dispatcher.decide(0, &mut bench.winners);
        let mut winners: Vec<_> = bench.winners.iter().map(|w| (w.client, w.cpus)).collect();
        winners.sort_unstable();
        winners
    };
    assert_eq!(cpus(&mut bench), [(first, 1), (second, 1)]);
    // Both threads in slots: none waits.
    bench.dispatcher.end_turn(first);
    bench.dispatcher.begin_slot(first);
    assert_eq!(cpus(&mut bench), [(second, 1)]);
    // A third thread wakes.
    bench.dispatcher.set_runnable(first, 3);
    bench.dispatcher.end_turn(second);
    assert_eq!(cpus(&mut bench).len(), 1);
    bench.dispatcher.end_turn(first);
    bench.dispatcher.end_turn(second);
    bench.dispatcher.end_slot(first);
    bench.dispatcher.end_slot(first);
    bench.dispatcher.set_runnable(first, 2);
    assert_eq!(cpus(&mut bench), [(first, 2), (second, 1)]);
    // It blocks and wakes as ever.
    bench.dispatcher.set_runnable(first, 0);
    assert_eq!(cpus(&mut bench), [(second, 1)]);
    bench.dispatcher.set_runnable(first, 1);
    assert_eq!(cpus(&mut bench), [(first, 1), (second, 1)]);
}

/// The lead of hybrid lottery scheduling counts slot time as far as that is charged.
#[test]
fn slots_move_a_lead_no_further_than_a_pass() {
    let mut slotted = Slotted::new(PolicyName::Stride, &[10, 60, 30]);
    slotted.dispatcher().set_mechanisms_beside(Mechanisms::ALL);
    let first = slotted.clients[0];
    // Each charge rounds by a nanosecond.
    let room_ns = (PERIOD_NS + 2 * QUANTUM_NS) / 10 + COLUMNS;
    for tick in 1..=COLUMNS {
        slotted.dispatcher().advance(tick * SLOT_NS);
        slotted.dispatcher().charge_slot(first, SLOT_NS, false);
        let lead_ns = slotted.dispatcher().lead_ns(first);
        assert!(lead_ns > 0 && lead_ns <= room_ns, "{tick}: {lead_ns}");
    }
}
