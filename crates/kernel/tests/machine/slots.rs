//! Slots of a timetable (2005; `bpf/claim.bpf.h`). The checks hold on any number of CPUs.

use std::fs;
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_core::cpu_limit::CpuLimit;
use prorata_core::slots::geometry::{Geometry, Tick};
use prorata_core::slots::word::Word;
use prorata_kernel::replay::Replay;
use prorata_kernel::scheduler::{
    BY_CLAIM, Decision, DecisionKind, GIFT, InSlot, Options, Queues, RowTally, Scheduler,
    possible_cpus,
};

use crate::hogs::{Hog, uptime};
use crate::limits::check_limit;
use crate::world::{
    HYBRID, QUANTUM_NS, STRIDE, TICK_NS, WHOLE, base, hog, hogs, judge, place, received, settle,
};

pub const SLOT_NS: u64 = 10_000_000;
pub const COLUMNS: u32 = 10;
const PERIOD_NS: u64 = SLOT_NS * COLUMNS as u64;

fn now_ns() -> u64 {
    uptime().as_nanos() as u64
}

/// When a process began, as `/proc` has it.
fn started(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let rest = &stat[stat.rfind(')').expect("it has a name") + 2..];
    let field = rest.split_whitespace().nth(19).expect("there are enough");
    field.parse().expect("a number")
}

/// A table of all CPUs, and the schedulees by their numbers.
pub struct Table<'a> {
    scheduler: &'a Scheduler,
    geometry: Geometry,
    words: Vec<u64>,
}

impl<'a> Table<'a> {
    pub fn open(scheduler: &'a Scheduler) -> Result<Self, Failed> {
        let cpus: Vec<u32> = (0..possible_cpus()).collect();
        let geometry = Geometry::new(cpus.len() as u32, COLUMNS, SLOT_NS, now_ns())?;
        scheduler.open_timetable(&geometry, &cpus)?;
        Ok(Self {
            scheduler,
            geometry,
            words: vec![0; geometry.cells()],
        })
    }

    pub fn name(&self, number: u32, schedulee: InSlot) -> Result<(), Failed> {
        match self.scheduler.name_schedulee(number, schedulee)? {
            true => Ok(()),
            false => Err(format!("{schedulee:?} does not exist").into()),
        }
    }

    /// The first columns of a row are a schedulee's, and the others are unclaimed.
    pub fn claim(&mut self, row: u32, columns: u32, schedulee: u32) {
        for column in 0..COLUMNS {
            let word = Word {
                schedulee,
                distance: 1,
                expiry: 0,
            };
            let index = (row * COLUMNS + column) as usize;
            self.words[index] = if column < columns { word.pack() } else { 0 };
        }
    }

    /// What nodes receive in so many periods, from the middle of the unclaimed columns on: a turn that
    /// goes on from slot to slot is charged at its end.
    pub fn received(&self, nodes: &[u32], periods: u32) -> Result<Vec<f64>, Failed> {
        thread::sleep(self.until_middle(0));
        let mut sums = vec![0.0; nodes.len()];
        // A failure is to tell when a node received too much.
        let mut firsts_ms = Vec::new();
        for _ in 0..periods {
            let times = received(self.scheduler, nodes, self.until_middle(PERIOD_NS / 2))?;
            sums.iter_mut()
                .zip(&times)
                .for_each(|(sum, time)| *sum += time);
            firsts_ms.push((times[0] / 1e6).round());
        }
        eprintln!("    in each period, the first: {firsts_ms:?} ms");
        Ok(sums)
    }

    /// From now to the first middle of unclaimed columns that is at least so far ahead.
    fn until_middle(&self, least_ns: u64) -> Duration {
        const MIDDLE_NS: u64 = PERIOD_NS * 3 / 4;
        let from_ns = now_ns() - self.geometry.begin_ns(0) + least_ns;
        let wait_ns = (PERIOD_NS + MIDDLE_NS - from_ns % PERIOD_NS) % PERIOD_NS;
        Duration::from_nanos(least_ns + wait_ns)
    }

