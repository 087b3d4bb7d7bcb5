//! Lines of bounded length from any reader.

use std::io::{self, BufRead, BufReader, Read};

use super::MAX_RECORD_BYTES;

const BUFFER_BYTES: usize = 64 << 10;
const LINE_BREAK_BYTES: usize = 2;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads lines, holding at most one of at most [`MAX_RECORD_BYTES`].
pub(super) struct LineReader {
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    number: u64,
    /// The last line was too long, and its rest is yet to be passed over.
    inside_line: bool,
}

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it, without a byte order mark.
    Whole(&'a [u8]),
    /// Too long. Its rest is passed over only when the next line is asked for,
    /// as it may never end.
    TooLong,
}

impl LineReader {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            line: Vec::new(),
            number: 0,
            inside_line: false,
        }
    }

    /// The next line, `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if std::mem::take(&mut self.inside_line) {
            self.reader.skip_until(b'\n')?;
        }
        self.line.clear();
        let most = MAX_RECORD_BYTES + LINE_BREAK_BYTES;
        let mut bounded = self.reader.by_ref().take(most as u64);
        let taken = bounded.read_until(b'\n', &mut self.line)?;
        if taken == 0 {
            return Ok(None);
        }
        self.inside_line = taken == most && !self.line.ends_with(b"\n");
        self.number += 1;
        let mut line = without_line_break(&self.line);
        if line.len() > MAX_RECORD_BYTES {
            return Ok(Some(Line::TooLong));
        }
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some(Line::Whole(line)))
    }

    /// The number of the line returned last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.line.capacity() + self.reader.capacity()
    }
}

/// Takes off one `\n` or `\r\n`.
fn without_line_break(line: &[u8]) -> &[u8] {
    match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    }
}
