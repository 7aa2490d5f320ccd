//! A table and claims, read from a file in whole slots.

use std::path::Path;

use prorata_core::cpu_limit::CPU_THOUSANDTHS;
use prorata_core::slots::check::{Claimant, Wish};
use prorata_core::slots::claim::{Caller, Owner};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::place::View;
use prorata_core::slots::place::periodic::Periodic;
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;
use prorata_scenario::file::{MAX_NAME_BYTES, ReadError, Time, read_text};

use super::value::TimeOf;
use super::{Claim, File, Gang, Misplaced, Problem, Reserve, Slots, at};
use crate::args::WrongUsage;
use crate::args::timetable::{Places, Range};

/// The most CPUs and the most claims: what is worth a look, and is soon looked at.
const MOST_CPUS: u32 = 1_024;
const MOST_CLAIMS: u32 = 1_024;
/// The longest period and deadline, in slots.
const LONGEST: u32 = 1 << 20;

/// A table and claims that keep to the file's rules.
pub struct Claims {
    pub geometry: Geometry,
    /// Of each CPU.
    pub reserve: Reservation,
    /// The table without claims.
    pub empty: View,
    /// By claimant.
    pub names: Vec<String>,
    /// What each wants, as the file says.
    pub wishes: Vec<String>,
    pub claimants: Vec<Claimant>,
}

impl Claims {
    /// Reads a file. One that is refused is wrong usage: exit code 1 says that claims conflict.
    pub fn of_file(path: &Path) -> Result<Claims, WrongUsage> {
        let claims = read_text(path).and_then(|text| Claims::parse(path, &text));
        claims.map_err(|error| WrongUsage(error.to_string()))
    }

