//! The objects at which threads meet: mutexes, pipes, services and signals; and the loans
//! of the threads that wait there.

use std::collections::{BTreeMap, VecDeque};

use prorata_core::hybrid::WakeClass;
use prorata_core::ids::{CurrencyId, TicketId, TransferId};
use prorata_core::rng::Xoshiro256PlusPlus;

use crate::plan::{Instruction, MutexPlan, Plan, ServicePlan};
use crate::stream::{Purpose, stream};

pub(super) const NONE: u32 = u32::MAX;

/// Everything that threads meet at.
#[derive(Debug, Default)]
pub struct Objects {
    pub(super) mutexes: Vec<Mutex>,
    pub(super) pipes: Vec<Pipe>,
    pub(super) services: Vec<Service>,
    pub(super) signals: Vec<Signal>,
    /// Tickets lent by threads that wait, by thread.
    pub(super) loans: BTreeMap<u32, Vec<TransferId>>,
    /// By client: threads that wait and have lent their part of its tickets.
    pub(super) lending: BTreeMap<u32, u32>,
    /// Transfers from outside, by name.
    pub(super) transfers: BTreeMap<String, TransferId>,
    /// The calling thread, by the thread that serves the call.
    pub(super) callers: BTreeMap<u32, u32>,
}

impl Objects {
    /// Takes the objects of a plan. Mutexes with lotteries draw from streams of the seed.
    pub fn new(plan: &mut Plan, seed: u64) -> Objects {
        let mutexes = std::mem::take(&mut plan.mutexes).into_iter().zip(0..);
        let services = std::mem::take(&mut plan.services).into_iter();
        Objects {
            mutexes: mutexes
                .map(|(plan, number)| Mutex::new(plan, seed, number))
                .collect(),
            pipes: plan.pipes.iter().copied().map(Pipe::new).collect(),
            services: services.map(Service::new).collect(),
            signals: vec![Signal::default(); plan.signals],
            ..Objects::default()
        }
    }

    /// The class of a wake from the wait of an instruction (1999, 3.1).
    pub fn wake_class(&self, waited_in: Instruction) -> WakeClass {
        match waited_in {
            Instruction::Block { resource, .. } => resource.wake_class(),
            Instruction::Lock(mutex) if self.mutexes[mutex as usize].kernel => WakeClass::Lock,
            _ => WakeClass::User,
        }
    }

    /// Names of the mutexes, by number.
    pub fn mutex_names(&self) -> impl Iterator<Item = &str> {
        self.mutexes.iter().map(|mutex| mutex.name.as_str())
    }

    /// Names of the services, by number.
    pub fn service_names(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(|service| service.name.as_str())
    }
}

#[derive(Debug)]
pub(super) struct Mutex {
    pub(super) name: String,
    /// The thread that holds it; [`NONE`] while it is free.
    pub(super) holder: u32,
    /// Threads that wait, first come first.
    pub(super) waiters: VecDeque<u32>,
    /// The rights for a lottery among them, if there is one.
    pub(super) lottery: Option<MutexLottery>,
    pub(super) keeps_cpu: bool,
    /// It is a lock of the kernel.
    pub(super) kernel: bool,
}

/// The rights of a lottery-scheduled mutex (1994, 6.1).
#[derive(Debug)]
pub(super) struct MutexLottery {
    /// The waiting threads fund it.
    pub(super) currency: CurrencyId,
    /// It is issued in the currency and funds the holder.
    pub(super) inheritance: TicketId,
    pub(super) lots: Xoshiro256PlusPlus,
}

impl Mutex {
    fn new(plan: MutexPlan, seed: u64, number: u64) -> Mutex {
        Mutex {
            name: plan.name,
            holder: NONE,
            waiters: VecDeque::new(),
            keeps_cpu: plan.keeps_cpu,
            kernel: plan.kernel,
            lottery: plan.lottery.map(|(currency, inheritance)| MutexLottery {
                currency,
                inheritance,
                lots: stream(seed, Purpose::Mutex, number),
            }),
        }
    }
}

#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) capacity: u32,
    pub(super) messages: u32,
    pub(super) senders: VecDeque<u32>,
    pub(super) receivers: VecDeque<u32>,
}

impl Pipe {
    fn new(capacity: u32) -> Pipe {
        Pipe {
            capacity,
            messages: 0,
            senders: VecDeque::new(),
            receivers: VecDeque::new(),
        }
    }
}

/// A service: calls wait for workers or workers for calls.
#[derive(Debug)]
pub(super) struct Service {
    name: String,
    /// Threads whose call waits to be served, first come first.
    pub(super) calls: VecDeque<u32>,
    pub(super) workers: VecDeque<u32>,
    /// The clients that take its calls.
    pub(super) servers: Vec<u32>,
}

impl Service {
    fn new(plan: ServicePlan) -> Service {
        Service {
            name: plan.name,
            servers: plan.servers,
            calls: VecDeque::new(),
            workers: VecDeque::new(),
        }
    }
}

/// Signals kept for later waits, or threads that wait.
#[derive(Clone, Default, Debug)]
pub(super) struct Signal {
    pub(super) kept: u64,
    pub(super) waiters: VecDeque<u32>,
}
