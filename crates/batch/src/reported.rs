//! The statistics of a run as a report.

use std::time::Duration;

use simshard_input::{DegenerateTexts, Skipped};

use crate::documents::DocumentSet;
use crate::report::{ClusterSample, Degenerate, Report, Why};
use crate::statistics::{self, Statistics, Timings, crowded_fingerprints, heaviest_prefixes};

/// Prefixes that are listed.
const PREFIXES: usize = 20;

/// Crowded fingerprints that are listed.
const CROWDED: usize = 20;

/// The settings of a run.
#[derive(Debug)]
pub(crate) struct About {
    /// The command's name.
    pub(crate) command: &'static str,
    /// The inputs.
    pub(crate) inputs: Vec<String>,
    /// The settings that the result depends on.
    pub(crate) settings: Vec<(String, String)>,
    /// The fingerprint of the empty text by the recipe; `None` without a recipe.
    pub(crate) empty_text: Option<u64>,
    /// The skipped lines and texts.
    pub(crate) skipped: Skipped,
    /// Texts that say too little.
    pub(crate) degenerate: DegenerateTexts,
}

/// The report of a run.
pub(crate) fn report(about: About, documents: &DocumentSet, statistics: Statistics) -> Report {
    let largest = statistics.clusters.largest();
    Report {
        command: about.command,
        version: env!("CARGO_PKG_VERSION"),
        inputs: about.inputs,
        settings: about.settings,
        documents: statistics.documents,
        fingerprints: statistics.fingerprints,
        pairs_by_distance: statistics.pairs_by_distance,
        largest_clusters: largest.into_iter().map(cluster).collect(),
        cluster_sizes: statistics.clusters.by_size,
        heaviest_prefixes: heaviest_prefixes(documents, PREFIXES),
        degenerate: degenerate(documents, about.empty_text),
        degenerate_texts: degenerate_texts(about.degenerate),
        timings: timings(statistics.timings),
        skipped: skipped(about.skipped),
    }
}

fn cluster((size, sample): (u64, statistics::ClusterSample)) -> ClusterSample {
    ClusterSample {
        id: sample.cluster.0.to_string(),
        size,
        members: sample.members,
    }
}

fn degenerate(documents: &DocumentSet, empty_text: Option<u64>) -> Vec<Degenerate> {
    let crowded = crowded_fingerprints(documents, CROWDED).into_iter();
    let degenerate = crowded.map(|one| Degenerate {
        fingerprint: one.fingerprint.0,
        documents: one.documents,
        samples: one.samples,
        why: Why::of(one.fingerprint.0, empty_text),
    });
    degenerate.collect()
}

fn degenerate_texts(texts: DegenerateTexts) -> Vec<(String, u64)> {
    let reasons = texts.reasons();
    reasons
        .map(|(reason, count)| (reason.name().to_owned(), count))
        .collect()
}

fn timings(timings: Timings) -> Vec<(String, Duration)> {
    let Timings {
        read,
        sort,
        join,
        write,
    } = timings;
    let phases = [
        ("read", read),
        ("sort", sort),
        ("join", join),
        ("write", write),
    ];
    phases.map(|(name, time)| (name.to_owned(), time)).to_vec()
}

fn skipped(skipped: Skipped) -> Vec<(String, u64)> {
    let reasons = skipped.reasons().into_iter();
    let reasons = reasons.filter(|&(_, count)| count > 0);
    reasons
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}