    /// Puts the claims into force, and waits until they are.
    pub fn publish(&self) -> Result<Tick, Failed> {
        let from = self.scheduler.publish_slots(&self.words, 0)?;
        thread::sleep(Duration::from_nanos(2 * SLOT_NS));
        Ok(from)
    }
}

pub fn tallies(scheduler: &Scheduler) -> Vec<RowTally> {
    let rows = scheduler.slot_tallies();
    for row in rows.iter().filter(|row| row.begun > 0) {
        eprintln!(
            "    CPU {}: {} slots, {} missed, {} ran, {} idle, {} lost, {} ns stolen; late {} {} {} ns",
            row.cpu,
            row.begun,
            row.missed,
            row.ran,
            row.idle,
            row.lost,
            row.stolen_ns,
            row.late_ns(50),
            row.late_ns(99),
            row.late.longest_ns
        );
    }
    rows
}

/// None of a row's slots was lost, and so many at least had their schedulee run.
pub fn check_row(row: &RowTally, least: u64) -> Result<(), Failed> {
    match row.lost + row.missed == 0 && row.ran >= least {
        true => Ok(()),
        false => Err(format!("{row:?}").into()),
    }
}

/// A client with a tenth of the tickets claims half of the first CPU, and gets that; the others get the
/// rest. Processes and threads are schedulees, too.
pub fn claims() -> Result<(), Failed> {
    for options in [STRIDE, HYBRID] {
        for kind in 0..3 {
            let scheduler = Scheduler::load(&options)?;
            let mut hogs = hogs(&scheduler, &[(1, 100), (2, 900)])?;
            for _ in 0..possible_cpus() {
                let more = Hog::start();
                scheduler.give(2, more.pid())?;
                hogs.push(more);
            }
            let pid = hogs[0].pid();
            let schedulee = match kind {
                0 => InSlot::Node(1),
                1 => InSlot::Process {
                    pid,
                    started: started(pid),
                },
                _ => InSlot::Thread {
                    tid: pid,
                    started: started(pid),
                },
            };
            let mut table = Table::open(&scheduler)?;
            table.name(1, schedulee)?;
            table.claim(0, COLUMNS / 2, 1);
            // The turns that are owed to new processes come first.
            settle();
            table.publish()?;
            settle();
            let times = table.received(&[1, 2], 20)?;
            check_row(&tallies(&scheduler)[0], 100)?;
            let rest = f64::from(possible_cpus()) - 0.5;
            judge(&times, &[0.5, rest], 1.0, 1.4e9)?;
        }
    }
    Ok(())
}

/// Claims within a client's part of the tickets move its service in time, and no shares. All CPUs look
/// for its tasks at the same moment.
pub fn insulation() -> Result<(), Failed> {
    for queues in [Queues::One, Queues::Cpu] {
        insulation_in(queues)?;
    }
    Ok(())
}

fn insulation_in(queues: Queues) -> Result<(), Failed> {
    let cpus = possible_cpus();
    let scheduler = Scheduler::load(&Options { queues, ..HYBRID })?;
    let mut hogs = Vec::new();
    for node in [1, 2] {
        for _ in 0..cpus {
            hogs.push(hog(&scheduler, node, &[base(100)])?);
        }
    }
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    (0..cpus).for_each(|row| table.claim(row, 2, 1));
    settle();
    table.publish()?;
    settle();
    let times = table.received(&[1, 2], 40)?;
    for row in tallies(&scheduler) {
        check_row(&row, 70)?;
    }
    judge(&times, &[1.0, 1.0], 3.0, 2.8e9)
}

