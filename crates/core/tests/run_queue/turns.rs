//! A machine in time: turns of up to a quantum, by feasible tickets, on CPUs
//! that decide whenever one ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prorata_core::run_queue::{
    Change, Cpu, End, Layout, Outcome, Pass, Place, QUANTUM_SERVICE, Ranking, Schedule, Sequential,
    TICKET_PARTS, Task, TaskIndex, Tickets, Turn,
};

pub const QUANTUM_NS: u64 = 10_000_000;

pub struct Machine {
    pub queues: Sequential<Pass>,
    pub cpus: u32,
    pub now_ns: u64,
    /// When each turn ends, and where.
    turns: BinaryHeap<Reverse<(u64, u32)>>,
    /// By CPU: who runs, since when.
    runs: Vec<Option<(usize, u64)>>,
    received_ns: Vec<u64>,
    /// By task, while they are blocked.
    blocked: Vec<Option<Task>>,
    random: u64,
    /// Of so many tries of a lock one is granted, but for who blocks.
    pub granted_of: u64,
    /// By pool: turns that began although somebody with a smaller pass waited.
    pub past_smaller: Vec<u32>,
}

/// A task that competes in a pool.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub task: usize,
    /// What it should be due by.
    pub weight: f64,
    /// What it goes by.
    pub tickets: f64,
    /// Service that it has had, at the start of its stride, beyond the virtual
    /// time's; in quanta.
    pub offset: f64,
    /// What it has had of its turn, if it runs.
    pub runs: Option<f64>,
}

impl Machine {
    /// All tasks are blocked, and all CPUs idle.
    pub fn new(layout: &Layout, cpus: u32, weights: &[u32], seed: u64) -> Self {
        let ranking = Pass::weighted(QUANTUM_NS, weights.len() as u32).unwrap();
        let tasks = weights.iter().zip(0..).map(|(&weight, index)| {
            let mut task = Task::new(TaskIndex(index), Cpu(index % cpus));
            task.tickets = Tickets::new(weight).unwrap();
            Some(task)
        });
        Self {
            queues: Sequential::new(ranking, layout, cpus).unwrap(),
            cpus,
            now_ns: 0,
            turns: BinaryHeap::new(),
            runs: vec![None; cpus as usize],
            received_ns: vec![0; weights.len()],
            blocked: tasks.collect(),
            random: seed | 1,
            granted_of: 1,
            past_smaller: vec![0; cpus as usize],
        }
    }

    /// All wake, before anybody runs.
    pub fn wake_all(&mut self) {
        for task in self.blocked.iter_mut().filter_map(Option::take) {
            self.queues.wake(task).unwrap();
        }
    }

    pub fn wake(&mut self, task: usize) {
        if let Some(task) = self.blocked[task].take() {
            self.queues.wake(task).unwrap();
            self.settle();
        }
    }

    pub fn set_tickets(&mut self, task: usize, weight: u32) {
        let tickets = Tickets::new(weight).unwrap();
        match &mut self.blocked[task] {
            Some(task) => task.tickets = tickets,
            None => {
                let index = TaskIndex(task as u32);
                assert!(self.queues.adjust(index, Change::Tickets(tickets)));
            }
        }
    }

    /// Whether the pool of `cpu` took a task.
    pub fn balance(&mut self, cpu: u32) -> bool {
        let moved = self.queues.balance(Cpu(cpu)).is_some();
        self.settle();
        moved
    }

    /// A blocked task wakes where it ran last, in the view of the queues.
    pub fn start_on(&mut self, task: usize, cpu: u32) {
        if let Some(task) = &mut self.blocked[task] {
            task.cpu = Cpu(cpu);
        }
        self.wake(task);
    }

    /// CPUs that run somebody.
    pub fn running(&self) -> usize {
        self.runs.iter().flatten().count()
    }

    /// The next turn ends, and another begins there. False if nobody runs.
    pub fn step(&mut self, end: End) -> bool {
        let Some(Reverse((now_ns, cpu))) = self.turns.pop() else {
            return false;
        };
        self.now_ns = now_ns;
        self.decide(cpu, end);
        self.settle();
        true
    }

    fn decide(&mut self, cpu: u32, end: End) {
        let ran = self.runs[cpu as usize].take();
        let used_ns = ran.map_or(0, |(_, since_ns)| self.now_ns - since_ns);
        if let Some((task, _)) = ran {
            self.received_ns[task] += used_ns;
        }
        let turn = Turn { end, used_ns };
        let outcome = match end {
            End::Blocks => self.queues.schedule(Cpu(cpu), turn, self.now_ns),
            _ => self.decide_where_locks_are_held(cpu, turn),
        };
        if let Some(task) = outcome.blocked {
            let index = task.index.0 as usize;
            self.blocked[index] = Some(task);
        }
        if let Some(displaced) = outcome.displaced {
            self.queues.run(&mut Place::displaced(displaced), |_| true);
        }
        if let Some(TaskIndex(task)) = outcome.next {
            self.runs[cpu as usize] = Some((task as usize, self.now_ns));
            if self.waits_before(cpu) {
                self.past_smaller[self.queues.shared().pool_of(Cpu(cpu)) as usize] += 1;
            }
            let turn_ns = self.turn_ns();
            self.turns.push(Reverse((self.now_ns + turn_ns, cpu)));
        }
    }

