//! The content of a page about a run.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::statistics::{HeavyPrefix, MemberSample};

/// The result of a batch command, and its course.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The command's name: `find-all` or `find-clusters`.
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
    /// How many clusters there are of each size, from two documents up. `find-all` makes none; for
    /// `find-clusters`, empty means that no cluster was found.
    pub cluster_sizes: BTreeMap<u64, u64>,
    /// The largest clusters, largest first.
    pub largest_clusters: Vec<ClusterSample>,
    /// The leading 16 bits that most documents share, heaviest first.
    pub heaviest_prefixes: Vec<HeavyPrefix>,
    /// Fingerprints that deserve a look: shared by many documents, or special.
    pub degenerate: Vec<Degenerate>,
    /// Texts that say too little for a fingerprint: why, and how many.
    pub degenerate_texts: Vec<(String, u64)>,
    /// The phases of the run, in order, with the time that each took.
    pub timings: Vec<(String, Duration)>,
    /// Why input was left out, and how many documents, lines or files of it.
    pub skipped: Vec<(String, u64)>,
}

impl Report {
    /// Whether the command makes clusters, so that their absence says something.
    pub(super) fn makes_clusters(&self) -> bool {
        self.command == "find-clusters" || !self.cluster_sizes.is_empty()
    }
}

/// A cluster, with some of its members.
#[derive(Debug, Clone, Default)]
pub struct ClusterSample {
    /// The cluster's id: its smallest member.
    pub id: String,
    /// Documents in it.
    pub size: u64,
    /// Some of its members, the first one (at distance 0) included.
    pub members: Vec<MemberSample>,
}

/// A fingerprint that deserves a look.
#[derive(Debug, Clone)]
pub struct Degenerate {
    /// The fingerprint.
    pub fingerprint: u64,
    /// Documents that have it.
    pub documents: u64,
    /// The ids of some of them.
    pub samples: Vec<String>,
    /// Why it deserves a look.
    pub why: Why,
}

/// Why a fingerprint deserves a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is what the recipe makes of the empty text.
    EmptyText,
    /// Every bit is 0.
    AllZero,
    /// Every bit is 1.
    AllOne,
    /// Many documents have it.
    Crowded,
}

impl Why {
    /// The reason that fits a fingerprint best, given what the recipe makes of the empty text.
    /// `None` if there is no recipe, because the input holds fingerprints.
    #[must_use]
    pub fn of(fingerprint: u64, empty_text: Option<u64>) -> Self {
        match fingerprint {
            _ if empty_text == Some(fingerprint) => Self::EmptyText,
            0 => Self::AllZero,
            u64::MAX => Self::AllOne,
            _ => Self::Crowded,
        }
    }
}
