//! `demo --slots`: a controller, a gang and compile jobs, with slots and without.
//!
//! ```text
//!   part        how Linux schedules a part's programs, and whether this user may
//!   players     the programs of a part, each a process
//!   house       a daemon of the demo's own, with an open timetable
//!   summary     the results, and which promises held
//!   show        the printed results
//! ```

mod house;
mod part;
mod players;
mod show;
mod summary;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use prorata_load::Window;
use prorata_slots::now_ns;
use prorata_stage::{cpu_ticks, own_cpus};
use prorata_user::cpu_time_ns;

use self::house::House;
use self::part::Part;
use self::players::{JOBS, Players};
use self::summary::{Outcome, Results, Summary};
use crate::args::daemon::DemoArgs;
use crate::output;
use crate::terminal::ProgressLine;
use crate::wrapper::signals::{CLEARING, Interruption};

/// Time for all programs of a part to start and find their CPUs. It is not measured.
const WARM_UP_NS: u64 = 1_500_000_000;

/// A slot.
const SLOT_NS: u64 = 5_000_000;

/// Slots of a period of the table: one for the controller, two for the gang, and one more.
const COLUMNS: u32 = 4;

/// Why a demo measured nothing, and what to do.
const TOO_BUSY: &str = "this machine is too busy for a demo, try again later";

/// Between two looks for a signal.
const LOOK: Duration = Duration::from_millis(20);

/// Two samples are of the same time if they are not further apart.
const SAME_TIME_NS: u64 = 100_000;

/// How often samples are taken for that.
const MOST_SAMPLES: u32 = 100;

pub fn demo(args: &DemoArgs) -> Result<ExitCode> {
    let mut interruption = Interruption::block(&CLEARING)?;
    let cpus = own_cpus().context("cannot find out our CPUs")?;
    ensure!(
        cpus.len() >= 2,
        "this demo shows threads that run at the same time, so it needs two CPUs, and this process \
         may use one: run `prorata demo` without --slots"
    );
    let progress = ProgressLine::new();
    if !args.format.json {
        show::introduction(&cpus, args.seconds)?;
    }
    let mut summary = Summary::new(&cpus, args.seconds);
    for part in Part::ALL {
        let outcome = match part.refusal(&cpus) {
            Some(reason) => Outcome::left_out(part, reason),
            None => {
                progress.show(&format!("{}, {} s", part.name(), args.seconds));
                let played = play(part, &cpus, args.seconds, &mut interruption);
                progress.clear();
                match played? {
                    Some(results) => Outcome::of(part, results),
                    None => return Ok(interruption.pass_on()),
                }
            }
        };
        summary.parts.push(outcome);
    }
    summary.judge();
    match args.format.json {
        true => output::json(&summary)?,
        false => show::summary(&summary)
            .iter()
            .try_for_each(|line| output::line(line))?,
    }
    Ok(match summary.all_held() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Plays a part; `None` if a signal came.
fn play(
    part: Part,
    cpus: &[u32],
    seconds: u32,
    interruption: &mut Interruption,
) -> Result<Option<Results>> {
    let mut house = match part {
        Part::Slots => Some(House::open(cpus, interruption.mask_before())?),
        _ => None,
    };
    let begin_ns = now_ns() + WARM_UP_NS;
    let window = Window {
        begin_ns,
        end_ns: begin_ns + u64::from(seconds) * 1_000_000_000,
    };
    let mut players = Players::start(part, cpus, window, house.as_mut(), interruption)?;
    let jobs = players.jobs(house.as_mut(), begin_ns)?;
    check_start(begin_ns)?;
    if !wait_until(window.begin_ns, interruption, &mut players)? {
        return Ok(None);
    }
    let (before, stolen_before_ns) = (sample(jobs)?, stolen_ns(cpus));
    let table = house.as_mut().map(House::draw).transpose()?;
    if !wait_until(window.end_ns, interruption, &mut players)? {
        return Ok(None);
    }
    let (after, stolen_after_ns) = (sample(jobs)?, stolen_ns(cpus));
    let enforcement = house.as_mut().map(House::report).transpose()?;
    let (controller, gang) = players.end()?;
    let periods = (window.end_ns - window.begin_ns) / players::PERIOD.as_nanos() as u64;
    ensure!(
        controller.periods + 1 >= periods,
        "the controller saw {} of {periods} periods: {TOO_BUSY}",
        controller.periods
    );
    ensure!(gang.barriers > 0, "the gang passed no barrier: {TOO_BUSY}");
    let jobs_ns: [u64; JOBS.len()] = std::array::from_fn(|client| after[client] - before[client]);
    ensure!(
        jobs_ns.iter().all(|ns| *ns > 0),
        "compile jobs did not run: {TOO_BUSY}"
    );
    Ok(Some(Results {
        all_ns: (window.end_ns - window.begin_ns) * cpus.len() as u64,
        controller,
        gang,
        jobs_ns,
        stolen_ns: stolen_after_ns.saturating_sub(stolen_before_ns),
        table,
        enforcement,
    }))
}

/// Fails once the measured time has begun.
fn check_start(begin_ns: u64) -> Result<()> {
    ensure!(
        now_ns() < begin_ns,
        "the programs took longer than {} to start: {TOO_BUSY}",
        output::milliseconds(WARM_UP_NS)
    );
    Ok(())
}

/// False if a signal came before the time.
fn wait_until(
    until_ns: u64,
    interruption: &mut Interruption,
    players: &mut Players,
) -> Result<bool> {
    loop {
        if interruption.signal().is_some() {
            return Ok(false);
        }
        let left_ns = until_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return Ok(true);
        }
        players.check()?;
        std::thread::sleep(LOOK.min(Duration::from_nanos(left_ns)));
    }
}

/// CPU time of the jobs of each client, at the same time.
fn sample(jobs: [u32; JOBS.len()]) -> Result<[u64; JOBS.len()]> {
    for _ in 0..MOST_SAMPLES {
        let begin_ns = now_ns();
        let used = jobs.map(cpu_time_ns);
        if now_ns() - begin_ns <= SAME_TIME_NS
            && let [Some(first), Some(second)] = used
        {
            return Ok([first, second]);
        }
    }
    bail!("the jobs have ended early, or were not sampled at the same time: {TOO_BUSY}")
}

/// Time in which the host of a virtual machine ran something else on these CPUs (proc_stat(5)); 0
/// where there is none.
fn stolen_ns(cpus: &[u32]) -> u64 {
    /// USER_HZ is 100 everywhere.
    const TICK_NS: u64 = 10_000_000;
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stolen_ticks(&text, cpus) * TICK_NS
}

fn stolen_ticks(stat: &str, cpus: &[u32]) -> u64 {
    /// The place of the number, after the CPU's name.
    const STEAL: usize = 7;
    cpu_ticks(stat, cpus, STEAL..STEAL + 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_that_of_the_named_cpus() {
        let stat = "cpu  9 9 9 9 9 9 9 600 9 9\ncpu0 1 2 3 4 5 6 7 100 9 0\ncpu1 1 2 3 4 5 6 7 200 9 0\n\
                    cpu10 1 2 3 4 5 6 7 300 9 0\nintr 5 6 7\n";
        let of = |cpus: &[u32]| stolen_ticks(stat, cpus);
        assert_eq!([of(&[0]), of(&[1, 10]), of(&[2])], [100, 500, 0]);
    }
}
