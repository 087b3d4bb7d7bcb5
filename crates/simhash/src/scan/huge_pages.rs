//! Asking for huge pages behind large buffers, so that a probe seldom misses the
//! table of translated addresses.

#![allow(unsafe_code, reason = "the system call takes a raw pointer")]

/// Bytes of a cache line.
const LINE: usize = 64;

/// A buffer of zeros that the kernel is advised to put on huge pages, before
/// anything has touched it. Only advice: systems without it ignore it.
pub(crate) fn zeroed<T: Zero>(len: usize) -> Vec<T> {
    let buffer = vec![T::ZERO; len];
    advise(&buffer);
    buffer
}

/// Bytes that start and end where a cache line does.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    skipped: usize,
    len: usize,
}

impl Lines {
    /// At least so many zeros, like [`zeroed`].
    pub(crate) fn zeroed(len: usize) -> Self {
        let len = len.next_multiple_of(LINE);
        let buffer: Vec<u8> = zeroed(len + LINE);
        let skipped = buffer.as_ptr().addr().next_multiple_of(LINE) - buffer.as_ptr().addr();
        Self {
            buffer,
            skipped,
            len,
        }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.skipped..][..self.len]
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.skipped..][..self.len]
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Numbers that a buffer may hold.
pub(crate) trait Zero: Clone {
    const ZERO: Self;
}

impl Zero for u8 {
    const ZERO: Self = 0;
}

impl Zero for u32 {
    const ZERO: Self = 0;
}

impl Zero for u64 {
    const ZERO: Self = 0;
}

/// Advises the kernel for the whole huge pages inside a buffer: those at its ends
/// would hold what is not the buffer's.
#[cfg(target_os = "linux")]
fn advise<T>(buffer: &[T]) {
    /// Bytes of a huge page, on the processors where this matters.
    const HUGE: usize = 2 << 20;

    let bytes = std::mem::size_of_val(buffer);
    let address = buffer.as_ptr().addr();
    let skipped = address.next_multiple_of(HUGE) - address;
    let Some(inside) = bytes.checked_sub(skipped) else {
        return;
    };
    let whole = inside / HUGE * HUGE;
    if whole == 0 {
        return;
    }
    let start = buffer.as_ptr().cast::<u8>().wrapping_add(skipped);
    // SAFETY: the pages lie inside the buffer, and this advice changes only what
    // backs them. A failure means that small pages stay.
    let _ = unsafe { libc::madvise(start.cast_mut().cast(), whole, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &[T]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_size_are_zeros() {
        for len in [0, 1, 4096, 1 << 20, (4 << 20) + 1] {
            let buffer = zeroed::<u32>(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&number| number == 0));
        }
    }
}
