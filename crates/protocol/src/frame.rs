//! Frames on the wire: four bytes of length, little endian, then that many
//! bytes of JSON.

use serde::Serialize;

/// Bytes of the length before a frame's body.
pub const HEADER_BYTES: usize = 4;

/// Writes a message as one frame.
///
/// `Err` is the length of a body that is longer than `max_bytes`.
pub fn encode(message: &impl Serialize, max_bytes: u32) -> Result<Vec<u8>, usize> {
    let mut frame = vec![0; HEADER_BYTES];
    serde_json::to_writer(&mut frame, message).expect("messages have string keys only");
    let length = frame.len() - HEADER_BYTES;
    match u32::try_from(length) {
        Ok(short) if short <= max_bytes => {
            frame[..HEADER_BYTES].copy_from_slice(&short.to_le_bytes());
            Ok(frame)
        }
        _ => Err(length),
    }
}

/// The bytes of a connection that are not yet a whole frame.
#[derive(Default, Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
}

/// A frame announced as longer than the reader takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameTooLong(pub u32);

impl Inbox {
    /// Adds bytes that were read.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether nothing came in since the last frame that was taken.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether [`Self::take_frame`] returns a frame or an error.
    pub fn has_frame(&self, max_bytes: u32) -> bool {
        self.bytes.first_chunk().is_some_and(|header| {
            let length = u32::from_le_bytes(*header);
            length > max_bytes || self.bytes.len() >= HEADER_BYTES + length as usize
        })
    }

    /// Takes the body of the first frame, if all of it is there. A frame that
    /// announces more than `max_bytes` is refused before its body arrives.
    pub fn take_frame(&mut self, max_bytes: u32) -> Result<Option<Vec<u8>>, FrameTooLong> {
        let Some(header) = self.bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*header);
        if length > max_bytes {
            return Err(FrameTooLong(length));
        }
        let end = HEADER_BYTES + length as usize;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let body = self.bytes[HEADER_BYTES..end].to_vec();
        self.bytes.drain(..end);
        Ok(Some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_in_pieces_arrives_whole() {
        let frame = encode(&"hello", 7).unwrap();
        for cut in 0..=frame.len() {
            let mut inbox = Inbox::default();
            inbox.extend(&frame[..cut]);
            let early = inbox.take_frame(7).unwrap();
            assert_eq!(early.is_some(), cut == frame.len());
            inbox.extend(&frame[cut..]);
            inbox.extend(&frame);
            let body = early.or_else(|| inbox.take_frame(7).unwrap());
            assert_eq!(body.as_deref(), Some(&b"\"hello\""[..]));
            assert_eq!(
                inbox.take_frame(7).unwrap().as_deref(),
                Some(&b"\"hello\""[..])
            );
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn the_limit_holds_at_the_limit_and_not_past_it() {
        assert!(encode(&"hello", 7).is_ok());
        assert_eq!(encode(&"hello", 6), Err(7));
        let mut inbox = Inbox::default();
        inbox.extend(&7u32.to_le_bytes());
        assert_eq!(inbox.take_frame(7), Ok(None));
        assert_eq!(inbox.take_frame(6), Err(FrameTooLong(7)));
    }
}
