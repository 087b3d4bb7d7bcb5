//! What `find-all` and `find-clusters` share: their arguments, the documents by fingerprint, and
//! what is counted on the way.
//!
//! A command reads all documents, sorts their distinct fingerprints, joins these with themselves,
//! and writes documents for fingerprints. No step holds pairs: memory is O(input).

mod args;
mod clusters;
mod directory;
mod documents;
mod job;
#[cfg(test)]
mod made_up;
mod report;
mod statistics;

pub use args::{BatchArgs, Blocks};
pub use clusters::{Cluster, DocumentClusters};
pub use documents::{DocumentSet, Group, TooManyDocuments};
pub(crate) use job::{Job, Sorted, Stopwatch, show};
pub use statistics::{
    ClusterSample, ClusterSizes, CrowdedFingerprint, HeavyPrefix, MemberSample, Statistics,
    Timings, crowded_fingerprints, heaviest_prefixes,
};
