//! The machine's own books, and whether they balance.

use prorata_core::ledger::Value;
use prorata_scenario::measure::{Counts, ValueLost, check_value};
use prorata_scenario::plan::client_id;
use prorata_scenario::threads::ThreadState;

use super::pools::Pool;
use super::{Machine, NONE};

/// Books that do not balance: a bug in the machine or below it.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Imbalance {
    /// Value came or went.
    #[error(transparent)]
    Value(#[from] ValueLost),
    /// CPU time came or went.
    #[error("{accounted_ns} ns of CPU time are accounted for, {passed_ns} ns have passed")]
    Time {
        /// Busy, idle and overhead.
        accounted_ns: u64,
        /// On all CPUs.
        passed_ns: u64,
    },
    /// The clients' received time differs from the CPUs' busy time.
    #[error("clients received {received_ns} ns, CPUs were busy for {busy_ns} ns")]
    Service {
        /// Sum over the clients.
        received_ns: u64,
        /// Sum over the CPUs.
        busy_ns: u64,
    },
    /// A thread is lost, or in two places.
    #[error("client {client} has {counted} threads that can run, but says {said}")]
    Threads {
        /// Which client.
        client: u32,
        /// By looking at every thread.
        counted: u32,
        /// By its own count.
        said: u32,
    },
    /// The queues are longer or shorter than they say.
    #[error("{counted} threads wait for a CPU, but {said} are said to")]
    Queue {
        /// By looking at every thread.
        counted: u64,
        /// By the machine's own count.
        said: u64,
    },
    /// The machine and the dispatcher disagree.
    #[error("client {client} runs on {machine} CPUs, the dispatcher says {dispatcher}")]
    Turn {
        /// Which client.
        client: u32,
        /// By the machine.
        machine: bool,
        /// By the dispatcher.
        dispatcher: bool,
    },
    /// A thread runs outside of its client's pool.
    #[error("client {client} belongs to pool {pool}, but runs on CPU {cpu}")]
    Pool {
        /// Which client.
        client: u32,
        /// Its pool.
        pool: u32,
        /// Where it runs.
        cpu: u32,
    },
    /// A thread runs on a CPU that its client may not use.
    #[error("client {client} runs on CPU {cpu}, which it may not use")]
    Affinity {
        /// Which client.
        client: u32,
        /// Where it runs.
        cpu: u32,
    },
    /// A slot runs another client than the timetable says, or one that could run there waits.
    #[error("CPU {cpu} does not run what the timetable says")]
    Slot {
        /// Which CPU.
        cpu: u32,
    },
    /// Tokens came or went but by what sets tokens.
    #[error("tokens came or went")]
    Tokens,
    /// A CPU idles while a client with tickets in its pool waits for one.
    #[error("a CPU is idle while client {client} waits for one")]
    Idle {
        /// Which client.
        client: u32,
    },
}

impl Machine {
    /// Totals since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Runnable threads of a client, including running ones.
    pub fn runnable_threads(&self, client: u32) -> u32 {
        self.clients[client as usize].runnable
    }

    /// Whether a client has threads.
    pub fn is_alive(&self, client: u32) -> bool {
        self.clients[client as usize].threads > 0
    }

    /// Checks the books. O(clients, threads and CPUs); for tests, at any
    /// event.
    ///
    /// # Errors
    ///
    /// The first imbalance found.
    pub fn check(&self) -> Result<(), Imbalance> {
        check_value(self.dispatcher.ledger(), self.client_count())?;
        self.check_time()?;
        self.check_threads()?;
        self.check_pools()
    }

