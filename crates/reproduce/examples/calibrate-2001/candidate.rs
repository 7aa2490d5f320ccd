//! A machine and a program that may be those of 2001, and what a run of them comes to.

use std::num::NonZeroU32;

use prorata_reproduce::workload::{Chat, Preparation, Socket, SocketBuffer};
use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, SmpSimulation, WritersWake};

use crate::{Outcome, in_parallel};

/// The paper's schedulers: DSS, PLS and MQ.
pub const LAYOUTS: [LayoutName; 3] = [
    LayoutName::GlobalList,
    LayoutName::PriorityLevels,
    LayoutName::MultiQueue,
];

/// What the paper prints of (20,200) on two CPUs (2001, Table 3), by scheduler: contention in
/// per cent, mean hold and wait in microseconds.
const TARGETS: [[f64; 3]; LAYOUTS.len()] = [[18.3, 15.0, 26.0], [3.7, 2.3, 2.7], [5.0, 3.2, 4.3]];

/// Messages a second of the published program on a comparable machine of two CPUs, under DSS.
const MESSAGES_PER_S: f64 = 115_000.0;

/// The program counts messages sent by clients, too, one for each broadcast to 19 users.
const COUNTED: f64 = 20.0 / 19.0;

/// The values of each parameter, in the order of [`Candidate`].
const PARAMETERS: [&[u64]; 4] = [
    &[4_000, 5_000, 6_000, 7_000, 8_000],
    &[5_000, 10_000, 14_000, 20_000],
    &[28_000, 40_000, 56_000],
    &[10, 14, 20, 30],
];

/// A send buffer of TCP in Linux 2.4 once a writer has waited for room (`tcp_new_space()`),
/// and the part of it that a message of 100 bytes takes. `tcp_sendmsg()` allocates room for
/// a whole segment of 16,140 bytes, as much as the loopback interface carries, and takes
/// 16,500 bytes of the buffer for it; 161 messages share that.
pub const SOCKET: SocketBuffer = SocketBuffer {
    message_bytes: NonZeroU32::new(103).unwrap(),
    buffer_bytes: 131_072,
};

/// Structures of tasks in the second-level cache of 2 MiB (2001, 5), one in 8 KiB.
pub const CACHED_TASKS: u32 = 256;

/// A machine and a program that may be those of 2001.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// CPU time to write a message, beside the system call; to read takes half of that.
    pub write_ns: u64,
    pub segment_ns: u64,
    /// A switch, and a start on another CPU.
    pub switch_ns: u64,
    pub examine_ns: u64,
}

/// What a run comes to.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub messages_per_s: f64,
    pub contention: f64,
    pub hold_us: f64,
    pub wait_us: f64,
    pub schedules: f64,
    pub requests: f64,
    pub length: f64,
    /// Waits for the lock of a socket, and segments, for each message.
    pub socket_waits: f64,
    pub segments: f64,
    /// Waits for room in a socket, for each message.
    pub waits_for_room: f64,
}

impl Candidate {
    pub const COLUMNS: &str = "write_ns,segment_ns,switch_ns,examine_ns";
    /// How many columns these are.
    pub const WIDTH: usize = PARAMETERS.len();

    /// Every combination of the values.
    pub fn grid() -> Vec<Candidate> {
        let mut all = vec![[0; PARAMETERS.len()]];
        for (parameter, values) in PARAMETERS.iter().enumerate() {
            let with = |candidate: [u64; PARAMETERS.len()]| {
                values.iter().map(move |value| {
                    let mut with = candidate;
                    with[parameter] = *value;
                    with
                })
            };
            all = all.into_iter().flat_map(with).collect();
        }
        all.into_iter().map(Candidate::new).collect()
    }

    fn new([write_ns, segment_ns, switch_ns, examine_ns]: [u64; PARAMETERS.len()]) -> Candidate {
        Candidate {
            write_ns,
            segment_ns,
            switch_ns,
            examine_ns,
        }
    }

    pub fn row(&self) -> String {
        let Candidate {
            write_ns,
            segment_ns,
            switch_ns,
            examine_ns,
        } = self;
        format!("{write_ns},{segment_ns},{switch_ns},{examine_ns}")
    }

    pub fn parse(row: &str) -> Outcome<Candidate> {
        let numbers: Vec<u64> = row
            .split(',')
            .take(Candidate::WIDTH)
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let numbers: [u64; PARAMETERS.len()] = numbers
            .try_into()
            .map_err(|_| format!("{row}: a candidate has {} numbers", Candidate::WIDTH))?;
        Ok(Candidate::new(numbers))
    }

    /// The program and the machine.
    pub fn setup(&self) -> Setup {
        Setup {
            chat: Chat {
                socket: Socket::Buffer(SOCKET),
                write: Time(self.write_ns),
                read: Time(self.write_ns / 2),
                preparation: Preparation::Connects,
            },
            costs: SchedulerCosts {
                context_switch: Time(self.switch_ns),
                cache_refill: Time(self.switch_ns),
                segment: Time(self.segment_ns),
                socket_locks: true,
                examine: Time(self.examine_ns),
                cached_tasks: CACHED_TASKS,
                ..SchedulerCosts::default()
            },
            writers: WritersWake::AThirdFree,
            one_in: 1,
        }
    }
}

/// A load and a scheduler: rooms, messages a user, and where tasks wait.
pub type Load = ((u32, u32), LayoutName);

/// A program and a machine of any size.
#[derive(Clone, Debug)]
pub struct Setup {
    pub chat: Chat,
    pub costs: SchedulerCosts,
    pub writers: WritersWake,
    /// One of so many messages is sent.
    pub one_in: u32,
}

