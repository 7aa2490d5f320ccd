//! Both ends of a user's connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown};

use super::Transport;

/// An end of a stream, which several threads may use at a time.
#[derive(Debug)]
pub struct Connection(OwnedFd);

impl Connection {
    /// Waits until `buffer` is full; false if the other end closed before the
    /// first byte.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::read(&self.0, &mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(true)
    }

    /// Waits until all of `bytes` is on its way.
    pub fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&self.0, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Tells the other end that nothing more will be written.
    pub fn finish(&self) -> io::Result<()> {
        Ok(shutdown(&self.0, Shutdown::Write)?)
    }

    /// Ends both directions, for threads that wait in them too.
    pub fn close(&self) {
        // One that is closed already needs no closing.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// Makes connections, one after another.
pub enum Pairs {
    /// Over a socket that listens on the loopback interface only.
    Tcp(TcpListener),
    /// Pairs of Unix sockets.
    Unix,
}

impl Pairs {
    /// Prepares to make connections.
    pub fn new(transport: Transport) -> io::Result<Self> {
        Ok(match transport {
            Transport::Tcp => Self::Tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?),
            Transport::Unix => Self::Unix,
        })
    }

    /// A connection: the client's end and the server's.
    pub fn make(&mut self) -> io::Result<(Connection, Connection)> {
        match self {
            Self::Tcp(listener) => {
                let client = TcpStream::connect(listener.local_addr()?)?;
                let server = accept(listener, client.local_addr()?)?;
                for end in [&client, &server] {
                    // A message is sent when it is written.
                    end.set_nodelay(true)?;
                }
                Ok((Connection(client.into()), Connection(server.into())))
            }
            Self::Unix => {
                let (client, server) = UnixStream::pair()?;
                Ok((Connection(client.into()), Connection(server.into())))
            }
        }
    }
}

/// The other end of our own connection, which waits to be accepted. Any program of
/// the machine may have connected before.
fn accept(listener: &TcpListener, client: SocketAddr) -> io::Result<TcpStream> {
    loop {
        let (server, peer) = listener.accept()?;
        if peer == client {
            return Ok(server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_other_programs_are_not_accepted() {
        let mut pairs = Pairs::new(Transport::Tcp).unwrap();
        let Pairs::Tcp(listener) = &pairs else {
            unreachable!()
        };
        let stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (client, server) = pairs.make().unwrap();
        client.write(b"for us").unwrap();
        let mut read = [0; 6];
        assert!(server.read(&mut read).unwrap());
        assert_eq!(&read, b"for us");
        drop(stranger);
    }

    #[test]
    fn an_end_is_told_from_half_a_message() {
        for transport in [Transport::Tcp, Transport::Unix] {
            let mut pairs = Pairs::new(transport).unwrap();
            let (client, server) = pairs.make().unwrap();
            client.write(b"abc").unwrap();
            client.finish().unwrap();
            let mut buffer = [0; 2];
            assert!(server.read(&mut buffer).unwrap());
            let half = server.read(&mut buffer).unwrap_err();
            assert_eq!(half.kind(), io::ErrorKind::UnexpectedEof);
            assert!(!server.read(&mut buffer).unwrap());
        }
    }
}
