//! Compressed input, recognised by its first bytes. Its name counts only if the data ends before
//! these bytes do: a file with a name in `.gz` or `.zst`, for example, is then incomplete.

use std::fmt;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;

use crate::gzip::Members;
use crate::head;
use crate::lz4::Frames;
use crate::xz::{self, Streams};

/// How much is read at first, to see what it is.
const HEAD_BYTES: usize = 64 << 10;

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// A frame without content, which may stand before others; its first byte is 0x50 to 0x5F.
const ZSTD_SKIPPABLE: &[u8] = &[0x2A, 0x4D, 0x18];
const XZ: &[u8] = &[0xFD, b'7', b'z', b'X', b'Z', 0];
const LZ4: &[u8] = &[0x04, 0x22, 0x4D, 0x18];
/// The byte after it is the size of a block, a digit from 1 to 9.
const BZIP2: &[u8] = b"BZh";
/// Next comes a block, or the end of what has none. A text could begin with less.
const BZIP2_NEXT: [[u8; 6]; 2] = [
    [0x31, 0x41, 0x59, 0x26, 0x53, 0x59],
    [0x17, 0x72, 0x45, 0x38, 0x50, 0x90],
];
const BZIP2_BYTES: usize = BZIP2.len() + 1 + 6;

/// The largest window of zstd data that is decompressed, as a power of two: 128 MiB. It is held in
/// memory, so it is bounded; `zstd` writes larger ones if told so, with `--long=28` to 31.
const ZSTD_WINDOW_LOG: u32 = 27;

/// The decoder's message about a larger window.
const WINDOW_TOO_LARGE: &str = "Frame requires too much memory for decoding";

/// How bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// One or more members, perhaps with zeros after them.
    Gzip,
    /// One or more frames.
    Zstd,
    /// One or more streams, perhaps with zeros between them.
    Xz,
    /// One or more streams.
    Bzip2,
    /// One or more frames.
    Lz4,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
        })
    }
}

impl Compression {
    /// Whether output can be compressed so.
    #[must_use]
    pub const fn is_written(self) -> bool {
        match self {
            Self::Gzip | Self::Zstd => true,
            Self::Xz | Self::Bzip2 | Self::Lz4 => false,
        }
    }

    /// The compression that a name suggests.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "gz" | "gzip" => Self::Gzip,
            "zst" | "zstd" => Self::Zstd,
            "xz" => Self::Xz,
            "bz2" => Self::Bzip2,
            "lz4" => Self::Lz4,
            _ => return None,
        })
    }

    /// The content of data that is compressed so.
    fn decoder(self, from: Whole) -> io::Result<Box<dyn Read + Send>> {
        let buffered = |from| BufReader::with_capacity(HEAD_BYTES, from);
        Ok(match self {
            Self::Gzip => Box::new(Members::new(buffered(from))),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(from)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
            Self::Xz => Box::new(Streams::new(buffered(from))),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(buffered(from))),
            Self::Lz4 => Box::new(Frames::new(buffered(from))),
        })
    }
}

/// What was read to see what it is, and the rest.
type Whole = io::Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// A source's content, decompressed where it is compressed.
pub(crate) struct Decompressed {
    reader: Box<dyn Read + Send>,
    compression: Option<Compression>,
}

/// Why a read failed.
pub(crate) enum ReadError {
    /// The operating system refused.
    Refused(io::Error),
    /// The compressed data is damaged.
    Damaged(Compression, io::Error),
}

impl Decompressed {
    /// Reads the first bytes of what has this name to find out what they are. Waits for as few as
    /// will do.
    pub(crate) fn new(name: &Path, mut reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let head = head::take(&mut reader, HEAD_BYTES, |read| !may_be_compressed(read))?;
        if let Some(compression) = Compression::of_name(name).filter(|_| may_be_compressed(&head)) {
            return Ok(Self {
                reader: Box::new(Failing(ErrorKind::UnexpectedEof)),
                compression: Some(compression),
            });
        }
        let compression = compression(&head);
        let whole = Cursor::new(head).chain(reader);
        let reader = match compression {
            None => Box::new(whole),
            Some(compression) => compression.decoder(whole)?,
        };
        Ok(Self {
            reader,
            compression,
        })
    }

