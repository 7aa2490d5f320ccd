//! Messages between the threads of a process and the run. Each has sixteen bytes over a
//! socket that each thread has to itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

#[derive(Debug)]
pub(crate) enum Report {
    /// It waits to begin.
    Ready,
    /// It takes the instruction of this number, which involves others, and waits for an
    /// order.
    Meets(u32),
    /// It starts a thread, which has the other end of this socket, and waits for an order.
    Forks(OwnedFd),
    /// It had a CPU so many nanoseconds after it became runnable.
    Woke(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// To begin; its durations are drawn from the stream of this number.
    Begin(u64),
    /// To continue at once.
    GoOn,
    /// To yield the CPU and continue.
    Yield,
    /// To continue after a wait that ended at this time of the monotonic clock.
    Wake(u64),
}

const BYTES: usize = 16;

impl Report {
    fn words(&self) -> [u64; 2] {
        match self {
            Report::Ready => [0, 0],
            Report::Meets(instruction) => [1, (*instruction).into()],
            Report::Forks(_) => [2, 0],
            Report::Woke(late_ns) => [3, *late_ns],
        }
    }

    pub(crate) fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: [BorrowedFd<'_>; 1];
        if let Report::Forks(end) = self {
            descriptors = [end.as_fd()];
            control.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let bytes = self.words().map(u64::to_le_bytes);
        let message = [IoSlice::new(bytes.as_flattened())];
        retry(|| sendmsg(&socket, &message, &mut control, SendFlags::NOSIGNAL)).map(drop)
    }

    /// Receives a message, if there is one; an end of file is an error.
    pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Report>> {
        let mut bytes = [0; BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut message = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        match recvmsg(&socket, &mut message, &mut control, flags) {
            Ok(received) if received.bytes == BYTES => {}
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let mut end = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                end = descriptors.last();
            }
        }
        let [kind, value] = words(&bytes);
        Ok(Some(match (kind, end) {
            (0, _) => Report::Ready,
            (1, _) => Report::Meets(u32::try_from(value).map_err(|_| malformed())?),
            (2, Some(end)) => Report::Forks(end),
            (3, _) => Report::Woke(value),
            _ => return Err(malformed()),
        }))
    }
}

impl Order {
    fn words(self) -> [u64; 2] {
        match self {
            Order::Begin(number) => [0, number],
            Order::GoOn => [1, 0],
            Order::Yield => [2, 0],
            Order::Wake(since_ns) => [3, since_ns],
        }
    }

    /// Sends the order. A thread that has exited does not receive it.
    pub(crate) fn send(self, socket: impl AsFd) -> io::Result<()> {
        let bytes = self.words().map(u64::to_le_bytes);
        let flags = SendFlags::NOSIGNAL;
        match retry(|| rustix::net::send(&socket, bytes.as_flattened(), flags)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Waits for an order; nothing if the run has ended.
    pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Order>> {
        let mut bytes = [0; BYTES];
        let (received, _) = retry(|| rustix::net::recv(&socket, &mut bytes, RecvFlags::empty()))?;
        if received < BYTES {
            return Ok(None);
        }
        let [kind, value] = words(&bytes);
        match kind {
            0 => Ok(Some(Order::Begin(value))),
            1 => Ok(Some(Order::GoOn)),
            2 => Ok(Some(Order::Yield)),
            3 => Ok(Some(Order::Wake(value))),
            _ => Err(malformed()),
        }
    }
}

/// The two ends of a new socket: messages stay whole.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    Ok(socketpair(
        AddressFamily::UNIX,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

fn words(bytes: &[u8; BYTES]) -> [u64; 2] {
    let (first, second) = bytes.split_at(8);
    [first, second].map(|half| u64::from_le_bytes(half.try_into().expect("half of 16 bytes")))
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_socket() {
        let (ours, theirs) = pair().expect("there is room");
        assert!(Report::receive(&ours).expect("open").is_none());
        Report::Ready.send(&theirs).expect("open");
        Report::Meets(u32::MAX).send(&theirs).expect("open");
        Report::Woke(u64::MAX).send(&theirs).expect("open");
        let hear = || Report::receive(&ours).expect("open");
        assert!(matches!(hear(), Some(Report::Ready)));
        assert!(matches!(hear(), Some(Report::Meets(u32::MAX))));
        assert!(matches!(hear(), Some(Report::Woke(u64::MAX))));
        for order in [
            Order::Begin(7),
            Order::GoOn,
            Order::Yield,
            Order::Wake(u64::MAX),
        ] {
            order.send(&ours).expect("open");
            assert_eq!(Order::receive(&theirs).expect("open"), Some(order));
        }
    }

    #[test]
    fn a_socket_travels_with_a_fork() {
        let (ours, theirs) = pair().expect("there is room");
        let (new, far) = pair().expect("there is room");
        Report::Forks(far).send(&theirs).expect("open");
        let Some(Report::Forks(far)) = Report::receive(&ours).expect("open") else {
            panic!("a fork was said");
        };
        Order::GoOn.send(far).expect("open");
        assert_eq!(Order::receive(new).expect("open"), Some(Order::GoOn));
    }

    #[test]
    fn malformed_and_cut_messages_are_errors() {
        let (ours, theirs) = pair().expect("there is room");
        for [kind, value] in [[9, 0], [1, 1 << 32], [2, 0]] {
            let bytes = [kind, value].map(u64::to_le_bytes);
            rustix::net::send(&theirs, bytes.as_flattened(), SendFlags::empty()).expect("open");
            assert!(Report::receive(&ours).is_err(), "{kind} {value}");
        }
        rustix::net::send(&theirs, b"short", SendFlags::empty()).expect("open");
        assert!(Report::receive(&ours).is_err());
        drop(theirs);
        assert!(Report::receive(&ours).is_err());
        assert!(Order::receive(&ours).is_ok_and(|order| order.is_none()));
    }
}
