//! The threads by which CPUs look at the timetable (`src/scheduler/boundaries.rs`).

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_core::cpu_limit::CpuLimit;
use prorata_kernel::scheduler::{InSlot, Scheduler, possible_cpus};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::hogs::{Hog, wait_until};
use crate::slots::{COLUMNS, SLOT_NS, Table, check_row, tallies};
use crate::world::{HYBRID, base, hog, hogs, judge, received, settle};

/// The same as under PREEMPT_RT, where the kernel has no timer: slots begin and end in time, a change of
/// the table has its effect, and a closed table leaves nothing behind.
pub fn without_timer() -> Result<(), Failed> {
    let scheduler = Scheduler::load_without_timer(&HYBRID)?;
    let _hogs = hogs(&scheduler, &[(1, 100), (2, 900)])?;
    let mut more = Vec::new();
    for _ in 0..possible_cpus() {
        more.push(hog(&scheduler, 2, &[base(900)])?);
    }
    if scheduler
        .set_limit(1, CpuLimit::from_thousandths(200))
        .is_ok()
    {
        return Err("a limit without the timer".into());
    }
    let rest = f64::from(possible_cpus()) - 0.5;
    let mut table = Table::open(&scheduler)?;
    table.name(1, InSlot::Node(1))?;
    settle();
    for columns in [COLUMNS / 2, 0, COLUMNS / 2] {
        table.claim(0, columns, 1);
        table.publish()?;
        settle();
        if columns > 0 {
            let times = table.received(&[1, 2], 20)?;
            judge(&times, &[0.5, rest], 2.0, 1.4e9)?;
        }
    }
    let row = &tallies(&scheduler)[0];
    check_row(row, 100)?;
    // In the middle of a slot at the latest: an interrupt, a wake and a switch take less.
    if row.late_ns(99) > SLOT_NS / 2 {
        return Err(format!("slots begin late: {row:?}").into());
    }
    scheduler.close_timetable()?;
    none_is_left()?;
    settle();
    let times = received(&scheduler, &[1, 2], Duration::from_secs(2))?;
    let all = f64::from(possible_cpus());
    judge(&times, &[0.1 * all, 0.9 * all], 3.0, 1.4e9)
}

/// While a real-time program has a CPU for itself, a change of that CPU's row does not wait for it. Once
/// the program gives way, the CPU's slots come.
pub fn beside_a_higher_class() -> Result<(), Failed> {
    [Scheduler::load, Scheduler::load_without_timer]
        .into_iter()
        .try_for_each(|load| beside_a_taken_cpu(&load(&HYBRID)?))
}

/// How long the program has the CPU. The kernel's own threads wait, too, and after 21 s it calls that a
/// stall.
const TAKEN: Duration = Duration::from_secs(3);

fn beside_a_taken_cpu(scheduler: &Scheduler) -> Result<(), Failed> {
    let mut more = hogs(scheduler, &[(1, 100), (2, 900)])?;
    for _ in 0..possible_cpus() {
        more.push(hog(scheduler, 2, &[base(900)])?);
    }
    let last = possible_cpus() - 1;
    let mut table = Table::open(scheduler)?;
    table.name(1, InSlot::Node(1))?;
    let highest = Hog::start();
    bind(Pid::from_raw(highest.pid() as i32), last)?;
    // This thread must not wait for that CPU itself. Its children are unbound.
    let unbound = sched_getaffinity(None)?;
    bind(None, 0)?;
    let published = publish_beside(&mut table, &highest, last);
    sched_setaffinity(None, &unbound)?;
    published?;
    drop(highest);
    if !wait_until(|| scheduler.slot_tallies()[last as usize].ran >= 30) {
        return Err("the CPU's slots do not come".into());
    }
    scheduler.close_timetable()?;
    none_is_left()
}

/// Changes a row three times while a program takes the row's CPU.
fn publish_beside(table: &mut Table<'_>, highest: &Hog, row: u32) -> Result<(), Failed> {
    let is_taken = AtomicBool::new(true);
    thread::scope(|scope| {
        set_class(highest, libc::SCHED_FIFO, 50)?;
        scope.spawn(|| {
            thread::sleep(TAKEN);
            is_taken.store(false, Ordering::Release);
            set_class(highest, libc::SCHED_OTHER, 0).expect("it lives");
        });
        for columns in 1..4 {
            table.claim(row, columns, 1);
            table.publish()?;
        }
        match is_taken.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err("changes waited for the CPU".into()),
        }
    })
}

/// Binds a process, or the calling thread, to a CPU.
fn bind(process: Option<Pid>, cpu: u32) -> Result<(), Failed> {
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    Ok(sched_setaffinity(process, &only)?)
}

fn set_class(hog: &Hog, class: libc::c_int, priority: libc::c_int) -> Result<(), Failed> {
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameter` outlives the call, which only reads it.
    match unsafe { libc::sched_setscheduler(hog.pid() as i32, class, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

/// Fails if a thread that looks at a row outlives its table for long.
fn none_is_left() -> Result<(), Failed> {
    match wait_until(|| !has_boundary_thread()) {
        true => Ok(()),
        false => Err("a thread is left".into()),
    }
}

fn has_boundary_thread() -> bool {
    let tasks = fs::read_dir("/proc/self/task").expect("there is /proc");
    let names = tasks
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")));
    names.flatten().any(|name| name.starts_with("boundary-"))
}
