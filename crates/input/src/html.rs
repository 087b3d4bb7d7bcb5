//! Pages to text: what a reader of an HTML page would call its text, or all of it, or its markup.
//!
//! ```text
//!     bytes ─▶ charset ─▶ markup ─▶ page ─▶ blocks, regions ─▶ main_text ─▶ text
//!              header, BOM, meta    tokens, one pass           which blocks
//! ```
//!
//! The tokens come from `html5gum`, which follows the HTML standard on broken markup. There is no tree. The crates for
//! main content rest on the tree builder of `html5ever`. That takes seconds for 20,000 nested elements, as its time
//! grows with the square of the depth.
//!
//! The main content is found by the structure of a page, not by its words, so it works for every
//! language: see [`main_text`].
//!
//! # Invariants
//! - HT1: time and memory grow linearly with the length of a page, however deep or broken it is; no page
//!   panics.
//! - HT2: a text holds no NUL and none of the page's scripts, styles, templates or hidden elements.

mod cdata;
mod charset;
mod elements;
mod foreign;
mod guesses;
mod holders;
mod main_text;
mod open;
mod page;
mod sniff;
mod sums;
mod tag;
#[cfg(test)]
mod tests;
mod titles;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

pub(crate) use charset::{Decoded, Doubt, decoded};
use page::Page;
pub(crate) use sniff::{PDF, begins_a_page, is_no_page, is_no_served_page, may_precede_a_page};

use crate::document::{Record, RecordContent};

/// How an HTML page becomes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Html {
    /// The main content: without navigation, lists of links, headers, footers and sidebars
    Main,
    /// All that a reader sees: without tags, scripts, styles, templates and hidden elements
    All,
    /// The markup as it is
    Raw,
}

/// How a document becomes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extraction {
    /// What is taken of it.
    pub html: Html,
    /// Whether it is XHTML by its type or its name. A page with an XML declaration is XHTML without that.
    pub is_xhtml: bool,
    /// Whether no option says what is taken. A text that looks like a page, and stays as it is, is then worth a hint.
    pub is_unsaid: bool,
}

/// Whether the hint was given.
static HINTED: AtomicBool = AtomicBool::new(false);

impl From<Html> for Extraction {
    fn from(html: Html) -> Self {
        Self {
            html,
            is_xhtml: false,
            is_unsaid: false,
        }
    }
}

impl Html {
    /// The text of a page.
    #[must_use]
    pub fn text<'a>(self, markup: &'a str) -> Cow<'a, str> {
        Extraction::from(self).text(markup)
    }
}

impl Extraction {
    /// The text of a page.
    fn text<'a>(self, markup: &'a str) -> Cow<'a, str> {
        let page = || Page::new(markup, self.is_xhtml);
        let mut text = match self.html {
            Html::Main => main_text::of(page()),
            Html::All => page().text,
            Html::Raw => return Cow::Borrowed(markup),
        };
        // Each block ends in a line break.
        text.pop();
        Cow::Owned(text)
    }

    /// The record with the text of the page in it, if it holds one.
    pub(crate) fn of_record(self, record: Record<'_>) -> Record<'_> {
        if self.html == Html::Raw {
            if self.is_unsaid {
                hint(&record.content);
            }
            return record;
        }
        let content = match record.content {
            RecordContent::Text(Cow::Borrowed(markup)) => RecordContent::Text(self.text(markup)),
            RecordContent::Text(Cow::Owned(markup)) => {
                RecordContent::Text(Cow::Owned(self.text(&markup).into_owned()))
            }
            RecordContent::Fingerprint(_) => record.content,
        };
        Record { content, ..record }
    }
}

/// Says once that texts look like pages, if this one does.
fn hint(content: &RecordContent<'_>) {
    if let RecordContent::Text(text) = content
        && begins_a_page(text.as_bytes())
        && !HINTED.swap(true, Ordering::Relaxed)
    {
        tracing::warn!(
            "the texts look like HTML: --html main takes their main text, and --html raw keeps them as they are"
        );
    }
}
