//! Early tasks and abbreviated quanta (`bpf/early.bpf.h`).

use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{LONGEST_WAIT_NS, OVERDUE_NS, Options, Queues, Scheduler};

use crate::cgroups::Group;
use crate::hogs::{Hog, used_ns};
use crate::world::{HYBRID, WHOLE, base, check_shares, hog, hogs, place, settle};

/// Time in which the scheduler learns that a task sleeps.
const LEARNS: Duration = Duration::from_secs(2);

/// Clients that compute share as exactly as without early tasks.
pub fn hogs_share() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&HYBRID)?;
    let _hogs = hogs(&scheduler, &[(1, 300), (2, 200), (3, 100)])?;
    settle();
    check_shares(&scheduler, &[(1, 3.0), (2, 2.0), (3, 1.0)], 3, 3.0)
}

/// A task that wants 2 ms in 10 gets them beside four hogs of its own client. (In the order of
/// progress it would get 2 ms in a quantum and 8 ms.)
pub fn inside_a_client() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&HYBRID)?;
    let _first = hog(&scheduler, 1, &[base(100)])?;
    let others = [(); 3].map(|()| Hog::start());
    for other in &others {
        scheduler.give(1, other.pid())?;
    }
    let sleeper = Hog::bursts(2, 8);
    scheduler.give(1, sleeper.pid())?;
    thread::sleep(LEARNS);
    let before = used_ns(sleeper.pid());
    thread::sleep(Duration::from_secs(2));
    let used_ms = (used_ns(sleeper.pid()) - before) / 1_000_000;
    eprintln!("    {used_ms} ms in 2 s");
    match used_ms {
        360.. => Ok(()),
        _ => Err(format!("{used_ms} ms of 400").into()),
    }
}

/// Clients that compute and sleep in turn get no more than they are due beside a hog with as
/// many tickets. Each of these would want more than half.
pub fn adversaries() -> Result<(), Failed> {
    for (use_ms, sleep_ms) in [(19, 1), (60, 20), (200, 100)] {
        let scheduler = Scheduler::load(&HYBRID)?;
        let adversary = Hog::bursts(use_ms, sleep_ms);
        place(&scheduler, 1, &[base(100)], &adversary)?;
        let _hog = hog(&scheduler, 2, &[base(100)])?;
        thread::sleep(LEARNS);
        let nodes = [1, 2];
        let received = crate::world::received(&scheduler, &nodes, Duration::from_secs(4))?;
        let share = received[0] / (received[0] + received[1]);
        eprintln!("    {use_ms} ms and {sleep_ms} ms: {share:.3}");
        // The bound of leads and a quantum, in four seconds.
        if share > 0.5 + 0.12 / 4.0 {
            return Err(format!("{use_ms} ms and {sleep_ms} ms: {share:.3}").into());
        }
    }
    Ok(())
}

/// The same inside a control group: tasks that compute and sleep in turn, and a hog for each of them.
pub fn adversaries_inside_a_group() -> Result<(), Failed> {
    let cpus = thread::available_parallelism()?.get();
    for (use_ms, sleep_ms) in [(2, 1), (19, 1), (60, 20), (200, 100)] {
        let scheduler = Scheduler::load(&WHOLE)?;
        let group = Group::top("a", 100)?;
        let hogs: Result<Vec<Hog>, Failed> = (0..cpus).map(|_| group.hog()).collect();
        let hogs = hogs?;
        let adversaries: Vec<Hog> = (0..cpus).map(|_| Hog::bursts(use_ms, sleep_ms)).collect();
        for adversary in &adversaries {
            group.add(adversary)?;
        }
        let all_ns = |programs: &[Hog]| programs.iter().map(|hog| used_ns(hog.pid())).sum::<u64>();
        let both_ns = || [all_ns(&adversaries), all_ns(&hogs)];
        let share = share_of_two(&scheduler, both_ns, Duration::from_secs(16))?;
        eprintln!("    {use_ms} ms and {sleep_ms} ms: {share:.3}");
        // A task is due its part of the tasks that compete on average (`bpf/lead.bpf.h`), and all
        // CPUs are used. So while adversaries sleep, they and the hogs are due more.
        let asleep = share * sleep_ms as f64 / use_ms as f64;
        let due = 1.0 / (2.0 - asleep);
        // In sixteen seconds: the bound of leads and a quantum at the end, and two quanta by which it
        // may be behind at the beginning.
        if share > due + (0.12 + 0.04) / 16.0 {
            return Err(format!("{use_ms} ms and {sleep_ms} ms: {share:.3}").into());
        }
    }
    Ok(())
}