    fn parse(path: &Path, text: &str) -> Result<Claims, ReadError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            ReadError::at(path, text, start, error.message().to_owned())
        })?;
        let located =
            |start, problem: Problem| ReadError::at(path, text, start, problem.to_string());
        let slots = file.slots.span().start;
        let mut claims = Claims::of_table(file.slots.get_ref()).map_err(|p| located(slots, p))?;
        for claim in &file.claims {
            let added = claims.add(claim.get_ref());
            added.map_err(|wrong| {
                let start = wrong.start(text, claim.span().start);
                located(start, wrong.problem)
            })?;
        }
        Ok(claims)
    }

    fn of_table(slots: &Slots) -> Result<Claims, Problem> {
        range("CPUs", slots.cpus, 1, MOST_CPUS)?;
        let columns = slots.columns.unwrap_or(Geometry::DEFAULT_COLUMNS);
        let length = slots.length.unwrap_or(Time(Geometry::DEFAULT_SLOT_NS));
        let geometry = Geometry::new(slots.cpus, columns, length.0, 0)?;
        // As `prorata slots open` does.
        let usual = Reserve {
            slots: 1,
            of: columns.min(10),
        };
        let reserve = slots.reserve.as_ref().unwrap_or(&usual);
        let reserve = Reservation {
            numerator: reserve.slots,
            denominator: reserve.of,
        };
        let mut table = Timetable::open(geometry);
        let administrator = Caller {
            owner: Owner {
                user: 0,
                client: None,
            },
            privileged: true,
        };
        for row in 0..slots.cpus {
            table.reserve_slots(&administrator, row, reserve, Onset::Immediate, 0)?;
        }
        Ok(Claims {
            geometry,
            reserve,
            empty: View::unclaimed(&table),
            names: Vec::new(),
            wishes: Vec::new(),
            claimants: Vec::new(),
        })
    }

    fn add(&mut self, claim: &Claim) -> Result<(), Misplaced> {
        let name = &claim.by;
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_whitespace) {
            return at("by", Err(Problem::Name(name.clone())));
        }
        if self.names.contains(name) {
            return at("by", Err(Problem::Twice(name.clone())));
        }
        range("claims", self.names.len() as u64 + 1, 0, MOST_CLAIMS)?;
        let level = claim.level.as_deref().unwrap_or("best-effort");
        let level: Level = at("level", level.parse())?;
        let (wish, as_written) = self.wish(claim)?;
        self.names.push(name.clone());
        self.wishes.push(as_written);
        self.claimants.push(Claimant { level, wish });
        Ok(())
    }

    /// What a claim wants, and how the file says so.
    fn wish(&self, claim: &Claim) -> Result<(Wish, String), Misplaced> {
        self.check_companions(claim)?;
        let row = claim.cpu;
        let mut wishes = Vec::new();
        if let Some(periodic) = &claim.periodic {
            let jitter = claim.jitter.map(|jitter| self.whole_slots(jitter));
            let periodic_wish = at("periodic", self.periodic(periodic, jitter))?;
            let wish = Wish::Periodic {
                periodic: periodic_wish,
                row,
            };
            wishes.push((wish, format!("periodic {periodic}")));
        }
        if let Some(gang) = &claim.gang {
            let wish = at("gang", self.gang(gang))?;
            wishes.push((wish, format!("gang of {}", gang.threads)));
        }
        if let Some(event) = &claim.event {
            let slots = at("event", self.slots_for(event.time))?;
            let within = self.whole_slots(event.of);
            at("event", range("slots to the deadline", within, 1, LONGEST))?;
            let wish = Wish::Event { slots, within, row };
            wishes.push((wish, format!("event {event}")));
        }
        if let Some(time) = claim.cache {
            let slots = at("cache", self.slots_for(time))?;
            wishes.push((Wish::Cache(slots), format!("cache {time}")));
        }
        if let Some(part) = claim.best_effort {
            let slots = u64::from(part.thousandths()) * u64::from(self.geometry.columns());
            let slots = slots.div_ceil(u64::from(CPU_THOUSANDTHS)) as u32;
            wishes.push((Wish::BestEffort(slots), format!("best effort {part}")));
        }
        if let Some(slots) = &claim.slots {
            let wish = at("slots", self.named(slots))?;
            wishes.push((wish, format!("slots {}", slots.join(" "))));
        }
        match (wishes.pop(), wishes.len()) {
            (Some(wish), 0) => Ok(wish),
            (None, _) => Err(Problem::NoWish.into()),
            (Some(_), others) => Err(Problem::Wishes(others + 1).into()),
        }
    }

    fn check_companions(&self, claim: &Claim) -> Result<(), Misplaced> {
        if claim.jitter.is_some() && claim.periodic.is_none() {
            let (key, with) = ("jitter", "periodic");
            return at(key, Err(Problem::Alone { key, with }));
        }
        if claim.cpu.is_some() && claim.periodic.is_none() && claim.event.is_none() {
            let (key, with) = ("cpu", "periodic or event");
            return at(key, Err(Problem::Alone { key, with }));
        }
        let checked = claim.cpu.map_or(Ok(()), |cpu| self.check_cpu(cpu));
        at("cpu", checked)
    }

    fn check_cpu(&self, cpu: u32) -> Result<(), Problem> {
        let last = self.geometry.rows() - 1;
        match cpu <= last {
            true => Ok(()),
            false => Err(Problem::Cpu { cpu, last }),
        }
    }

    fn periodic(&self, of: &TimeOf, jitter: Option<u32>) -> Result<Periodic, Problem> {
        let slot_ns = self.geometry.slot_ns();
        let period = of.of.0 / slot_ns;
        range("slots of a period", period, 1, LONGEST)?;
        if !of.of.0.is_multiple_of(slot_ns) {
            return Err(Problem::Period {
                period: of.of,
                length: Time(slot_ns),
                fix: Time(period * slot_ns),
            });
        }
        let slots = self.slots_for(of.time)?;
        Ok(Periodic {
            jitter,
            ..Periodic::new(slots, period as u32)
        })
    }

    fn gang(&self, gang: &Gang) -> Result<Wish, Problem> {
        range("threads", gang.threads, 1, self.geometry.rows())?;
        if let Some(columns) = gang.columns {
            range("columns", columns, 1, self.geometry.columns())?;
        }
        gang.cpus.iter().try_for_each(|&cpu| self.check_cpu(cpu))?;
        Ok(Wish::Gang {
            threads: gang.threads,
            columns: gang.columns,
            preferred: gang.cpus.clone(),
        })
    }

    fn named(&self, slots: &[String]) -> Result<Wish, Problem> {
        let (cpus, columns) = (self.geometry.rows(), self.geometry.columns());
        let mut cells = Vec::new();
        for slots in slots {
            let slots: Places = slots.parse().map_err(Problem::Slots)?;
            let is_inside = |range: &Range| range.last < columns;
            if slots.cpu >= cpus || !slots.columns.iter().all(is_inside) {
                return Err(Problem::Outside {
                    slots,
                    cpu: cpus - 1,
                    column: columns - 1,
                });
            }
            let row = slots.cpu;
            for Range { first, last } in slots.columns {
                cells.extend((first..=last).map(|column| Cell { row, column }));
                range("slots", cells.len() as u64, 1, cpus * columns)?;
            }
        }
        range("slots", cells.len() as u64, 1, cpus * columns)?;
        Ok(Wish::Slots(cells))
    }

    /// The slots that a time needs.
    fn slots_for(&self, time: Time) -> Result<u32, Problem> {
        let slots = time.0.div_ceil(self.geometry.slot_ns());
        range("slots", slots, 1, LONGEST)?;
        Ok(slots as u32)
    }

    /// The slots that surely fit a time.
    fn whole_slots(&self, time: Time) -> u32 {
        let slots = time.0 / self.geometry.slot_ns();
        u32::try_from(slots).unwrap_or(u32::MAX)
    }
}

