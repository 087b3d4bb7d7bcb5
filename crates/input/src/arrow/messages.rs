//! Messages one after another: a flatbuffer, and a body of as many bytes as it says.
//!
//! ```text
//!     stream   | FFFFFFFF  length  flatbuffer | body | FFFFFFFF  length … | FFFFFFFF 0 |
//!     file     | ARROW1 00 00 |   a stream   | footer | length | ARROW1 |
//! ```
//!
//! Nothing follows the end mark `FFFFFFFF 0` of a stream, and in a file only the footer: of two files in one, the
//! second would be lost.
//!
//! A file is read as the stream in it, so one in a pipe or compressed needs no copy. Before version 0.15
//! the marks were not there.

use std::io::{self, Read};

use super::fault::Fault;
use super::flat::{Malformed, Table};
use crate::head;

const MAGIC: &[u8] = b"ARROW1";
const FILE_BEGINNING: &[u8] = b"ARROW1\0\0";
const MARK: u32 = u32::MAX;

/// The length of the footer and the magic, which end a file.
const FILE_END_BYTES: usize = 4 + MAGIC.len();

/// What stands after the end mark may begin at a multiple of this.
const ALIGNMENT: u64 = 8;

/// The longest flatbuffer: a schema of some hundred thousand columns.
const MAX_METADATA_BYTES: u64 = 64 << 20;

/// Reads messages.
pub(super) struct Messages {
    reader: Box<dyn Read + Send>,
    is_file: bool,
    /// Unread bytes of the body.
    body_left: u64,
}

/// A message without its body.
pub(super) struct Message(Vec<u8>);

/// What a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Schema,
    Dictionary,
    Batch,
    /// Tensors, which are no tables.
    Other,
}

impl Messages {
    pub(super) fn new(mut reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let head = head::take(&mut reader, FILE_BEGINNING.len(), |_| false)?;
        let is_file = head == FILE_BEGINNING;
        if !is_file {
            reader = Box::new(io::Cursor::new(head).chain(reader));
        }
        Ok(Self {
            reader,
            is_file,
            body_left: 0,
        })
    }

    /// The next message, `None` at the end. Passes over what is left of the last body.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Fault> {
        self.pass_over(self.body_left)?;
        let mut length = [0; 4];
        let first = head::take(&mut self.reader, 4, |_| false)?;
        match first.len() {
            4 => length.copy_from_slice(&first),
            // The end may be marked, or not.
            0 if !self.is_file => return Ok(None),
            _ => return Err(Fault::Malformed("it ends without its end mark")),
        }
        if u32::from_le_bytes(length) == MARK {
            self.reader.read_exact(&mut length)?;
        }
        let length = u64::from(u32::from_le_bytes(length));
        if length == 0 {
            self.check_end()?;
            return Ok(None);
        }
        if length > MAX_METADATA_BYTES {
            return Err(Fault::Malformed("a message is too long"));
        }
        let message = Message(self.read(length)?);
        let body = message.table()?.i64(3)?;
        self.body_left = u64::try_from(body).map_err(|_| Malformed)?;
        Ok(Some(message))
    }

    /// Some bytes of the body, of which as many must be left.
    pub(super) fn body(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        self.body_left = self.body_left.checked_sub(length).ok_or(Malformed)?;
        self.read(length)
    }

    /// Passes over some bytes of the body.
    pub(super) fn pass_over(&mut self, length: u64) -> Result<(), Fault> {
        self.body_left = self.body_left.checked_sub(length).ok_or(Malformed)?;
        let passed = io::copy(&mut self.reader.by_ref().take(length), &mut io::sink())?;
        if passed < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    fn read(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        let bytes = read_up_to(&mut self.reader, length)?;
        if (bytes.len() as u64) < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(bytes)
    }

    /// After its end mark a stream has nothing, and a file its footer.
    fn check_end(&mut self) -> Result<(), Fault> {
        let (mut length, mut last) = (0_u64, Vec::new());
        loop {
            let bytes = head::take(&mut self.reader, 4 << 10, |_| false)?;
            if bytes.is_empty() {
                break;
            }
            if !self.is_file {
                return Err(Fault::Malformed("data follows its end mark"));
            }
            length += bytes.len() as u64;
            last.extend_from_slice(&bytes);
            last.drain(..last.len().saturating_sub(FILE_END_BYTES));
        }
        if !self.is_file {
            return Ok(());
        }
        let footer = match last.split_first_chunk() {
            Some((footer, MAGIC)) => u64::from(u32::from_le_bytes(*footer)),
            Some(_) | None => return Err(Fault::Malformed("it ends within its footer")),
        };
        match (length - FILE_END_BYTES as u64).checked_sub(footer) {
            Some(padding) if padding < ALIGNMENT => Ok(()),
            Some(_) | None => Err(Fault::Malformed(
                "what follows its end mark is not as long as its footer",
            )),
        }
    }
}

/// As many bytes, or all that there are. Takes memory for at most twice what is there, and none that it does not fill.
pub(super) fn read_up_to(reader: &mut dyn Read, length: u64) -> io::Result<Vec<u8>> {
    const LEAST: u64 = 64 << 10;
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len() as u64;
        let more = (length - before).min(before.max(LEAST));
        bytes.reserve_exact(usize::try_from(more).unwrap_or(usize::MAX));
        (&mut *reader).take(more).read_to_end(&mut bytes)?;
        if more == 0 || (bytes.len() as u64) < before + more {
            return Ok(bytes);
        }
    }
}

impl Message {
    fn table(&self) -> Result<Table<'_>, Malformed> {
        Table::root(&self.0)
    }

    /// The version of the format: 4 is the fifth.
    pub(super) fn version(&self) -> Result<i16, Malformed> {
        self.table()?.i16(0)
    }

    pub(super) fn holds(&self) -> Result<Holds, Malformed> {
        Ok(match self.table()?.u8(1)? {
            1 => Holds::Schema,
            2 => Holds::Dictionary,
            3 => Holds::Batch,
            _ => Holds::Other,
        })
    }

    pub(super) fn header(&self) -> Result<Table<'_>, Malformed> {
        self.table()?.table(2)?.ok_or(Malformed)
    }
}
