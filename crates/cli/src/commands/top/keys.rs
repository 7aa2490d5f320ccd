//! The keys of `top`.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Quit,
    Up,
    Down,
    Inflate,
    Deflate,
    Sort,
    Reverse,
}

/// The actions of the keys in `bytes`, without unknown keys.
pub fn decode(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        let (key, rest) = match (first, rest) {
            (0x1b, [b'[', b'A', rest @ ..]) => (Some(Key::Up), rest),
            (0x1b, [b'[', b'B', rest @ ..]) => (Some(Key::Down), rest),
            (0x1b, [b'[', rest @ ..]) => {
                // An unknown sequence extends to its final byte.
                let end = rest
                    .iter()
                    .position(|byte| (0x40..=0x7e).contains(byte))
                    .map_or(rest.len(), |end| end + 1);
                (None, &rest[end..])
            }
            (b'q' | b'Q', rest) => (Some(Key::Quit), rest),
            (b'k', rest) => (Some(Key::Up), rest),
            (b'j', rest) => (Some(Key::Down), rest),
            (b'+' | b'=', rest) => (Some(Key::Inflate), rest),
            (b'-', rest) => (Some(Key::Deflate), rest),
            (b's', rest) => (Some(Key::Sort), rest),
            (b'r', rest) => (Some(Key::Reverse), rest),
            (_, rest) => (None, rest),
        };
        keys.extend(key);
        bytes = rest;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_sequences_are_skipped() {
        assert_eq!(
            decode(b"\x1b[A\x1b[Bkj"),
            [Key::Up, Key::Down, Key::Up, Key::Down]
        );
        assert_eq!(
            decode(b"\x1b[15~s\x1b[1;5C+q"),
            [Key::Sort, Key::Inflate, Key::Quit]
        );
        assert_eq!(decode(b"\x1b["), []);
        assert_eq!(decode(b"\x1b"), []);
    }
}
