//! From a chunk of lines to its records, whatever the format.
//!
//! Nothing here reads, waits or keeps state: the same chunk gives the same records. A record
//! borrows from its chunk, and text is copied only where it was written with escapes.

mod decimal;
mod exact_json;
mod features;
mod json;
mod tsv;

use std::borrow::Cow;
use std::fmt;

use simshard_simhash::Fingerprint;

use super::chunk::Chunk;
use super::error::not_utf8;
use super::ids::Ids;
use super::{InputError, LineProblem, MAX_RECORD_BYTES, Skipped};

pub use decimal::parse_decimal;
pub(super) use json::{JsonContent, JsonFields};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How to read lines.
#[derive(Clone, Debug)]
pub struct LineParser {
    pub(super) format: LineFormat,
    pub(super) ids: Ids,
    /// Whether ids are `source:number` rather than the line number alone, where a line has none
    /// of its own.
    pub(super) ids_name_the_source: bool,
    /// Whether bad lines are counted rather than errors.
    pub(super) skip_bad_lines: bool,
}

/// What a line is.
#[derive(Clone, Debug)]
pub(super) enum LineFormat {
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

/// A line on its way to a record.
struct Line<'a> {
    number: u64,
    bytes: &'a [u8],
    /// The line as text, where its chunk is known to be UTF-8.
    text: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn text(&self) -> Result<&'a str, LineProblem> {
        match self.text {
            Some(text) => Ok(text),
            None => std::str::from_utf8(self.bytes).map_err(|error| not_utf8(self.bytes, &error)),
        }
    }
}

impl LineParser {
    pub(super) fn carries_fingerprints(&self) -> bool {
        match &self.format {
            LineFormat::Lines => false,
            LineFormat::Jsonl(fields) => match &fields.content {
                JsonContent::Fingerprint(_) => true,
                JsonContent::Text(_) | JsonContent::Features(_) => false,
            },
            LineFormat::Hashes | LineFormat::Tsv => true,
        }
    }

    /// Hands the records of a chunk to `take`, up to the first bad line, or around bad lines
    /// where they are skipped.
    pub fn parse_chunk<'a>(&self, chunk: &'a Chunk, take: impl FnMut(Record<'a>)) -> Outcome {
        match &self.format {
            LineFormat::Hashes => self.each_line(chunk, |line| self.hashes(chunk, line), take),
            LineFormat::Lines => self.each_line(chunk, |line| self.lines(chunk, line), take),
            LineFormat::Jsonl(fields) => {
                let parse = |line: &Line<'a>| match blank(line.text()?) {
                    true => Ok(None),
                    false => Ok(Some(fields.parse(line.text()?)?)),
                };
                self.each_line(chunk, parse, take)
            }
            LineFormat::Tsv => {
                self.each_line(chunk, |line| tsv::parse(line.number, line.text()?), take)
            }
        }
    }

    fn hashes<'a>(
        &self,
        chunk: &'a Chunk,
        line: &Line<'a>,
    ) -> Result<Option<Record<'a>>, LineProblem> {
        let id = self.line_id(chunk, line);
        let content = RecordContent::Fingerprint(decimal::fingerprint(line.bytes)?);
        Ok(Some(Record { id, content }))
    }

    fn lines<'a>(
        &self,
        chunk: &'a Chunk,
        line: &Line<'a>,
    ) -> Result<Option<Record<'a>>, LineProblem> {
        let text = line.text()?;
        if blank(text) {
            return Ok(None);
        }
        let id = self.line_id(chunk, line);
        let content = RecordContent::Text(Cow::Borrowed(text));
        Ok(Some(Record { id, content }))
    }

    fn line_id<'a>(&self, chunk: &'a Chunk, line: &Line<'_>) -> RecordId<'a> {
        RecordId::Number {
            source: self.ids_name_the_source.then_some(&*chunk.source),
            number: line.number,
        }
    }

    /// Cuts the chunk into lines and does `parse` with each.
    #[inline]
    fn each_line<'a>(
        &self,
        chunk: &'a Chunk,
        parse: impl Fn(&Line<'a>) -> Result<Option<Record<'a>>, LineProblem>,
        mut take: impl FnMut(Record<'a>),
    ) -> Outcome {
        let bytes = chunk.bytes();
        let text = std::str::from_utf8(bytes).ok();
        let mut outcome = Outcome::default();
        let mut number = chunk.first_line;
        let mut start = 0;
        while start < bytes.len() {
            let (end, after) = match memchr::memchr(b'\n', &bytes[start..]) {
                Some(length) => (start + length, start + length + 1),
                None => (bytes.len(), bytes.len()),
            };
            let end = without_return(bytes, start, end, after);
            let parsed = match end - start > MAX_RECORD_BYTES {
                true => Err(LineProblem::TooLong),
                false => {
                    let start = after_mark(bytes, start, number);
                    let line = Line {
                        number,
                        bytes: &bytes[start..end],
                        text: text.map(|text| &text[start..end]),
                    };
                    parse(&line).and_then(|record| self.check_id(record))
                }
            };
            match parsed {
                Ok(Some(record)) => take(record),
                Ok(None) => {}
                Err(problem) => self.bad_line(chunk, number, problem, &mut outcome),
            }
            if outcome.error.is_some() {
                return outcome;
            }
            number += 1;
            start = after;
        }
        if chunk.then_too_long {
            self.bad_line(chunk, number, LineProblem::TooLong, &mut outcome);
        }
        outcome
    }

    #[inline]
    fn check_id<'a>(&self, record: Option<Record<'a>>) -> Result<Option<Record<'a>>, LineProblem> {
        match record.as_ref().map(|record| &record.id) {
            Some(RecordId::Given(id)) => self.ids.check(id)?,
            Some(RecordId::Number {
                source: Some(_), ..
            }) => {
                let id = record
                    .as_ref()
                    .map_or_else(String::new, |record| record.id.to_string());
                self.ids.check(&id)?;
            }
            Some(RecordId::Number { source: None, .. }) | None => {}
        }
        Ok(record)
    }

    #[cold]
    fn bad_line(&self, chunk: &Chunk, line: u64, problem: LineProblem, outcome: &mut Outcome) {
        let error = InputError::BadLine {
            file: chunk.source.to_string(),
            line,
            problem,
        };
        if self.skip_bad_lines {
            tracing::debug!(%error, "bad line skipped");
            outcome.skipped.bad_lines += 1;
        } else {
            outcome.error = Some(error);
        }
    }
}

/// Where a line ends without its `\r\n`. A `\r` alone is no line break.
fn without_return(bytes: &[u8], start: usize, end: usize, after: usize) -> usize {
    match after > end && end > start && bytes[end - 1] == b'\r' {
        true => end - 1,
        false => end,
    }
}

/// Where a line begins without a byte order mark, which may stand before a source's first.
fn after_mark(bytes: &[u8], start: usize, number: u64) -> usize {
    match number == 1 && bytes[start..].starts_with(BYTE_ORDER_MARK) {
        true => start + BYTE_ORDER_MARK.len(),
        false => start,
    }
}

fn blank(line: &str) -> bool {
    line.trim_start().is_empty()
}
