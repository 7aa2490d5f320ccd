//! Frames from the machine to its host. They have a serial port of their own, so
//! that the kernel's log and a command's output stay apart.
//!
//! ```text
//!   kind   length              contents
//!   1 byte 4 bytes, big endian length bytes
//! ```

use std::io::{self, Read, Write};

/// Bytes that a frame carries at most.
pub const MAX_CONTENTS_BYTES: usize = 64 * 1024;

/// Name of the port.
pub const PORT: &str = "prorata";

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// The machine is up and is about to run the command.
    Ready,
    /// The command wrote this to its standard output.
    Output(Vec<u8>),
    /// The command wrote this to its standard error.
    Errors(Vec<u8>),
    /// The command ended. No frame follows.
    Ended(Ending),
    /// The machine could not be brought up. No frame follows.
    Failed(String),
}

/// How the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With this code.
    Exited(u8),
    /// By the signal of this number.
    Killed(u8),
}

/// Why the channel gives no frame.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ChannelError {
    #[error("the machine sent a frame of kind {kind} and {bytes} bytes, which means nothing")]
    Nonsense { kind: u8, bytes: usize },
    #[error("the machine's channel ended within a frame")]
    Torn,
    #[error("cannot read the machine's channel: {0}")]
    Broken(#[source] io::Error),
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ChannelError::Torn,
            _ => ChannelError::Broken(error),
        }
    }
}

impl Frame {
    /// Writes the frame. Contents that are too long for one become several.
    pub fn write(&self, channel: &mut impl Write) -> io::Result<()> {
        match self {
            Frame::Ready => write(channel, 0, &[]),
            Frame::Output(bytes) => write_pieces(channel, 1, bytes),
            Frame::Errors(bytes) => write_pieces(channel, 2, bytes),
            Frame::Ended(Ending::Exited(code)) => write(channel, 3, &[*code]),
            Frame::Ended(Ending::Killed(signal)) => write(channel, 4, &[*signal]),
            Frame::Failed(why) => {
                let bytes = why.as_bytes();
                write(channel, 5, &bytes[..bytes.len().min(MAX_CONTENTS_BYTES)])
            }
        }
    }

    /// Reads the next frame, or `None` at the channel's end.
    pub fn read(channel: &mut impl Read) -> Result<Option<Self>, ChannelError> {
        let mut header = [0; 5];
        loop {
            match channel.read(&mut header[..1]) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        channel.read_exact(&mut header[1..])?;
        let [kind, length @ ..] = header;
        let bytes = u32::from_be_bytes(length) as usize;
        let nonsense = ChannelError::Nonsense { kind, bytes };
        if bytes > MAX_CONTENTS_BYTES {
            return Err(nonsense);
        }
        let mut contents = vec![0; bytes];
        channel.read_exact(&mut contents)?;
        Ok(Some(match (kind, contents.as_slice()) {
            (0, []) => Frame::Ready,
            (1, _) => Frame::Output(contents),
            (2, _) => Frame::Errors(contents),
            (3, &[code]) => Frame::Ended(Ending::Exited(code)),
            (4, &[signal]) => Frame::Ended(Ending::Killed(signal)),
            (5, _) => Frame::Failed(String::from_utf8_lossy(&contents).into_owned()),
            _ => return Err(nonsense),
        }))
    }
}

fn write_pieces(channel: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(MAX_CONTENTS_BYTES) {
        write(channel, kind, piece)?;
    }
    Ok(())
}

/// Header and contents go in one write: each write of the guest is a message of
/// its own to the host.
fn write(channel: &mut impl Write, kind: u8, contents: &[u8]) -> io::Result<()> {
    let length = u32::try_from(contents.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(5 + contents.len());
    frame.push(kind);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(contents);
    channel.write_all(&frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(mut bytes: &[u8]) -> Result<Vec<Frame>, ChannelError> {
        let mut frames = Vec::new();
        while let Some(frame) = Frame::read(&mut bytes)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    fn any_frame() -> impl Strategy<Value = Frame> {
        let bytes = || proptest::collection::vec(any::<u8>(), 1..100);
        prop_oneof![
            Just(Frame::Ready),
            bytes().prop_map(Frame::Output),
            bytes().prop_map(Frame::Errors),
            any::<u8>().prop_map(|code| Frame::Ended(Ending::Exited(code))),
            any::<u8>().prop_map(|signal| Frame::Ended(Ending::Killed(signal))),
            ".{0,40}".prop_map(Frame::Failed),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sent_frames_arrive(sent in proptest::collection::vec(any_frame(), 0..20)) {
            let mut bytes = Vec::new();
            for frame in &sent {
                frame.write(&mut bytes).unwrap();
            }
            prop_assert_eq!(frames(&bytes).unwrap(), sent);
        }

        #[test]
        fn a_torn_frame_is_told(frame in any_frame(), torn in any::<proptest::sample::Index>()) {
            let mut bytes = Vec::new();
            frame.write(&mut bytes).unwrap();
            let length = torn.index(bytes.len());
            bytes.truncate(length);
            match frames(&bytes) {
                Ok(frames) => prop_assert!(length == 0 && frames.is_empty()),
                Err(error) => prop_assert!(matches!(error, ChannelError::Torn)),
            }
        }

        #[test]
        fn any_bytes_are_frames_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = frames(&bytes);
        }
    }

    #[test]
    fn long_output_becomes_several_frames() {
        for (bytes, count) in [(MAX_CONTENTS_BYTES, 1), (MAX_CONTENTS_BYTES + 1, 2)] {
            let mut sent = Vec::new();
            Frame::Output(vec![7; bytes]).write(&mut sent).unwrap();
            assert_eq!(frames(&sent).unwrap().len(), count);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_its_contents_are_read() {
        let mut bytes = vec![1];
        let length = u32::try_from(MAX_CONTENTS_BYTES + 1).unwrap();
        bytes.extend_from_slice(&length.to_be_bytes());
        let refused = frames(&bytes);
        assert!(matches!(
            refused,
            Err(ChannelError::Nonsense { kind: 1, .. })
        ));
    }
}
