//! Probing a packed run with many permuted queries: for each one bucket is found
//! by the leading bits, and the heads of its entries are compared, a cache line at a
//! time. Loads are asked for long before they are used.
//!
//! ```text
//! query          bucket number | rest of the prefix | suffix
//! directory      bucket b: the entries directory[b] to directory[b + 1]
//! entry          its `width` low bytes, 4 to 8: a head of 4 | a tail of the others
//! ```
//!
//! Heads and tails stand apart. Few heads are near the query's, so the tails of the
//! others are never loaded, and heads need no unpacking.
//!
//! What a kernel reports is an entry whose difference from the query has no bit of
//! the prefix, at most `max_distance` bits, and a bit of each mask in `differ`.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use std::ops::ControlFlow;

use super::{Level, prefetch};
#[cfg(target_arch = "x86_64")]
use super::{near_avx2, near_avx512};
use crate::layout::low_bits;

/// Bytes of a head.
pub(crate) const HEAD: usize = 4;

/// Bytes of a cache line, at whose multiples heads are loaded.
pub(crate) const LINE: usize = 64;

/// Queries whose buckets are computed together.
pub(crate) const BATCH: usize = 512;

/// A load is asked for when its turn is this many queries away.
const AHEAD: usize = 24;

/// Buckets of several prefixes that have more entries are narrowed by bisection before they are read.
const LINEAR: usize = 512;

/// Heads that a kernel compares in a step.
pub(super) const STEP: u32 = 16;

/// Steps before a kernel looks at what they found.
pub(super) const STEPS: u32 = 64;

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

    /// The stored bytes of the entry at this place.
    #[inline(always)]
    pub(crate) fn low_bytes(&self, place: usize) -> u64 {
        let tail = self.width - HEAD;
        let kept = u64::from(u32::MAX).unbounded_shr(32 - 8 * tail as u32);
        let tails = u64::from(word(self.tails, place * tail)) & kept;
        u64::from(word(self.heads, place * HEAD)) << (8 * tail) | tails
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
    /// Number of the entries.
    pub(crate) const fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The place behind the last line that holds one of their heads.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn lines_end(&self) -> u32 {
        self.end.next_multiple_of((LINE / HEAD) as u32)
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

/// A search in a run, all in permuted bits.
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
    /// The most bits that may differ in a head: where a mask has none of its bits, one differs elsewhere.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn head_distance(&self) -> u32 {
        let elsewhere = self.differ.iter().filter(|&&mask| self.run.head(mask) == 0);
        self.max_distance.saturating_sub(elsewhere.count() as u32)
    }

    /// The entries that may share their prefix with `value`, where many are in its bucket.
    #[inline(always)]
    fn candidates(&self, value: u64, places: Places) -> Places {
        let of_one_prefix = self.run.shift == self.prefix.count_zeros();
        if of_one_prefix || places.len() <= LINEAR {
            return places;
        }
        self.run
            .narrow(places, value & self.prefix, value | !self.prefix)
    }
}

/// Entries that were found, as many as fit.
#[derive(Debug)]
pub(crate) struct HitBuffer {
    found: Vec<(u32, u64)>,
    room: usize,
}

impl HitBuffer {
    /// Room for this many.
    pub(crate) fn with_room(room: usize) -> Self {
        Self {
            found: Vec::with_capacity(room),
            room,
        }
    }

    /// Takes out all matches: the query's place, and the query exclusive-or the entry.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.found.drain(..)
    }
}

/// Where what is found goes.
pub(crate) struct Sink<'a> {
    pub(crate) found: &'a mut HitBuffer,
    /// Drains what was found when it is full, and may end the search.
    pub(crate) full: &'a mut dyn FnMut(&mut HitBuffer) -> ControlFlow<()>,
}

impl Sink<'_> {
    fn add(&mut self, query: u32, difference: u64) -> ControlFlow<()> {
        self.found.found.push((query, difference));
        if self.found.found.len() >= self.found.room {
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
        Level::Vpopcnt(_) => unsafe { near_avx512::vpopcnt::probe(probe, queries, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { near_avx512::avx512::probe(probe, queries, sink) },
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
        Level::Vpopcnt(_) => unsafe { near_avx512::vpopcnt::scan(probe, one, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { near_avx512::avx512::scan(probe, one, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { near_avx2::scan(probe, one, sink) },
        Level::Scalar => scan_scalar(probe, one, sink),
    }
}

fn probe_scalar(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    pipeline(probe, queries, |one| scan_scalar(probe, one, sink))
}

fn scan_scalar(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    let Places { start, end } = one.places;
    (start..end).try_for_each(|place| check(probe, one, place, sink))
}

/// Compares the entries of some steps from `first` on whose heads are near the query's. A step is of
/// 16 entries, and of vectors of `WIDTH`, none of which begins behind `last`.
#[inline(never)]
#[cfg(target_arch = "x86_64")]
pub(super) fn check_near<const WIDTH: u32>(
    probe: &Probe,
    one: One,
    first: u32,
    last: u32,
    steps: &[u16],
    sink: &mut Sink,
) -> ControlFlow<()> {
    for (&near, step) in steps.iter().zip((first..).step_by(STEP as usize)) {
        let mut near = u32::from(near);
        while near != 0 {
            let lane = near.trailing_zeros();
            near &= near - 1;
            let vector = step + lane / WIDTH * WIDTH;
            let place = vector.min(last) + lane % WIDTH;
            if place >= vector && place < one.places.end {
                check(probe, one, place, sink)?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Compares an entry.
#[inline]
fn check(probe: &Probe, one: One, place: u32, sink: &mut Sink) -> ControlFlow<()> {
    let run = &probe.run;
    // As if all bits of the tail differed: that spares most loads of tails.
    let head = word(run.heads, place as usize * HEAD) ^ run.head(one.value);
    let tail = 8 * (run.width - HEAD);
    let most = u64::from(head) << tail | low_bits(tail as u32);
    if probe.differ.iter().any(|mask| most & mask == 0) {
        return ControlFlow::Continue(());
    }
    let difference = run.low_bytes(place as usize) ^ one.value & run.low_mask();
    if difference & probe.prefix == 0
        && difference.count_ones() <= probe.max_distance
        && probe.differ.iter().all(|mask| difference & mask != 0)
    {
        sink.add(one.query, difference)?;
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

#[cfg(test)]
mod tests;
