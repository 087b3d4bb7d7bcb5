//! The run in a sentence and in a few large numbers.

use std::time::Duration;

use maud::{Markup, html};

use super::content::Report;
use super::numbers::{count, share, time};

/// The main figures of the run.
pub(super) fn verdict(report: &Report) -> Markup {
    let documents = u128::from(report.documents);
    let droppable = droppable(report);
    let pairs = pairs(report);
    html! {
        p.verdict {
            @if documents == 0 {
                "There were no documents to compare."
            } @else if report.makes_clusters() && clusters(report) == 0 {
                "No document has a near-duplicate: all can be kept."
            } @else if report.makes_clusters() {
                (count(droppable)) " of " (count(documents)) " documents (" (share(droppable, documents))
                ") are nearly another one: one of each cluster would remain. Near is not equal: compare the texts "
                "before you delete any."
            } @else if report.pairs_by_distance.is_empty() {
                (count(documents)) " documents were read."
            } @else if pairs == 0 {
                "No two documents are near-duplicates: all can be kept."
            } @else if pairs == 1 {
                "One pair of near-duplicates was found among " (count(documents)) " documents."
            } @else {
                (count(pairs)) " pairs of near-duplicates were found among " (count(documents))
                " documents."
            }
        }
    }
}

/// The large numbers.
pub(super) fn tiles(report: &Report) -> Markup {
    let documents = u128::from(report.documents);
    let fingerprints = u128::from(report.fingerprints);
    let droppable = droppable(report);
    let total: Duration = total(report);
    let rate = documents as f64 / total.as_secs_f64();
    html! {
        dl.tiles {
            (tile("Documents", &count(documents), ""))
            (tile("Distinct fingerprints", &count(fingerprints), &share(fingerprints, documents)))
            @if !report.pairs_by_distance.is_empty() {
                (tile("Pairs", &count(pairs(report)), &within(report)))
            }
            @if report.makes_clusters() {
                (tile("Clusters", &count(clusters(report)), "of 2 or more"))
                (tile("Beyond one of each", &count(droppable), &share(droppable, documents)))
            }
            @if !total.is_zero() {
                (tile("Time", &html! { (time(total)) }, ""))
                // The conversion saturates, at a rate far above any real one.
                (tile("Documents a second", &count(rate.round() as u128), ""))
            }
        }
    }
}

fn tile(name: &str, value: &Markup, note: &str) -> Markup {
    html! {
        div {
            dt { (name) }
            dd { (value) }
            @if !note.is_empty() { dd.note { (note) } }
        }
    }
}

fn within(report: &Report) -> String {
    match report.pairs_by_distance.len() {
        1 => "equal fingerprints".to_owned(),
        2 => "within 1 bit".to_owned(),
        counts => format!("within {} bits", counts.saturating_sub(1)),
    }
}

pub(super) fn pairs(report: &Report) -> u128 {
    report
        .pairs_by_distance
        .iter()
        .copied()
        .map(u128::from)
        .sum()
}

pub(super) fn clusters(report: &Report) -> u128 {
    report.cluster_sizes.values().copied().map(u128::from).sum()
}

/// Documents that are left when one of each cluster is kept.
pub(super) fn droppable(report: &Report) -> u128 {
    let sizes = report.cluster_sizes.iter();
    let drops = sizes.map(|(&size, &clusters)| {
        u128::from(size.saturating_sub(1)).saturating_mul(u128::from(clusters))
    });
    drops.fold(0, u128::saturating_add)
}

/// The time of all phases together.
pub(super) fn total(report: &Report) -> Duration {
    let times = report.timings.iter().map(|(_, time)| *time);
    times.fold(Duration::ZERO, Duration::saturating_add)
}
