//! Memory of large simulations.
//!
//! Among a million clients nearly every access goes to another page and misses the TLB.
//! With pages of 2 MiB instead of 4 KiB such a simulation is about 1.4 times as fast. By
//! default, Linux gives huge pages only where a program asks for them.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which asks for huge pages where much memory is
/// wanted in one piece. For a program to declare as its global allocator.
pub struct HugePages;

/// Smallest allocation that asks for huge pages; smaller ones would waste more than they
/// gain.
const MUCH: usize = 4 << 20;
/// Advice is given on whole pages.
const PAGE: usize = 4096;

/// Asks for huge pages for a large new allocation. This is only advice, and its failure
/// does no harm.
#[inline]
fn advise(memory: *mut u8, bytes: usize) {
    if bytes >= MUCH && !memory.is_null() {
        advise_much(memory, bytes);
    }
}

#[cold]
fn advise_much(memory: *mut u8, bytes: usize) {
    let skipped = memory.align_offset(PAGE);
    let whole = (bytes - skipped) / PAGE * PAGE;
    let start = memory.wrapping_add(skipped).cast();
    // SAFETY: these pages lie within the allocation, and the advice changes
    // nothing that a program can observe but the time that it takes.
    let _ = unsafe { rustix::mm::madvise(start, whole, rustix::mm::Advice::LinuxHugepage) };
}

// SAFETY: every call goes to the system's allocator unchanged; advice does not
// touch the memory.
unsafe impl GlobalAlloc for HugePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`.
        let memory = unsafe { System.alloc(layout) };
        advise(memory, layout.size());
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        let memory = unsafe { System.alloc_zeroed(layout) };
        advise(memory, layout.size());
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`, and the caller keeps to the contract.
        let memory = unsafe { System.realloc(memory, layout, size) };
        advise(memory, size);
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_what_is_written_while_it_grows() {
        for bytes in [1, MUCH - 1, MUCH, MUCH + 1] {
            let layout = Layout::from_size_align(bytes, 1).unwrap();
            let size = 2 * bytes + MUCH;
            // SAFETY: the layouts are not of size zero, and each piece is given
            // back with that of its last size; it is read and written within.
            unsafe {
                let memory = HugePages.alloc_zeroed(layout);
                assert!(!memory.is_null());
                assert_eq!(*memory.add(bytes - 1), 0);
                memory.write(7);
                let memory = HugePages.realloc(memory, layout, size);
                assert_eq!(*memory, 7);
                memory.add(size - 1).write(8);
                HugePages.dealloc(memory, Layout::from_size_align(size, 1).unwrap());
            }
        }
    }
}
