//! Fetching memory ahead of its use.

/// Asks the processor to bring `table[index]` near, without waiting for it.
/// Nothing happens outside the table, nor where the processor cannot be asked
/// in stable Rust.
///
/// A draw among a million clients waits for one read that misses all caches.
/// Asked for a few draws earlier, it is there when they come in succession;
/// when they do not, asking costs next to nothing.
#[inline]
pub(super) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction changes nothing that a program can observe
        // and never faults, whatever the address; this one is even valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(entry).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