    fn decide_where_locks_are_held(&mut self, cpu: u32, turn: Turn) -> Outcome {
        let mut decision = Schedule::new(Cpu(cpu), turn, self.now_ns);
        let (random, of) = (&mut self.random, self.granted_of);
        self.queues.run(&mut decision, |_| {
            of == 1 || next(random).is_multiple_of(of)
        });
        decision.outcome()
    }

    /// Whether somebody with a smaller pass than who runs on a CPU waits in its
    /// pool.
    fn waits_before(&self, cpu: u32) -> bool {
        let shared = self.queues.shared();
        let pool = shared.pool_of(Cpu(cpu));
        let rank = |task: &Task| shared.ranking().rank(task);
        let lock = shared.queue_of(Cpu(cpu)).0 as usize;
        let runs = self.queues.queues()[lock].current(Cpu(cpu)).map(rank);
        let queues = self.queues.queues().iter().zip(0..self.cpus);
        let of_pool = queues.filter(|(_, cpu)| shared.pool_of(Cpu(*cpu)) == pool);
        let mut all = of_pool.flat_map(|(queue, _)| queue.tasks());
        all.any(|(task, is_running)| !is_running && Some(rank(task)) > runs)
    }

    /// Idle CPUs that were told decide.
    pub fn settle(&mut self) {
        loop {
            let told = self.queues.take_told();
            if told.is_empty() {
                break;
            }
            for Cpu(cpu) in told {
                assert_eq!(self.runs[cpu as usize], None, "passes preempt nobody");
                self.decide(cpu, End::Runnable);
            }
        }
    }

    /// Half of the turns last a quantum, the others end earlier.
    fn turn_ns(&mut self) -> u64 {
        let random = next(&mut self.random);
        match random % 2 {
            0 => QUANTUM_NS,
            _ => 1 + random / 2 % QUANTUM_NS,
        }
    }

    /// CPU time by now, in quanta, running turns included.
    pub fn received(&self) -> Vec<f64> {
        let mut received_ns = self.received_ns.clone();
        for &(task, since_ns) in self.runs.iter().flatten() {
            received_ns[task] += self.now_ns - since_ns;
        }
        received_ns.into_iter().map(quanta).collect()
    }

    /// Those who compete, by pool, and the CPUs of the pool.
    pub fn pools(&self) -> Vec<(u32, Vec<Member>)> {
        let shared = self.queues.shared();
        let pool_of = |cpu| shared.pool_of(Cpu(cpu));
        let last = (0..self.cpus).map(pool_of).max().unwrap();
        let mut pools = vec![(0, Vec::new()); last as usize + 1];
        for cpu in 0..self.cpus {
            pools[pool_of(cpu) as usize].0 += 1;
        }
        // Behind the CPUs' queues there are only those of real time.
        let queues = self.queues.queues().iter().zip(0..self.cpus);
        for (queue, cpu) in queues {
            let clock = shared.clock(Cpu(cpu));
            let members = queue.tasks().map(|(task, runs)| {
                let turn = runs.then(|| self.runs[task.cpu.0 as usize].unwrap());
                self.member(task, turn.map(|turn| turn.1), clock)
            });
            pools[pool_of(cpu) as usize].1.extend(members);
        }
        pools
    }

    fn member(&self, task: &Task, since_ns: Option<u64>, clock: u64) -> Member {
        let ranking = self.queues.shared().ranking();
        let tickets = ranking.in_force(task);
        assert_eq!(ranking.feasible().unwrap().get(task.index), Some(tickets));
        let runs = since_ns.map(|since_ns| quanta(self.now_ns - since_ns));
        let remain = ranking.remain(task, clock) as f64 / QUANTUM_SERVICE as f64;
        Member {
            task: task.index.0 as usize,
            weight: task.tickets.get().into(),
            tickets: f64::from(tickets.parts()) / f64::from(TICKET_PARTS),
            // Its stride ends after a quantum more, and is charged for at the
            // end of the turn.
            offset: remain - 1.0 + runs.unwrap_or(0.0),
            runs,
        }
    }
}

/// The CPUs due to each of these weights, from the definition: in proportion,
/// but to nobody more than one, what is over going to the others.
pub fn due(weights: &[f64], cpus: u32) -> Vec<f64> {
    let mut due: Vec<Option<f64>> = vec![None; weights.len()];
    loop {
        let left = |due: &[Option<f64>]| {
            let open = weights.iter().zip(due).filter(|(_, due)| due.is_none());
            open.map(|(weight, _)| weight).sum::<f64>()
        };
        let cut = due.iter().flatten().count() as f64;
        let share = (f64::from(cpus) - cut) / left(&due);
        let mut more = false;
        for (due, weight) in due.iter_mut().zip(weights).filter(|(due, _)| due.is_none()) {
            if weight * share > 1.0 {
                *due = Some(1.0);
                more = true;
            }
        }
        if !more {
            let shares = due.iter().zip(weights);
            return shares.map(|(due, w)| due.unwrap_or(w * share)).collect();
        }
    }
}

/// Another number each time.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

fn quanta(ns: u64) -> f64 {
    ns as f64 / QUANTUM_NS as f64
}