fn range(what: &'static str, is: impl Into<u64>, low: u32, high: u32) -> Result<(), Problem> {
    let (is, low, high) = (is.into(), low.into(), high.into());
    match (low..=high).contains(&is) {
        true => Ok(()),
        false => Err(Problem::Range {
            is,
            what,
            low,
            high,
        }),
    }
}

#[cfg(test)]
mod tests {
    use prorata_core::rng::{Rng as _, SeedableRng as _, Xoshiro256PlusPlus, below};

    use super::*;

    const EVERY_WISH: &str = r#"
[slots]
cpus = 4
columns = 40
length = "5ms"
reserve = { slots = 1, of = 10 }

[[claim]]
by = "controller"
periodic = "4ms/20ms"
jitter = "5ms"
cpu = 1
level = "hard"

[[claim]]
by = "simulation"
gang = { threads = 3, columns = 10, cpus = [1, 2, 3] }
level = "gang"

[[claim]]
by = "alarm"
event = "10ms/60ms"
level = "soft-1"

[[claim]]
by = "database"
cache = "30ms"
level = "soft-2"

[[claim]]
by = "builds"
best-effort = "30%"

[[claim]]
by = "camera"
slots = ["0:3-8,12", "2:0"]
"#;

    fn parse(text: &str) -> Result<Claims, String> {
        let claims = Claims::parse(Path::new("a.toml"), text);
        claims.map_err(|error| error.to_string())
    }

    #[test]
    fn every_wish_is_read_in_whole_slots() {
        let claims = parse(EVERY_WISH).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(claims.claimants.len(), 6);
        let controller = Wish::Periodic {
            periodic: Periodic {
                jitter: Some(1),
                ..Periodic::new(1, 4)
            },
            row: Some(1),
        };
        assert_eq!(claims.claimants[0].wish, controller);
        assert_eq!(claims.claimants[0].level, Level::Hard);
        let alarm = Wish::Event {
            slots: 2,
            within: 12,
            row: None,
        };
        assert_eq!(claims.claimants[2].wish, alarm);
        assert_eq!(claims.claimants[3].wish, Wish::Cache(6));
        assert_eq!(claims.claimants[4].wish, Wish::BestEffort(12));
        assert_eq!(claims.wishes[5], "slots 0:3-8,12 2:0");
    }