    /// Reads once, as much as there is and fits.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            match self.reader.read(buffer) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// Appends everything to `content`, but at most `most` bytes.
    pub(crate) fn read_to_end(self, content: &mut Vec<u8>, most: u64) -> Result<(), ReadError> {
        let compression = self.compression;
        match self.reader.take(most).read_to_end(content) {
            Ok(_) => Ok(()),
            Err(error) => Err(explain(compression, error)),
        }
    }

    /// Whether what is read was compressed.
    #[cfg(feature = "parquet")]
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// A plain reader, whose errors tell of damage in words.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        Box::new(Plain(self))
    }

    fn explain(&self, error: io::Error) -> ReadError {
        explain(self.compression, error)
    }
}

/// Data that is cut off before it says how it is compressed, as an empty file is.
struct Failing(ErrorKind);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
}

struct Plain(Decompressed);

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error {
            ReadError::Refused(error) => error,
            ReadError::Damaged(compression, error) => {
                let kind = ErrorKind::InvalidData;
                io::Error::new(kind, damage(compression, &error))
            }
        })
    }
}

/// The problem of compressed data, in words.
pub(crate) fn damage(compression: Compression, error: &io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof {
        return format!(
            "the {compression} data ends too early: the file is not complete: copy or download it again"
        );
    }
    let reason = error.to_string();
    if compression == Compression::Zstd && reason == WINDOW_TOO_LARGE {
        let limit = 1 << (ZSTD_WINDOW_LOG - 20);
        return format!(
            "the zstd data needs a window of more than {limit} MiB: decompress it first, as in \
             `zstd -dc --long=31 FILE | simshard ...`"
        );
    }
    if compression == Compression::Xz && reason == xz::DICTIONARY_TOO_LARGE {
        let limit = xz::MAX_DICTIONARY_BYTES >> 20;
        return format!(
            "the xz data needs a dictionary of more than {limit} MiB: decompress it first, as in \
             `xz -dc FILE | simshard ...`"
        );
    }
    format!("the {compression} data is damaged: {reason}")
}

/// A decoder passes on what the operating system says; anything else is its own finding.
fn explain(compression: Option<Compression>, error: io::Error) -> ReadError {
    match compression {
        Some(compression) if error.raw_os_error().is_none() => {
            ReadError::Damaged(compression, error)
        }
        Some(_) | None => ReadError::Refused(error),
    }
}

/// The compression by the first bytes; `None` if they are not compressed.
fn compression(head: &[u8]) -> Option<Compression> {
    if head.starts_with(GZIP) {
        return Some(Compression::Gzip);
    }
    let skippable = |head: &[u8]| head[0] & 0xF0 == 0x50 && head[1..].starts_with(ZSTD_SKIPPABLE);
    if head.starts_with(ZSTD) || (!head.is_empty() && skippable(head)) {
        return Some(Compression::Zstd);
    }
    if head.starts_with(XZ) {
        return Some(Compression::Xz);
    }
    if head.starts_with(LZ4) {
        return Some(Compression::Lz4);
    }
    let is_bzip2 = head.len() >= BZIP2_BYTES && may_be_bzip2(head);
    is_bzip2.then_some(Compression::Bzip2)
}

/// Whether these bytes are the beginning of bzip2, as far as they go.
fn may_be_bzip2(head: &[u8]) -> bool {
    let (magic, rest) = head.split_at(head.len().min(BZIP2.len()));
    let is_rest = match rest {
        [] => true,
        [size, next @ ..] => {
            let begins = |known: &[u8; 6]| known.starts_with(&next[..next.len().min(known.len())]);
            matches!(size, b'1'..=b'9') && BZIP2_NEXT.iter().any(begins)
        }
    };
    BZIP2.starts_with(magic) && is_rest
}

/// Whether more bytes are needed to tell.
fn may_be_compressed(head: &[u8]) -> bool {
    let Some(&first) = head.first() else {
        return true;
    };
    let begins = |magic: &[u8]| head.len() < magic.len() && magic.starts_with(head);
    let skippable = first & 0xF0 == 0x50
        && head.len() <= ZSTD_SKIPPABLE.len()
        && ZSTD_SKIPPABLE.starts_with(&head[1..]);
    begins(GZIP)
        || begins(ZSTD)
        || begins(XZ)
        || begins(LZ4)
        || skippable
        || (head.len() < BZIP2_BYTES && may_be_bzip2(head))
}
