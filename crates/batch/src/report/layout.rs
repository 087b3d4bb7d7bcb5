//! The page around the sections: head, title, contents and what is said of a run at the top.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::content::Report;
use super::section::Section;
use super::{sections, summary};

/// Nothing is loaded and nothing is run, whatever the page may hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("style.css");

/// The head of the page, above the sections.
pub(super) struct Head {
    pub(super) command: &'static str,
    pub(super) version: &'static str,
    pub(super) title: &'static str,
    /// The run in a sentence.
    pub(super) verdict: Markup,
    /// The run in a few large numbers.
    pub(super) tiles: Markup,
}

/// Most bytes of a page (H3).
const MOST_BYTES: usize = 2_000_000;

/// Lists halved this many times have an entry each.
const MOST_HALVED: u32 = 6;

/// The report as an HTML page.
#[must_use]
pub fn page(report: &Report) -> String {
    bounded(report, drawn)
}

/// Draws a page, with lists that are halved until it is small enough.
pub(super) fn bounded(report: &Report, draw: impl Fn(&Report) -> String) -> String {
    let mut page = draw(report);
    for halved in 1..=MOST_HALVED {
        if page.len() <= MOST_BYTES {
            break;
        }
        page = draw(&Report {
            halved,
            ..report.clone()
        });
    }
    page
}

fn drawn(report: &Report) -> String {
    let head = Head {
        command: report.command,
        version: report.version,
        title: title(report.command),
        verdict: summary::verdict(report),
        tiles: summary::tiles(report),
    };
    html_page(&head, &sections::all(report))
}

pub(super) fn html_page(head: &Head, sections: &[Section]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "simshard " (head.version) };
                title { (head.title) " – simshard " (head.command) }
                // Without it a browser would ask the page's server for one.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.program { "simshard " (head.command) " " span { (head.version) } }
                    h1 { (head.title) }
                    (head.verdict)
                    (head.tiles)
                    (contents(sections))
                }
                main { @for section in sections { (draw(section)) } }
            }
        }
    };
    page.into_string()
}

fn title(command: &str) -> &'static str {
    match command {
        "find-pairs" => "Near-duplicate pairs",
        "find-clusters" => "Near-duplicate clusters",
        _ => "Near-duplicates",
    }
}

fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Sections" {
            ul { @for section in sections { li { a href={ "#" (section.id) } { (section.title) } } } }
        }
    }
}

fn draw(section: &Section) -> Markup {
    let heading = format!("{}-heading", section.id);
    html! {
        section id=(section.id) aria-labelledby=(heading) {
            div.lead {
                h2 id=(heading) { (section.title) }
                p { (section.lead) }
            }
            div.body { (section.body) }
        }
    }
}
