//! The rows of CSV, one after another, and their values.
//!
//! Values are parsed by `csv-core`: they stand between separators, and in quotes where they hold separators, quotes or
//! line breaks. That parser takes the end of data for the end of a quoted value. So it gets a line break there, which
//! within quotes does not end the row.
//!
//! # Invariants
//! - TB1: a row that takes more than [`MAX_RECORD_BYTES`] or [`MAX_VALUES`] is an error, after which nothing is
//!   read, and no more of it is held. A file that ends within a quoted value is an error, and so is text behind a quoted
//!   value, as where a quote was written as `\"`. So a quote that is missing costs no memory, and hides no rows.

use std::io::{self, BufRead, BufReader, Read};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::quotes::Quotes;
use crate::byte_order_mark::BYTE_ORDER_MARK;
use crate::document::{MAX_RECORD_BYTES, MAX_VALUES};
use crate::held::held;
use crate::problem::{LineProblem, excerpt, not_utf8, refuse_nul};
use crate::separator::Separator;
use crate::utf16::is_utf16;

const BUFFER_BYTES: usize = 64 << 10;

/// Rows one after another.
pub(crate) struct Rows {
    reader: BufReader<Box<dyn Read + Send>>,
    core: Reader,
    separator: Separator,
    /// The values of a row, one after another.
    pub(crate) values: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    pub(super) columns: usize,
    /// Line breaks before the next byte.
    pub(super) line_breaks: u64,
    /// The first line of the row, from 1.
    pub(super) line: u64,
    /// Whether the last byte was within a line.
    pub(super) is_in_line: bool,
}

/// A problem that has no place yet.
pub(super) enum Fault {
    Problem(LineProblem),
    Unreadable(io::Error),
}

impl From<LineProblem> for Fault {
    fn from(problem: LineProblem) -> Self {
        Self::Problem(problem)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl Rows {
    pub(super) fn new(from: Box<dyn Read + Send>, separator: Separator) -> Self {
        let mut core = ReaderBuilder::new().delimiter(separator.byte()).build();
        // Of what it reads first, it would pass over a byte order mark, if that is there in one piece.
        core.read_record(b"\n", &mut [0], &mut [0]);
        Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, from),
            core,
            separator,
            values: Vec::new(),
            ends: Vec::new(),
            columns: 0,
            line_breaks: 0,
            line: 0,
            is_in_line: false,
        }
    }

    /// Goes to the next row; whether there is one.
    pub(super) fn next(&mut self) -> Result<bool, Fault> {
        if self.line == 0 {
            self.pass_over_mark()?;
        }
        if !self.pass_over_line_breaks()? {
            return Ok(false);
        }
        self.line = self.line_breaks + 1;
        self.columns = 0;
        let (mut filled, mut row_bytes) = (0, 0);
        let mut quotes = Quotes::BeforeValue;
        loop {
            let held = held(&mut self.reader)?;
            let at_end = held.is_empty();
            // With the line break that ends the longest row.
            let most = held.len().min(MAX_RECORD_BYTES + 1 - row_bytes);
            let input = if at_end { b"\n" } else { &held[..most] };
            let (values, ends) = (&mut self.values[filled..], &mut self.ends[self.columns..]);
            let (result, read, written, ended) = self.core.read_record(input, values, ends);
            if !at_end {
                quotes = quotes
                    .after(&input[..read], self.separator.byte())
                    .ok_or(LineProblem::BehindQuote)?;
                self.line_breaks += memchr::memchr_iter(b'\n', &input[..read]).count() as u64;
                self.is_in_line = input[..read]
                    .last()
                    .map_or(self.is_in_line, |last| *last != b'\n');
                self.reader.consume(read);
                row_bytes += read;
            }
            filled += written;
            self.columns += ended;
            match result {
                ReadRecordResult::Record => return Ok(true),
                ReadRecordResult::End => return Ok(false),
                _ if row_bytes > MAX_RECORD_BYTES => return Err(LineProblem::RowTooLong.into()),
                ReadRecordResult::InputEmpty if at_end => return Err(LineProblem::OpenQuote.into()),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    grow(&mut self.values, BUFFER_BYTES, MAX_RECORD_BYTES + 1);
                }
                ReadRecordResult::OutputEndsFull if self.columns >= MAX_VALUES => {
                    return Err(LineProblem::TooManyValues.into());
                }
                ReadRecordResult::OutputEndsFull => grow(&mut self.ends, 64, MAX_VALUES),
            }
        }
    }

    /// Passes over a byte order mark.
    fn pass_over_mark(&mut self) -> io::Result<()> {
        let mut first = Vec::new();
        let most = BYTE_ORDER_MARK.len() as u64;
        self.reader.by_ref().take(most).read_to_end(&mut first)?;
        if first == BYTE_ORDER_MARK {
            first.clear();
            self.is_in_line = true;
        }
        let rest = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let whole = Box::new(io::Cursor::new(first).chain(rest));
        self.reader = BufReader::with_capacity(BUFFER_BYTES, whole);
        Ok(())
    }

    /// Passes over blank lines, and what is left of the line break before; whether anything follows.
    fn pass_over_line_breaks(&mut self) -> io::Result<bool> {
        loop {
            let input = held(&mut self.reader)?;
            let breaks = input
                .iter()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let breaks = breaks.count();
            let (ends, goes_on) = (input.is_empty(), breaks < input.len());
            self.line_breaks += memchr::memchr_iter(b'\n', &input[..breaks]).count() as u64;
            self.is_in_line = input[..breaks]
                .last()
                .map_or(self.is_in_line, |last| *last != b'\n');
            self.reader.consume(breaks);
            if ends || goes_on {
                return Ok(goes_on);
            }
        }
    }

    /// The place of a column of the header.
    pub(super) fn place(&self, name: &str, flags: &'static str) -> Result<usize, LineProblem> {
        let mut places = (0..self.columns).filter(|place| self.value(*place) == name.as_bytes());
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => Err(LineProblem::RepeatedField {
                value: "the header".to_owned(),
                name: excerpt(name),
            }),
            (None, _) => {
                if let Some(problem) = self.other_header() {
                    return Err(problem);
                }
                let names = (0..self.columns.min(20)).map(|place| {
                    let name = String::from_utf8_lossy(self.value(place));
                    format!("\"{}\"", excerpt(&name))
                });
                Err(LineProblem::MissingField {
                    value: "the header".to_owned(),
                    name: excerpt(name),
                    present: names.collect::<Vec<_>>().join(", "),
                    flags,
                })
            }
        }
    }

    /// What is wrong with a header that is none of CSV in UTF-8, or has another separator.
    fn other_header(&self) -> Option<LineProblem> {
        if is_utf16(self.value(0)) {
            return Some(LineProblem::Utf16);
        }
        let found = self.separator.other_in(self.value(0))?;
        (self.columns == 1).then_some(LineProblem::OtherSeparator { found })
    }

    pub(super) fn value(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[place]]
    }

    pub(super) fn text(&self, place: usize) -> Result<&str, LineProblem> {
        let bytes = self.value(place);
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, &error))?;
        refuse_nul(text)?;
        Ok(text)
    }
}

/// Makes room for twice as many values, from the least to the most.
fn grow<T: Clone + Default>(values: &mut Vec<T>, least: usize, most: usize) {
    let length = (values.len() * 2).clamp(least, most);
    values.reserve_exact(length - values.len());
    values.resize(length, T::default());
}
