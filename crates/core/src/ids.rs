//! Generational identifiers of the ledger's objects.
//!
//! An identifier names one object for ever: when the object is destroyed its
//! index is used again under the next generation, and the old identifier is
//! refused. Identifiers are handed out deterministically, so replaying the
//! same operations gives the same identifiers.

use core::fmt;

/// What the arenas need to know of an identifier.
pub(crate) trait Identifier: Copy {
    fn from_parts(index: u32, generation: u32) -> Self;
    fn index(self) -> u32;
    fn generation(self) -> u32;
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// Puts an identifier together from its parts, as they stand on the wire.
            pub const fn from_parts(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            /// Dense index; used again after the object is destroyed.
            pub const fn index(self) -> u32 {
                self.index
            }

            /// How many objects stood at this index before this one.
            pub const fn generation(self) -> u32 {
                self.generation
            }
        }

        impl Identifier for $name {
            fn from_parts(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            fn index(self) -> u32 {
                self.index
            }

            fn generation(self) -> u32 {
                self.generation
            }
        }

        impl fmt::Display for $name {
            /// The letter, the index, and the generation where it is not zero:
            /// `c3`, `c3.1`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.index)?;
                if self.generation > 0 {
                    write!(f, ".{}", self.generation)?;
                }
                Ok(())
            }
        }

        impl core::str::FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                parse(text, $letter).map(|(index, generation)| Self { index, generation })
            }
        }
    };
}

identifier!(
    /// A currency (1994, 3.3).
    CurrencyId,
    "u"
);
identifier!(
    /// A ticket: an amount in a currency (1994, 4.3).
    TicketId,
    "t"
);
identifier!(
    /// A client: one competitor for the resource.
    ClientId,
    "c"
);
identifier!(
    /// A transfer of tickets that can be undone (1994, 3.1; 1995, 3.1).
    TransferId,
    "x"
);

/// A client by its index alone, as policies and choosers know it: a small dense
/// number, used again after the client is destroyed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientIndex(pub u32);

impl fmt::Display for ClientIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}", self.0)
    }
}

/// Text that is not an identifier of the wanted kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not an identifier: expected '{letter}' and a number, such as {letter}3 or {letter}3.1")]
pub struct ParseIdError {
    letter: &'static str,
}

fn parse(text: &str, letter: &'static str) -> Result<(u32, u32), ParseIdError> {
    let error = ParseIdError { letter };
    let digits = text.strip_prefix(letter).ok_or(error)?;
    let (index, generation) = digits.split_once('.').unwrap_or((digits, "0"));
    match (number(index), number(generation)) {
        (Some(index), Some(generation)) => Ok((index, generation)),
        _ => Err(error),
    }
}

/// `u32::from_str` also takes a leading `+`; identifiers do not.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn identifiers_survive_print_and_parse() {
        for id in [
            ClientId::from_parts(0, 0),
            ClientId::from_parts(u32::MAX, u32::MAX),
        ] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(TicketId::from_parts(3, 1).to_string(), "t3.1");
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "c", "t3", "c+3", "c3.", "c3.x", "c4294967296", "c 3"] {
            assert!(text.parse::<ClientId>().is_err(), "{text:?}");
        }
    }
}
