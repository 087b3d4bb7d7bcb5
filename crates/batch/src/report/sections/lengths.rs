//! How long the texts are, those that the recipe makes nothing of apart.

use maud::html;

use crate::report::Report;
use crate::report::bars::{Bar, Bars};
use crate::report::numbers::{count, share};
use crate::report::section::Section;

/// Bins that are shown: more than there are powers of two.
const BINS: usize = 65;

/// Names of a kibibyte and its powers.
const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

pub(super) fn section(report: &Report) -> Option<Section> {
    let lengths = &report.lengths;
    if lengths.is_empty() && report.empty_texts == 0 {
        return None;
    }
    let all: u128 = lengths.iter().map(|&(_, texts)| u128::from(texts)).sum();
    let rows = lengths.iter().take(BINS).map(|&(most, texts)| Bar {
        label: html! { "to " (size(most)) },
        number: texts.into(),
        aside: html! { (share(texts.into(), all)) },
    });
    let bars = Bars {
        caption: "Texts by length in UTF-8, each row twice the length of the one above",
        heads: ["Length", "Texts", "Share"],
        rows: rows.collect(),
    };
    let empty = report.empty_texts;
    Some(Section {
        id: "lengths",
        title: "Text lengths",
        lead: html! {
            "Short texts have few words that tell them apart, so they match others by chance. Look at "
            "their clusters first, or leave them out with " code { "--min-words" } "."
        },
        body: html! {
            @if empty > 0 {
                p.none {
                    (count(empty)) @if empty == 1 { " text has" } @else { " texts have" }
                    " " (report.content_of_empty_texts()) ". Nothing says that two of them are near-duplicates."
                }
            }
            @if !lengths.is_empty() { (bars.table()) }
        },
    })
}

/// A power of two of bytes.
fn size(bytes: u64) -> String {
    let power = (bytes.max(1).ilog2() / 10).min(UNITS.len() as u32 - 1);
    let unit = UNITS[power as usize];
    format!("{}\u{202f}{unit}", bytes >> (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_suits_them() {
        for (bytes, shown) in [
            (1, "1 bytes"),
            (512, "512 bytes"),
            (1024, "1 KiB"),
            (1 << 29, "512 MiB"),
        ] {
            assert_eq!(size(bytes).replace('\u{202f}', " "), shown);
        }
    }
}
