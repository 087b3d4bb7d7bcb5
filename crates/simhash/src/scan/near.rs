//! Probing a packed run with many permuted queries: for each one bucket is found
//! by the leading bits, and its entries are compared, eight at a time where the
//! processor can. Loads are asked for long before they are used.
//!
//! ```text
//! query          bucket number | rest of the prefix | suffix
//! directory      bucket b: the entries directory[b] to directory[b + 1]
//! entries        `width` low bytes each, little-endian, PADDING bytes behind all
//! ```
//!
//! What a kernel reports is an entry whose difference from the query has no bit of
//! the prefix, at most `max_distance` bits, and a bit of each mask in `differ`.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use std::ops::ControlFlow;

use super::{Level, prefetch};
#[cfg(target_arch = "x86_64")]
use super::{near_avx2, near_avx512};

/// Bytes behind the entries, so that two vectors may be loaded at each of them.
pub(crate) const PADDING: usize = 128;

/// Queries whose buckets are computed together.
pub(crate) const BATCH: usize = 512;

/// A load is asked for when its turn is this many queries away.
const AHEAD: usize = 24;

/// Buckets with more entries are narrowed by bisection before they are read.
const LINEAR: usize = 64;

/// Most entries that a kernel compares at once.
const LANES: usize = 8;

/// A sorted run in its packed form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    /// The low bytes of the entries, with [`PADDING`] behind them. Best starts
    /// where a cache line does.
    pub(crate) entries: &'a [u8],
    /// Where the entries of each bucket start. Behind the buckets is an empty
    /// one, for the queries outside the run.
    pub(crate) directory: &'a [u32],
    /// The lowest value of the first bucket.
    pub(crate) base: u64,
    /// A bucket holds `1 << shift` values.
    pub(crate) shift: u32,
    /// Bytes of an entry, 1 to 8, enough for `shift` bits.
    pub(crate) width: usize,
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
        prefetch(self.entries, start as usize * self.width);
        prefetch(self.entries, (end as usize * self.width).saturating_sub(1));
        Places { start, end }
    }

    /// The stored bytes of the entry at this place.
    #[inline(always)]
    pub(crate) fn low_bytes(&self, place: usize) -> u64 {
        let at = place * self.width;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.entries[at..at + 8]);
        u64::from_le_bytes(bytes) & self.low_mask()
    }

    /// Whether a value is among the entries.
    #[inline]
    pub(crate) fn contains(&self, value: u64) -> bool {
        let places = self.places(self.bucket(value));
        let places = self.narrow(places, value, value);
        places.start < places.end
    }

    /// The bits of a value that an entry stores.
    #[inline(always)]
    pub(crate) const fn low_mask(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.width as u32)
    }

    /// The entries among these that lie between two values, all in one bucket.
    #[inline]
    fn narrow(&self, places: Places, low: u64, high: u64) -> Places {
        let (low, high) = (low & self.low_mask(), high & self.low_mask());
        let start = self.first_not(places, |entry| entry < low);
        let end = self.first_not(Places { start, ..places }, |entry| entry <= high);
        Places { start, end }
    }

    fn first_not(&self, places: Places, before: impl Fn(u64) -> bool) -> u32 {
        let Places { mut start, mut end } = places;
        while start < end {
            let middle = start + (end - start) / 2;
            if before(self.low_bytes(middle as usize)) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }
}

/// Consecutive entries of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Places {
    /// Number of the entries.
    pub(crate) const fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A query at one bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct One {
    /// Its place in the batch.
    pub(crate) query: u32,
    /// The permuted fingerprint.
    pub(crate) value: u64,
    pub(crate) places: Places,
}

/// What is looked for in a run, all in permuted bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe<'a> {
    pub(crate) run: Packed<'a>,
    /// The bits that must agree.
    pub(crate) prefix: u64,
    /// The most bits that may differ.
    pub(crate) max_distance: u32,
    /// Of each of these, some bit must differ.
    pub(crate) differ: &'a [u64],
}

impl Probe<'_> {
    /// The entries that may share their prefix with `value`, where many are in its bucket.
    #[inline(always)]
    fn candidates(&self, value: u64, places: Places) -> Places {
        if (places.end - places.start) as usize <= LINEAR {
            return places;
        }
        self.run
            .narrow(places, value & self.prefix, value | !self.prefix)
    }
}

/// Entries that were found, as many as fit.
#[derive(Debug)]
pub(crate) struct HitBuffer {
    differences: Box<[u64]>,
    queries: Box<[u32]>,
    len: usize,
}

impl HitBuffer {
    /// Room for this many and a vector.
    pub(crate) fn with_room(room: usize) -> Self {
        let room = room + LANES;
        Self {
            differences: vec![0; room].into(),
            queries: vec![0; room].into(),
            len: 0,
        }
    }

