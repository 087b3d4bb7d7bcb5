//! Records one after another: a header, and a block as long as the header says.

mod ends;

use std::io::{self, BufRead, BufReader, Read};

use super::arc;
use super::error::BrokenProblem;
use super::fields::content_length;
use super::reread::Rereader;
use super::version::{LONGEST_LINE, NextRecord, VERSION, check_version, version_at_end};
use crate::document::MAX_RECORD_BYTES;
use crate::problem::excerpt;

/// The longest header, of a record or an HTTP response: 64 KiB.
pub const MAX_HEADER_BYTES: usize = 64 << 10;
/// Most bytes of a block that are held: the longest HTTP header and the longest text.
pub const MAX_BLOCK_BYTES: usize = MAX_RECORD_BYTES + MAX_HEADER_BYTES;

/// Bytes that are read again, beside 16 times what was passed: lengths may be wrong on purpose.
const MOST_AGAIN: u64 = 256 << 20;

const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that are read to find a record's end. An error shows fewer of them.
const END_BYTES: u64 = 256;

/// Reads records.
pub(super) struct Records<R = Box<dyn Read + Send>> {
    reader: Rereader<R>,
    /// Bytes read so far.
    position: u64,
    /// Where the record begins.
    offset: u64,
    number: u64,
    /// Whether these are records of ARC.
    is_arc: bool,
    /// Whether the record is not read to its end yet.
    is_open: bool,
    /// Whether its whole block is held once it was read.
    is_held: bool,
    /// Bytes of the record's block, by its header.
    claimed: u64,
    /// Of these, those that are not read yet.
    block_left: u64,
    block: Vec<u8>,
    /// What to read again to find the next record after one that is broken.
    again: Vec<u8>,
    /// Bytes that were read again.
    read_again: u64,
    /// The first line of the next record, where it was met instead of line breaks.
    ahead: Vec<u8>,
}