/// A client that claims more than its tickets give has its next turn at most a period and two quanta
/// later than without claims, once it frees all, and then the part that its tickets are.
pub fn freed() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let _hogs = hogs(&scheduler, &[(1, 100), (2, 500), (3, 400)])?;
    let mut more = Vec::new();
    for _ in 1..possible_cpus() {
        more.push(hog(&scheduler, 2, &[base(500)])?);
        more.push(hog(&scheduler, 3, &[base(400)])?);
    }
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    table.claim(0, 5, 1);
    table.publish()?;
    thread::sleep(Duration::from_secs(3));
    table.claim(0, 0, 1);
    table.publish()?;
    // The turn before is charged by then.
    thread::sleep(Duration::from_nanos(QUANTUM_NS + TICK_NS));
    let before = scheduler.account(1)?.received_ns;
    // Its tickets give it a turn in each stride. The turns of the others end a tick late, and its own is
    // to be charged.
    let stride_ns = 10 * QUANTUM_NS / u64::from(possible_cpus());
    let longest_ns = PERIOD_NS + 2 * QUANTUM_NS + stride_ns + QUANTUM_NS + 3 * TICK_NS;
    thread::sleep(Duration::from_nanos(longest_ns));
    let after = scheduler.account(1)?.received_ns;
    eprintln!("    {} ns within {longest_ns} ns", after - before);
    if after == before {
        return Err("it is not next".into());
    }
    settle();
    let times = received(&scheduler, &[1, 2, 3], Duration::from_secs(4))?;
    judge(&times, &[1.0, 5.0, 4.0], 3.0, 2.8e9)
}

/// A gift costs its schedulee no tickets: what those give comes on top.
pub fn gifts() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let cpus = f64::from(possible_cpus());
    let mut hogs = Vec::new();
    for node in [1, 2] {
        for _ in 0..2 * possible_cpus() {
            hogs.push(hog(&scheduler, node, &[base(100)])?);
        }
    }
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    (0..possible_cpus()).for_each(|row| table.claim(row, 5, 1 | GIFT));
    table.publish()?;
    settle();
    let times = table.received(&[1, 2], 30)?;
    tallies(&scheduler);
    judge(&times, &[0.75 * cpus, 0.25 * cpus], 3.0, 2.0e9)
}

/// A limit holds in slots, too.
pub fn limited() -> Result<(), Failed> {
    for columns in [5, COLUMNS] {
        let scheduler = Scheduler::load(&STRIDE)?;
        let _hogs = hogs(&scheduler, &[(1, 100), (2, 100)])?;
        let mut table = Table::open(&scheduler)?;
        table.name(1, InSlot::Node(1))?;
        table.claim(0, columns, 1);
        scheduler.set_limit(1, CpuLimit::from_thousandths(200))?;
        table.publish()?;
        settle();
        check_limit(&scheduler, 1, 20, 3)?;
        tallies(&scheduler);
    }
    Ok(())
}

/// A schedulee that sleeps again and again runs as soon as it wakes, beside hogs that the fallback lets
/// run meanwhile: it gets a third of the time, as it uses one of three milliseconds.
pub fn wakes() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let sleeper = Hog::bursts(1, 2);
    place(&scheduler, 1, &[base(100)], &sleeper)?;
    let mut hogs = Vec::new();
    for _ in 0..2 * possible_cpus() {
        hogs.push(hog(&scheduler, 2, &[base(1000)])?);
    }
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    table.claim(0, COLUMNS, 1);
    table.publish()?;
    settle();
    let times = received(&scheduler, &[1, 2], Duration::from_secs(3))?;
    tallies(&scheduler);
    eprintln!("    {times:?}");
    // A sleep takes somewhat longer than asked for.
    let rest = 3e9 * f64::from(possible_cpus()) - times[0];
    match times[0] >= 0.28 * 3e9 && times[1] >= rest - 0.1e9 {
        true => Ok(()),
        false => Err(format!("received {times:?}").into()),
    }
}

