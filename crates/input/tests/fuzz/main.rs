//! Hostile input for everything that reads documents.
//!
//! Each target is a plain test: ten thousand cases, or a million with `SIMSHARD_LONG`. Inputs are
//! pieces of real ones, put together at random and damaged ([`splice`]).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrow;
mod compressed;
mod csv;
mod html;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod patterns;
mod slowly;
mod splice;
mod warc;

use simshard_input::{Check, Content, Document, Format, InputOptions, MAX_RECORD_BYTES, Needs};

use splice::{assert_printable, cases};

/// The longest id that a corpus takes.
const MAX_ID_BYTES: usize = 1024;

/// What a document's content is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hashes,
    Lines,
    Tsv,
    JsonTexts,
    JsonFingerprints,
    JsonFeatures,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Hashes,
        Self::Lines,
        Self::Tsv,
        Self::JsonTexts,
        Self::JsonFingerprints,
        Self::JsonFeatures,
    ];

    fn options(self, skip_bad_lines: bool) -> InputOptions {
        let mut options = InputOptions::walking(Vec::new());
        options.skip_bad_lines = skip_bad_lines;
        options.format = Some(match self {
            Self::Hashes => Format::Hashes,
            Self::Lines => Format::Lines,
            Self::Tsv => Format::Tsv,
            Self::JsonTexts | Self::JsonFingerprints | Self::JsonFeatures => Format::Jsonl,
        });
        match self {
            Self::Hashes | Self::Lines | Self::Tsv | Self::JsonTexts => {}
            Self::JsonFingerprints => options.fingerprint_field = Some("hash".to_owned()),
            Self::JsonFeatures => options.features_field = Some("features".to_owned()),
        }
        options
    }
}

/// Those of a command that reads once.
const AS_READ: Needs = Needs {
    check: Check::AsRead,
    ..Needs::CLIENT
};

/// Checks what holds for every document, whatever it came from.
fn assert_within_limits(documents: &[Document]) {
    for document in documents {
        assert!(document.id.len() <= MAX_ID_BYTES);
        if let Content::Text(text) = &document.content {
            assert!(text.len() <= MAX_RECORD_BYTES);
        }
    }
}