/// A record's block.
pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether `bytes` are the whole block.
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
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Broken {
    Problem(#[from] BrokenProblem),
    Unreadable(#[from] io::Error),
}

impl<R: Read> Records<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            reader: Rereader::new(BufReader::with_capacity(BUFFER_BYTES, from)),
            position: 0,
            offset: 0,
            number: 0,
            is_arc: false,
            is_open: false,
            is_held: true,
            claimed: 0,
            block_left: 0,
            block: Vec::new(),
            again: Vec::new(),
            read_again: 0,
            ahead: Vec::new(),
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

    /// The number of bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The number of bytes of its block that are not read yet.
    pub(super) fn block_left(&self) -> u64 {
        self.block_left
    }

    /// Whether its whole block is held once it was read.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// The reader below, which may have read further.
    pub(super) fn source_mut(&mut self) -> &mut R {
        self.reader.source_mut()
    }

    /// The header of the next record, `None` at the end. Reads the last one to its end.
    pub(super) fn next_header(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        self.finish()?;
        if self.number == 0 {
            self.pass_over_line_breaks()?;
        }
        if self.ahead.is_empty() && self.is_at_end()? {
            return Ok(None);
        }
        self.begin_record();
        let mut header = std::mem::take(&mut self.ahead);
        self.position += header.len() as u64;
        if let Err(broken) = self.read_header(&mut header) {
            let end = memchr::memchr(b'\n', &header).map_or(header.len(), |end| end + 1);
            // A record that is cut off may have another one on its only line.
            let other = version_at_end(&header[..end]).filter(|&start| start > 0);
            self.again = header.split_off(other.unwrap_or(end));
            return Err(broken);
        }
        self.claimed = content_length(&header)?;
        self.block_left = self.claimed;
        self.is_open = true;
        self.is_held = self.block_left <= MAX_BLOCK_BYTES as u64;
        self.block.clear();
        Ok(Some(header))
    }

    /// Counts the record that begins here.
    fn begin_record(&mut self) {
        self.offset = self.position;
        self.number += 1;
    }

    /// Reads a header, the first line of which may be there. That of ARC becomes one of WARC.
    fn read_header(&mut self, header: &mut Vec<u8>) -> Result<(), Broken> {
        let (mut line_start, mut next) = (0, NextRecord::default());
        loop {
            let end = if line_start == 0 && header.ends_with(b"\n") {
                LineEnd::Break
            } else {
                self.read_line(header)?
            };
            self.is_arc |= self.number == 1 && header.starts_with(arc::BEGINNING);
            if self.is_arc {
                *header = arc_header(header, end)?;
                return Ok(());
            }
            let cut_in_version = end == LineEnd::File && VERSION.starts_with(header);
            if !cut_in_version && !header.starts_with(VERSION) {
                let value = excerpt(String::from_utf8_lossy(header).trim_end());
                return Err(BrokenProblem::NoRecord { value }.into());
            }
            match end {
                LineEnd::File => return Err(BrokenProblem::CutShort.into()),
                LineEnd::Limit => return Err(BrokenProblem::HeaderTooLong.into()),
                LineEnd::Break if header[line_start..].trim_ascii().is_empty() => break,
                LineEnd::Break if line_start > 0 && next.has_begun(header, line_start) => {
                    return Err(BrokenProblem::CutHeader.into());
                }
                LineEnd::Break => line_start = header.len(),
            }
        }
        Ok(check_version(header)?)
    }

    /// Reads the record to its end, whose header was returned last.
    pub(super) fn finish(&mut self) -> Result<(), Broken> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        if self.is_held && self.block.is_empty() {
            self.block()?;
        } else {
            self.pass_over(self.block_left)?;
        }
        if self.is_arc {
            return self.pass_over_end_of_arc();
        }
        self.pass_over_end()
    }

    /// Leaves out a record that is broken, up to the next one. Then its problem is returned. If there is none, a file that
    /// is cut short stays broken, and so does one that is no archive, or is ARC.
    pub(super) fn leave_out(&mut self, broken: Broken) -> Result<BrokenProblem, Broken> {
        let Broken::Problem(mut problem) = broken else {
            return Err(broken);
        };
        let again = std::mem::take(&mut self.again);
        let bytes = again.len() as u64;
        if self.read_again <= MOST_AGAIN + 16 * (self.position - bytes) {
            self.read_again += bytes;
            self.position -= bytes;
            self.reader.give_back(again);
        } else {
            problem = problem.not_searched(self.claimed, bytes);
        }
        (self.block_left, self.is_open) = (0, false);
        if self.find_version()? || problem.is_of_a_whole_record() {
            return Ok(problem);
        }
        Err(problem.into())
    }

    /// Skips what is before the next record: a version at the end of a line. What is before it on that line is the rest of
    /// a record that is cut off. Returns whether there is one.
    fn find_version(&mut self) -> io::Result<bool> {
        let mut line = Vec::new();
        loop {
            let mut bounded = self.reader.by_ref().take(END_BYTES);
            let read = bounded.read_until(b'\n', &mut line)?;
            let is_whole = read == 0 || line.ends_with(b"\n");
            if !self.is_arc
                && is_whole
                && let Some(start) = version_at_end(&line)
            {
                self.position += start as u64;
                self.ahead = line.split_off(start);
                return Ok(true);
            }
            // A version may be at the end of what was read of a line.
            let kept = if is_whole { 0 } else { LONGEST_LINE };
            let passed = line.len().saturating_sub(kept);
            line.drain(..passed);
            self.position += passed as u64;
            if read == 0 {
                return Ok(false);
            }
        }
    }

    /// The block of the record whose header was returned last, up to [`MAX_BLOCK_BYTES`].
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
            if self.is_held {
                self.again = std::mem::take(&mut self.block);
            }
            return Err(BrokenProblem::CutShort.into());
        }
        Ok(Block {
            bytes: &self.block,
            is_whole: self.block_left == 0,
        })
    }

    /// Skips this number of bytes of the block.
    pub(super) fn pass_over(&mut self, bytes: u64) -> Result<(), Broken> {
        let mut block = self.reader.by_ref().take(bytes);
        let passed = io::copy(&mut block, &mut io::sink())?;
        self.advance(passed);
        if passed < bytes {
            return Err(BrokenProblem::CutShort.into());
        }
        Ok(())
    }

    /// Whether nothing follows. What cannot be read is the beginning of the next record.
    fn is_at_end(&mut self) -> io::Result<bool> {
        let held = self.reader.held().map(<[u8]>::is_empty);
        if held.is_err() {
            self.begin_record();
        }
        held
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

/// The header of a record of ARC: a line.
fn arc_header(line: &[u8], end: LineEnd) -> Result<Vec<u8>, BrokenProblem> {
    let header = match end {
        LineEnd::File => return Err(BrokenProblem::CutShort),
        // It is a line of a block, whose length is wrong.
        LineEnd::Limit => None,
        LineEnd::Break => arc::header(line),
    };
    header.ok_or_else(|| {
        let value = excerpt(String::from_utf8_lossy(line).trim_end());
        BrokenProblem::NoArcRecord { value }
    })
}
