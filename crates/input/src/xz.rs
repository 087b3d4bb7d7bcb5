//! XZ: streams one after another, perhaps with zeros between them.
//!
//! The decoder is surrounded for three reasons. It takes a short read for the end of data. It calls data that is cut
//! off damaged. It holds a dictionary as large as the data asks for.

use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Crc;
use lzma_rust2::XzReader;

/// The largest dictionary, which is held in memory. `xz -9` writes half of it.
pub(crate) const MAX_DICTIONARY_BYTES: u64 = 128 << 20;

/// The problem of a larger one.
pub(crate) const DICTIONARY_TOO_LARGE: &str = "the dictionary is too large";

/// The name of the filter that has a dictionary, and how many bytes say how large that is.
const LZMA2: [u8; 2] = [0x21, 1];

/// The checksum at the end of a header.
const CHECKSUM_BYTES: usize = 4;

/// The content of all streams.
pub(crate) struct Streams<R: BufRead> {
    /// `None` after an error: the decoder cannot be asked again.
    streams: Option<XzReader<Filled<R>>>,
    has_ended: Arc<AtomicBool>,
}

/// A reader that reads less than asked for only at the end, and looks at the headers of blocks.
struct Filled<R> {
    from: R,
    has_ended: Arc<AtomicBool>,
    /// The last byte, if it was read alone: perhaps the length of a header, which is read next.
    length: Option<u8>,
}

impl<R: BufRead> Streams<R> {
    /// Those of what begins with a stream.
    pub(crate) fn new(from: R) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let from = Filled {
            from,
            has_ended: has_ended.clone(),
            length: None,
        };
        Self {
            streams: Some(XzReader::new(from, true)),
            has_ended,
        }
    }
}

impl<R: BufRead> Read for Streams<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut streams) = self.streams.take() else {
            return Ok(0);
        };
        match streams.read(buffer) {
            Ok(read) => {
                self.streams = Some(streams);
                Ok(read)
            }
            Err(error)
                if error.raw_os_error().is_none() && self.has_ended.load(Ordering::Relaxed) =>
            {
                Err(ErrorKind::UnexpectedEof.into())
            }
            Err(error) => Err(error),
        }
    }
}

impl<R: BufRead> Read for Filled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if filled < buffer.len() {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        let read = &buffer[..filled];
        if self
            .length
            .take()
            .is_some_and(|length| needs_too_much(length, read))
        {
            return Err(io::Error::new(ErrorKind::InvalidData, DICTIONARY_TOO_LARGE));
        }
        if let [length] = read {
            self.length = Some(*length);
        }
        Ok(filled)
    }
}

/// Whether these bytes are the header of a block, of this encoded length, with too large a dictionary.
fn needs_too_much(length: u8, header: &[u8]) -> bool {
    if header.len() != (usize::from(length) + 1) * 4 - 1 || header.len() < CHECKSUM_BYTES {
        return false;
    }
    let Some(place) = header.windows(2).rposition(|bytes| *bytes == LZMA2) else {
        return false;
    };
    // Two sizes to each power of two: 4 KiB, 6 KiB, 8 KiB, 12 KiB, and so on.
    let size = header.get(place + 2).copied().unwrap_or_default();
    let bytes = (2 | u64::from(size & 1)) << (size.min(40) / 2 + 11);
    let (header, checksum) = header.split_at(header.len() - CHECKSUM_BYTES);
    let mut crc = Crc::new();
    crc.update(&[length]);
    crc.update(header);
    bytes > MAX_DICTIONARY_BYTES && crc.sum().to_le_bytes() == checksum
}
