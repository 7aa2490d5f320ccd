//! A ring buffer that the kernel fills.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use super::loaded::lock;

/// What comes through it, decoded.
pub struct Ring<T> {
    ring: Mutex<RingBuffer<'static>>,
    come: Arc<Mutex<Vec<T>>>,
}

impl<T: Send + 'static> Ring<T> {
    /// The other end of a map. What cannot be decoded is left out.
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

    /// What has come since the last call.
    pub fn take(&self) -> Vec<T> {
        // It fails only if a callback does, and ours does not.
        let _ = lock(&self.ring).poll(Duration::ZERO);
        std::mem::take(&mut *lock(&self.come))
    }
}