/// A schedulee that ends leaves its slots to the fallback, and so does a table that is closed.
pub fn ends() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&HYBRID)?;
    let mut hogs = Vec::new();
    for node in [2, 3] {
        for _ in 0..possible_cpus() {
            hogs.push(hog(&scheduler, node, &[base(100)])?);
        }
    }
    let dies = hog(&scheduler, 1, &[base(100)])?;
    let (pid, started) = (dies.pid(), started(dies.pid()));
    let mut table = Table::open(&scheduler)?;
    let thread = InSlot::Thread { tid: pid, started };
    table.name(1, thread)?;
    table.claim(0, 9, 1);
    table.publish()?;
    settle();
    drop(dies);
    settle();
    if scheduler.name_schedulee(2, thread)? {
        return Err("a thread that ended has a number".into());
    }
    let times = received(&scheduler, &[2, 3], Duration::from_secs(2))?;
    judge(&times, &[1.0, 1.0], 3.0, 1.4e9)?;
    table.name(1, InSlot::Node(2))?;
    (0..possible_cpus()).for_each(|row| table.claim(row, 9, 1));
    table.publish()?;
    scheduler.close_timetable()?;
    settle();
    let times = received(&scheduler, &[2, 3], Duration::from_secs(2))?;
    match scheduler.publish_slots(&[], 0) {
        Ok(_) => Err("slots are claimed without a table".into()),
        Err(_) => judge(&times, &[1.0, 1.0], 3.0, 1.4e9),
    }
}

/// All slots of all CPUs are claimed: the kernel does not unload the scheduler, which it does after
/// thirty seconds without a turn, and others go on.
pub fn full() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&WHOLE)?;
    let mut hogs = Vec::new();
    for _ in 0..possible_cpus() {
        hogs.push(hog(&scheduler, 1, &[base(100)])?);
        hogs.push(hog(&scheduler, 2, &[base(100)])?);
    }
    let pids: Vec<u32> = hogs.iter().map(Hog::pid).collect();
    eprintln!("    the hogs of nodes 1 and 2, in turn: {pids:?}");
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    (0..possible_cpus()).for_each(|row| table.claim(row, COLUMNS, 1));
    table.publish()?;
    let times = received(&scheduler, &[1, 2], Duration::from_secs(45))?;
    tallies(&scheduler);
    eprintln!("    {times:?}");
    let all = 45e9 * f64::from(possible_cpus());
    // The turns of others are 20 ms of four seconds, of which other programs take some.
    match times[0] >= 0.85 * all && times[1] >= 0.1 / 45.0 * all {
        true => Ok(()),
        false => Err(format!("received {times:?}").into()),
    }
}

/// A CPU goes and comes back: the claims of its row are in force again.
pub fn hotplug() -> Result<(), Failed> {
    const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";
    let scheduler = Scheduler::load(&STRIDE)?;
    let _hogs = hogs(&scheduler, &[(1, 100), (2, 100), (3, 100), (4, 100)])?;
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    table.claim(1, 5, 1);
    table.publish()?;
    settle();
    fs::write(SWITCH, "0")?;
    settle();
    let gone = scheduler.slot_tallies()[1].begun;
    settle();
    if scheduler.slot_tallies()[1].begun != gone {
        return Err("slots begin on a CPU that is offline".into());
    }
    fs::write(SWITCH, "1")?;
    scheduler.look_after_slots()?;
    settle();
    settle();
    let back = &tallies(&scheduler)[1];
    match back.begun > gone + 10 && scheduler.failure().is_none() {
        true => Ok(()),
        false => Err(format!("{back:?} after {gone}").into()),
    }
}