impl Setup {
    /// The mean of so many runs, on so many CPUs.
    pub fn measure(&self, load: Load, cpus: u32, seeds: u64) -> Outcome<Measured> {
        let runs = in_parallel(1..=seeds, |seed| self.measure_once(load, cpus, seed))?;
        Ok(Measured::mean(&runs))
    }

    fn measure_once(&self, load: Load, cpus: u32, seed: u64) -> Outcome<Measured> {
        let (mut simulation, deliveries) = self.begun(load, cpus, seed)?;
        while simulation.alive() > 0 {
            simulation.run_to(simulation.now_ns() + 1_000_000)?;
        }
        Ok(Measured::of(&simulation, deliveries))
    }

    /// A run whose clock has just begun, and the messages that will arrive.
    fn begun(
        &self,
        ((rooms, messages), layout): Load,
        cpus: u32,
        seed: u64,
    ) -> Outcome<(SmpSimulation, u64)> {
        let messages = messages.div_ceil(self.one_in);
        let machine = MachineModel {
            cpus,
            layout,
            costs: self.costs.clone(),
            topology: None,
            writers: self.writers,
        };
        let scenario = self.chat.scenario(rooms, messages);
        let mut simulation = SmpSimulation::new(&scenario, &machine, seed)?;
        while !self.chat.has_begun(rooms, &simulation) {
            simulation.run_to(simulation.now_ns() + 100_000)?;
        }
        simulation.measure_afresh();
        Ok((simulation, Chat::deliveries(rooms, messages)))
    }

    /// The course of a run, by tenths of what is sent: how long each takes, and the lock
    /// requests for each message. The last ends with the run.
    pub fn course(&self, load: Load, cpus: u32, seed: u64) -> Outcome<Vec<Tenth>> {
        let (mut simulation, deliveries) = self.begun(load, cpus, seed)?;
        // Each message up is sent, signalled, and sent down to each of the others.
        let all = deliveries * 21 / 19;
        let (mut tenths, mut last) = (Vec::new(), (0, 0, 0));
        while simulation.alive() > 0 {
            simulation.run_to(simulation.now_ns() + 100_000)?;
            let sent = simulation.counts().sends;
            let ends = sent >= (tenths.len() as u64 + 1) * all / 10 && tenths.len() < 9;
            if ends || simulation.alive() == 0 {
                let locks = simulation.lock_statistics();
                let requests = locks.acquisitions + locks.failed_tries;
                let ns = simulation.measured_ns();
                tenths.push(Tenth {
                    ms: (ns - last.0) as f64 / 1e6,
                    requests: (requests - last.1) as f64 / (sent - last.2).max(1) as f64,
                });
                last = (ns, requests, sent);
            }
        }
        Ok(tenths)
    }
}

/// A tenth of a run.
#[derive(Clone, Copy, Debug)]
pub struct Tenth {
    pub ms: f64,
    /// Lock requests for each message or signal that is sent.
    pub requests: f64,
}

impl Measured {
    pub const COLUMNS: &str = "messages_per_s,contention,hold_us,wait_us,schedules_per_message,\
                           requests_per_message,length,socket_waits_per_message,\
                           segments_per_message";

    fn of(simulation: &SmpSimulation, deliveries: u64) -> Measured {
        let locks = simulation.lock_statistics();
        let deliveries = deliveries as f64;
        let counts = simulation.counts();
        Measured {
            messages_per_s: COUNTED * deliveries / simulation.measured_ns() as f64 * 1e9,
            contention: locks.contention() * 100.0,
            hold_us: locks.mean_hold_ns() / 1e3,
            wait_us: locks.mean_wait_ns() / 1e3,
            schedules: counts.schedules as f64 / deliveries,
            requests: (locks.acquisitions + locks.failed_tries) as f64 / deliveries,
            length: simulation.lengths().mean(),
            socket_waits: counts.socket_waits as f64 / deliveries,
            segments: counts.segments as f64 / deliveries,
            waits_for_room: counts.waits_for_room as f64 / deliveries,
        }
    }

    pub fn row(&self) -> String {
        format!(
            "{:.0},{:.2},{:.2},{:.2},{:.3},{:.3},{:.1},{:.4},{:.3}",
            self.messages_per_s,
            self.contention,
            self.hold_us,
            self.wait_us,
            self.schedules,
            self.requests,
            self.length,
            self.socket_waits,
            self.segments
        )
    }

    /// The mean of several runs.
    pub fn mean(runs: &[Measured]) -> Measured {
        let mean = |of: fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Measured {
            messages_per_s: mean(|run| run.messages_per_s),
            contention: mean(|run| run.contention),
            hold_us: mean(|run| run.hold_us),
            wait_us: mean(|run| run.wait_us),
            schedules: mean(|run| run.schedules),
            requests: mean(|run| run.requests),
            length: mean(|run| run.length),
            socket_waits: mean(|run| run.socket_waits),
            segments: mean(|run| run.segments),
            waits_for_room: mean(|run| run.waits_for_room),
        }
    }
}

/// The root of the mean square of the logarithms of ours over the targets, by scheduler.
pub fn distance(measured: &[Measured; LAYOUTS.len()]) -> f64 {
    let of_locks = measured.iter().zip(TARGETS).flat_map(|(ours, targets)| {
        let ours = [ours.contention, ours.hold_us, ours.wait_us];
        ours.into_iter().zip(targets)
    });
    let all = of_locks.chain([(measured[0].messages_per_s, MESSAGES_PER_S)]);
    let squares: Vec<f64> = all
        .map(|(ours, target)| (ours / target).ln().powi(2))
        .collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}