/// The first one's part of what two receive together in this time, once windows are filled.
fn share_of_two(
    scheduler: &Scheduler,
    both_ns: impl Fn() -> [u64; 2],
    time: Duration,
) -> Result<f64, Failed> {
    thread::sleep(LEARNS);
    let before_ns = both_ns();
    thread::sleep(time);
    let now_ns = both_ns();
    let [used_a, used_b] = [0, 1].map(|index| now_ns[index] - before_ns[index]);
    match scheduler.failure() {
        Some(failure) => Err(failure.into()),
        None => Ok(used_a as f64 / (used_a + used_b) as f64),
    }
}

/// The same in control groups, where a third group naps: it leaves most of its due to the others, so
/// each of these is far ahead of its own due. One adversary and one hog for each CPU.
pub fn adversaries_in_groups() -> Result<(), Failed> {
    let cpus = thread::available_parallelism()?.get();
    for (use_ms, sleep_ms) in [(19, 1), (60, 20), (200, 100)] {
        let scheduler = Scheduler::load(&WHOLE)?;
        let [a, b, c] = ["a", "b", "c"].map(|name| Group::top(name, 100));
        let (a, b, c) = (a?, b?, c?);
        let naps = Hog::bursts(1, 5);
        c.add(&naps)?;
        let mut programs = Vec::new();
        for _ in 0..cpus {
            programs.extend([Hog::bursts(use_ms, sleep_ms), b.hog()?]);
            a.add(&programs[programs.len() - 2])?;
        }
        let share = share_of_two(
            &scheduler,
            || [a.used_ns(), b.used_ns()],
            Duration::from_secs(4),
        )?;
        eprintln!("    {use_ms} ms and {sleep_ms} ms: {share:.3}");
        // The bound of leads and a quantum, in four seconds.
        if share > 0.5 + 0.12 / 4.0 {
            return Err(format!("{use_ms} ms and {sleep_ms} ms: {share:.3}").into());
        }
    }
    Ok(())
}

/// Two programs of a group take turns by the clock, so that a hog of an equal group runs, and does not
/// wait, whenever one of them wakes. They want 0.95. On one CPU they gain some 4 %: each time that both
/// sleep, the present pass becomes the hog's (`bpf/order.bpf.h`), and their debt shrinks.
pub fn alternating_adversaries() -> Result<(), Failed> {
    let cpus = thread::available_parallelism()?.get();
    let scheduler = Scheduler::load(&WHOLE)?;
    let (a, b) = (Group::top("a", 100)?, Group::top("b", 100)?);
    let mut programs = Vec::new();
    for _ in 0..cpus {
        let turns = [Hog::in_periods(19, 40, 0), Hog::in_periods(19, 40, 20)];
        for program in turns {
            a.add(&program)?;
            programs.push(program);
        }
        programs.push(b.hog()?);
    }
    // In four seconds the share differs by 0.03 from run to run.
    let share = share_of_two(
        &scheduler,
        || [a.used_ns(), b.used_ns()],
        Duration::from_secs(16),
    )?;
    eprintln!("    {share:.3}");
    let gain = if cpus == 1 { 0.04 } else { 0.0 };
    match share > 0.5 + gain + 0.12 / 4.0 {
        true => Err(format!("{share:.3}").into()),
        false => Ok(()),
    }
}

/// A task that wants 2 ms in 10 gets them beside two hogs for each CPU in its own control group,
/// although another group naps and leaves most of its due to this one.
pub fn inside_a_group() -> Result<(), Failed> {
    let cpus = thread::available_parallelism()?.get();
    let scheduler = Scheduler::load(&WHOLE)?;
    let (group, other) = (Group::top("a", 100)?, Group::top("b", 1_000)?);
    let naps = Hog::bursts(1, 3);
    other.add(&naps)?;
    let hogs: Result<Vec<Hog>, Failed> = (0..2 * cpus).map(|_| group.hog()).collect();
    let _hogs = hogs?;
    let sleeper = Hog::bursts(2, 8);
    group.add(&sleeper)?;
    thread::sleep(LEARNS);
    let before = used_ns(sleeper.pid());
    thread::sleep(Duration::from_secs(2));
    let used_ms = (used_ns(sleeper.pid()) - before) / 1_000_000;
    if let Some(failure) = scheduler.failure() {
        return Err(failure.into());
    }
    eprintln!("    {used_ms} ms in 2 s");
    match used_ms {
        320.. => Ok(()),
        _ => Err(format!("{used_ms} ms of 400").into()),
    }
}

