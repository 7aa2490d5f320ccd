//! Rights in scenario files: amounts of a currency, in the notation of the
//! 1994 paper (5.5), and rules that change them while the scenario runs.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use prorata_core::rng::{Rng, below};

use super::Time;

/// Name of the base currency, the source of all value.
pub const BASE: &str = "base";

/// A ticket: `300` (of the base currency) or `"100.alice"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Amount {
    /// Face value, from 1 to 2^32 - 1.
    pub amount: u32,
    /// Denomination.
    pub currency: String,
}

/// Text or a number that is not an amount.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAmount {
    /// No number, no point, or no currency.
    #[error(
        "\"{0}\" is not an amount of tickets: write a number, a point and a currency, such as 100.alice"
    )]
    Form(String),
    /// Zero, negative, or above 2^32 - 1.
    #[error("{0} is not an amount of tickets: from 1 to {max}", max = u32::MAX)]
    Range(String),
}

impl Amount {
    /// So many tickets of the base currency.
    pub fn base(amount: u32) -> Amount {
        Amount {
            amount,
            currency: BASE.to_owned(),
        }
    }

    fn of(number: i64, currency: &str) -> Result<Amount, BadAmount> {
        match u32::try_from(number) {
            Ok(amount) if amount > 0 => Ok(Amount {
                amount,
                currency: currency.to_owned(),
            }),
            _ => Err(BadAmount::Range(number.to_string())),
        }
    }
}

impl FromStr for Amount {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Amount, BadAmount> {
        let form = || BadAmount::Form(text.to_owned());
        let (number, currency) = text.split_once('.').ok_or_else(form)?;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if !digits || currency.is_empty() {
            return Err(form());
        }
        let number = number
            .parse()
            .map_err(|_| BadAmount::Range(number.to_owned()))?;
        Amount::of(number, currency)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.amount, self.currency)
    }
}

/// The funding of a client or a currency: an amount, a list of amounts in different
/// currencies, or, for a client, a [`Rule`].
#[derive(Clone, PartialEq, Debug)]
pub enum Tickets {
    /// Fixed until an event changes them.
    Fixed(Vec<Amount>),
    /// Changed by a rule.
    Ruled(Rule),
}

impl Default for Tickets {
    fn default() -> Self {
        Tickets::Fixed(Vec::new())
    }
}

/// A rule that changes tickets from the client's start on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Drawn anew each time (1995, 5.2).
    Random(RandomRule),
    /// Proportional to a power of the relative error that a Monte-Carlo
    /// computation has reached, `1 / sqrt(trials)` (1994, 5.2).
    MonteCarlo(MonteCarloRule),
}

/// Tickets uniformly distributed between two counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RandomRule {
    /// Fewest and most tickets.
    pub between: (u32, u32),
    /// Time between two changes.
    pub every: Time,
    /// Denomination.
    #[serde(default = "base_currency")]
    pub currency: String,
}

/// `scale * (1 / sqrt(trials))^power` tickets, at least 1.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MonteCarloRule {
    /// Tickets at an error of 1, that is, after one trial.
    pub scale: u32,
    /// CPU time that a trial takes.
    pub trial: Time,
    /// Time between two changes.
    pub every: Time,
    /// 2 in the paper; its footnote 6 names 1 and 3.
    #[serde(default = "square")]
    pub power: u32,
    /// Denomination.
    #[serde(default = "base_currency")]
    pub currency: String,
}

impl Rule {
    /// Time between two changes.
    pub fn every(&self) -> Time {
        match self {
            Rule::Random(rule) => rule.every,
            Rule::MonteCarlo(rule) => rule.every,
        }
    }

    /// The new tickets of a client that has received so much CPU time. Random tickets are
    /// drawn from `lots`.
    pub fn tickets(&self, lots: &mut impl Rng, received_ns: u64) -> u32 {
        match self {
            Rule::Random(rule) => {
                let (low, high) = rule.between;
                low + below(lots, u64::from(high - low) + 1) as u32
            }
            Rule::MonteCarlo(rule) => {
                let trials = u128::from((received_ns / rule.trial.0).max(1));
                // error^power = 1 / sqrt(trials^power)
                let inverse = trials.saturating_pow(rule.power).isqrt();
                (u128::from(rule.scale) / inverse).max(1) as u32
            }
        }
    }

    /// Denomination of the changed ticket.
    pub fn currency(&self) -> &str {
        match self {
            Rule::Random(rule) => &rule.currency,
            Rule::MonteCarlo(rule) => &rule.currency,
        }
    }
}

fn base_currency() -> String {
    BASE.to_owned()
}

fn square() -> u32 {
    2
}

const EXPECTED: &str = "tickets: a number, an amount such as \"100.alice\", or a list of these";

struct AmountVisitor;

impl de::Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of tickets or an amount such as \"100.alice\"")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
        Amount::of(number, BASE).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tickets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tickets, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Tickets;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{EXPECTED}, or a table with random or monte-carlo")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Tickets, E> {
                AmountVisitor
                    .visit_i64(number)
                    .map(|a| Tickets::Fixed(vec![a]))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Tickets, E> {
                AmountVisitor
                    .visit_u64(number)
                    .map(|a| Tickets::Fixed(vec![a]))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Tickets, E> {
                AmountVisitor
                    .visit_str(text)
                    .map(|a| Tickets::Fixed(vec![a]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Tickets, A::Error> {
                let mut amounts = Vec::new();
                while let Some(amount) = seq.next_element()? {
                    amounts.push(amount);
                }
                Ok(Tickets::Fixed(amounts))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Tickets, A::Error> {
                Rule::deserialize(de::value::MapAccessDeserializer::new(map)).map(Tickets::Ruled)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Tickets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tickets::Fixed(amounts) => amounts.serialize(serializer),
            Tickets::Ruled(rule) => rule.serialize(serializer),
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Tickets: a number of the base currency, or an amount such as 100.alice.",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                { "type": "string", "pattern": "^[0-9]+\\..+$" }
            ]
        })
    }
}

impl JsonSchema for Tickets {
    fn schema_name() -> Cow<'static, str> {
        "Tickets".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What funds a client: an amount, a list of amounts, or a rule.",
            "anyOf": [
                generator.subschema_for::<Amount>(),
                { "type": "array", "items": generator.subschema_for::<Amount>() },
                generator.subschema_for::<Rule>()
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_survive_print_and_parse() {
        for text in ["1.base", "4294967295.alice", "100.web.front"] {
            let amount: Amount = text.parse().expect(text);
            assert_eq!(amount.to_string(), text);
        }
    }

    #[test]
    fn other_amounts_are_refused() {
        for text in [
            "",
            "100",
            "100.",
            ".alice",
            "-1.alice",
            "+1.alice",
            "1e3.alice",
        ] {
            assert!(
                matches!(text.parse::<Amount>(), Err(BadAmount::Form(_))),
                "{text:?}"
            );
        }
        for text in ["0.alice", "4294967296.alice", "99999999999999999999.alice"] {
            assert!(
                matches!(text.parse::<Amount>(), Err(BadAmount::Range(_))),
                "{text:?}"
            );
        }
    }
}
