//! Fetching memory ahead of its use.

/// Asks the processor to bring `table[index]` near, without waiting for it.
/// Nothing happens outside the table, nor where the processor cannot be asked
/// in stable Rust.
///
/// A decision among a million clients waits for a read that misses all caches.
/// Where decisions come in succession, memory asked for a few decisions earlier
/// is there in time. Elsewhere asking costs next to nothing.
#[inline]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let entry = core::ptr::from_ref(entry);
        // SAFETY: the instruction changes nothing that a program can observe
        // and never faults, whatever the address; this one is even valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(entry.cast()) }
        // It may lie across two cache lines.
        if size_of::<T>() > 16 {
            let end = entry.cast::<i8>().wrapping_add(size_of::<T>() - 1);
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(end) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
