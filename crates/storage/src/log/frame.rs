//! The bytes of a log file around its records (`FORMAT.md`, section Log): the header and the frames. Also the verdict
//! on what follows the last frame that can be read. Pure.

use uuid::Uuid;

use crate::bytes::{Bytes, Put};
use crate::{FIRST_FORMAT, FORMAT_VERSION};

const FILE_MAGIC: &[u8; 8] = b"SIMSHLOG";
const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"SLGF");

pub(crate) const FILE_HEADER_BYTES: usize = 64;
/// Where the CRC stands in it.
const CRC_OFFSET: usize = 60;
pub(crate) const FRAME_HEADER_BYTES: usize = 32;
/// Most bytes of a body.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 26;
/// Most bytes of a file.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 28;
/// Frames start at a multiple of this, and are padded to one.
const ALIGNMENT: usize = 8;

/// The fields of a file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// The format version.
    pub(crate) format: u32,
    /// The data directory that the file belongs to.
    pub(crate) store: Uuid,
    /// The sequence of the first record.
    pub(crate) first: u64,
}

/// Why the first bytes of a file are no header of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileHeaderError {
    #[error("it does not start like a log file")]
    Magic,
    #[error("its format is version {0}, this program reads version {FORMAT_VERSION}")]
    Version(u32),
    #[error("its header is damaged")]
    Damaged,
}

impl FileHeader {
    /// The bytes of the header.
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES);
        bytes.put(FILE_MAGIC);
        bytes.put_u32(self.format);
        bytes.put_u32(0);
        bytes.put(self.store.as_bytes());
        bytes.put_u64(self.first);
        bytes.put(&[0; 20]);
        bytes.put_u32(crc32c::crc32c(&bytes));
        let mut header = [0; FILE_HEADER_BYTES];
        header.copy_from_slice(&bytes);
        header
    }

    /// Reads the header at the start of a file, and nothing behind it.
    pub(crate) fn decode(file: &[u8]) -> Result<Self, FileHeaderError> {
        if !file.starts_with(FILE_MAGIC) {
            return Err(FileHeaderError::Magic);
        }
        let header = file.first_chunk::<FILE_HEADER_BYTES>();
        let (crc, header) = header
            .and_then(|header| Self::fields(header))
            .ok_or(FileHeaderError::Damaged)?;
        // A later version may keep its CRC elsewhere, so its number comes first.
        if !(FIRST_FORMAT..=FORMAT_VERSION).contains(&header.format) {
            return Err(FileHeaderError::Version(header.format));
        }
        if crc != crc32c::crc32c(&file[..CRC_OFFSET]) {
            return Err(FileHeaderError::Damaged);
        }
        Ok(header)
    }

    /// The CRC, and what the header says.
    fn fields(header: &[u8]) -> Option<(u32, Self)> {
        let mut bytes = Bytes(header);
        bytes.take(FILE_MAGIC.len())?;
        let format = bytes.u32()?;
        bytes.take(4)?;
        let store = Uuid::from_bytes(bytes.array()?);
        let first = bytes.u64()?;
        bytes.take(20)?;
        let header = Self {
            format,
            store,
            first,
        };
        Some((bytes.u32()?, header))
    }

    /// The CRC of the header, which those of the file's frames go on from. So a frame of another file,
    /// or one that a client hid in an id, is no frame of this one.
    pub(crate) fn seed(&self) -> u32 {
        crc32c::crc32c(&self.encode()[..CRC_OFFSET])
    }
}

/// A body and its CRC.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    crc: u32,
    /// The format version of the file that it needs, at least.
    pub(crate) format: u32,
}

impl Body {
    /// Takes the bytes of a record, for a file of this format version or a later one.
    pub(crate) fn new(bytes: Vec<u8>, format: u32) -> Self {
        let crc = crc32c::crc32c(&bytes);
        Self { bytes, crc, format }
    }

    /// Bytes of the frame that holds it.
    pub(crate) fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.bytes.len().next_multiple_of(ALIGNMENT)
    }
}

/// Appends a frame.
pub(crate) fn put_frame(buffer: &mut Vec<u8>, seed: u32, sequence: u64, synced: u64, body: &Body) {
    let start = buffer.len();
    buffer.put_u32(FRAME_MAGIC);
    buffer.put_u32(body.bytes.len() as u32);
    buffer.put_u64(sequence);
    buffer.put_u64(synced);
    buffer.put_u32(body.crc);
    buffer.put_u32(crc32c::crc32c_append(seed, &buffer[start..]));
    buffer.put(&body.bytes);
    buffer.resize(start + body.frame_bytes(), 0);
}

/// The header of a frame whose CRC is right.
#[derive(Clone, Copy, Debug)]
struct FrameHeader {
    length: usize,
    sequence: u64,
    synced: u64,
    crc: u32,
}

