//! Records as they stand in their file, byte for byte.

use std::io::{self, Read};

use super::error::WarcError;
use super::record::{Broken, Records};
use super::{Fault, located};

/// A longer record comes in several pieces.
const PIECE_BYTES: u64 = 256 << 10;

/// The records of one file in pieces that make up the whole of it.
pub(crate) struct RawRecords {
    name: String,
    records: Records<Kept>,
    /// Whether broken records are left out: then they are pieces as others are.
    leaves_out_broken: bool,
    /// The record whose pieces are handed out, and up to where it was read.
    record: u64,
    end: u64,
    /// Whether that is its end.
    is_whole: bool,
    ended: bool,
}

/// Bytes of a record.
pub(crate) struct RawPiece {
    pub(crate) bytes: Vec<u8>,
    /// The number of the record, from 1; 0 for what is before the first.
    pub(crate) record: u64,
    /// Whether the record ends with these bytes.
    pub(crate) ends_record: bool,
}

impl RawRecords {
    /// Those of uncompressed WARC. `name` stands for the file in errors.
    pub(crate) fn new(name: String, from: Box<dyn Read + Send>, leaves_out_broken: bool) -> Self {
        let kept = Kept {
            from,
            bytes: Vec::new(),
            taken: 0,
            position: 0,
        };
        Self {
            name,
            records: Records::new(kept),
            leaves_out_broken,
            record: 0,
            end: 0,
            is_whole: false,
            ended: false,
        }
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RawPiece>, WarcError> {
        let position = self.records.source_mut().position;
        if position == self.end {
            if self.ended {
                return Ok(None);
            }
            let read = self.read_on();
            read.map_err(|broken| located(&self.name, &self.records, Fault::File(broken)))?;
        }
        let end = self.end.min(position + PIECE_BYTES);
        Ok(Some(RawPiece {
            bytes: self.records.source_mut().take(end),
            record: self.record,
            ends_record: self.is_whole && end == self.end && self.record > 0,
        }))
    }

    /// The number of records, at the end.
    pub(crate) fn count(&self) -> u64 {
        self.records.number()
    }

    /// Reads the record to its end, or a piece of one whose block is not held.
    fn read_on(&mut self) -> Result<(), Broken> {
        let records = &mut self.records;
        self.record = records.number();
        self.is_whole = records.is_held() || records.block_left() <= PIECE_BYTES;
        if !self.is_whole {
            records.pass_over(PIECE_BYTES)?;
            self.end = records.position();
            return Ok(());
        }
        loop {
            match records.next_header() {
                Ok(Some(_)) => self.end = records.offset(),
                Ok(None) => (self.end, self.ended) = (records.position(), true),
                Err(broken) if self.leaves_out_broken => {
                    records.leave_out(broken)?;
                    if records.number() == self.record {
                        continue;
                    }
                    // It is the header of the next record that is broken.
                    self.end = records.offset();
                }
                Err(broken) => return Err(broken),
            }
            return Ok(());
        }
    }
}

/// A reader that keeps what it has read until it is taken.
struct Kept {
    from: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    /// Of these bytes, the number that was taken.
    taken: usize,
    /// The number of all bytes that were taken.
    position: u64,
}

impl Kept {
    /// Takes the bytes up to a position in the file.
    fn take(&mut self, end: u64) -> Vec<u8> {
        let length = end.saturating_sub(self.position) as usize;
        let rest = &self.bytes[self.taken..];
        let bytes = rest[..length.min(rest.len())].to_vec();
        self.taken += bytes.len();
        self.position += bytes.len() as u64;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        bytes
    }
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Before more is read, so that what was taken is not held for long.
        self.bytes.drain(..std::mem::take(&mut self.taken));
        let read = self.from.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}
