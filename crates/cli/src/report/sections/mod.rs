//! The sections of the page, in order; what was not counted has none.

use maud::{Markup, html};

use super::Report;
use super::layout::Section;
use super::numbers::grouped;

mod clusters;
mod distances;
mod fingerprints;
mod run;

/// Entries of a list that are shown.
const ENTRIES: usize = 50;

/// Entries of a list within an entry that are shown.
const SAMPLES: usize = 8;

/// All sections that the report has something for.
pub(super) fn all(report: &Report) -> Vec<Section> {
    let sections = [
        distances::section(report),
        clusters::sizes(report),
        clusters::largest(report),
        fingerprints::prefixes(report),
        fingerprints::degenerate(report),
        run::timings(report),
        run::skipped(report),
        run::settings(report),
        run::inputs(report),
    ];
    sections.into_iter().flatten().collect()
}

/// The entries of a list that are shown.
fn first<T>(entries: &[T], limit: usize) -> &[T] {
    &entries[..entries.len().min(limit)]
}

/// How many entries of a list are not shown.
fn more(all: u64, shown: usize) -> Markup {
    let hidden = all.saturating_sub(shown as u64);
    html! {
        @if hidden > 0 { p.more { "and " (grouped(hidden.into())) " more" } }
    }
}