impl FrameHeader {
    fn at(file: &[u8], offset: usize, seed: u32) -> Option<Self> {
        let header = file.get(offset..)?.first_chunk::<FRAME_HEADER_BYTES>()?;
        let mut bytes = Bytes(header);
        if bytes.u32()? != FRAME_MAGIC {
            return None;
        }
        let read = Self {
            length: bytes.u32()? as usize,
            sequence: bytes.u64()?,
            synced: bytes.u64()?,
            crc: bytes.u32()?,
        };
        let is_right = bytes.u32()? == crc32c::crc32c_append(seed, &header[..28]);
        (is_right && read.length <= MAX_BODY_BYTES).then_some(read)
    }
}

/// A frame that is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// Where it starts in its file.
    pub(crate) offset: usize,
    /// The sequence of its record.
    pub(crate) sequence: u64,
    /// All bytes of the file before this offset were on disk when it was written.
    pub(crate) synced: usize,
    /// The bytes of its record.
    pub(crate) body: &'a [u8],
}

/// The bytes after the frames of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFrames {
    /// Nothing, or zeros.
    End,
    /// A write that was cut off.
    TornTail {
        /// Bytes up to the last that is not zero.
        bytes: usize,
    },
    /// Bytes that were on disk once, and are damaged.
    Damage {
        /// Where the frame starts that shows it.
        witness: usize,
    },
}

/// The frames of a file, from one of them on: those that are sound and follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames<'a> {
    file: &'a [u8],
    seed: u32,
    offset: usize,
    sequence: u64,
}

impl<'a> Frames<'a> {
    /// All frames of a file with this header.
    pub(crate) fn new(file: &'a [u8], header: &FileHeader) -> Self {
        Self::from(file, header, FILE_HEADER_BYTES, header.first)
    }

    /// The frames from this offset on, where the one with this sequence stands.
    pub(crate) fn from(file: &'a [u8], header: &FileHeader, offset: usize, sequence: u64) -> Self {
        let seed = header.seed();
        Self {
            file,
            seed,
            offset,
            sequence,
        }
    }

    /// Where the frames that were taken end.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The sequence of the frame that would be next.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The bytes after the frames that were read, once there are no more frames.
    ///
    /// Frames that were written together may reach the disk in any order before their sync ends. So what is
    /// damaged was surely on disk only if a later frame says so, by its `synced`. Its header is enough.
    pub(crate) fn rest(&self) -> AfterFrames {
        let rest = self.file.get(self.offset..).unwrap_or_default();
        let Some(last) = rest.iter().rposition(|byte| *byte != 0) else {
            return AfterFrames::End;
        };
        let mut offsets = (self.offset..=self.offset + last).step_by(ALIGNMENT);
        match offsets.find(|offset| self.shows_damage(*offset)) {
            Some(witness) => AfterFrames::Damage { witness },
            None => AfterFrames::TornTail { bytes: last + 1 },
        }
    }

    /// Whether the file ends right behind the frames that were taken, or within a frame, once there are no more. Then
    /// no zeros show that this is where writing ended.
    pub(crate) fn is_abrupt(&self) -> bool {
        let rest = self.file.get(self.offset..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            return rest.is_empty();
        }
        match FrameHeader::at(self.file, self.offset, self.seed) {
            Some(header) => {
                rest.len() < FRAME_HEADER_BYTES + header.length.next_multiple_of(ALIGNMENT)
            }
            None => rest.len() < FRAME_HEADER_BYTES || rest.last() != Some(&0),
        }
    }

    /// Whether a frame is here that no write that is cut off leaves. It was written after the first bytes behind the
    /// last sound frame had been on disk, or it is in place of the next.
    fn shows_damage(&self, offset: usize) -> bool {
        FrameHeader::at(self.file, offset, self.seed).is_some_and(|header| {
            let is_misplaced = offset == self.offset && header.sequence != self.sequence;
            header.synced > self.offset as u64 || is_misplaced
        })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let header = FrameHeader::at(self.file, self.offset, self.seed)?;
        let mut bytes = Bytes(self.file.get(self.offset + FRAME_HEADER_BYTES..)?);
        let body = bytes.take(header.length)?;
        let padding = bytes.take(header.length.next_multiple_of(ALIGNMENT) - header.length)?;
        let is_sound = header.sequence == self.sequence
            && header.synced <= self.offset as u64
            && padding.iter().all(|byte| *byte == 0)
            && header.crc == crc32c::crc32c(body);
        if !is_sound {
            return None;
        }
        let offset = self.offset;
        self.offset += FRAME_HEADER_BYTES + body.len() + padding.len();
        self.sequence += 1;
        Some(Frame {
            offset,
            sequence: header.sequence,
            synced: header.synced as usize,
            body,
        })
    }
}
