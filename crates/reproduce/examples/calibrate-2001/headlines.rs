//! The paper's headlines of Chat (2001, 5.2 and Table 5), held against the runs of every
//! optimum.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Outcome;

/// What the paper prints of one scheduler in one configuration.
struct Printed {
    rooms: u32,
    scheduler: &'static str,
    /// CPUs at the peak; a neighbour will do.
    peak_cpus: f64,
    speedup_at_peak: f64,
    speedup_on_8: f64,
    /// The peak over that of DSS; not of DSS itself.
    gain: Option<f64>,
}

const fn printed(
    rooms: u32,
    scheduler: &'static str,
    [peak_cpus, speedup_at_peak, speedup_on_8]: [f64; 3],
    gain: Option<f64>,
) -> Printed {
    Printed {
        rooms,
        scheduler,
        peak_cpus,
        speedup_at_peak,
        speedup_on_8,
        gain,
    }
}

const PRINTED: [Printed; 9] = [
    printed(10, "DSS", [5.0, 1.88, 1.45], None),
    printed(10, "PLS", [5.0, 1.72, 1.43], Some(0.87)),
    printed(10, "MQ", [6.0, 2.31, 2.21], Some(1.13)),
    printed(20, "DSS", [4.0, 1.27, 0.54], None),
    printed(20, "PLS", [5.0, 1.32, 1.43], Some(1.34)),
    printed(20, "MQ", [8.0, 2.29, 2.29], Some(1.68)),
    printed(30, "DSS", [4.0, 1.11, 0.42], None),
    printed(30, "PLS", [8.0, 1.63, 1.63], Some(1.57)),
    printed(30, "MQ", [8.0, 2.22, 2.22], Some(2.24)),
];

/// A printed number is ours within so much of it, as in the figures.
const TOLERANCE: f64 = 0.2;

/// One run of each size: messages a second by rooms, scheduler and CPUs.
type Rates = BTreeMap<(u32, String, u32), f64>;

/// A headline: what it is of, the paper's number, ours, and whether it holds.
struct Headline {
    name: String,
    paper: f64,
    ours: f64,
    holds: bool,
}

fn within(ours: f64, paper: f64) -> bool {
    (ours - paper).abs() <= TOLERANCE * paper
}

fn headlines(rates: &Rates) -> Outcome<Vec<Headline>> {
    let mut all = Vec::new();
    for printed in &PRINTED {
        let rate = |scheduler: &str, cpus| {
            let key = (printed.rooms, scheduler.to_owned(), cpus);
            rates
                .get(&key)
                .copied()
                .ok_or(format!("{key:?}: the runs lack it"))
        };
        let peak = |scheduler: &str| {
            let mut best = (0, 0.0);
            for cpus in 2..=8 {
                let rate = rate(scheduler, cpus)?;
                if rate > best.1 {
                    best = (cpus, rate);
                }
            }
            Ok::<(u32, f64), String>(best)
        };
        let (peak_cpus, peak_rate) = peak(printed.scheduler)?;
        let base = rate(printed.scheduler, 2)?;
        let gain = printed.gain.zip(Some(peak_rate / peak("DSS")?.1));
        let of = format!("({} rooms) {}", printed.rooms, printed.scheduler);
        let mut add = |what: &str, paper: f64, ours: f64, holds: bool| {
            let name = format!("{of} {what}");
            all.push(Headline {
                name,
                paper,
                ours,
                holds,
            });
        };
        let ours = f64::from(peak_cpus);
        add(
            "CPUs at the peak",
            printed.peak_cpus,
            ours,
            (ours - printed.peak_cpus).abs() <= 1.0,
        );
        let speedups = [
            (
                "speedup at the peak",
                printed.speedup_at_peak,
                peak_rate / base,
            ),
            (
                "speedup on 8 CPUs",
                printed.speedup_on_8,
                rate(printed.scheduler, 8)? / base,
            ),
        ];
        let gain = gain.map(|(paper, ours)| ("peak over that of DSS", paper, ours));
        for (what, paper, ours) in speedups.into_iter().chain(gain) {
            add(what, paper, ours, within(ours, paper));
        }
    }
    Ok(all)
}

