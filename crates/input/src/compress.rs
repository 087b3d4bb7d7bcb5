//! Compressed output, as [`Compression`] names it.

use std::io::{self, ErrorKind, Write};

use flate2::write::GzEncoder;

use crate::decompress::Compression;

/// The level of zstd, the default of its own program.
const ZSTD_LEVEL: i32 = 3;

/// A writer that compresses, into one member of gzip or frame of zstd, or into several.
pub struct Compressor<W: Write> {
    compression: Option<Compression>,
    /// `None` once it could not be ended or begun.
    member: Option<Member<W>>,
}

/// What is being written.
enum Member<W: Write> {
    /// Nothing that is compressed: all is plain, or the next member has not begun.
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Compressor<W> {
    /// Compresses what goes to `writer`; `None` leaves it as it is.
    ///
    /// # Errors
    /// If nothing is written in this compression, or the system has no memory for it.
    pub fn new(compression: Option<Compression>, writer: W) -> io::Result<Self> {
        Ok(Self {
            compression,
            member: Some(Member::begin(compression, writer)?),
        })
    }

    /// Ends the member or frame. Another begins with the next byte, if there is one.
    ///
    /// # Errors
    /// If that fails.
    pub fn end_member(&mut self) -> io::Result<()> {
        let ended = self.member.take().ok_or(ErrorKind::BrokenPipe)?.end()?;
        self.member = Some(Member::Plain(ended));
        Ok(())
    }

    /// Writes the end, and returns the writer.
    ///
    /// # Errors
    /// If that fails.
    pub fn finish(self) -> io::Result<W> {
        self.member.ok_or(ErrorKind::BrokenPipe)?.end()
    }

    /// What takes the next bytes.
    fn member(&mut self) -> io::Result<&mut Member<W>> {
        let member = match self.member.take().ok_or(ErrorKind::BrokenPipe)? {
            Member::Plain(writer) => Member::begin(self.compression, writer)?,
            begun @ (Member::Gzip(_) | Member::Zstd(_)) => begun,
        };
        Ok(self.member.insert(member))
    }
}

impl<W: Write> Member<W> {
    fn begin(compression: Option<Compression>, writer: W) -> io::Result<Self> {
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
                return Err(ErrorKind::Unsupported.into());
            }
        })
    }

    fn end(self) -> io::Result<W> {
        match self {
            Self::Plain(writer) => Ok(writer),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.member()? {
            Member::Plain(writer) => writer.write(bytes),
            Member::Gzip(encoder) => encoder.write(bytes),
            Member::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.member {
            None => Err(ErrorKind::BrokenPipe.into()),
            Some(Member::Plain(writer)) => writer.flush(),
            Some(Member::Gzip(encoder)) => encoder.flush(),
            Some(Member::Zstd(encoder)) => encoder.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::bufread::GzDecoder;

    use super::*;

    #[test]
    fn each_member_begins_where_the_last_was_ended() {
        let mut compressor = Compressor::new(Some(Compression::Gzip), Vec::new()).unwrap();
        for part in ["one", "", "two"] {
            compressor.write_all(part.as_bytes()).unwrap();
            compressor.end_member().unwrap();
        }
        let bytes = compressor.finish().unwrap();
        let (mut rest, mut members) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let mut member = String::new();
            GzDecoder::new(&mut rest)
                .read_to_string(&mut member)
                .unwrap();
            members.push(member);
        }
        assert_eq!(members, ["one", "two"]);
    }

    #[test]
    fn nothing_is_one_empty_member() {
        for (compression, length) in [(Compression::Gzip, 20), (Compression::Zstd, 13)] {
            let mut compressor = Compressor::new(Some(compression), Vec::new()).unwrap();
            compressor.end_member().unwrap();
            let bytes = compressor.finish().unwrap();
            assert_eq!(bytes.len(), length, "{compression}");
        }
    }
}
