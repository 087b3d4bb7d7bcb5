//! The statistics of a run as a report.

use std::time::Duration;

use simshard_input::{DegenerateTexts, Skipped};

use crate::documents::DocumentSet;
use crate::report::Report;
use crate::statistics::{Statistics, Timings, crowded_fingerprints, heaviest_prefixes};

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
    Report {
        command: about.command,
        version: env!("CARGO_PKG_VERSION"),
        inputs: about.inputs,
        settings: about.settings,
        documents: statistics.documents,
        fingerprints: statistics.fingerprints,
        pairs_by_distance: statistics.pairs_by_distance,
        cluster_sizes: statistics.clusters.by_size.clone(),
        largest_clusters: statistics.clusters.into_largest(),
        heaviest_prefixes: heaviest_prefixes(documents, PREFIXES),
        degenerate: crowded_fingerprints(documents, CROWDED, about.empty_text),
        degenerate_texts: degenerate_texts(about.degenerate),
        timings: timings(statistics.timings),
        skipped: about.skipped.reasons(),
    }
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