/// Each CPU finds the words that were published for the tick, while claims change at random; each pick
/// by the timetable is of the slot's schedulee, and all others follow the core's order.
pub fn replayed() -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(&HYBRID)?;
    let cpus = possible_cpus();
    let mut programs = Vec::new();
    for node in 1..=3 {
        for _ in 0..cpus {
            programs.push(hog(&scheduler, node, &[base(100 * u64::from(node))])?);
        }
    }
    for (node, sleeper) in [(4, Hog::bursts(2, 3)), (5, Hog::bursts(1, 6))] {
        place(&scheduler, node, &[base(200)], &sleeper)?;
        programs.push(sleeper);
    }
    let mut table = Table::open(&scheduler)?;
    for node in 1..=5 {
        table.name(node, InSlot::Node(node))?;
    }
    let seed = 0x5107_5107_u64;
    eprintln!("    seed {seed:#x}");
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    // From which tick on which words are in force.
    let mut published = vec![(0, table.words.clone())];
    let mut decisions = Vec::new();
    for _ in 0..50 {
        for _ in 0..draw(2 * u64::from(cpus)) + 1 {
            let index = draw(table.words.len() as u64) as usize;
            let node = draw(6) as u32;
            let gift = if node == 2 { GIFT } else { 0 };
            let word = Word {
                schedulee: node | gift,
                distance: 1,
                expiry: 0,
            };
            table.words[index] = if node == 0 { 0 } else { word.pack() };
        }
        // As a daemon does: two boundaries later.
        let from = table.geometry.tick_at(now_ns()) + 2;
        let from = scheduler.publish_slots(&table.words, from)?;
        published.retain(|(before, _)| *before < from);
        published.push((from, table.words.clone()));
        thread::sleep(Duration::from_millis(30 + draw(80)));
        let trace = scheduler.take_decisions()?;
        if trace.lost > 0 {
            return Err(format!("{} decisions were lost", trace.lost).into());
        }
        decisions.extend(trace.decisions);
    }
    tallies(&scheduler);
    let looks = check_words(&decisions, &table.geometry, &published)?;
    eprintln!("    {looks} looks");
    if looks < 100 {
        return Err(format!("{looks} looks").into());
    }
    let is_by_claim = |told: &&Decision| told.kind == DecisionKind::Pick && told.queue == BY_CLAIM;
    let claimed = decisions.iter().filter(is_by_claim).count();
    eprintln!("    {claimed} picks of schedulees");
    if claimed < 100 {
        return Err("too few picks of schedulees".into());
    }
    judge_slots(&decisions)
}

/// Decisions that are told before one that is not allowed.
const TOLD: usize = 40;

fn judge_slots(decisions: &[Decision]) -> Result<(), Failed> {
    let mut replay = Replay::new(TICK_NS, possible_cpus());
    for (index, told) in decisions.iter().enumerate() {
        if let Err(disallowed) = replay.step(told) {
            for before in &decisions[index.saturating_sub(TOLD)..=index] {
                eprintln!("    {before:?}");
            }
            return Err(disallowed.into());
        }
    }
    eprintln!("    {} picks", replay.picks());
    match replay.picks() {
        ..100 => Err("too few picks".into()),
        100.. => Ok(()),
    }
}

/// Returns the number of looks.
fn check_words(
    decisions: &[Decision],
    geometry: &Geometry,
    published: &[(Tick, Vec<u64>)],
) -> Result<usize, Failed> {
    let looks = decisions.iter();
    let looks: Vec<&Decision> = looks
        .filter(|told| told.kind == DecisionKind::LookAtSlot)
        .collect();
    for told in &looks {
        let tick = told.early.unwrap_or(0);
        let in_force = published.iter().rev().find(|(from, _)| *from <= tick);
        let words = &in_force.expect("the first are from the beginning").1;
        let index = told.queue as usize * geometry.columns() as usize;
        let word = words[index + geometry.column(tick) as usize];
        // The distance to the next claimed slot stands in the words of unclaimed ones, too.
        if word >> 44 != told.key >> 44 || word as u32 != told.key as u32 {
            return Err(format!("{told:?} instead of {word:#x}").into());
        }
    }
    Ok(looks.len())
}
