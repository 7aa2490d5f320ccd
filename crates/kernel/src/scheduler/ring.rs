//! A ring buffer that the kernel fills.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use super::loaded::lock;

/// The reading end of a ring, with its records decoded.
pub struct Ring<T> {
    ring: Mutex<RingBuffer<'static>>,
    come: Arc<Mutex<Vec<T>>>,
}

impl<T: Send + 'static> Ring<T> {
    /// Reads a map. Drops records that `decode` does not accept.
    pub fn new(map: &dyn MapCore, decode: fn(&[u8]) -> Option<T>) -> libbpf_rs::Result<Self> {
        let come = Arc::new(Mutex::new(Vec::new()));
        let coming = Arc::clone(&come);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |bytes| {
            lock(&coming).extend(decode(bytes));
            0
        })?;
        let ring = Mutex::new(builder.build()?);
        Ok(Self { ring, come })
    }

    /// Readable when there is something to take.
    pub fn fd(&self) -> BorrowedFd<'_> {
        let fd = lock(&self.ring).epoll_fd();
        // SAFETY: the ring lives as long as `self`, and keeps it open.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }

    /// The records since the last call.
    pub fn take(&self) -> Vec<T> {
        // It only fails if a callback fails, and this one does not.
        let _ = lock(&self.ring).poll(Duration::ZERO);
        std::mem::take(&mut *lock(&self.come))
    }
}