/// The rates of each optimum, without the slowdown and with it.
fn read(path: &Path) -> Outcome<BTreeMap<(u32, bool), Rates>> {
    let mut all: BTreeMap<(u32, bool), Rates> = BTreeMap::new();
    for row in fs::read_to_string(path)?.lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        let [optimum, slowdown, rooms, scheduler, cpus, rate, ..] = columns[..] else {
            return Err(format!("{row}: a run has more columns").into());
        };
        let key = (optimum.parse()?, slowdown != "0");
        let of = (rooms.parse()?, scheduler.to_owned(), cpus.parse()?);
        all.entry(key).or_default().insert(of, rate.parse()?);
    }
    Ok(all)
}

/// Each headline over all optima: the least, the median and the largest of ours, and in
/// how many optima it holds. At the end, how many hold in each optimum.
fn table(optima: &BTreeMap<(u32, bool), Rates>) -> Outcome<String> {
    let mut text = "headline,slowdown,paper,least,median,largest,holds_in,of\n".to_owned();
    let mut counts = Vec::new();
    for slowed in [false, true] {
        let with = if slowed { "with" } else { "without" };
        let of_slowed = optima.iter().filter(|((_, with), _)| *with == slowed);
        let outcomes: Vec<Vec<Headline>> = of_slowed
            .map(|(_, rates)| headlines(rates))
            .collect::<Outcome<_>>()?;
        let first = outcomes.first().ok_or("runs.csv: there are no runs")?;
        for (place, Headline { name, paper, .. }) in first.iter().enumerate() {
            let ours = outcomes.iter().map(|all| all[place].ours);
            let holds = outcomes.iter().filter(|all| all[place].holds).count();
            let row = format!("{name},{with},{paper},{}", spread(ours.collect()));
            writeln!(text, "{row},{holds},{}", outcomes.len())?;
        }
        let held = |all: &Vec<Headline>| all.iter().filter(|headline| headline.holds).count();
        let held: Vec<f64> = outcomes.iter().map(|all| held(all) as f64).collect();
        let all = first.len();
        counts.push(format!(
            "headlines that hold,{with},{all},{},,{}",
            spread(held),
            outcomes.len()
        ));
    }
    for count in counts {
        writeln!(text, "{count}")?;
    }
    Ok(text)
}

/// The least, the median and the largest.
fn spread(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    let (least, median, largest) = (all[0], all[all.len() / 2], all[all.len() - 1]);
    format!("{least:.2},{median:.2},{largest:.2}")
}

/// Holds all optima against the paper.
pub fn write(directory: &Path) -> Outcome<()> {
    let text = table(&read(&directory.join("runs.csv"))?)?;
    fs::write(directory.join("headlines.csv"), text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archived_headlines_follow_from_the_archived_runs() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/2001");
        let optima = read(&directory.join("runs.csv")).expect("the archive is there");
        let archived = fs::read_to_string(directory.join("headlines.csv"));
        let table = table(&optima).expect("the runs are complete");
        assert_eq!(table, archived.expect("the archive is there"));
    }

    #[test]
    fn the_papers_own_speedups_hold() {
        let mut rates = Rates::new();
        for printed in &PRINTED {
            let peak = printed.gain.unwrap_or(1.0);
            let base = peak / printed.speedup_at_peak;
            for cpus in 2..=8 {
                let rate = match cpus {
                    _ if f64::from(cpus) == printed.peak_cpus => peak,
                    8 => base * printed.speedup_on_8.min(printed.speedup_at_peak),
                    _ => base,
                };
                rates.insert((printed.rooms, printed.scheduler.to_owned(), cpus), rate);
            }
        }
        let all = headlines(&rates).expect("complete");
        assert_eq!(all.len(), 33);
        let missed: Vec<&str> = all.iter().filter(|h| !h.holds).map(|h| &*h.name).collect();
        assert_eq!(missed, Vec::<&str>::new());
        // Twice DSS's rate on eight CPUs is no longer its speedup, and halves all gains.
        let key = (20, "DSS".to_owned(), 8);
        rates.entry(key).and_modify(|rate| *rate = 2.0);
        let all = headlines(&rates).expect("complete");
        let missed = all.iter().filter(|headline| !headline.holds).count();
        assert_eq!(missed, 5);
    }
}
