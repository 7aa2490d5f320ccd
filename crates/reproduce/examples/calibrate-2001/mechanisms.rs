//! What each mechanism does to the requests for each message, from two CPUs to eight.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use prorata_reproduce::workload::{Chat, Preparation, Socket, SocketBuffer};
use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, SchedulerCosts, WritersWake};

use crate::Outcome;
use crate::candidate::{Candidate, LAYOUTS, Measured, Setup, Tenth};
use crate::stages::{SEEDS_OF_RUNS, rows};

/// Sizes of the machine.
const CPUS: [u32; 3] = [2, 4, 8];

/// The mechanisms, each with how a setup gets it from another.
const MECHANISMS: [(&str, Mechanism); 6] = [
    ("all messages", |to, from| to.one_in = from.one_in),
    ("buffer of the source", |to, from| {
        to.chat.socket = from.chat.socket;
    }),
    ("socket locks", |to, from| {
        to.costs.socket_locks = from.costs.socket_locks;
    }),
    ("segments", |to, from| {
        to.costs.segment = from.costs.segment;
        to.costs.wakeup = from.costs.wakeup;
    }),
    ("caches of 2 MiB", |to, from| {
        to.costs.cached_tasks = from.costs.cached_tasks;
    }),
    ("preparation", |to, from| {
        to.chat.preparation = from.chat.preparation;
    }),
];

type Mechanism = fn(&mut Setup, &Setup);

/// The model before these mechanisms, at the optimum that it was calibrated to.
fn former() -> Outcome<Setup> {
    let socket = SocketBuffer {
        message_bytes: 256.try_into()?,
        buffer_bytes: SocketBuffer::DEFAULT_BYTES,
    };
    Ok(Setup {
        chat: Chat {
            socket: Socket::Buffer(socket),
            write: Time(1_000),
            read: Time(500),
            preparation: Preparation::Sleeps,
        },
        costs: SchedulerCosts {
            context_switch: Time(40_000),
            cache_refill: Time(40_000),
            wakeup: Time(30_000),
            examine: Time(680),
            ..SchedulerCosts::default()
        },
        writers: WritersWake::AThirdFree,
        one_in: 10,
    })
}

/// What time slices do to the requests for each message: under each scheduler, with ticks of
/// 10 ms and without any. Then a waking thread is never better than the thread that runs.
pub fn slices(directory: &Path) -> Outcome<()> {
    let optima = rows(&directory.join("optima.csv"))?;
    let best = optima.first().ok_or("optima.csv: there is no optimum")?;
    let mut file = File::create(directory.join("slices.csv"))?;
    let columns = Measured::COLUMNS;
    writeln!(
        file,
        "tick_ms,scheduler,cpus,{columns},waits_for_room_per_message"
    )?;
    for (name, tick) in [("10", Time::from_ms(10)), ("none", Time::from_secs(3_600))] {
        let mut setup = Candidate::parse(best)?.setup();
        setup.costs.tick = tick;
        for layout in LAYOUTS {
            for cpus in CPUS {
                let measured = setup.measure(((20, 200), layout), cpus, SEEDS_OF_RUNS)?;
                let (of, room) = (layout.title(), measured.waits_for_room);
                writeln!(file, "{name},{of},{cpus},{},{room:.5}", measured.row())?;
            }
        }
    }
    Ok(())
}

/// The course of runs under DSS on eight CPUs: of the former model, of the same with locks of
/// sockets, and of the first optimum.
pub fn course(directory: &Path) -> Outcome<()> {
    let optima = rows(&directory.join("optima.csv"))?;
    let best = optima.first().ok_or("optima.csv: there is no optimum")?;
    let (all, former) = (Candidate::parse(best)?.setup(), former()?);
    let mut locks = former.clone();
    locks.costs.socket_locks = true;
    let mut file = File::create(directory.join("course.csv"))?;
    writeln!(file, "mechanisms,tenth,ms,requests_per_send")?;
    for (name, setup) in [
        ("none", former),
        ("socket locks alone", locks),
        ("all", all),
    ] {
        let load = ((20, 200), LayoutName::GlobalList);
        let runs = (1..=SEEDS_OF_RUNS).map(|seed| setup.course(load, 8, seed));
        let runs: Vec<Vec<Tenth>> = runs.collect::<Outcome<_>>()?;
        for tenth in 0..10 {
            let mean = |of: fn(&Tenth) -> f64| {
                let all = runs.iter().filter_map(|run| run.get(tenth)).map(of);
                all.sum::<f64>() / runs.len() as f64
            };
            let (ms, requests) = (mean(|tenth| tenth.ms), mean(|tenth| tenth.requests));
            writeln!(file, "{name},{},{ms:.0},{requests:.3}", tenth + 1)?;
        }
    }
    Ok(())
}

/// Each mechanism added to the former model alone, and each taken away from the first
/// optimum, under DSS.
pub fn write(directory: &Path) -> Outcome<()> {
    let optima = rows(&directory.join("optima.csv"))?;
    let best = optima.first().ok_or("optima.csv: there is no optimum")?;
    let (all, former) = (Candidate::parse(best)?.setup(), former()?);
    let mut setups = vec![("none".to_owned(), former.clone())];
    for (name, gets) in MECHANISMS {
        let mut alone = former.clone();
        gets(&mut alone, &all);
        setups.push((format!("{name} alone"), alone));
    }
    setups.push(("all".to_owned(), all.clone()));
    for (name, gets) in MECHANISMS {
        let mut without = all.clone();
        gets(&mut without, &former);
        setups.push((format!("all but {name}"), without));
    }
    let mut file = File::create(directory.join("mechanisms.csv"))?;
    let columns = Measured::COLUMNS;
    writeln!(file, "mechanisms,cpus,{columns},growth_of_requests")?;
    for (name, setup) in setups {
        let mut on_two = None;
        for cpus in CPUS {
            let load = ((20, 200), LayoutName::GlobalList);
            let measured = setup.measure(load, cpus, SEEDS_OF_RUNS)?;
            let growth = measured.requests / *on_two.get_or_insert(measured.requests);
            writeln!(file, "{name},{cpus},{},{growth:.2}", measured.row())?;
        }
    }
    Ok(())
}
