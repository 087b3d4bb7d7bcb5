//! The main text of pages of HTML: how fast it is found, against a parser that does nothing with what it finds. The
//! pages are made up around real texts, with the navigation, links and scripts of a crawled page.

use std::convert::Infallible;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use serde::Serialize;
use simshard_input::Html;

use super::{Settings, text};
use crate::figure;

/// The pages are read this often, by turns with parsing alone, so that noise meets both.
const ROUNDS: usize = 5;

#[derive(Serialize)]
struct HtmlFigure {
    case: &'static str,
    pages: usize,
    megabytes: f64,
    /// Of markup.
    megabytes_per_second: f64,
    parsed_megabytes_per_second: f64,
    /// The first rate against the second.
    against_parsing: f64,
}

/// Measures one thread, however many the settings allow.
pub(super) fn measure(settings: &Settings) -> anyhow::Result<()> {
    let texts = text::collect(&settings.texts, settings.max_mib)?;
    let pages: Vec<String> = texts.texts.iter().map(|text| page(text)).collect();
    let (mut extracting, mut parsing) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        parsing += seconds(&pages, |page| {
            black_box(events(page));
        });
        extracting += seconds(&pages, |page| {
            black_box(Html::Main.text(page));
        });
    }
    let bytes: usize = pages.iter().map(String::len).sum();
    let megabytes = bytes as f64 / 1e6;
    let rate = |seconds: f64| megabytes * ROUNDS as f64 / seconds;
    let figure = HtmlFigure {
        case: "html",
        pages: pages.len(),
        megabytes,
        megabytes_per_second: rate(extracting),
        parsed_megabytes_per_second: rate(parsing),
        against_parsing: parsing / extracting,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "html             {:8.1} MB/s  {} pages, {:.2} x parsing alone",
            figure.megabytes_per_second, figure.pages, figure.against_parsing
        )
    })
}

fn seconds(pages: &[String], work: impl Fn(&str)) -> f64 {
    let start = Instant::now();
    pages.iter().for_each(|page| work(page));
    start.elapsed().as_secs_f64()
}

/// Parses a page in the way that extraction does, into events that borrow from the page, and counts them.
fn events(page: &str) -> usize {
    let mut count = 0;
    let counts = |_: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        count += 1;
        None
    };
    let mut emitter = CallbackEmitter::new(counts);
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(page, emitter).finish();
    count
}

/// A page around a text: each paragraph of the text in an element of its own, every tenth word a link.
fn page(text: &str) -> String {
    let mut page = String::with_capacity(2 * text.len());
    page.push_str("<!DOCTYPE html><html><head><title>Page</title><script>var a = 1 < 2;</script></head><body><nav><ul>");
    for number in 0..20 {
        let _ = write!(
            page,
            "<li class=\"item\"><a href=\"/{number}\">Section {number}</a></li>"
        );
    }
    page.push_str("</ul></nav><main id=\"content\">");
    for paragraph in text.split("\n\n") {
        page.push_str("<p class=\"text\">");
        for (place, word) in paragraph.split_inclusive(' ').enumerate() {
            let word = word.replace('&', "&amp;").replace('<', "&lt;");
            if place % 10 == 9 {
                let _ = write!(page, "<a href=\"/word/{place}\">{word}</a>");
            } else {
                page.push_str(&word);
            }
        }
        page.push_str("</p>\n");
    }
    page.push_str("</main><footer><p>All rights reserved.</p></footer></body></html>");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_text_of_a_page_is_the_text_that_it_was_made_around() {
        let paragraph = "One a & b < c two three four five six seven eight nine ten. ".repeat(3);
        let text = format!("{paragraph}\n\n{paragraph}");
        let main = Html::Main.text(&page(&text)).into_owned();
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&main), words(&text));
        assert!(events(&page(&text)) > 100);
    }
}
