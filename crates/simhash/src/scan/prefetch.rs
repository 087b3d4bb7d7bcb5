//! Asking for memory before it is needed.

#![allow(unsafe_code, reason = "the prefetch instruction takes a raw pointer")]

/// Starts to load the cache line of `slice[index]`. Only a hint: nothing is
/// read, and an index outside the slice does nothing.
#[inline]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    let Some(element) = slice.get(index) else {
        return;
    };
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching never faults, and the address is valid anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    // SAFETY: as above, and nothing but the caches changes.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) std::ptr::from_ref(element),
            options(nostack, readonly, preserves_flags)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = element;
}
