//! All pairs against the published crate `all-pairs-hamming`: its multi-sort on the same fingerprints, by turns.

use std::ops::ControlFlow;
use std::time::Instant;

use all_pairs_hamming::multi_sort::MultiSort;
use anyhow::ensure;
use serde::Serialize;
use simshard_simhash::FingerprintSet;

use super::{Settings, fingerprints};
use crate::figure;

/// Each joins this often.
const ROUNDS: usize = 3;

/// Blocks that the other's documentation suggests for this distance, and that it is fastest with.
const BLOCKS: usize = 4;

#[derive(Serialize)]
struct PublishedFigure {
    case: &'static str,
    n: usize,
    distance: u32,
    found: usize,
    seconds: f64,
    published_seconds: f64,
    /// How many times as fast.
    against_published: f64,
}

/// Joins on one thread, however many the settings allow: the other has no more.
pub(super) fn measure(settings: &Settings) -> anyhow::Result<()> {
    let (all, search) = fingerprints(settings)?;
    // The other tells fingerprints apart by their places.
    let mut sketches: Vec<u64> = all.iter().map(|fingerprint| fingerprint.0).collect();
    sketches.sort_unstable();
    sketches.dedup();
    let (mut ours, mut theirs, mut found) = (0.0, 0.0, 0);
    for _ in 0..ROUNDS {
        let set = all.clone();
        let start = Instant::now();
        found = 0;
        let set = FingerprintSet::from_unsorted(set);
        let _ = search.pairs(&set, &|_, _| ControlFlow::Continue(()), &mut |batch| {
            found += batch.len();
            ControlFlow::Continue(())
        });
        ours += start.elapsed().as_secs_f64();

        let mut pairs = Default::default();
        let start = Instant::now();
        let join = MultiSort::new().num_blocks(BLOCKS);
        join.similar_pairs(&sketches, settings.distance as usize, &mut pairs);
        theirs += start.elapsed().as_secs_f64();
        ensure!(
            found == pairs.len(),
            "{found} pairs, and {} of the other",
            pairs.len()
        );
    }
    let figure = PublishedFigure {
        case: "published",
        n: settings.n,
        distance: settings.distance,
        found,
        seconds: ours / ROUNDS as f64,
        published_seconds: theirs / ROUNDS as f64,
        against_published: theirs / ours,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "published        {:.3} s, all-pairs-hamming {:.3} s, {:.2} x",
            figure.seconds, figure.published_seconds, figure.against_published
        )
    })
}
