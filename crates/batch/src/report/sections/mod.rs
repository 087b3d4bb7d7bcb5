//! The sections of the page, in order; what was not counted has none.

mod clusters;
mod distances;
mod fingerprints;
mod lengths;
pub(super) mod list;
mod pairs;
pub(super) mod run;

use super::content::Report;
use super::section::Section;

/// All sections that the report has something for.
pub(super) fn all(report: &Report) -> Vec<Section> {
    let sections = [
        distances::section(report),
        clusters::sizes(report),
        clusters::largest(report),
        pairs::section(report),
        lengths::section(report),
        fingerprints::prefixes(report),
        fingerprints::crowded(report),
        fingerprints::degenerate(report),
        fingerprints::degenerate_texts(report),
        run::timings(report),
        run::skipped(report),
        run::settings(report),
        run::inputs(report),
    ];
    sections.into_iter().flatten().collect()
}
