//! A part of the page.

use maud::Markup;

/// A part of the page, with a sentence on what it shows and what to do about it.
pub(super) struct Section {
    /// Its name in links.
    pub(super) id: &'static str,
    /// Its heading.
    pub(super) title: &'static str,
    /// Its message, and what the reader should do about it.
    pub(super) lead: Markup,
    /// The tables.
    pub(super) body: Markup,
}
