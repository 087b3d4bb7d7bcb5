//! What the batch commands share. All of them, `hash` included: what is read and where it goes
//! ([`ReadArgs`], [`WriteArgs`]). `find-all` and `find-clusters`: the documents by fingerprint, and
//! what is counted on the way.
//!
//! These two read all documents, sort their distinct fingerprints, join these with themselves, and
//! write documents for fingerprints. No step holds pairs: memory is O(input).

mod args;
mod clusters;
mod documents;
mod job;
#[cfg(test)]
mod made_up;
mod plan;
mod report;
mod statistics;

pub use args::{BatchArgs, Blocks, ReadArgs, WriteArgs};
pub use clusters::{Cluster, DocumentClusters};
pub use documents::{DocumentSet, Group, TooManyDocuments};
pub(crate) use job::{Job, Sorted, Stopwatch, show};
pub(crate) use plan::Plan;
pub use statistics::{
    ClusterSample, ClusterSizes, CrowdedFingerprint, HeavyPrefix, MemberSample, Statistics,
    Timings, crowded_fingerprints, heaviest_prefixes,
};
