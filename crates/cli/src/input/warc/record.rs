//! Records one after another: a header, and a block as long as the header says.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::error::BrokenProblem;
use super::fields::Fields;
use crate::input::MAX_RECORD_BYTES;
use crate::input::error::excerpt;

/// The longest header, of a record or an HTTP response: 64 KiB.
pub const MAX_HEADER_BYTES: usize = 64 << 10;
/// The most of a block that is held: the longest text after the longest HTTP header.
pub const MAX_BLOCK_BYTES: usize = MAX_RECORD_BYTES + MAX_HEADER_BYTES;

const BUFFER_BYTES: usize = 64 << 10;
const VERSION: &[u8] = b"WARC/";

/// Reads records.
pub(super) struct Records {
    reader: BufReader<Box<dyn Read + Send>>,
    /// Bytes read so far.
    position: u64,
    /// Where the record begins.
    offset: u64,
    number: u64,
    /// What is left of the record's block.
    block_left: u64,
    block: Vec<u8>,
}

/// A record's block.
pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether `bytes` are all of it.
    pub(super) is_whole: bool,
}

/// Where a line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Break,
    File,
    Limit,
}

/// Why nothing more can be read.
pub(super) enum Broken {
    Problem(BrokenProblem),
    Unreadable(io::Error),
}

impl From<BrokenProblem> for Broken {
    fn from(problem: BrokenProblem) -> Self {
        Self::Problem(problem)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl Records {
    pub(super) fn new(from: Box<dyn Read + Send>) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, from),
            position: 0,
            offset: 0,
            number: 0,
            block_left: 0,
            block: Vec::new(),
        }
    }

    /// The number of the record whose header was returned last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Where it begins, from 0.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The header of the next record, `None` at the end. Passes over what is left of the last one.
    pub(super) fn next_header(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        self.pass_over_block()?;
        if !self.pass_over_line_breaks()? {
            return Ok(None);
        }
        self.offset = self.position;
        self.number += 1;
        let mut header = Vec::new();
        let mut line_start = 0;
        loop {
            let end = self.read_line(&mut header)?;
            let cut_in_version = end == LineEnd::File && VERSION.starts_with(&header);
            if !cut_in_version && !header.starts_with(VERSION) {
                let value = excerpt(String::from_utf8_lossy(&header).trim_end());
                return Err(BrokenProblem::NoRecord { value }.into());
            }
            match end {
                LineEnd::File => return Err(BrokenProblem::CutShort.into()),
                LineEnd::Limit => return Err(BrokenProblem::HeaderTooLong.into()),
                LineEnd::Break if header[line_start..].trim_ascii().is_empty() => break,
                LineEnd::Break => line_start = header.len(),
            }
        }
        self.block_left = length(&header)?;
        Ok(Some(header))
    }

    /// The block of the record whose header was returned last, or as much of it as is ever held.
    pub(super) fn block(&mut self) -> Result<Block<'_>, Broken> {
        self.block.clear();
        let most = self.block_left.min(MAX_BLOCK_BYTES as u64);
        let read = self
            .reader
            .by_ref()
            .take(most)
            .read_to_end(&mut self.block)? as u64;
        self.advance(read);
        if read < most {
            return Err(BrokenProblem::CutShort.into());
        }
        Ok(Block {
            bytes: &self.block,
            is_whole: self.block_left == 0,
        })
    }

    fn pass_over_block(&mut self) -> Result<(), Broken> {
        let mut block = self.reader.by_ref().take(self.block_left);
        let passed = io::copy(&mut block, &mut io::sink())?;
        self.advance(passed);
        if self.block_left > 0 {
            return Err(BrokenProblem::CutShort.into());
        }
        Ok(())
    }

    /// Passes over the line breaks between records; whether anything follows.
    fn pass_over_line_breaks(&mut self) -> io::Result<bool> {
        loop {
            let held = match self.reader.fill_buf() {
                Ok(held) => held,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if held.is_empty() {
                return Ok(false);
            }
            let breaks = held.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let breaks = breaks.count();
            let ended = breaks < held.len();
            self.reader.consume(breaks);
            self.position += breaks as u64;
            if ended {
                return Ok(true);
            }
        }
    }

    /// Adds a line to a header, which stays within its limit.
    fn read_line(&mut self, header: &mut Vec<u8>) -> io::Result<LineEnd> {
        let most = MAX_HEADER_BYTES - header.len();
        let mut bounded = self.reader.by_ref().take(most as u64);
        let read = bounded.read_until(b'\n', header)?;
        self.position += read as u64;
        if read > 0 && header.ends_with(b"\n") {
            return Ok(LineEnd::Break);
        }
        if read == most {
            return Ok(LineEnd::Limit);
        }
        Ok(LineEnd::File)
    }

    fn advance(&mut self, bytes: u64) {
        self.position += bytes;
        self.block_left -= bytes;
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.block.capacity() + self.reader.capacity()
    }
}

fn length(header: &[u8]) -> Result<u64, BrokenProblem> {
    let Some(value) = Fields::of(header).get("Content-Length") else {
        return Err(BrokenProblem::NoLength);
    };
    let text = String::from_utf8_lossy(&value);
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| BrokenProblem::BadLength {
        value: excerpt(&text),
    })
}
