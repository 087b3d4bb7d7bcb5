//! From a chunk of lines to its records, whatever the format.
//!
//! Nothing here reads, waits or keeps state: the same chunk gives the same records. A record
//! borrows from its chunk, and text is copied only where it was written with escapes.

mod decimal;
mod exact_json;
mod features;
mod hashes;
mod json;
mod lines;
mod tsv;
mod walk;

use std::borrow::Cow;
use std::fmt;

use simshard_simhash::Fingerprint;

use super::chunk::Chunk;
use super::ids::Ids;
use super::{Format, InputArgs, InputError, Needs, Skipped};

pub use decimal::parse_decimal;
pub(super) use json::{JsonContent, JsonFields};

use walk::Walk;

/// How to read lines.
#[derive(Clone, Debug)]
pub struct LineParser {
    format: LineFormat,
    ids: Ids,
    /// Whether ids are `source:number` rather than the line number alone, where a line has none
    /// of its own.
    ids_name_the_source: bool,
    /// Whether bad lines are counted rather than errors.
    pub(super) skip_bad_lines: bool,
}

/// What a line is.
#[derive(Clone, Debug)]
enum LineFormat {
    /// The line is a fingerprint.
    Hashes,
    /// The line is the text.
    Lines,
    /// The line is a JSON object.
    Jsonl(JsonFields),
    /// The line is an id, a tab and a fingerprint.
    Tsv,
}

/// A document as it stands in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its id.
    pub id: RecordId<'a>,
    /// What it carries.
    pub content: RecordContent<'a>,
}

/// A document's id, which displays as it is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordId<'a> {
    /// It was given.
    Given(Cow<'a, str>),
    /// It is a number: the one given or that of the line, this after its source where there are
    /// several.
    Number {
        /// The source.
        source: Option<&'a str>,
        /// The number.
        number: u64,
    },
}

/// What a document carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent<'a> {
    /// A text, yet to be fingerprinted.
    Text(Cow<'a, str>),
    /// A fingerprint, computed earlier or from features.
    Fingerprint(Fingerprint),
}

/// What else there was in a chunk.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was left out.
    pub skipped: Skipped,
    /// The bad line that ended the parsing.
    pub error: Option<InputError>,
}

impl fmt::Display for RecordId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(id) => f.write_str(id),
            Self::Number {
                source: Some(source),
                number,
            } => write!(f, "{source}:{number}"),
            Self::Number {
                source: None,
                number,
            } => number.fmt(f),
        }
    }
}

impl LineParser {
    /// The parser of a format; `None` where that is not made of lines.
    #[must_use]
    pub fn new(
        args: &InputArgs,
        needs: Needs,
        format: Format,
        several_sources: bool,
    ) -> Option<Self> {
        let format = match format {
            Format::Hashes => LineFormat::Hashes,
            Format::Lines => LineFormat::Lines,
            Format::Jsonl => LineFormat::Jsonl(args.json_fields(needs.recipe)),
            Format::Tsv => LineFormat::Tsv,
            Format::Parquet | Format::Warc | Format::Files => return None,
        };
        Some(Self {
            format,
            ids: needs.ids,
            ids_name_the_source: several_sources,
            skip_bad_lines: args.skip_bad_lines,
        })
    }

    /// Hands the records of a chunk to `take`, up to the first bad line, or around bad lines
    /// where they are skipped.
    pub fn parse_chunk<'a>(&'a self, chunk: &'a Chunk, take: impl FnMut(Record<'a>)) -> Outcome {
        let walk = Walk::new(self, chunk, take);
        match &self.format {
            LineFormat::Hashes => hashes::parse(walk),
            LineFormat::Lines => walk.each_text(lines::parse),
            LineFormat::Tsv => walk.each_text(|line, text| tsv::parse(line.number, text)),
            LineFormat::Jsonl(fields) => walk.each_text(|_, text| fields.parse(text)),
        }
    }
}
