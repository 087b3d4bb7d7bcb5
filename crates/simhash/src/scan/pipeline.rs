//! The order in which queries meet the entries of their buckets: loads are asked for long before they are used.

use std::ops::ControlFlow;

use super::near::{BATCH, One, Probe};
#[cfg(target_arch = "x86_64")]
use super::packed::Packed;
use super::packed::Places;

/// A load is asked for when its turn is this many queries away.
const QUERIES_AHEAD: usize = 24;

/// The same for large buckets: comparing the queries of one takes as long as a load.
#[cfg(target_arch = "x86_64")]
const BUCKETS_AHEAD: usize = 2;

/// Queries that a kernel compares with a bucket at once.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 4;

/// Calls `scan` for each query with the places of the entries that may share its
/// prefix.
///
/// A query passes three stations, [`QUERIES_AHEAD`] queries apart: its part of the
/// directory is asked for, then its entries, then they are scanned. Neighbours
/// in one bucket ask once.
#[inline(always)]
pub(super) fn pipeline(
    probe: &Probe,
    queries: &[u64],
    mut scan: impl FnMut(One) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let run = &probe.run;
    let mut query = 0;
    for queries in queries.chunks(BATCH) {
        let mut buckets = [0; BATCH + 2 * QUERIES_AHEAD];
        for (bucket, &value) in buckets.iter_mut().zip(queries) {
            *bucket = run.bucket(value);
        }
        let mut places = [Places::default(); BATCH + QUERIES_AHEAD];
        for &bucket in &buckets[..2 * QUERIES_AHEAD] {
            run.prefetch_places(bucket);
        }
        for place in 0..QUERIES_AHEAD {
            places[place] = run.places(buckets[place]);
        }
        for (place, &value) in queries.iter().enumerate() {
            let ahead = place + QUERIES_AHEAD;
            run.prefetch_places(buckets[ahead + QUERIES_AHEAD]);
            places[ahead] = if buckets[ahead] == buckets[ahead - 1] {
                places[ahead - 1]
            } else {
                run.places(buckets[ahead])
            };
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

/// Neighbouring queries at one bucket.
#[derive(Clone, Copy, Default)]
#[cfg(target_arch = "x86_64")]
struct AtBucket {
    bucket: u32,
    /// Where they end in their batch.
    end: u32,
}

/// [`pipeline`] for large buckets: calls `scan` with up to [`TOGETHER`] neighbours at one bucket, the place of the first
/// among all queries, and the entries.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) fn pipeline_by_bucket(
    run: &Packed,
    queries: &[u64],
    mut scan: impl FnMut(&[u64], u32, Places) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut room = [AtBucket::default(); BATCH];
    for (queries, first) in queries.chunks(BATCH).zip((0..).step_by(BATCH)) {
        let all = by_bucket(run, queries, &mut room);
        let mut asked = [Places::default(); BUCKETS_AHEAD];
        let mut start = 0;
        for ahead in 0..all.len() + BUCKETS_AHEAD {
            if let Some(at) = all.get(ahead + BUCKETS_AHEAD) {
                run.prefetch_places(at.bucket);
            }
            let next = all.get(ahead).map(|at| run.places(at.bucket));
            let asked = &mut asked[ahead % BUCKETS_AHEAD];
            let places = std::mem::replace(asked, next.unwrap_or_default());
            let Some(now) = ahead.checked_sub(BUCKETS_AHEAD) else {
                continue;
            };
            let end = all[now].end as usize;
            let here = &queries[start..end];
            let places_of_queries = (first + start as u32..).step_by(TOGETHER);
            for (values, query) in here.chunks(TOGETHER).zip(places_of_queries) {
                scan(values, query, places)?;
            }
            start = end;
        }
    }
    ControlFlow::Continue(())
}

/// The queries by bucket. A branch for each query would often be mispredicted.
#[cfg(target_arch = "x86_64")]
fn by_bucket<'a>(run: &Packed, queries: &[u64], room: &'a mut [AtBucket; BATCH]) -> &'a [AtBucket] {
    let mut place = 0;
    let mut before = queries.first().map(|&first| run.bucket(first));
    for (end, &value) in (1_u32..).zip(queries) {
        let bucket = run.bucket(value);
        place += usize::from(before.replace(bucket) != Some(bucket));
        room[place] = AtBucket { bucket, end };
    }
    &room[..before.map_or(0, |_| place + 1)]
}
