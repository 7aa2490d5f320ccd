//! Random histories of all calls against the naive model.

use prorata_core::ids::ClientId;
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::notice::{Notice, Why};
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;
use prorata_core::slots::word::Word;

use crate::naive::{Held, Naive};
use crate::readers::Readers;

struct Run {
    rng: Xoshiro256PlusPlus,
    table: Timetable,
    naive: Naive,
    readers: Readers,
    now: u64,
    ends: [u32; 6],
}

fn client(number: u64) -> ClientId {
    ClientId::from_parts(number as u32, 0)
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rows = 1 + below(&mut rng, 3) as u32;
        // Now and then more columns than a word has bits.
        let widest = if seed.is_multiple_of(10) { 200 } else { 12 };
        let columns = 1 + below(&mut rng, widest) as u32;
        let table = Timetable::open(Geometry::new(rows, columns, 1_000_000, 0).unwrap());
        let naive = Naive {
            rows,
            columns,
            ..Naive::default()
        };
        Self {
            rng,
            readers: Readers::of(&table),
            table,
            naive,
            now: 0,
            ends: [0; 6],
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.rng, bound)
    }

    /// A client may have processes of several users.
    fn owner(&mut self) -> Owner {
        let number = self.below(4);
        Owner {
            user: self.below(2) as u32,
            client: (self.below(4) > 0).then_some(client(number)),
        }
    }

    fn caller(&mut self) -> Caller {
        Caller {
            owner: self.owner(),
            privileged: self.below(8) == 0,
        }
    }

    fn account(&mut self) -> Account {
        match self.below(6) {
            number @ 0..=3 => Account::Client(client(number)),
            number => Account::User(number as u32 - 4),
        }
    }

    fn level(&mut self) -> Level {
        let levels = [Level::Background, Level::Gang, Level::Hard, Level::System];
        levels[[0, 0, 0, 1, 1, 1, 2, 3][self.below(8) as usize]]
    }

    /// Now and then just outside the table.
    fn cell(&mut self) -> Cell {
        let outside = u64::from(self.below(16) == 0);
        Cell {
            row: self.below(u64::from(self.naive.rows) + outside) as u32,
            column: self.below(u64::from(self.naive.columns) + outside) as u32,
        }
    }

    fn schedulee(&mut self) -> Schedulee {
        let number = self.below(4);
        match self.below(3) {
            0 => Schedulee::Client(client(number)),
            1 => Schedulee::Process {
                pid: number as u32,
                started: 1,
            },
            _ => Schedulee::Thread {
                tid: number as u32,
                started: 1,
            },
        }
    }

    fn requests(&mut self) -> Vec<SlotRequest> {
        let length = 1 + self.below(5);
        let request = |_| SlotRequest {
            cell: self.cell(),
            schedulee: self.schedulee(),
            level: self.level(),
            expires: (self.below(3) == 0).then(|| self.now + self.below(30)),
        };
        (0..length).map(request).collect()
    }

    /// Counts notices by their reasons, so that no rule goes untried.
    fn count(&mut self, notices: &[Notice]) {
        for notice in notices {
            let kind = match notice.why {
                Why::Preempted(_) => 0,
                Why::Shared(_) => 1,
                Why::Reserved => 2,
                Why::Freed(_) => 3,
                Why::Expired => 4,
                Why::ScheduleeEnded => 5,
            };
            self.ends[kind] += 1;
        }
    }

    fn step(&mut self) {
        match self.below(20) {
            0..=8 => self.claim(),
            9..=10 => self.free(),
            11..=13 => self.set(),
            14 => self.donate(),
            15 => self.reserve(),
            16 => self.end(),
            _ => self.pass(),
        }
        self.compare();
    }

    fn claim(&mut self) {
        let (caller, requests) = (self.caller(), self.requests());
        if self.below(2) == 0 {
            let expected: Vec<usize> = (0..requests.len())
                .filter(|&place| !self.naive.claim(caller.owner, &requests[place], self.now))
                .collect();
            let outcome = self
                .table
                .claim_slots(&caller, &requests, Mode::BestEffort, None, self.now)
                .unwrap();
            self.count(&outcome.notices);
            let refused: Vec<usize> = outcome.value.refused.iter().map(|r| r.0).collect();
            assert_eq!(refused, expected);
            assert_eq!(outcome.value.claimed.len() + refused.len(), requests.len());
        } else {
            let before = self.naive.clone();
            let all = requests
                .iter()
                .all(|request| self.naive.claim(caller.owner, request, self.now));
            let seen = self.table.generation();
            let result = self.table.claim_slots(
                &caller,
                &requests,
                Mode::AllOrNothing,
                Some(seen),
                self.now,
            );
            assert_eq!(result.is_ok(), all);
            if !all {
                self.naive = before;
                assert_eq!(self.table.generation(), seen);
            }
        }
    }

    fn free(&mut self) {
        let caller = self.caller();
        let cell = self.cell();
        let freed = self.naive.free_cell(caller.owner, caller.privileged, cell);
        let outcome = self.table.free_slots(&caller, &[cell], self.now).unwrap();
        self.count(&outcome.notices);
        assert_eq!(outcome.value.is_empty(), freed);
    }

    fn set(&mut self) {
        let (caller, account, level) = (self.caller(), self.account(), self.level());
        let weight = (self.below(2) == 0).then_some(self.below(4) as u32);
        let amount = if self.below(2) == 0 {
            Amount::Absolute(self.below(20) as u32)
        } else {
            Amount::Delta(self.below(20) as i64 - 8)
        };
        let set = caller.privileged && self.naive.set(account, level, amount, weight);
        let result = self
            .table
            .set_tokens(&caller, account, level, amount, weight, self.now);
        assert_eq!(result.is_ok(), set);
    }

    fn donate(&mut self) {
        let (caller, to, level) = (self.caller(), self.account(), self.level());
        let count = self.below(6) as u32;
        let expected = self.naive.donate(caller.owner, to, level, count);
        let result = self
            .table
            .donate_tokens(&caller, to, level, count, self.now);
        assert_eq!(result.ok().map(|o| o.value.moved as i64), expected);
    }

    fn reserve(&mut self) {
        let mut caller = self.caller();
        caller.privileged |= self.below(2) == 0;
        let row = self.below(u64::from(self.naive.rows)) as u32;
        let denominator = 1 + self.below(u64::from(self.naive.columns)) as u32;
        let numerator = self.below(u64::from(denominator) + 1) as u32;
        let onset = [Onset::Immediate, Onset::Lazy][self.below(2) as usize];
        let reservation = Reservation {
            numerator,
            denominator,
        };
        let result = self
            .table
            .reserve_slots(&caller, row, reservation, onset, self.now);
        let Ok(outcome) = result else {
            let system = |held: &Held| held.cell.row == row && held.level == Level::System;
            assert!(!caller.privileged || self.naive.held.iter().any(system));
            return;
        };
        assert!(caller.privileged);
        self.count(&outcome.notices);
        let revoked = outcome.notices.iter().filter(|n| n.why == Why::Reserved);
        for notice in revoked {
            assert!(notice.claim.level < Level::System);
            self.naive.revoke(notice.cell);
        }
        self.naive.reserved.insert(row, (numerator, denominator));
        if onset == Onset::Immediate {
            assert!(self.naive.windows_hold(row));
        }
    }

    fn end(&mut self) {
        if self.below(2) == 0 {
            let schedulee = self.schedulee();
            self.naive.end_schedulee(schedulee);
            let outcome = self.table.end_schedulee(schedulee, self.now);
            self.count(&outcome.notices);
        } else {
            let client = client(self.below(4));
            self.naive.end_client(client);
            let outcome = self.table.end_client(client, self.now);
            self.count(&outcome.notices);
        }
    }

    fn pass(&mut self) {
        for _ in 0..=self.below(4) {
            self.naive.history.insert(self.now, self.naive.held.clone());
            self.now += 1;
            self.naive.expire(self.now);
            let outcome = self.table.advance(self.now);
            self.count(&outcome.notices);
            self.compare_in_force();
        }
    }

    fn compare(&mut self) {
        self.readers.follow(&mut self.table, self.now);
        assert!(self.table.audit(), "tokens are not conserved");
        assert_eq!(self.table.table().claimed(), self.naive.held.len());
        for held in &self.naive.held {
            let claim = self.table.table().get(held.cell).unwrap();
            let got = Held {
                cell: held.cell,
                owner: claim.owner,
                payer: claim.payer,
                schedulee: claim.schedulee,
                level: claim.level,
                expires: claim.expires,
            };
            assert_eq!(got, *held);
        }
        for (&(account, level), &count) in &self.naive.count {
            let tokens = self.table.bank().tokens(account, level);
            assert_eq!(tokens.count as i64, count);
            assert_eq!(tokens.spent as i64, self.naive.spent(account, level));
        }
        self.compare_in_force();
    }

    /// What is decided in a tick is in force from the second boundary on, whole.
    fn compare_in_force(&self) {
        let Some(decided) = self.now.checked_sub(2) else {
            return;
        };
        let held = &self.naive.history[&decided];
        let columns = self.naive.columns;
        for row in 0..self.naive.rows {
            let mut line = vec![None; columns as usize];
            for held in held.iter().filter(|held| held.cell.row == row) {
                line[held.cell.column as usize] = Some(*held);
            }
            let here = line[(self.now % u64::from(columns)) as usize];
            let valid = here.filter(|held| held.expires.is_none_or(|end| end > self.now));
            let expected = valid.map(|held| held.schedulee);
            assert_eq!(self.table.at(row, self.now), expected, "tick {}", self.now);
            self.compare_words(row, &line);
            self.compare_next(row);
        }
    }

    /// Each word in force names the way to the next claim of its row, and the periods of its claim.
    fn compare_words(&self, row: u32, line: &[Option<Held>]) {
        let columns = line.len();
        let words = &self.table.staging().words(self.now)[row as usize * columns..][..columns];
        for (column, (&word, held)) in words.iter().zip(line).enumerate() {
            let word = Word::unpack(word);
            assert_eq!(word.is_some(), held.is_some());
            let (Some(word), Some(held)) = (word, held) else {
                continue;
            };
            let way = (1..=columns).find(|way| line[(column + way) % columns].is_some());
            assert_eq!(Some(word.distance as usize), way);
            let period = self.now / columns as u64;
            for period in period..period + 3 {
                let tick = period * columns as u64 + column as u64;
                let valid = held.expires.is_none_or(|end| end > tick);
                assert_eq!(word.is_valid(period), valid);
            }
        }
    }

    /// For two periods, the next claimed tick by the words that are in force at each tick.
    fn compare_next(&self, row: u32) {
        let columns = u64::from(self.naive.columns);
        let (begin, mut next) = (self.now, None);
        for tick in (begin..begin + 4 * columns).rev() {
            let index = u64::from(row) * columns + tick % columns;
            if self.table.staging().words(tick)[index as usize] != 0 {
                next = Some(tick);
            }
            if tick < begin + 2 * columns {
                assert_eq!(self.table.next_claimed(row, tick), next, "tick {tick}");
            }
        }
    }
}

#[test]
fn random_histories_agree_with_the_naive_model() {
    let mut ends = [0; 6];
    for seed in 0..400 {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for _ in 0..250 {
            run.step();
        }
        for (sum, count) in ends.iter_mut().zip(run.ends) {
            *sum += count;
        }
    }
    println!("claims ended, by reason: {ends:?}");
    assert!(ends.iter().all(|&count| count > 100), "{ends:?}");
}
