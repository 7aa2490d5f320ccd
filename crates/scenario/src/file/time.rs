//! Times in scenario files: a number and a unit, exact to the nanosecond.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time or a duration, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(pub u64);

/// Text that is not a time.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadTime {
    /// No number, or no known unit.
    #[error("\"{0}\" is not a time: write a number and one of ns, us, ms, s, min, h, such as 20ms")]
    Form(String),
    /// More digits behind the point than the unit has nanoseconds.
    #[error("\"{0}\" is finer than a nanosecond: leave out the last digits")]
    TooFine(String),
    /// Past [`Time::MAX`].
    #[error("\"{0}\" is too long: at most {max}", max = Time::MAX)]
    TooLong(String),
}

const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Time {
    /// No time.
    pub const ZERO: Time = Time(0);
    /// The longest time in a scenario, some 31 years; sums of a few of them still fit in 64
    /// bits.
    pub const MAX: Time = Time(1_000_000_000_000_000_000);

    /// So many milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// So many seconds.
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs * 1_000_000_000)
    }

    /// In seconds, for people.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Time, BadTime> {
        let form = || BadTime::Form(text.to_owned());
        let letters = text
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(form)?;
        let (number, unit) = text.split_at(letters);
        let (_, unit_ns) = UNITS.iter().find(|u| u.0 == unit).ok_or_else(form)?;
        let (whole, fraction) = number
            .trim_end()
            .split_once('.')
            .unwrap_or((number.trim_end(), "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(form());
        }
        let mut total = u128::from(*unit_ns).saturating_mul(whole.parse().unwrap_or(u128::MAX));
        let mut place_ns = *unit_ns;
        for digit in fraction.trim_end_matches('0').bytes() {
            if place_ns % 10 != 0 {
                return Err(BadTime::TooFine(text.to_owned()));
            }
            place_ns /= 10;
            total = total.saturating_add(u128::from(digit - b'0') * u128::from(place_ns));
        }
        match u64::try_from(total) {
            Ok(ns) if ns <= Time::MAX.0 => Ok(Time(ns)),
            _ => Err(BadTime::TooLong(text.to_owned())),
        }
    }
}

impl fmt::Display for Time {
    /// In the largest unit that gives a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (unit, unit_ns) = UNITS
            .iter()
            .find(|u| self.0.is_multiple_of(u.1))
            .expect("1 ns divides all");
        write!(f, "{}{unit}", self.0 / unit_ns)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in quotes, such as \"20ms\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number and a unit, exact to the nanosecond, such as 20ms.",
            "type": "string",
            "pattern": "^[0-9]+(\\.[0-9]+)? *(ns|us|ms|s|min|h)$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_print_and_parse() {
        for (text, ns) in [
            ("0s", 0),
            ("20ms", 20_000_000),
            ("1500us", 1_500_000),
            ("2min", 120_000_000_000),
            ("7ns", 7),
            ("3h", 10_800_000_000_000),
        ] {
            let time: Time = text.parse().expect(text);
            assert_eq!(time.0, ns);
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        assert_eq!("1.5 s".parse(), Ok(Time(1_500_000_000)));
        assert_eq!("0.000000001s".parse(), Ok(Time(1)));
        assert_eq!("2.50s".parse(), Ok(Time(2_500_000_000)));
        assert_eq!("1.5min".parse(), Ok(Time(90_000_000_000)));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "20",
            "ms",
            "-1ms",
            "1..5s",
            "1.s",
            ".5s",
            "+1s",
            "1e3s",
            "20 parsecs",
        ] {
            assert!(
                matches!(text.parse::<Time>(), Err(BadTime::Form(_))),
                "{text:?}"
            );
        }
        assert!(matches!("1.5ns".parse::<Time>(), Err(BadTime::TooFine(_))));
        assert!(matches!(
            "1.0001us".parse::<Time>(),
            Err(BadTime::TooFine(_))
        ));
    }

    #[test]
    fn the_longest_time_is_taken_and_one_more_refused() {
        assert_eq!("1000000000s".parse(), Ok(Time::MAX));
        assert_eq!(
            "1000000000000000001ns".parse::<Time>(),
            Err(BadTime::TooLong("1000000000000000001ns".into()))
        );
        assert!(
            "99999999999999999999999999999999999999999h"
                .parse::<Time>()
                .is_err()
        );
    }
}
