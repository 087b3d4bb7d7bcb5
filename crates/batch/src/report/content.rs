//! The content of a page about a run.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::statistics::{ClusterSample, HeavyPrefix, PairSample, SpecialFingerprint};

/// The result of a batch command, and its course.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The command's name: `find-pairs` or `find-clusters`.
    pub command: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// The inputs: paths, or the name of standard input.
    pub inputs: Vec<String>,
    /// The settings that the result depends on, such as recipe and distance, as name and value.
    pub settings: Vec<(String, String)>,
    /// Documents that were read.
    pub documents: u64,
    /// Distinct fingerprints among them.
    pub fingerprints: u64,
    /// Pairs of documents at distance 0, 1, … up to the limit. Empty where pairs were not counted.
    pub pairs_by_distance: Vec<u64>,
    /// How many clusters there are of each size, from two documents up. `find-pairs` makes none; for
    /// `find-clusters`, empty means that no cluster was found.
    pub cluster_sizes: BTreeMap<u64, u64>,
    /// The largest clusters, largest first.
    pub largest_clusters: Vec<ClusterSample>,
    /// Pairs of near-duplicates of clusters that were drawn by lot.
    pub pairs: Vec<PairSample>,
    /// The most bytes of a text, and how many texts are longer than those before it and not longer than that.
    pub lengths: Vec<(u64, u64)>,
    /// Texts that the recipe makes nothing of: those of the empty text's fingerprint, and those that it gives none.
    pub empty_texts: u64,
    /// What these texts have; `None` if it is no words.
    pub too_little: Option<String>,
    /// The leading 16 bits that most documents share, heaviest first.
    pub heaviest_prefixes: Vec<HeavyPrefix>,
    /// Fingerprints that the most documents share.
    pub crowded: Vec<SpecialFingerprint>,
    /// Fingerprints of nothing: that of the empty text, and those that stand for a missing one.
    pub degenerate_fingerprints: Vec<SpecialFingerprint>,
    /// Texts that say too little for a fingerprint: why, and how many.
    pub degenerate_texts: Vec<(String, u64)>,
    /// The phases of the run, in order, with the time that each took.
    pub timings: Vec<(String, Duration)>,
    /// Why input was left out, and how many documents, lines or files of it.
    pub skipped: Vec<(String, u64)>,
    /// How many times the lists were halved, as the page would be too large with all that they usually show.
    pub halved: u32,
}

impl Report {
    /// The first entries of a list: at most `most`, or fewer where the page would be too large.
    pub(super) fn first<'a, T>(&self, entries: &'a [T], most: usize) -> &'a [T] {
        &entries[..entries.len().min((most >> self.halved).max(1))]
    }

    /// What the texts have that the recipe makes nothing of, for people.
    pub(super) fn content_of_empty_texts(&self) -> &str {
        self.too_little.as_deref().unwrap_or("no words")
    }

    /// Whether the command makes clusters, so that their absence says something.
    pub(super) fn makes_clusters(&self) -> bool {
        self.command == "find-clusters" || !self.cluster_sizes.is_empty()
    }
}
