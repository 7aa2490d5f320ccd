//! A mapped file, looked at as atomics only.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::slice::from_raw_parts;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{ClaimRecord, HEADER_BYTES, Header, Layout, RowRecord, ScheduleeRecord};

/// A shared mapping.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is only accessed as atomics, for which sharing between threads and processes is
// sound.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the first `bytes` of a file, which has at least as many and never gets shorter: its
    /// writer makes it whole before it has its name, and only replaces it.
    pub fn map(file: impl AsFd, bytes: usize, protection: ProtFlags) -> io::Result<Self> {
        debug_assert!(bytes >= HEADER_BYTES);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, bytes })
    }

    pub fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, has at least a header's page and lives as long as
        // `self`; any bytes make a valid header of atomics.
        unsafe { self.start.cast().as_ref() }
    }

    /// `count` records at an offset. `T` consists of atomics only.
    fn records<T>(&self, offset: usize, count: usize) -> &[T] {
        assert!(offset + count * size_of::<T>() <= self.bytes);
        // SAFETY: the records are inside of the mapping, which lives as long as `self`; all offsets
        // of a layout are multiples of eight, which aligns them; any bytes make valid atomics.
        unsafe { from_raw_parts(self.start.as_ptr().add(offset).cast::<T>(), count) }
    }

    pub fn rows(&self, layout: &Layout, rows: usize) -> &[RowRecord] {
        self.records(layout.rows, rows)
    }

    pub fn words(&self, layout: &Layout, buffer: usize, cells: usize) -> &[AtomicU64] {
        self.records(layout.words[buffer], cells)
    }

    pub fn claims(&self, layout: &Layout, cells: usize) -> &[ClaimRecord] {
        self.records(layout.claims, cells)
    }

    pub fn schedulees(&self, layout: &Layout) -> &[ScheduleeRecord] {
        self.records(layout.schedulees, prorata_core::slots::SCHEDULEES)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives the value.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}
