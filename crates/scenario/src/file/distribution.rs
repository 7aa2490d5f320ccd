//! How long a step takes: fixed, drawn at random, or read from a trace.

use core::fmt;
use std::borrow::Cow;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Time;

/// A source of durations: a time, or a table with one of the keys of
/// [`Varying`].
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution {
    /// Always the same.
    Fixed(Time),
    /// Another time each time.
    Varying(Varying),
}

/// A source of durations that vary.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Varying {
    /// Uniform: from the first time to the second, both included.
    Uniform(Time, Time),
    /// Exponential with this mean.
    Exponential(Time),
    /// Normal; negative times become zero.
    Normal(Normal),
    /// The times in order, each thread from the first one; after the last comes the first
    /// again.
    Trace(Trace),
}

/// A normal distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Normal {
    /// Its mean.
    pub mean: Time,
    /// Its standard deviation.
    pub deviation: Time,
}

/// Recorded durations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a list of times or the name of a CSV file"
)]
pub enum Trace {
    /// In the scenario itself.
    Times(Vec<Time>),
    /// In a CSV file beside the scenario: the first column of each line is a time; empty
    /// lines and lines that begin with # do not count.
    File(PathBuf),
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Distribution::Fixed(time) => time.serialize(serializer),
            Distribution::Varying(varying) => varying.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distribution, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Distribution;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"20ms\", or a table with uniform, exponential, normal or trace")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Distribution, E> {
                text.parse().map(Distribution::Fixed).map_err(E::custom)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Distribution, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                Varying::deserialize(map).map(Distribution::Varying)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Distribution {
    fn schema_name() -> Cow<'static, str> {
        "Distribution".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How long something takes: a time, or a source of varying times.",
            "anyOf": [generator.subschema_for::<Time>(), generator.subschema_for::<Varying>()]
        })
    }
}