    /// Checks also that no CPU idles while a client could use it. Holds when everything due
    /// at a time has happened, so not between two events of the same time.
    ///
    /// # Errors
    ///
    /// The first imbalance found.
    pub fn check_settled(&self) -> Result<(), Imbalance> {
        self.check()?;
        self.check_slots()?;
        let has_idle = |pool: &Pool| {
            let cpus = pool.cpus.start as usize..pool.cpus.end as usize;
            self.cpus.all[cpus].iter().any(|cpu| cpu.thread == NONE)
        };
        let idle: Vec<bool> = self.pools.iter().map(has_idle).collect();
        let ledger = self.dispatcher.ledger();
        let waits = |client: &u32| {
            let state = &self.clients[*client as usize];
            let cpus = self.turns.get(state.turn).map_or(0, |turn| turn.cpus);
            idle[self.pool_of(*client) as usize]
                && state.runnable > cpus + self.slots_of(*client)
                && ledger.value(client_id(*client)) > Value(0)
                && !self.dispatcher.is_paused(client_id(*client))
                && (!self.confines || self.way(*client).is_some())
        };
        match (0..self.client_count()).find(waits) {
            Some(client) => Err(Imbalance::Idle { client }),
            None => Ok(()),
        }
    }

    fn check_time(&self) -> Result<(), Imbalance> {
        let idle = self.cpus.all.iter().filter(|cpu| cpu.thread == NONE);
        let idle_ns: u64 = idle.map(|cpu| self.now_ns - cpu.since_ns).sum();
        let unaccounted_ns = self.cpus.unaccounted_ns(self.now_ns);
        let Counts {
            busy_ns,
            overhead_ns,
            ..
        } = self.counts;
        let accounted_ns = (busy_ns + self.counts.idle_ns + overhead_ns + idle_ns)
            .wrapping_add_signed(unaccounted_ns);
        let passed_ns = self.now_ns * self.cpus.all.len() as u64;
        if accounted_ns != passed_ns {
            return Err(Imbalance::Time {
                accounted_ns,
                passed_ns,
            });
        }
        let received_ns = (0..self.client_count())
            .map(|client| self.dispatcher.usage(client_id(client)).received_ns)
            .sum();
        if received_ns != busy_ns {
            return Err(Imbalance::Service {
                received_ns,
                busy_ns,
            });
        }
        Ok(())
    }

    fn check_pools(&self) -> Result<(), Imbalance> {
        let mut waiting = vec![0; self.pools.len()];
        for thread in &self.threads.all {
            let (client, cpu) = (thread.client, u32::from(thread.cpu));
            let pool = self.pool_of(client);
            if thread.state == ThreadState::Running && !self.pool_cpus(pool).contains(&cpu) {
                return Err(Imbalance::Pool { client, pool, cpu });
            }
            if thread.state == ThreadState::Running && !self.may_use(client, cpu) {
                return Err(Imbalance::Affinity { client, cpu });
            }
            waiting[pool as usize] += u64::from(thread.state == ThreadState::Ready);
        }
        for (counted, pool) in waiting.into_iter().zip(0..) {
            let said = self.waiting_in(pool);
            if counted != said {
                return Err(Imbalance::Queue { counted, said });
            }
        }
        Ok(())
    }

    fn check_threads(&self) -> Result<(), Imbalance> {
        let mut runnable = vec![0; self.clients.len()];
        for thread in &self.threads.all {
            let can_run = matches!(thread.state, ThreadState::Ready | ThreadState::Running);
            runnable[thread.client as usize] += u32::from(can_run);
        }
        for (client, (state, &counted)) in self.clients.iter().zip(&runnable).enumerate() {
            let client = client as u32;
            if state.runnable != counted {
                return Err(Imbalance::Threads {
                    client,
                    counted,
                    said: state.runnable,
                });
            }
            let dispatcher = self.dispatcher.runs(client_id(client));
            let turn = self.turns.get(state.turn);
            let machine = turn.is_some();
            if machine != dispatcher || turn.is_some_and(|turn| turn.cpus == 0) {
                return Err(Imbalance::Turn {
                    client,
                    machine,
                    dispatcher,
                });
            }
        }
        Ok(())
    }
}