/// A client that forks one short process after another gains nothing.
pub fn relay() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&HYBRID)?;
    let relay = Hog::relay(5);
    place(&scheduler, 1, &[base(100)], &relay)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    settle();
    check_shares(&scheduler, &[(1, 1.0), (2, 1.0)], 4, 6.0)
}

/// On three CPUs: shares of clients that compute, of which one is worth more than a CPU, and a
/// sleeper beside the hog of its own client.
pub fn on_three() -> Result<(), Failed> {
    let options = Options {
        queues: Queues::Cpu,
        ..HYBRID
    };
    let scheduler = Scheduler::load(&options)?;
    let _hogs = hogs(&scheduler, &[(1, 100), (2, 200), (3, 300), (4, 600)])?;
    let sleeper = Hog::bursts(2, 8);
    scheduler.give(1, sleeper.pid())?;
    thread::sleep(LEARNS);
    let before = used_ns(sleeper.pid());
    check_shares(
        &scheduler,
        &[(1, 1.0), (2, 2.0), (3, 3.0), (4, 3.0)],
        3,
        4.0,
    )?;
    let used_ms = (used_ns(sleeper.pid()) - before) / 1_000_000;
    eprintln!("    {used_ms} ms in 3 s");
    match used_ms {
        480.. => Ok(()),
        _ => Err(format!("{used_ms} ms of 600").into()),
    }
}

/// The longest wait of an overdue task: it is found by a look that happens once a second.
pub const OVERDUE: Duration = Duration::from_nanos(OVERDUE_NS + 2_000_000_000);

/// Checks that no process that always wants to run pauses for longer than this.
pub fn check_pauses(
    scheduler: &Scheduler,
    hogs: &[&Hog],
    time: Duration,
    most: Duration,
) -> Result<(), Failed> {
    let begin = Instant::now();
    let mut runs: Vec<(u64, Instant)> = hogs.iter().map(|_| (0, begin)).collect();
    let mut longest = Duration::ZERO;
    while begin.elapsed() < time {
        thread::sleep(Duration::from_millis(50));
        if let Some(failure) = scheduler.failure() {
            return Err(failure.into());
        }
        for (hog, (used, since)) in hogs.iter().zip(&mut runs) {
            let now = used_ns(hog.pid());
            if std::mem::replace(used, now) != now {
                *since = Instant::now();
            }
            longest = longest.max(since.elapsed());
        }
    }
    eprintln!("    paused for {longest:?} at most");
    match longest <= most {
        true => Ok(()),
        false => Err(format!("paused for {longest:?}").into()),
    }
}

/// A hog with hardly any tickets, whose client moves its pass early again and again while other
/// clients' tickets come and go: it waits no longer than any task may.
pub fn waits_beside_own_client() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&HYBRID)?;
    let _others = hogs(&scheduler, &[(1, 1_000)])?;
    let comes_and_goes = Hog::bursts(3, 30);
    place(&scheduler, 3, &[base(1_000)], &comes_and_goes)?;
    let poor = hog(&scheduler, 2, &[base(1)])?;
    let early = Hog::bursts(1, 3_000);
    scheduler.give(2, early.pid())?;
    let most = Duration::from_nanos(LONGEST_WAIT_NS) + Duration::from_secs(2);
    check_pauses(&scheduler, &[&poor], Duration::from_secs(14), most)
}

/// A hog with hardly any tickets beside a client that has all others, whose tasks are always
/// early: it gets a turn when it is overdue.
pub fn waits_beside_early_client() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&HYBRID)?;
    let early = [(); 8].map(|()| Hog::bursts(2, 8));
    for task in &early {
        place(&scheduler, 1, &[base(100_000)], task)?;
    }
    thread::sleep(LEARNS);
    let poor = hog(&scheduler, 2, &[base(1)])?;
    check_pauses(&scheduler, &[&poor], Duration::from_secs(16), OVERDUE)
}

/// A task that wants a ninth of the CPU gets it at once beside a hog of a group with four times as
/// many tickets: its own group is due a fifth. What it uses out of order adds up to no debt.
pub fn short_wakes() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&WHOLE)?;
    let (hogs, group) = (Group::top("a", 400)?, Group::top("b", 100)?);
    let _hog = hogs.hog()?;
    let sleeper = Hog::bursts(1, 8);
    group.add(&sleeper)?;
    let most = Duration::from_millis(250);
    check_pauses(&scheduler, &[&sleeper], Duration::from_secs(25), most)
}
