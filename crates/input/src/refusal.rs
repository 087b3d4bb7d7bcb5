//! Files that are no documents, and how they are counted.

use std::io;

use ignore::DirEntry;

use crate::decompress::{Compression, damage};
use crate::document::MAX_RECORD_BYTES;
use crate::kinds::Kinds;
use crate::looks::Looks;
use crate::skipped::Skipped;
use crate::utf16::UTF_16_REMEDY;

/// Why a file is no document.
#[derive(thiserror::Error, Debug)]
pub(crate) enum Refusal {
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("{}", damage(*.0, .1))]
    Damaged(Compression, io::Error),
    #[error("larger than {MAX_RECORD_BYTES} bytes")]
    TooLarge,
    #[error("binary")]
    Binary,
    #[error("looks like {0}")]
    OtherContent(Looks),
    #[error("UTF-16: {UTF_16_REMEDY}")]
    Utf16,
    #[error("no UTF-8")]
    InvalidUtf8,
    /// With the reason.
    #[error("its path cannot be an id: {0}")]
    Unnameable(String),
}

impl Refusal {
    /// Says why a file is no document, and counts it. Those of a folder are many: they are worth a
    /// warning only where something is wrong, one that was named itself always is.
    pub(crate) fn record(&self, entry: &DirEntry) -> Skipped {
        let path = entry.path();
        if entry.depth() == 0 || self.is_fault() {
            tracing::warn!(?path, "skipped: {self}");
        } else {
            tracing::debug!(?path, "skipped: {self}");
        }
        let mut skipped = Skipped::default();
        *match self {
            Self::OtherContent(looks) => return other_file(&looks.to_string()),
            Self::Unreadable(_) | Self::Damaged(..) => &mut skipped.unreadable_files,
            Self::Unnameable(_) => &mut skipped.unnameable_files,
            Self::TooLarge => &mut skipped.too_large_files,
            Self::Binary => &mut skipped.binary_files,
            Self::Utf16 | Self::InvalidUtf8 => &mut skipped.invalid_utf8_files,
        } += 1;
        skipped
    }

    /// Whether something is wrong with the file, rather than that it is of another kind.
    fn is_fault(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::Damaged(..) | Self::Unnameable(_) => true,
            Self::TooLarge
            | Self::Binary
            | Self::OtherContent(_)
            | Self::Utf16
            | Self::InvalidUtf8 => false,
        }
    }
}

/// One file of another format.
pub(crate) fn other_file(kind: &str) -> Skipped {
    Skipped {
        other_files: Kinds::of(kind, 1),
        ..Skipped::default()
    }
}
