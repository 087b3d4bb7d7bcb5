//! Probing a packed run with many permuted queries. The leading bits of each query find its one bucket, and the heads
//! of its entries are compared, a cache line at a time. Loads are asked for long before they are used.
//!
//! ```text
//! query          bucket number | rest of the prefix | suffix
//! directory      bucket b: the entries directory[b] to directory[b + 1]
//! entry          its `width` low bytes, 4 to 8: a head of 4 | a tail of the others
//! ```
//!
//! Heads and tails stand apart. Few heads are near the query's, so the tails of the
//! others are never loaded, and heads need no unpacking. In a large bucket, a kernel
//! first finds the least distance, and looks at single heads only where that is near.
//! Their tails are loaded while other queries are compared.
//!
//! What a kernel reports is an entry whose difference from the query has no bit of the prefix. It has at most
//! `max_distance` bits, and a bit of each mask in `differ`.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use std::ops::ControlFlow;

#[cfg(target_arch = "x86_64")]
use smallvec::SmallVec;

#[cfg(target_arch = "aarch64")]
use super::near_neon;
use super::packed::{HEAD, Packed, Places};
use super::pipeline::pipeline;
use super::{Level, prefetch};
#[cfg(target_arch = "x86_64")]
use super::{near_avx2, near_avx512};
use crate::layout::low_bits;

/// Queries whose buckets are computed together.
pub(crate) const BATCH: usize = 512;

/// Entries that wait for their tails together.
const WAITING_ENTRIES: usize = 32;

/// Lines of a large bucket that a kernel goes through before it looks at those that are near: the first cache holds
/// them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) const STRETCH: usize = 64;

/// Masks in a head before they take memory from the heap.
#[cfg(target_arch = "x86_64")]
const HEAD_MASKS: usize = 4;

/// Buckets of several prefixes that have more entries are narrowed by bisection before they are read.
const LINEAR_BUCKET_ENTRIES: usize = 512;

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
    pub(super) fn head_distance(&self) -> u32 {
        let elsewhere = self.differ.iter().filter(|&&mask| self.run.head(mask) == 0);
        self.max_distance.saturating_sub(elsewhere.count() as u32)
    }

    /// Of each of these, some bit of the head must differ: the masks without a bit of the tail.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn head_masks(&self) -> SmallVec<[u32; HEAD_MASKS]> {
        let tail = low_bits(8 * (self.run.width - HEAD) as u32);
        let in_head = self.differ.iter().filter(|&&mask| mask & tail == 0);
        in_head.map(|&mask| self.run.head(mask)).collect()
    }

    /// Whether buckets are large, of one prefix each: then a kernel compares several queries with a bucket at once.
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn has_large_buckets(&self) -> bool {
        self.run.lines > 2 && self.run.shift == self.prefix.count_zeros()
    }

    /// The entries that may share their prefix with `value`, where many are in its bucket.
    #[inline(always)]
    pub(super) fn candidates(&self, value: u64, places: Places) -> Places {
        let of_one_prefix = self.run.shift == self.prefix.count_zeros();
        if of_one_prefix || places.len() <= LINEAR_BUCKET_ENTRIES {
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
    /// Entries whose heads are near, while their tails are loaded.
    near: Vec<NearEntry>,
}

/// An entry whose head is near a query's.
#[derive(Debug)]
struct NearEntry {
    query: u32,
    place: u32,
    value: u64,
}

impl HitBuffer {
    /// Room for this many.
    pub(crate) fn with_room(room: usize) -> Self {
        Self {
            found: Vec::with_capacity(room),
            room,
            near: Vec::new(),
        }
    }

    /// The places of the queries that have matches.
    pub(crate) fn queries(&self) -> impl Iterator<Item = u32> + '_ {
        self.found.iter().map(|&(query, _)| query)
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
    let looked = match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) => unsafe { near_avx512::vpopcnt::probe(probe, queries, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { near_avx512::avx512::probe(probe, queries, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { near_avx2::probe(probe, queries, sink) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => unsafe { near_neon::probe(probe, queries, sink) },
        Level::Scalar => probe_scalar(probe, queries, sink),
    };
    looked?;
    settle(probe, sink)
}

/// Finds the entries of one bucket near a query. What is found last stays in `found`.
pub(crate) fn scan(level: Level, probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    let one = One {
        places: probe.candidates(one.value, one.places),
        ..one
    };
    look(level, probe, one, sink)?;
    settle(probe, sink)
}

/// Finds the entries whose heads are near. Those found last wait for their tails.
fn look(level: Level, probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
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
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => unsafe { near_neon::scan(probe, one, sink) },
        Level::Scalar => scan_scalar(probe, one, sink),
    }
}

fn probe_scalar(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    pipeline(probe, queries, |one| scan_scalar(probe, one, sink))
}

fn scan_scalar(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    let Places { start, end } = one.places;
    let (head, most) = (probe.run.head(one.value), probe.head_distance());
    for place in start..end {
        if (probe.run.head_at(place as usize) ^ head).count_ones() <= most {
            check(probe, one, place, sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// Compares those entries of a bucket whose heads are near the query's: bits of `near`, from the place `first` on.
#[inline(never)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn check_near(
    probe: &Probe,
    one: One,
    first: u32,
    mut near: u16,
    sink: &mut Sink,
) -> ControlFlow<()> {
    let Places { start, end } = one.places;
    while near != 0 {
        let place = first + near.trailing_zeros();
        near &= near - 1;
        if (start..end).contains(&place) {
            check(probe, one, place, sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// Asks for the tail of an entry whose head is near, unless a mask of `differ` rules the entry out. [`settle`] compares
/// it later.
#[inline]
fn check(probe: &Probe, one: One, place: u32, sink: &mut Sink) -> ControlFlow<()> {
    let run = &probe.run;
    // As if all bits of the tail differed: that spares most loads of tails.
    let head = run.head_at(place as usize) ^ run.head(one.value);
    let tail = 8 * (run.width - HEAD);
    let most = u64::from(head) << tail | low_bits(tail as u32);
    if probe.differ.iter().any(|mask| most & mask == 0) {
        return ControlFlow::Continue(());
    }
    prefetch(run.tails, place as usize * (run.width - HEAD));
    let One { query, value, .. } = one;
    sink.found.near.push(NearEntry {
        query,
        place,
        value,
    });
    if sink.found.near.len() >= WAITING_ENTRIES {
        settle(probe, sink)?;
    }
    ControlFlow::Continue(())
}

/// Compares the entries whose heads were near. After a break none is left for the next probe.
#[inline]
fn settle(probe: &Probe, sink: &mut Sink) -> ControlFlow<()> {
    if sink.found.near.is_empty() {
        return ControlFlow::Continue(());
    }
    settle_all(probe, sink)
}

#[inline(never)]
fn settle_all(probe: &Probe, sink: &mut Sink) -> ControlFlow<()> {
    let run = &probe.run;
    let mut all = std::mem::take(&mut sink.found.near);
    let mut compare = |near: NearEntry| {
        let difference = run.low_bytes(near.place as usize) ^ near.value & run.low_mask();
        let is_match = difference & probe.prefix == 0
            && difference.count_ones() <= probe.max_distance
            && probe.differ.iter().all(|mask| difference & mask != 0);
        if is_match {
            sink.add(near.query, difference)?;
        }
        ControlFlow::Continue(())
    };
    let settled = all.drain(..).try_for_each(&mut compare);
    sink.found.near = all;
    settled
}

#[cfg(test)]
mod tests;
