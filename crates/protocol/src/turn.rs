//! Waiting for a turn at a daemon that has no room for another connection.
//!
//! A daemon limits its connections. A program that finds no room pauses and connects again, so it
//! holds nothing at the daemon while it waits. Pauses grow and are random, so that many programs
//! that begin to wait at once do not come back at once.

use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};

/// Longest first pause. Each further pause may be twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A wait of this length is worth a message to the user.
const TELL_AFTER: Duration = Duration::from_secs(3);

/// Time between two messages.
const TELL_AGAIN: Duration = Duration::from_secs(30);

/// Longest wait.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A wait for a turn.
pub(crate) struct Turn<'a> {
    limit: Duration,
    tell: &'a dyn Fn(&str),
    random: Xoshiro256PlusPlus,
    begun: Instant,
    pause: Duration,
    told: Option<Instant>,
}

impl<'a> Turn<'a> {
    /// Waits no longer than `limit`. `tell` gets messages for the user.
    pub fn new(limit: Duration, tell: &'a dyn Fn(&str)) -> Self {
        Self {
            limit,
            tell,
            random: Xoshiro256PlusPlus::seed_from_u64(std::process::id().into()),
            begun: Instant::now(),
            pause: FIRST_PAUSE,
            told: None,
        }
    }

    /// Pauses before another attempt, and tells `reason` to the user after a while. Returns false
    /// without a pause once the wait has lasted too long.
    pub fn wait(&mut self, reason: &str) -> bool {
        let now = Instant::now();
        if now - self.begun >= self.limit {
            return false;
        }
        let is_news = match self.told {
            None => now - self.begun >= TELL_AFTER,
            Some(time) => now - time >= TELL_AGAIN,
        };
        if is_news {
            self.told = Some(now);
            let waited_s = (now - self.begun).as_secs();
            (self.tell)(&format!("{reason}: {waited_s} s so far"));
        }
        let longest_ns = self.pause.as_nanos() as u64;
        let pause_ns = longest_ns / 2 + self.random.next_u64() % (longest_ns / 2 + 1);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        sleep(Duration::from_nanos(pause_ns));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_wait_ends_at_its_limit_and_is_told_of_once_it_is_long() {
        let said = RefCell::new(Vec::new());
        let tell = |text: &str| said.borrow_mut().push(text.to_owned());
        let limit = Duration::from_millis(100);
        let mut turn = Turn::new(limit, &tell);
        let begun = Instant::now();
        while turn.wait("it is crowded") {}
        assert!(begun.elapsed() >= limit);
        assert_eq!(said.take(), [""; 0], "a short wait is worth no word");

        let mut turn = Turn::new(TELL_AFTER * 2, &tell);
        turn.begun -= TELL_AFTER;
        assert!(turn.wait("it is crowded") && turn.wait("it is crowded"));
        assert_eq!(said.take(), ["it is crowded: 3 s so far"]);
    }

    #[test]
    fn pauses_grow_to_the_longest() {
        let mut turn = Turn::new(Duration::from_secs(60), &|_| ());
        let mut longest = Vec::new();
        for _ in 0..3 {
            longest.push(turn.pause);
            assert!(turn.wait("it is crowded"));
        }
        assert_eq!(longest, [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4]);
        turn.pause = LONGEST_PAUSE;
        assert!(turn.wait("it is crowded"));
        assert_eq!(turn.pause, LONGEST_PAUSE);
    }
}
