//! Long lists, cut.

use maud::{Markup, html};

use crate::report::numbers::{count, grouped};
use crate::report::text::outside;

/// Entries of a list that are shown.
pub(super) const ENTRIES: usize = 50;

/// Entries of a list within an entry that are shown.
pub(super) const SAMPLES: usize = 8;

/// How many entries of a list are not shown.
pub(in crate::report) fn more(all: u64, shown: usize) -> Markup {
    let hidden = all.saturating_sub(shown as u64);
    html! {
        @if hidden > 0 { p.more { "and " (grouped(hidden.into())) " more" } }
    }
}

/// A table of how often there is each reason.
pub(in crate::report) fn reasons<'a>(
    caption: &str,
    number: &str,
    counts: impl IntoIterator<Item = (&'a str, u64)>,
) -> Markup {
    html! {
        table.plain {
            caption { (caption) }
            thead { tr { th scope="col" { "Reason" } th.number scope="col" { (number) } } }
            tbody {
                @for (reason, times) in counts {
                    tr { th scope="row" { (outside(reason)) } td.number { (count(times)) } }
                }
            }
        }
    }
}
