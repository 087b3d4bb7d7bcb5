//! Compressed output, as [`Compression`] names it.

use std::io::{self, Write};

use flate2::write::GzEncoder;

use crate::decompress::Compression;

/// The level of zstd, the default of its own program.
const ZSTD_LEVEL: i32 = 3;

/// A writer that compresses.
pub enum Compressor<W: Write> {
    /// Does not.
    Plain(W),
    /// One member.
    Gzip(GzEncoder<W>),
    /// One frame.
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Compressor<W> {
    /// Compresses what goes to `writer`; `None` leaves it as it is.
    ///
    /// # Errors
    /// If nothing is written in this compression, or the system has no memory for it.
    pub fn new(compression: Option<Compression>, writer: W) -> io::Result<Self> {
        Ok(match compression {
            None => Self::Plain(writer),
            Some(Compression::Gzip) => {
                let level = flate2::Compression::default();
                Self::Gzip(GzEncoder::new(writer, level))
            }
            Some(Compression::Zstd) => {
                let mut encoder = zstd::stream::write::Encoder::new(writer, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            Some(Compression::Xz | Compression::Bzip2 | Compression::Lz4) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        })
    }

    /// Writes the end, and returns the writer.
    ///
    /// # Errors
    /// If that fails.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(writer) => Ok(writer),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(writer) => writer.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(writer) => writer.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
