//! How many pairs there are at each distance.

use maud::html;

use super::list::ENTRIES;
use crate::report::Report;
use crate::report::bars::{Bar, Bars};
use crate::report::numbers::share;
use crate::report::section::Section;
use crate::report::summary::pairs;

pub(super) fn section(report: &Report) -> Option<Section> {
    let counts = &report.pairs_by_distance;
    if counts.is_empty() {
        return None;
    }
    let all = pairs(report);
    let limit = counts.len() - 1;
    let body = if all == 0 {
        html! { p.none { "No two documents are within the distance of " (limit) "." } }
    } else {
        let numbers = counts.iter().copied().map(u128::from);
        let rows = (0..).zip(numbers).map(|(distance, number): (u32, _)| Bar {
            label: html! { (distance) @if distance == 0 { " " span.hint { "equal" } } },
            number,
            aside: html! { (share(number, all)) },
        });
        let bars = Bars {
            caption: "Pairs of documents by distance, in bits",
            heads: ["Distance", "Pairs", "Share"],
            // A distance has at most 64 bits, so nothing is cut that can be.
            rows: rows.take(ENTRIES + 15).collect(),
        };
        bars.table()
    };
    Some(Section {
        id: "distances",
        title: "Distances",
        lead: html! {
            "Pairs of documents by the number of bits in which their fingerprints differ. Where many "
            "lie close to the limit, compare some of them by eye before you drop any: the further "
            "apart, the more pairs are alike by chance."
        },
        body,
    })
}