    /// What was found: the query's place, and query exclusive or entry. None stays.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let len = std::mem::take(&mut self.len);
        let queries = self.queries[..len].iter().copied();
        queries.zip(self.differences[..len].iter().copied())
    }
}

/// Where what is found goes.
pub(crate) struct Sink<'a> {
    pub(crate) found: &'a mut HitBuffer,
    /// Drains what was found when it is full, and may end the search.
    pub(crate) full: &'a mut dyn FnMut(&mut HitBuffer) -> ControlFlow<()>,
}

impl Sink<'_> {
    /// Where a kernel writes the next ones, a vector's worth of room.
    #[inline(always)]
    pub(super) fn room(&mut self) -> (&mut [u64; LANES], &mut [u32; LANES]) {
        let HitBuffer {
            differences,
            queries,
            len,
        } = &mut *self.found;
        let (differences, _) = differences[*len..].as_chunks_mut();
        let (queries, _) = queries[*len..].as_chunks_mut();
        (&mut differences[0], &mut queries[0])
    }

    /// Says that `count` were written.
    #[inline(always)]
    pub(super) fn add(&mut self, count: usize) -> ControlFlow<()> {
        self.found.len += count;
        if self.found.len + LANES > self.found.queries.len() {
            (self.full)(self.found)?;
        }
        ControlFlow::Continue(())
    }
}

/// Finds the entries of a run near each query. What is found last stays in `found`.
pub(crate) fn probe(
    level: Level,
    probe: &Probe,
    queries: &[u64],
    sink: &mut Sink,
) -> ControlFlow<()> {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { near_avx512::probe(probe, queries, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { near_avx2::probe(probe, queries, sink) },
        Level::Scalar => probe_scalar(probe, queries, sink),
    }
}

/// Finds the entries of one bucket near a query. What is found last stays in `found`.
pub(crate) fn scan(level: Level, probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    let one = One {
        places: probe.candidates(one.value, one.places),
        ..one
    };
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { near_avx512::scan(probe, one, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { near_avx2::scan(probe, one, sink) },
        Level::Scalar => scan_scalar(probe, one, sink),
    }
}

fn probe_scalar(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    pipeline(probe, queries, |one| scan_scalar(probe, one, sink))
}

#[inline]
fn scan_scalar(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    let run = &probe.run;
    let value = one.value & run.low_mask();
    for place in one.places.start..one.places.end {
        let difference = run.low_bytes(place as usize) ^ value;
        if difference & probe.prefix == 0
            && difference.count_ones() <= probe.max_distance
            && probe.differ.iter().all(|mask| difference & mask != 0)
        {
            let (differences, queries) = sink.room();
            (differences[0], queries[0]) = (difference, one.query);
            sink.add(1)?;
        }
    }
    ControlFlow::Continue(())
}

/// Calls `scan` for each query with the places of the entries that may share its
/// prefix.
///
/// A query passes three stations, [`AHEAD`] queries apart: its part of the
/// directory is asked for, then its entries, then they are scanned.
#[inline(always)]
pub(super) fn pipeline(
    probe: &Probe,
    queries: &[u64],
    mut scan: impl FnMut(One) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let run = &probe.run;
    let mut query = 0;
    for queries in queries.chunks(BATCH) {
        let mut buckets = [0; BATCH + 2 * AHEAD];
        for (bucket, &value) in buckets.iter_mut().zip(queries) {
            *bucket = run.bucket(value);
        }
        let mut places = [Places::default(); BATCH + AHEAD];
        for &bucket in &buckets[..2 * AHEAD] {
            run.prefetch_places(bucket);
        }
        for place in 0..AHEAD {
            places[place] = run.places(buckets[place]);
        }
        for (place, &value) in queries.iter().enumerate() {
            run.prefetch_places(buckets[place + 2 * AHEAD]);
            places[place + AHEAD] = run.places(buckets[place + AHEAD]);
            let places = probe.candidates(value, places[place]);
            scan(One {
                query,
                value,
                places,
            })?;
            query += 1;
        }
    }
    ControlFlow::Continue(())
}

/// For each width of an entry: which byte of consecutive entries each byte of widened ones, 8 bytes
/// each, comes from; from none where the highest bit is set.
#[cfg(target_arch = "x86_64")]
pub(super) const fn sources<const WIDENED: usize>() -> [[u8; WIDENED]; 9] {
    let mut all = [[0x80; WIDENED]; 9];
    let mut at = 0;
    while at < 9 * WIDENED {
        let (width, to) = (at / WIDENED, at % WIDENED);
        let (entry, byte) = (to / 8, to % 8);
        if byte < width {
            all[width][to] = (entry * width + byte) as u8;
        }
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests;
