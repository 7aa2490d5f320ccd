//! How long switches take between programs that read the clock all the time: from the last reading of
//! one to the first reading of the next.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use prorata_scenario::Scenario;
use prorata_scenario::measure::PointReport;
use prorata_scenario::plan::client_id;
use prorata_stage::{ProcessEngine, Stage, run_cast};
use rustix::time::{ClockId, clock_gettime};

use super::worker::Work;
use super::{Programs, Result, failed, interrupted, news};
use crate::reproduction::Watch;

/// A time without the CPU: the last reading before and the first one after.
type Gap = [u64; 2];

/// In a worker's file, after its progress.
const GAPS_FROM: u64 = 16;
const GAP_BYTES: usize = 16;
/// The most that a worker notes: 16 MiB.
const MOST_GAPS: u64 = 1 << 20;
/// The shortest that counts: what the clock itself takes is shorter.
const SHORTEST_NS: u64 = 500;
/// A switch takes no longer. Later, other programs have had the CPU in between.
const LONGEST_SWITCH_NS: u64 = 300_000;

/// What a worker does that reads the clock.
pub(super) fn read_clock(file: &File) -> io::Result<()> {
    let mut end = GAPS_FROM;
    let mut last_ns = now_ns();
    loop {
        let now_ns = now_ns();
        if now_ns - last_ns <= SHORTEST_NS {
            last_ns = now_ns;
            continue;
        }
        if end < GAPS_FROM + MOST_GAPS * GAP_BYTES as u64 {
            let gap = [last_ns, now_ns].map(u64::to_le_bytes);
            file.write_all_at(gap.as_flattened(), end)?;
            end += GAP_BYTES as u64;
        }
        // The write is no gap.
        last_ns = self::now_ns();
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn gaps(file: &File) -> io::Result<Vec<Gap>> {
    let length = file.metadata()?.len().saturating_sub(GAPS_FROM);
    let mut bytes = vec![0; length as usize / GAP_BYTES * GAP_BYTES];
    file.read_exact_at(&mut bytes, GAPS_FROM)?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("there are eight"));
    let gaps = bytes.chunks_exact(GAP_BYTES);
    Ok(gaps.map(|gap| [word(&gap[..8]), word(&gap[8..])]).collect())
}

/// Times of all switches in a run of a scenario, in order. `is_plain` leaves the programs to the plain
/// kernel once all have begun.
pub(crate) fn switches_ns(
    (kind, seed): (&'static ProcessEngine, u64),
    scenario: &Scenario,
    is_plain: bool,
    watch: &mut dyn Watch,
) -> Result<Vec<u64>> {
    let programs = Programs::new(scenario)?;
    let cast = programs.cast(Work::Clock)?;
    let mut look = Look {
        is_plain,
        since_ns: None,
        told_s: 0,
        watch,
    };
    run_cast(scenario, seed, kind, Some(cast), &mut look).map_err(interrupted)?;
    let since_ns = look.since_ns.unwrap_or(u64::MAX);
    let gaps = programs.0.iter().map(gaps).collect::<io::Result<Vec<_>>>();
    Ok(switches_between(&gaps.map_err(failed)?, since_ns))
}

/// Switches from each program to any other one, from some time on.
fn switches_between(gaps: &[Vec<Gap>], since_ns: u64) -> Vec<u64> {
    let mut switches = Vec::new();
    for (player, own) in gaps.iter().enumerate() {
        for &[stop, _] in own.iter().filter(|gap| gap[0] >= since_ns) {
            let others = gaps
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != player);
            let starts = others.filter_map(|(_, gaps)| {
                let next = gaps.partition_point(|&[_, start]| start < stop);
                gaps.get(next).map(|&[_, start]| start)
            });
            if let Some(start) = starts.min()
                && start - stop < LONGEST_SWITCH_NS
                && !is_back(own, stop..start)
            {
                switches.push([stop, start - stop]);
            }
        }
    }
    switches.sort_unstable();
    switches.into_iter().map(|[_, taken_ns]| taken_ns).collect()
}

/// Whether a program got the CPU back in that time; its gaps follow one another.
fn is_back(own: &[Gap], time: Range<u64>) -> bool {
    let next = own.partition_point(|&[_, back]| back < time.start);
    own.get(next).is_some_and(|&[_, back]| back < time.end)
}

/// Follows a run. Its first point is when counting begins.
struct Look<'a> {
    is_plain: bool,
    since_ns: Option<u64>,
    told_s: u64,
    watch: &'a mut dyn Watch,
}

impl prorata_stage::Watch for Look<'_> {
    fn goes_on(&mut self, now_ns: u64, end_ns: u64) -> bool {
        if let Some(news) = news(&mut self.told_s, now_ns, end_ns) {
            self.watch.step(&news);
        }
        !self.watch.is_over()
    }

    fn sampled(&mut self, stage: &Stage, _: u64, point: &PointReport) {
        if self.since_ns.is_some() {
            return;
        }
        if self.is_plain {
            (0..point.received_ns.len() as u32).for_each(|c| stage.release(client_id(c)));
        }
        self.since_ns = Some(now_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_goes_from_one_program_to_the_next_one_at_once() {
        let one = vec![[100, 900], [2_000, 2_600], [5_000, 900_000]];
        let other = vec![[20, 108], [880, 2_010], [2_020, 2_040], [2_590, 400_000]];
        // The second gap of the first program is left alone: it runs again before the other one
        // stops for good; and 395 us are no switch.
        assert_eq!(
            switches_between(&[one.clone(), other.clone()], 0),
            [8, 20, 10, 10]
        );
        assert_eq!(switches_between(&[one, other], 2_000), [10, 10]);
    }

    #[test]
    fn gaps_survive_their_file() {
        let file = tempfile::tempfile().expect("there is room");
        assert_eq!(gaps(&file).expect("readable"), [[0; 2]; 0]);
        for (place, word) in (0..).zip([0, 0, 7, 9, 11, 13, 15_u64]) {
            file.write_all_at(&word.to_le_bytes(), place * 8)
                .expect("writable");
        }
        assert_eq!(gaps(&file).expect("readable"), [[7, 9], [11, 13]]);
    }
}
