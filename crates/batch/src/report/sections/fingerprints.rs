//! How the fingerprints are spread: heavy prefixes, and fingerprints that deserve a look.

use maud::{Markup, html};

use super::list::{ENTRIES, SAMPLES, more, reasons};
use crate::report::bars::{Bar, Bars};
use crate::report::numbers::{count, factor, share};
use crate::report::section::Section;
use crate::report::text::{common_folder, outside, outside_within};
use crate::report::{Report, SpecialFingerprint, Why};

/// All prefixes of 16 bits.
const PREFIXES: f64 = 65_536.0;

/// A factor says something from this mean on: an even spread then puts at most about twice as many on
/// any prefix. Among fewer documents, two that share one by chance are many times the mean.
const LEAST_MEAN: f64 = 16.0;

pub(super) fn prefixes(report: &Report) -> Option<Section> {
    let prefixes = report.first(&report.heaviest_prefixes, ENTRIES);
    if prefixes.is_empty() {
        return None;
    }
    let mean = report.documents as f64 / PREFIXES;
    let has_factors = mean >= LEAST_MEAN;
    let rows = prefixes.iter().map(|heavy| Bar {
        label: html! { code { (format!("{:04x}", heavy.prefix)) } },
        number: heavy.documents.into(),
        aside: html! {
            @if has_factors { (factor(heavy.documents as f64 / mean)) }
            @else { (share(heavy.documents.into(), report.documents.into())) }
        },
    });
    let bars = Bars {
        caption: "Documents by the leading 16 bits of their fingerprint, as four hexadecimal digits",
        heads: [
            "Prefix",
            "Documents",
            if has_factors { "× mean" } else { "Share" },
        ],
        rows: rows.collect(),
    };
    Some(Section {
        id: "prefixes",
        title: "Heaviest prefixes",
        lead: html! {
            "The leading bits that most documents share, and "
            @if has_factors {
                "how many times the mean of all 65 536 that is. A factor far above the rest"
            } @else {
                "which part of all documents that is. A part far above the rest"
            }
            " is boilerplate, or bits that are skewed: it slows the search, so strip what those texts "
            "have in common, or try another recipe."
        },
        body: html! {
            (bars.table())
            (more(report.heaviest_prefixes.len() as u64, prefixes.len()))
        },
    })
}

pub(super) fn degenerate(report: &Report) -> Option<Section> {
    let all = &report.degenerate_fingerprints;
    if all.is_empty() {
        return None;
    }
    Some(Section {
        id: "degenerate-fingerprints",
        title: "Degenerate fingerprints",
        lead: html! {
            "Fingerprints that stand for no text: that of the empty text, and those that programs write "
            "for a missing one. Their documents match each other whatever they are about, so leave "
            "them out."
        },
        body: cards(report, all),
    })
}

pub(super) fn crowded(report: &Report) -> Option<Section> {
    let all = &report.crowded;
    if all.is_empty() {
        return None;
    }
    Some(Section {
        id: "crowded",
        title: "Shared fingerprints",
        lead: html! {
            "The fingerprints that the most documents have. These are usually exact copies of one text, "
            "of which one can be kept. Where the samples are other texts, those are all boilerplate."
        },
        body: cards(report, all),
    })
}

fn cards(report: &Report, all: &[SpecialFingerprint]) -> Markup {
    let shown = report.first(all, ENTRIES);
    html! {
        ul.cards { @for one in shown { (card(one, report)) } }
        (more(all.len() as u64, shown.len()))
    }
}

pub(super) fn degenerate_texts(report: &Report) -> Option<Section> {
    let all = &report.degenerate_texts;
    if all.is_empty() {
        return None;
    }
    let counts = all.iter().map(|(reason, texts)| (reason.as_str(), *texts));
    Some(Section {
        id: "degenerate-texts",
        title: "Degenerate texts",
        lead: html! {
            "Texts with little to tell them apart, judged by their first KiB: they are near others "
            "whatever they are about. " code { "--min-words" } " leaves out short ones."
        },
        body: reasons("Degenerate texts by reason", "Texts", counts),
    })
}

fn card(one: &SpecialFingerprint, report: &Report) -> Markup {
    let documents = report.documents;
    let samples = report.first(&one.samples, SAMPLES);
    let folder = common_folder(samples.iter().map(String::as_str));
    html! {
        li {
            h3 { code title=(format!("{:016x} in hexadecimal", one.fingerprint)) { (one.fingerprint) } }
            p.size {
                (count(one.documents)) @if one.documents == 1 { " document" } @else { " documents" }
                " (" (share(one.documents.into(), documents.into())) ")"
            }
            @if let Some(explained) = explained(one.why, report) { p { (explained) } }
            @if !folder.is_empty() { p.folder { "in " (outside(folder)) } }
            @if !samples.is_empty() {
                ul.samples aria-label="Some of the documents" {
                    @for id in samples { li { (outside_within(folder, id)) } }
                }
                (more(one.documents, samples.len()))
            }
        }
    }
}

/// Why a fingerprint stands for no text; `None` if it stands for many.
fn explained(why: Why, report: &Report) -> Option<Markup> {
    match why {
        Why::EmptyText => Some(html! {
            "What the recipe makes of an empty text: these documents have "
            (report.content_of_empty_texts()) "."
        }),
        Why::AllZero => Some(html! {
            "Every bit is 0. Empty texts often have this fingerprint, and programs that write 0 for a "
            "missing one."
        }),
        Why::AllOne => Some(html! {
            "Every bit is 1. Texts hardly ever have this fingerprint: it is likely a mark for a "
            "missing one."
        }),
        Why::Crowded => None,
    }
}
