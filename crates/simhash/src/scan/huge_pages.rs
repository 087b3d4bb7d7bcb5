//! Large buffers on huge pages, so that a probe seldom misses the table of
//! translated addresses.

use std::ops::{Deref, DerefMut, Range};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a huge page, on the processors where this matters.
const HUGE: usize = 2 << 20;

/// A buffer that starts as zeros. If it fills huge pages, it is a mapping of its own, and the kernel is advised before
/// anything has touched it. Memory that an allocator gives a second time lies on small pages already.
#[derive(Debug)]
pub(crate) struct Zeroed<T>(Memory<T>);

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    /// A part of a mapping that starts where a huge page does.
    Mapping(MmapMut, Range<usize>),
}

impl<T: Pod> Zeroed<T> {
    pub(crate) fn new(len: usize) -> Self {
        match mapping(len * size_of::<T>()) {
            Some((mapping, part)) => Self(Memory::Mapping(mapping, part)),
            None => Self(Memory::Heap(vec![T::zeroed(); len])),
        }
    }

    /// Room for `len`, whatever it holds: what is there already, if it is enough.
    pub(crate) fn room(&mut self, len: usize) -> &mut [T] {
        if self.len() < len {
            *self = Self::new(len);
        }
        &mut self[..len]
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory(&self) -> usize {
        size_of_val::<[T]>(self)
    }
}

impl<T: Pod> Clone for Zeroed<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

/// Keeps the memory of the vector, whatever pages that has.
impl<T> From<Vec<T>> for Zeroed<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Memory::Heap(values))
    }
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Self(Memory::Heap(Vec::new()))
    }
}

impl<T: Pod> Deref for Zeroed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Heap(values) => values,
            Memory::Mapping(mapping, part) => bytemuck::cast_slice(&mapping[part.clone()]),
        }
    }
}

impl<T: Pod> DerefMut for Zeroed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Memory::Heap(values) => values,
            Memory::Mapping(mapping, part) => bytemuck::cast_slice_mut(&mut mapping[part.clone()]),
        }
    }
}

/// Untouched memory with the advice to put it on huge pages, and the part of it that starts where one does. `None` if
/// it would fill none, or if the system has no mapping left. Memory before and behind the part is never touched.
fn mapping(bytes: usize) -> Option<(MmapMut, Range<usize>)> {
    if bytes < HUGE {
        return None;
    }
    let mapping = MmapMut::map_anon(bytes + HUGE).ok()?;
    let start = mapping.as_ptr().addr();
    let start = start.next_multiple_of(HUGE) - start;
    // Without the advice, small pages stay. The end would fill a huge page with nothing.
    #[cfg(target_os = "linux")]
    let _ = mapping.advise_range(memmap2::Advice::HugePage, start, bytes / HUGE * HUGE);
    Some((mapping, start..start + bytes))
}

/// Bytes that start and end where a cache line does.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Zeroed<u8>,
    skipped: usize,
    len: usize,
}

impl Lines {
    /// At least `len` zeros, like [`Zeroed::new`].
    pub(crate) fn zeroed(len: usize) -> Self {
        let len = len.next_multiple_of(LINE);
        let buffer = Zeroed::<u8>::new(len + LINE);
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
        self.buffer.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_size_are_zeros_that_can_be_written() {
        for len in [0, 1, 4096, 1 << 20, (4 << 20) + 1] {
            let mut buffer = Zeroed::<u32>::new(len);
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.memory(), 4 * len);
            assert!(buffer.iter().all(|&number| number == 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|&number| number == 7));
        }
    }

    #[test]
    fn room_grows_and_is_used_again() {
        let mut buffer = Zeroed::<u8>::default();
        assert!(buffer.room(0).is_empty());
        buffer.room(10).fill(7);
        assert_eq!(buffer.room(9), [7; 9]);
        assert_eq!(buffer.room(11), [0; 11]);
    }

    #[test]
    fn a_large_buffer_is_a_mapping_and_a_small_one_is_not() {
        let is_mapped = |bytes| matches!(Zeroed::<u8>::new(bytes).0, Memory::Mapping(..));
        assert!(!is_mapped(HUGE - 1));
        assert!(is_mapped(HUGE));
        assert_eq!(Zeroed::<u8>::new(HUGE).as_ptr().addr() % HUGE, 0);
    }

    #[test]
    fn lines_start_where_a_cache_line_does() {
        for len in [0, 1, 1 << 10, 8 << 20] {
            let lines = Lines::zeroed(len);
            assert_eq!(lines.bytes().as_ptr().addr() % LINE, 0);
            assert!(lines.bytes().len() >= len);
        }
    }
}
