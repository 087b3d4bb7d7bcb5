//! Probing one run with a batch of queries: the loads of the whole batch are
//! under way before the first is used.

use std::array;
use std::ops::{ControlFlow, Range};

use super::Found;
use super::run::Run;
use crate::table::Table;

/// Queries probed together: their cache lines fit the first-level cache.
pub(super) const BATCH: usize = 128;

/// Calls `found` for the entries near each of at most [`BATCH`] permuted queries,
/// until it breaks.
pub(super) fn probe(
    run: &Run,
    table: &Table,
    queries: &[u64],
    max_distance: u32,
    found: &mut impl FnMut(Found) -> ControlFlow<()>,
) -> ControlFlow<()> {
    debug_assert!(queries.len() <= BATCH);
    let mut ranges: [Range<u32>; BATCH] = array::from_fn(|_| 0..0);
    for (range, &permuted) in ranges.iter_mut().zip(queries) {
        *range = run.buckets(&table.prefix_range(permuted));
        run.prefetch_directory(range);
    }
    for range in &mut ranges[..queries.len()] {
        *range = run.places(range);
    }
    let suffix = table.suffix_mask();
    for (query, (places, &permuted)) in ranges.iter().zip(queries).enumerate() {
        let candidates = run.candidates(places.clone(), &table.prefix_range(permuted));
        scan(candidates, query, permuted, suffix, max_distance, found)?;
    }
    ControlFlow::Continue(())
}

/// Calls `found` for the candidates that differ from the query in `suffix` bits
/// only, and in at most `max_distance` of them, until it breaks.
#[inline]
pub(super) fn scan(
    candidates: &[u64],
    query: usize,
    permuted: u64,
    suffix: u64,
    max_distance: u32,
    found: &mut impl FnMut(Found) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for &entry in candidates {
        let difference = entry ^ permuted;
        if difference <= suffix && difference.count_ones() <= max_distance {
            found(Found { query, difference })?;
        }
    }
    ControlFlow::Continue(())
}
