//! A sorted run in its packed form, which kernels read: entries by bucket, heads and tails apart.

use super::prefetch;

/// Bytes of a head.
pub(crate) const HEAD: usize = 4;

/// Bytes of a cache line, at whose multiples heads are loaded.
pub(crate) const LINE: usize = 64;

/// Heads of a line.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) const LINE_HEADS: usize = LINE / HEAD;

/// A sorted run in its packed form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    /// The heads of the entries, whole lines of them. Best starts where a cache
    /// line does.
    pub(crate) heads: &'a [u8],
    /// The tails of the entries, with [`HEAD`] bytes behind them.
    pub(crate) tails: &'a [u8],
    /// Where the entries of each bucket start. Behind the buckets is an empty
    /// one, for the queries outside the run.
    pub(crate) directory: &'a [u32],
    /// The lowest value of the first bucket.
    pub(crate) base: u64,
    /// A bucket holds `1 << shift` values.
    pub(crate) shift: u32,
    /// Bytes of an entry, 4 to 8, enough for `shift` bits.
    pub(crate) width: usize,
    /// Lines of a bucket that are asked for, besides its last.
    pub(crate) lines: usize,
}

impl Packed<'_> {
    /// The bucket of a value, the empty one if it is outside the run.
    #[inline(always)]
    pub(crate) fn bucket(&self, value: u64) -> u32 {
        let outside = self.directory.len() as u64 - 2;
        (value.wrapping_sub(self.base) >> self.shift).min(outside) as u32
    }

    /// Starts to load the directory for a bucket.
    #[inline(always)]
    pub(crate) fn prefetch_places(&self, bucket: u32) {
        prefetch(self.directory, bucket as usize);
    }

    /// The places of the entries in a bucket, whose loading starts.
    #[inline(always)]
    pub(crate) fn places(&self, bucket: u32) -> Places {
        let start = self.directory[bucket as usize];
        let end = self.directory[bucket as usize + 1];
        for line in 0..self.lines {
            prefetch(self.heads, start as usize * HEAD + line * LINE);
        }
        prefetch(self.heads, (end as usize * HEAD).saturating_sub(1));
        Places { start, end }
    }

    /// The lines that hold the heads of these entries, and the place of the first head in them. None but these are
    /// read, as they alone are on their way.
    #[inline(always)]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn lines_of(&self, places: Places) -> (&[[u8; LINE]], u32) {
        let (lines, _) = self.heads.as_chunks();
        let first = places.start as usize / LINE_HEADS;
        let end = (places.end as usize).div_ceil(LINE_HEADS);
        (&lines[first.min(end)..end], (first * LINE_HEADS) as u32)
    }

    /// As many heads as a line has, those of a few entries among them, from one or two lines; and the place of the
    /// first one.
    #[inline(always)]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn few(&self, places: Places) -> (&[u8; LINE], u32) {
        let end = (places.end as usize).next_multiple_of(LINE_HEADS);
        let last = end.saturating_sub(LINE_HEADS);
        let first = last.min(places.start as usize);
        let (heads, _) = self.heads[first * HEAD..].as_chunks();
        (&heads[0], first as u32)
    }

    /// The stored bytes of the entry at this place.
    #[inline(always)]
    pub(crate) fn low_bytes(&self, place: usize) -> u64 {
        let tail = self.width - HEAD;
        let kept = u64::from(u32::MAX).unbounded_shr(32 - 8 * tail as u32);
        let tails = u64::from(word(self.tails, place * tail)) & kept;
        u64::from(self.head_at(place)) << (8 * tail) | tails
    }

    /// The head of the entry at this place.
    #[inline(always)]
    pub(super) fn head_at(&self, place: usize) -> u32 {
        word(self.heads, place * HEAD)
    }

    /// The head of an entry with this value.
    #[inline(always)]
    pub(super) const fn head(&self, value: u64) -> u32 {
        (value >> (8 * (self.width - HEAD))) as u32
    }

    /// Whether a value is among the entries.
    #[inline]
    pub(crate) fn contains(&self, value: u64) -> bool {
        let places = self.places(self.bucket(value));
        // Heads tell nearly all entries apart, so tails are hardly ever read.
        let head = self.head(value);
        let start = self.first_not(places, |place| self.head_at(place) < head);
        let behind = Places { start, ..places };
        let end = self.first_not(behind, |place| self.head_at(place) == head);
        let places = self.narrow(Places { start, end }, value, value);
        places.start < places.end
    }

    /// The bits of a value that an entry stores.
    #[inline(always)]
    pub(crate) const fn low_mask(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.width as u32)
    }

    /// The entries among these that lie between two values, all in one bucket.
    #[inline]
    pub(super) fn narrow(&self, places: Places, low: u64, high: u64) -> Places {
        let (low, high) = (low & self.low_mask(), high & self.low_mask());
        let start = self.first_not(places, |place| self.low_bytes(place) < low);
        let behind = Places { start, ..places };
        let end = self.first_not(behind, |place| self.low_bytes(place) <= high);
        Places { start, end }
    }

    fn first_not(&self, places: Places, before: impl Fn(usize) -> bool) -> u32 {
        let Places { mut start, mut end } = places;
        while start < end {
            let middle = start + (end - start) / 2;
            if before(middle as usize) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }
}

/// The little-endian number at this byte.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; HEAD];
    word.copy_from_slice(&bytes[at..at + HEAD]);
    u32::from_le_bytes(word)
}

/// Consecutive entries of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Places {
    /// Whether they are no more than the heads of a line.
    #[inline(always)]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) const fn are_few(&self) -> bool {
        self.end - self.start <= LINE_HEADS as u32
    }

    /// Number of the entries.
    pub(crate) const fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}
