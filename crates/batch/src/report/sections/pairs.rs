//! Pairs of near-duplicates, side by side.

use maud::{Markup, html};

use crate::report::difference::{Piece, sides};
use crate::report::numbers::count;
use crate::report::section::Section;
use crate::report::text::{common_folder, outside, outside_within};
use crate::report::{DocumentSample, PairSample, Report};

/// Pairs that are shown.
const PAIRS: usize = 10;

pub(super) fn section(report: &Report) -> Option<Section> {
    let pairs = report.first(&report.pairs, PAIRS);
    if pairs.is_empty() {
        return None;
    }
    Some(Section {
        id: "pairs",
        title: "Pairs side by side",
        lead: html! {
            "Pairs of clusters that were drawn by lot, the most distant first. Words that the other "
            "text lacks are marked. If you would keep both texts of a pair, search with a smaller "
            "distance."
        },
        body: html! { ol.pairs { @for pair in pairs { (shown(pair)) } } },
    })
}

fn shown(pair: &PairSample) -> Markup {
    let ids = pair.documents.each_ref().map(|one| one.id.as_str());
    let folder = common_folder(ids);
    let texts = pair.documents.each_ref().map(|one| one.text.as_ref());
    let [Some(a), Some(b)] = texts else {
        let nothing = [None, None];
        return frame(
            pair,
            folder,
            nothing,
            "The texts could not be read a second time.",
        );
    };
    let found = sides([&a.text, &b.text]);
    let is_all = found.is_all && a.is_whole() && b.is_whole();
    let said = match (found.are_same, is_all) {
        (false, _) => "",
        (true, true) => "Both have the same words.",
        (true, false) => "Both have the same words as far as they are compared here.",
    };
    frame(pair, folder, found.sides.map(Some), said)
}

fn frame(pair: &PairSample, folder: &str, sides: [Option<Vec<Piece>>; 2], said: &str) -> Markup {
    let distance = pair.distance;
    html! {
        li {
            h3 {
                @if distance == 0 { "Equal fingerprints" }
                @else { (distance) @if distance == 1 { " bit apart" } @else { " bits apart" } }
            }
            @if !said.is_empty() { p.size { (said) } }
            @if !folder.is_empty() { p.folder { "in " (outside(folder)) } }
            div.sides {
                @for (document, pieces) in pair.documents.iter().zip(sides) {
                    (side(document, folder, pieces))
                }
            }
        }
    }
}

fn side(document: &DocumentSample, folder: &str, pieces: Option<Vec<Piece>>) -> Markup {
    html! {
        div.side {
            p.who { (outside_within(folder, &document.id)) }
            @if let Some(text) = &document.text {
                p.size { (count(text.bytes)) @if text.bytes == 1 { " byte" } @else { " bytes" } }
            }
            @if let Some(pieces) = pieces {
                p.text {
                    @if pieces.is_empty() { (outside("")) }
                    @for piece in pieces {
                        @match piece {
                            Piece::Same(words) => { (outside(&words)) " " },
                            Piece::Other(words) => { mark { (outside(&words)) } " " },
                            Piece::Hidden(words) => {
                                span.more {
                                    "… " (words) @if words == 1 { " word" } @else { " words" } " …"
                                }
                                " "
                            },
                        }
                    }
                }
            }
        }
    }
}
