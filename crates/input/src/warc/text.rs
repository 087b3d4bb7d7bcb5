//! The text of a record, before it is understood.

use super::fields::TextKind;
use crate::html::{self, Decoded};

/// A text as it stands in a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// Bytes that should be UTF-8.
    Plain(Vec<u8>),
    /// A page.
    Html(Decoded),
    /// A page of XHTML.
    Xhtml(Decoded),
    /// Binary content whose type says that it is a page.
    NoPage,
}

impl Text {
    /// What a record of a kind holds, by its bytes and its `Content-Type`.
    pub(super) fn new(kind: TextKind, bytes: Vec<u8>, content_type: &[u8]) -> Self {
        if kind == TextKind::Plain {
            return Self::Plain(bytes);
        }
        if html::is_no_served_page(&bytes, content_type) {
            return Self::NoPage;
        }
        let decoded = html::decoded(&bytes, Some(content_type));
        if kind == TextKind::Xhtml {
            Self::Xhtml(decoded)
        } else {
            Self::Html(decoded)
        }
    }

    /// Whether plain text is in another character set.
    pub(super) fn is_not_utf8(&self) -> bool {
        match self {
            Self::Plain(bytes) => std::str::from_utf8(bytes).is_err(),
            Self::Html(_) | Self::Xhtml(_) | Self::NoPage => false,
        }
    }
}
