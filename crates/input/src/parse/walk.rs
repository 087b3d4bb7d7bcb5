//! The walk over the lines of a chunk, which all formats have in common.

use crate::byte_order_mark::without_byte_order_mark;
use crate::chunk::Chunk;
use crate::document::{MAX_RECORD_BYTES, Record, RecordId};
use crate::error::InputError;
use crate::ids::Ids;
use crate::problem::{LineProblem, not_utf8};
use crate::skipped::Skipped;

/// The rules for lines of every format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) ids: Ids,
    /// Whether ids are `source:number` rather than the line number alone, where a line has none
    /// of its own.
    pub(super) ids_name_the_source: bool,
    /// Whether bad lines are counted rather than errors.
    pub(super) skip_bad_lines: bool,
}

/// The lines of a chunk that gave no record.
#[derive(Debug, Default)]
pub struct ChunkOutcome {
    /// The numbers of the bad lines that were skipped.
    pub(crate) bad_lines: Vec<u64>,
    /// The skipped lines.
    pub skipped: Skipped,
    /// The bad line that ended the parsing.
    pub error: Option<InputError>,
}

/// A walk over the lines of a chunk.
pub(super) struct Walk<'a, T> {
    rules: &'a Rules,
    chunk: &'a Chunk,
    take: T,
    /// Where the next line begins.
    start: usize,
    /// Its number.
    number: u64,
    /// Whether all ids that are numbers of lines will do.
    numbers_will_do: bool,
    outcome: ChunkOutcome,
}

/// A line without its line break, on its way to a record.
pub(crate) struct Line<'a> {
    pub(crate) number: u64,
    pub(crate) bytes: &'a [u8],
    /// The source, where ids name it.
    source: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// The id of a line that has none of its own.
    #[inline]
    pub(super) fn id(&self) -> RecordId<'a> {
        RecordId::Number {
            source: self.source,
            number: self.number,
        }
    }

    /// A line from memory.
    #[cfg(test)]
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            number: 1,
            bytes: text.as_bytes(),
            source: None,
        }
    }

    fn text(&self) -> Result<&'a str, LineProblem> {
        std::str::from_utf8(self.bytes).map_err(|error| not_utf8(self.bytes, &error))
    }
}

impl<'a, T: FnMut(&Line<'a>, Record<'a>)> Walk<'a, T> {
    pub(super) fn new(rules: &'a Rules, chunk: &'a Chunk, take: T) -> Self {
        Self {
            rules,
            chunk,
            take,
            start: 0,
            number: chunk.first_line,
            numbers_will_do: !rules.ids_name_the_source || {
                let largest = RecordId::Number {
                    source: Some(&chunk.source),
                    number: u64::MAX,
                };
                rules.ids.check(&largest.to_string()).is_ok()
            },
            outcome: ChunkOutcome::default(),
        }
    }

    /// Does `parse` with the text of each line and takes the records.
    pub(super) fn each_text(
        mut self,
        parse: impl Fn(&Line<'a>, &'a str) -> Result<Option<Record<'a>>, LineProblem>,
    ) -> ChunkOutcome {
        while self.line(|line| parse(line, line.text()?)) {}
        self.finish()
    }

    /// The rest of the chunk.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.chunk.bytes()[self.start..]
    }

    /// Hands on what was found on a line. False where the line is bad and ends the walk. Always inlined: a record takes
    /// longer to move than a short line to parse.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        line: &Line<'a>,
        parsed: Result<Option<Record<'a>>, LineProblem>,
    ) -> bool {
        match parsed.and_then(|record| self.check_id(record)) {
            Ok(Some(record)) => (self.take)(line, record),
            Ok(None) => {}
            Err(problem) => self.bad_line(line.number, problem),
        }
        self.outcome.error.is_none()
    }

    /// Steps over a line of `bytes` bytes and its `\n`.
    #[inline]
    pub(super) fn skip_line(&mut self, bytes: usize) -> Line<'a> {
        let line = Line {
            number: self.number,
            bytes: &self.rest()[..bytes],
            source: self
                .rules
                .ids_name_the_source
                .then_some(&*self.chunk.source),
        };
        self.start = (self.start + bytes + 1).min(self.chunk.bytes().len());
        self.number += 1;
        line
    }

    /// Does `parse` with the next line and takes its record. False where there is no next line, or
    /// where this one is bad and ends the walk.
    #[inline]
    pub(super) fn line(
        &mut self,
        parse: impl FnOnce(&Line<'a>) -> Result<Option<Record<'a>>, LineProblem>,
    ) -> bool {
        let rest = self.rest();
        if rest.is_empty() {
            return false;
        }
        let line_break = memchr::memchr(b'\n', rest);
        let mut line = self.skip_line(line_break.unwrap_or(rest.len()));
        if line_break.is_some() {
            line.bytes = line.bytes.strip_suffix(b"\r").unwrap_or(line.bytes);
        }
        let parsed = if line.bytes.len() > MAX_RECORD_BYTES {
            Err(LineProblem::TooLong)
        } else {
            if line.number == 1 {
                line.bytes = without_byte_order_mark(line.bytes);
            }
            parse(&line)
        };
        self.take(&line, parsed)
    }

    /// The skipped lines, and the error.
    pub(super) fn finish(mut self) -> ChunkOutcome {
        if self.chunk.then_too_long && self.outcome.error.is_none() {
            self.bad_line(self.number, LineProblem::TooLong);
        }
        self.outcome
    }

    #[inline(always)]
    fn check_id(&self, record: Option<Record<'a>>) -> Result<Option<Record<'a>>, LineProblem> {
        let Some(record) = record else {
            return Ok(None);
        };
        match &record.id {
            RecordId::Given(id) => self.rules.ids.check(id)?,
            RecordId::Number { .. } if self.numbers_will_do => {}
            id @ RecordId::Number { .. } => self.rules.ids.check(&id.to_string())?,
        }
        Ok(Some(record))
    }

    #[cold]
    fn bad_line(&mut self, line: u64, problem: LineProblem) {
        let error = InputError::BadLine {
            file: self.chunk.source.to_string(),
            line,
            problem,
        };
        if self.rules.skip_bad_lines {
            tracing::debug!(%error, "bad line skipped");
            self.outcome.skipped.bad_lines += 1;
            self.outcome.skipped.first_bad.add(line, &error);
            self.outcome.bad_lines.push(line);
        } else {
            self.outcome.error = Some(error);
        }
    }
}
