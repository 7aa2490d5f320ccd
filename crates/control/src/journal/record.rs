//! Records of the journal: framing, checksums, and finding out where a
//! damaged file ends.
//!
//! ```text
//!   MAGIC | record | record | ...
//!   record = length: u32 | crc32: u32 | sequence: u64 | payload: length bytes
//! ```
//!
//! Numbers are little endian. The checksum covers the whole record but itself.
//! Sequence numbers grow by one from record to record.

use std::ops::Range;

/// Begins every journal. The number changes with the format, the serialised
/// form of ledger and operations included; a test compares both with a golden
/// file.
pub(super) const MAGIC: &[u8] = b"prorata journal 4\n";

/// Bytes of a record before its payload.
const HEADER_BYTES: usize = 16;

/// Longest payload; that of a ledger filled to its limits is shorter.
pub(super) const MAX_PAYLOAD_BYTES: usize = 256 << 20;

/// Adds a record to `bytes`. `payload` is at most [`MAX_PAYLOAD_BYTES`] long.
pub(super) fn encode(bytes: &mut Vec<u8>, sequence: u64, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("payloads are bounded");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(length, sequence, payload).to_le_bytes());
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes.extend_from_slice(payload);
}

fn checksum(length: u32, sequence: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(&sequence.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// What is wrong with a journal after its last good record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    /// The machine or the daemon stopped while it wrote a record. No client was
    /// told that the change succeeded.
    TornTail {
        /// Length of what is left of it.
        bytes: usize,
    },
    /// Something in the file has changed since it was written: good records
    /// follow it, or the file does not begin as a journal does.
    Corrupt {
        /// Where in the file.
        offset: usize,
    },
}

/// The good records at the beginning of a journal.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Scan {
    /// Where their payloads are.
    pub payloads: Vec<Range<usize>>,
    /// The sequence number after the last of them.
    pub next_sequence: u64,
    pub damage: Option<Damage>,
}

/// Reads records up to the end or the first that is not good.
pub(super) fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan {
        payloads: Vec::new(),
        next_sequence: 0,
        damage: None,
    };
    if !bytes.starts_with(MAGIC) {
        scan.damage = Some(Damage::Corrupt { offset: 0 });
        return scan;
    }
    let mut offset = MAGIC.len();
    while offset < bytes.len() {
        let first = scan.payloads.is_empty();
        match parse(bytes, offset) {
            Some((sequence, payload)) if first || sequence == scan.next_sequence => {
                scan.next_sequence = sequence + 1;
                offset = payload.end;
                scan.payloads.push(payload);
            }
            _ => {
                scan.damage = Some(damage(bytes, offset, &scan));
                return scan;
            }
        }
    }
    scan
}

/// The record at `offset`, if it is whole and its checksum is right.
fn parse(bytes: &[u8], offset: usize) -> Option<(u64, Range<usize>)> {
    let header = bytes.get(offset..)?.first_chunk::<HEADER_BYTES>()?;
    let number = |at: usize| u32::from_le_bytes(*header[at..].first_chunk().expect("4 of 16"));
    let (length, crc) = (number(0), number(4));
    let sequence = u64::from_le_bytes(*header.last_chunk().expect("8 of 16"));
    let start = offset + HEADER_BYTES;
    let payload = start..start.checked_add(length as usize)?;
    let good = payload.len() <= MAX_PAYLOAD_BYTES
        && checksum(length, sequence, bytes.get(payload.clone())?) == crc;
    (good && sequence < u64::MAX).then_some((sequence, payload))
}

/// A journal is only ever written at its end. So if a good record follows
/// what is not one, it was good too when it was written.
///
/// Cost: a look at every later offset, and a checksum where a fitting
/// sequence number happens to stand.
fn damage(bytes: &[u8], offset: usize, scan: &Scan) -> Damage {
    if scan.payloads.is_empty() {
        return Damage::Corrupt { offset };
    }
    let left = (bytes.len() - offset) as u64;
    let expected = scan.next_sequence..scan.next_sequence.saturating_add(left);
    let good_follows = (offset + 1..bytes.len()).any(|later| {
        let sequence = bytes.get(later + 8..).and_then(|rest| rest.first_chunk());
        sequence.is_some_and(|bytes| expected.contains(&u64::from_le_bytes(*bytes)))
            && parse(bytes, later).is_some()
    });
    match good_follows {
        true => Damage::Corrupt { offset },
        false => Damage::TornTail {
            bytes: bytes.len() - offset,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOADS: [&[u8]; 4] = [b"first", b"", b"a third one", b"4"];

    /// A journal of `PAYLOADS` and the offset at which each record ends.
    fn journal() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = MAGIC.to_vec();
        let ends = (7..).zip(PAYLOADS).map(|(sequence, payload)| {
            encode(&mut bytes, sequence, payload);
            bytes.len()
        });
        let ends = ends.collect();
        (bytes, ends)
    }

    fn payloads<'a>(bytes: &'a [u8], scan: &Scan) -> Vec<&'a [u8]> {
        scan.payloads
            .iter()
            .map(|range| &bytes[range.clone()])
            .collect()
    }

    #[test]
    fn a_whole_journal_is_read_back() {
        let (bytes, _) = journal();
        let scan = scan(&bytes);
        assert_eq!(payloads(&bytes, &scan), PAYLOADS);
        assert_eq!((scan.next_sequence, scan.damage), (11, None));
    }

    #[test]
    fn a_journal_cut_anywhere_keeps_its_whole_records() {
        let (bytes, ends) = journal();
        for cut in 0..bytes.len() {
            let scan = scan(&bytes[..cut]);
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(payloads(&bytes, &scan), PAYLOADS[..whole], "cut at {cut}");
            let end = if whole == 0 {
                MAGIC.len()
            } else {
                ends[whole - 1]
            };
            match scan.damage {
                None => assert_eq!(cut, end),
                Some(Damage::TornTail { bytes }) => assert_eq!(bytes, cut - end),
                // The first record is renamed into place whole.
                Some(Damage::Corrupt { .. }) => assert_eq!(whole, 0),
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_found_and_earlier_records_stay() {
        let (bytes, ends) = journal();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let scan = scan(&bytes);
            let struck = match bit / 8 {
                byte if byte < MAGIC.len() => 0,
                byte => ends.iter().filter(|&&end| end <= byte).count(),
            };
            assert_eq!(payloads(&bytes, &scan), PAYLOADS[..struck], "bit {bit}");
            match struck {
                3 => assert!(
                    matches!(scan.damage, Some(Damage::TornTail { .. })),
                    "bit {bit}"
                ),
                _ => assert!(
                    matches!(scan.damage, Some(Damage::Corrupt { .. })),
                    "bit {bit}"
                ),
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        use proptest::prelude::*;
        proptest!(ProptestConfig::with_cases(2_000), |(
            tail in proptest::collection::vec(any::<u8>(), 0..200),
            with_magic in any::<bool>(),
        )| {
            let mut bytes = if with_magic { MAGIC.to_vec() } else { Vec::new() };
            bytes.extend(tail);
            scan(&bytes);
        });
    }
}
