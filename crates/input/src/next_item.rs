//! The items of a source without lines.

use crate::document::Document;
use crate::error::InputError;
use crate::html::Extraction;
use crate::skipped::Skipped;

/// The next item of a source without lines.
#[derive(Debug)]
pub(crate) enum NextItem {
    /// A document, and what is taken of its text: all of it, unless it is a page of HTML.
    Document(Document, Extraction),
    /// Something that is left out, counted under its reason.
    Skipped(Skipped),
    /// The end of all reading.
    Failed(InputError),
}