    #[test]
    fn wrong_files_are_refused_with_their_line_and_the_fix() {
        for (text, by, wanted) in [
            ("cpus = 4", "cpus = 0", "a.toml:2:1: 0 CPUs: take 1 to 1024"),
            ("cpus = 4", "cpus = 1025", "1025 CPUs: take 1 to 1024"),
            ("columns = 40", "columns = 5000", "take 1 to 4096 columns"),
            ("\"5ms\"\nreserve", "\"500us\"\nreserve", "take 1 to 100 ms"),
            ("of = 10", "of = 41", "at most 40"),
            ("4ms/20ms", "4ms", "such as 4ms/20ms"),
            ("4ms/20ms", "30ms/20ms", "take at most all"),
            (
                "4ms/20ms",
                "4ms/22ms",
                "no whole number of slots of 5ms: take 20ms",
            ),
            ("4ms/20ms", "0ms/20ms", "0 slots: take 1"),
            ("4ms/20ms", "4ms/4ms", "0 slots of a period: take 1"),
            ("4ms/20ms", "1h/24h", "slots of a period: take 1 to 1048576"),
            (
                "cpu = 1",
                "cpu = 4",
                "a.toml:12:1: there is no CPU 4: take 0 to 3",
            ),
            ("[1, 2, 3]", "[1, 2, 9]", "there is no CPU 9"),
            ("threads = 3", "threads = 0", "0 threads: take 1 to 4"),
            ("columns = 10", "columns = 41", "41 columns: take 1 to 40"),
            ("10ms/60ms", "10ms/60 parsecs", "is not a time"),
            ("30%", "30", "write one such as 50%"),
            ("0:3-8", "0:8-3", "names no slots"),
            ("0:3-8", "0:3-40", "it has CPUs 0 to 3 and slots 0 to 39"),
            ("[\"0:3-8,12\", \"2:0\"]", "[]", "0 slots: take 1"),
            (
                "\"soft-2\"",
                "\"soft\"",
                "a.toml:28:1: no level is named 'soft': take background",
            ),
            ("\"camera\"", "\"builds\"", "\"builds\" claims twice"),
            ("\"camera\"", "\"two words\"", "without spaces"),
            (
                "cache = \"30ms\"",
                "",
                "a.toml:25:1: the claim says nothing of what it wants",
            ),
            (
                "cache = \"30ms\"",
                "cache = \"30ms\"\nbest-effort = \"5%\"",
                "wants 2 things",
            ),
            (
                "cache = \"30ms\"",
                "cache = \"30ms\"\ncpu = 1",
                "a.toml:28:1: cpu goes with periodic or event",
            ),
            (
                "cache = \"30ms\"",
                "cache = \"30ms\"\njitter = \"0s\"",
                "jitter goes with periodic",
            ),
            (
                "cpus = 4",
                "cpus = 4\nwild = 1",
                "a.toml:4:1: unknown field `wild`",
            ),
        ] {
            let wrong = EVERY_WISH.replacen(text, by, 1);
            assert_ne!(wrong, EVERY_WISH, "{text}");
            let Err(error) = parse(&wrong) else {
                panic!("{by} is taken");
            };
            assert!(error.contains(wanted), "{by}: {error}");
        }
    }

    #[test]
    fn as_many_claims_are_taken_as_the_limit_says() {
        let claims = |count| {
            let claim = |n| format!("[[claim]]\nby = \"c{n}\"\nslots = [\"0:0\"]\n");
            let claims: String = (0..count).map(claim).collect();
            parse(&format!("[slots]\ncpus = 1\n{claims}")).map(|claims| claims.names.len())
        };
        assert_eq!(claims(MOST_CLAIMS), Ok(1_024));
        let error = claims(MOST_CLAIMS + 1).unwrap_err();
        assert!(error.contains("1025 claims: take 0 to 1024"), "{error}");
    }

    /// Any text is read or refused with a place in it, and what is read keeps to the limits.
    #[test]
    fn spoiled_files_do_no_harm() {
        let (mut read, mut refused) = (0, 0);
        for seed in 0..20_000 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut bytes = EVERY_WISH.as_bytes().to_vec();
            for _ in 0..1 + below(&mut rng, 3) {
                spoil(&mut rng, &mut bytes);
            }
            let text = String::from_utf8_lossy(&bytes);
            match parse(&text) {
                Ok(claims) => {
                    let (rows, columns) = (claims.empty.rows(), claims.empty.columns());
                    assert!(rows <= MOST_CPUS && columns <= 4_096, "seed {seed}");
                    assert_eq!(claims.names.len(), claims.claimants.len());
                    read += 1;
                }
                Err(error) => {
                    assert!(error.starts_with("a.toml:"), "seed {seed}: {error}");
                    refused += 1;
                }
            }
        }
        assert!(read > 500 && refused > 5_000, "{read} {refused}");
    }

    fn spoil(rng: &mut Xoshiro256PlusPlus, bytes: &mut Vec<u8>) {
        let place = below(rng, bytes.len() as u64) as usize;
        match below(rng, 4) {
            0 => bytes[place] = rng.next_u64() as u8,
            1 => bytes.insert(place, b"0123456789-:/%\"[]="[below(rng, 18) as usize]),
            2 => drop(bytes.remove(place)),
            _ => {
                let length = below(rng, 30) as usize;
                let end = (place + length).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                let to = below(rng, bytes.len() as u64) as usize;
                bytes.splice(to..to, piece);
            }
        }
    }
}
