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
    pub(crate) fn new(name: String, from: Box<dyn Read + Send>) -> Self {
        let kept = Kept {
            from,
            bytes: Vec::new(),
            taken: 0,
            position: 0,
        };
        Self {
            name,
            records: Records::new(kept),
            ended: false,
        }
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RawPiece>, WarcError> {
        if self.ended {
            return Ok(None);
        }
        let piece = self.read_piece();
        let located = |broken| located(&self.name, &self.records, Fault::File(broken));
        piece.map(Some).map_err(located)
    }

    /// The number of records, at the end.
    pub(crate) fn count(&self) -> u64 {
        self.records.number()
    }

    fn read_piece(&mut self) -> Result<RawPiece, Broken> {
        let record = self.records.number();
        let is_long = self.records.block_left() > PIECE_BYTES;
        let end = if is_long {
            self.records.pass_over(PIECE_BYTES)?;
            self.records.position()
        } else if self.records.next_header()?.is_some() {
            self.records.offset()
        } else {
            self.ended = true;
            self.records.position()
        };
        Ok(RawPiece {
            bytes: self.records.source_mut().take(end),
            record,
            ends_record: !is_long && record > 0,
        })
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
