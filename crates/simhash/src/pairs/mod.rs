//! All near pairs of a set of fingerprints, and the clusters that they make.
//!
//! ```text
//! pair.rs       two fingerprints
//! set.rs        distinct fingerprints, sorted
//! directory.rs  where in the set to look for one
//! path.rs       which blocks agree, which do not: the tables of a layout, step by step
//! cost.rs       how many blocks are best
//! partition.rs  fingerprints into buckets by some of their bits
//! worker.rs     the join of one bucket, by one thread        scan/join*.rs  its inner loops
//! join.rs       the join of a set, by all threads
//! lead.rs       the pairs of a shard
//! delivery.rs   where the pairs go: to a visitor in order, or into clusters
//! ```

mod cost;
mod delivery;
mod directory;
mod join;
mod lead;
mod pair;
mod partition;
mod path;
mod set;
mod worker;

use std::ops::ControlFlow;

use crate::layout::{Layout, LayoutError};
use crate::scan::{Level, bits};
use crate::{Clusters, Fingerprint};
use delivery::{AtOnce, InOrder, Linking};
use join::Join;
pub use join::PairProgress;
pub use lead::Lead;
pub use pair::Pair;
use path::Path;
pub use set::{FingerprintSet, Unsorted};
pub use worker::PairsWanted;
use worker::Worker;

/// How to search a set for all pairs within a distance.
#[derive(Clone, Copy, Debug)]
pub struct PairSearch {
    layout: Layout,
    level: Level,
    /// Most values of a bucket that is left to one thread, however few there are in all.
    task: usize,
}

/// See [`PairSearch::task`].
const TASK: usize = 1 << 15;

impl PairSearch {
    /// A search for pairs that differ in at most `distance` bits, by tables of `blocks` blocks.
    /// Without `blocks` the quickest layout for `n` random fingerprints is taken. The pairs are
    /// the same with any layout.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn new(distance: u32, blocks: Option<u32>, n: usize) -> Result<Self, LayoutError> {
        let layout = match blocks {
            Some(blocks) => Layout::new(blocks, distance)?,
            None => cost::best_layout(n, distance)?,
        };
        Ok(Self {
            layout,
            level: Level::best(),
            task: TASK,
        })
    }

    /// Blocks and distance.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Calls `visit` with batches of pairs, on one thread after another of the rayon pool, until it breaks; whether it
    /// did. Each pair is visited once. Their order depends on the set and the layout alone. Memory is that of the set
    /// once more and somewhat, however many pairs there are and however slow the visitor is. Where a large part of the
    /// set is crowded, that part takes its memory once more at each of the few blocks that it agrees in.
    ///
    /// `progress` is called now and then, by any thread, with how much is done and of how much. The search ends early
    /// if it breaks.
    pub fn pairs(
        &self,
        set: &FingerprintSet,
        progress: &PairProgress<'_>,
        visit: &mut (dyn FnMut(&[Pair]) -> ControlFlow<()> + Send),
    ) -> ControlFlow<()> {
        let delivery = InOrder::new(visit);
        Join::new(self, PairsWanted::All, &delivery, progress).run(set)
    }

    /// Calls `visit` with batches of the pairs of these fingerprints, which are distinct, until it breaks. Works on the
    /// calling thread alone, so `visit` may take its time. It is called without pairs too, now and then, so that it
    /// can end a search that finds none.
    pub fn pairs_here(
        &self,
        fingerprints: &[Fingerprint],
        wanted: PairsWanted,
        visit: &mut (dyn FnMut(&[Pair]) -> ControlFlow<()> + Send),
    ) -> ControlFlow<()> {
        let path = Path::of_layout(self.layout);
        join_here(self.level, fingerprints, &path, 0, wanted, visit)
    }

    /// The clusters of the set: the places of any two fingerprints within the distance are in one.
    /// Not all pairs are looked at, so this is the quicker the more there are. If `progress` breaks, links are missing.
    #[must_use]
    pub fn clusters(&self, set: &FingerprintSet, progress: &PairProgress<'_>) -> Clusters {
        let delivery = Linking::new(set);
        // Links are never refused.
        let _: ControlFlow<()> = Join::new(self, PairsWanted::Links, &delivery, progress).run(set);
        delivery.into_clusters()
    }
}

/// Joins fingerprints on this thread: the pairs of a path, for which they have not been parted by `block` yet.
fn join_here(
    level: Level,
    fingerprints: &[Fingerprint],
    path: &Path,
    block: u64,
    wanted: PairsWanted,
    visit: &mut (dyn FnMut(&[Pair]) -> ControlFlow<()> + Send),
) -> ControlFlow<()> {
    let delivery = AtOnce::new(visit);
    Worker::new(level, wanted, &delivery).run(0, bits(fingerprints), path, block)
}

#[cfg(test)]
mod tests;
