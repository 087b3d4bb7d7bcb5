//! Sources cut into chunks of whole lines.
//!
//! A chunk is what one read brings, up to its last line break; what follows is kept for the next.
//! So a chunk is as large as a read where the source is quick, and lines that arrive slowly are
//! not waited for in vain.
//!
//! ```text
//!     read      |line 1 ⏎ line 2 ⏎ lin|e 3 ⏎ line 4 ⏎|
//!     chunk     |line 1 ⏎ line 2 ⏎|line 3 ⏎ line 4 ⏎ |
//! ```

use std::path::Path;
use std::sync::Arc;
use std::vec;

use crate::decompress::{Decompressed, ReadError};
use crate::document::MAX_RECORD_BYTES;
use crate::error::InputError;
use crate::format::Format;
use crate::html::may_precede_a_page;
use crate::looks::Looks;
use crate::source::Source;

/// The most that one read brings, and so the usual size of a chunk. It is large enough to make
/// parsing in parallel pay, and small enough to stay in a processor's cache.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// The longest line, its line break included.
const LINE_BYTES: usize = MAX_RECORD_BYTES + 2;

/// Some whole lines of one source.
#[derive(Debug)]
pub struct Chunk {
    /// The source, for messages and ids.
    pub(crate) source: Arc<str>,
    /// The number of the first line, from 1.
    pub(crate) first_line: u64,
    /// After these lines comes one that is too long. Its rest may never end: it is passed over when
    /// the next chunk is asked for, and not read where bad lines are errors.
    pub(crate) then_too_long: bool,
    buffer: Vec<u8>,
    end: usize,
    /// The number of line breaks.
    lines: usize,
}

impl Chunk {
    /// A chunk of bytes from memory, as if they were a whole source.
    #[must_use]
    pub fn of(source: &str, bytes: Vec<u8>) -> Self {
        Self {
            source: source.into(),
            first_line: 1,
            then_too_long: false,
            end: bytes.len(),
            lines: line_breaks(&bytes),
            buffer: bytes,
        }
    }

    /// How many lines there are; the last of a source does not count if it lacks its line break.
    pub(crate) const fn lines(&self) -> usize {
        self.lines
    }

    /// The lines with their line breaks; only the last of a source may lack its own.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

/// The chunks of several sources, one source after another.
pub(crate) struct Chunks {
    waiting: vec::IntoIter<Source>,
    current: Option<Cutter>,
    /// Buffers of finished chunks, for reuse.
    spare: Vec<Vec<u8>>,
    read_bytes: usize,
    /// Whether reading goes on after a line that is too long.
    skip_bad_lines: bool,
}

impl Chunks {
    pub(crate) fn new(sources: Vec<Source>, skip_bad_lines: bool) -> Self {
        Self::with_read_bytes(sources, skip_bad_lines, READ_BYTES)
    }

    /// As [`Chunks::new`], with reads of another size.
    pub(crate) fn with_read_bytes(
        sources: Vec<Source>,
        skip_bad_lines: bool,
        read_bytes: usize,
    ) -> Self {
        Self {
            waiting: sources.into_iter(),
            current: None,
            spare: Vec::new(),
            read_bytes,
            skip_bad_lines,
        }
    }

    /// The next chunk, which has at least one line. None follows the first bad line that is known
    /// of here, unless such are skipped.
    pub(crate) fn next(&mut self) -> Option<Result<Chunk, InputError>> {
        loop {
            let cutter = match &mut self.current {
                Some(cutter) => cutter,
                None => match Cutter::open(self.waiting.next()?, self.read_bytes) {
                    Ok(cutter) => self.current.insert(cutter),
                    Err(error) => return Some(Err(error)),
                },
            };
            let buffer = self.spare.pop().unwrap_or_default();
            match cutter.next(buffer) {
                Ok(Some(chunk)) => {
                    if chunk.then_too_long && !self.skip_bad_lines {
                        self.current = None;
                        self.waiting = Vec::new().into_iter();
                    }
                    return Some(Ok(chunk));
                }
                Ok(None) => self.current = None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Takes back a chunk that is done with.
    pub(crate) fn reuse(&mut self, chunk: Chunk) {
        // Releases the memory that one long line took.
        if chunk.buffer.len() <= 2 * self.read_bytes {
            self.spare.push(chunk.buffer);
        }
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        let current = self
            .current
            .as_ref()
            .map_or(0, |cutter| cutter.rest.capacity());
        current + self.spare.iter().map(Vec::capacity).sum::<usize>()
    }
}

/// Cuts one source.
struct Cutter {
    source: Arc<str>,
    reader: Decompressed,
    read_bytes: usize,
    /// The number of the next line.
    line: u64,
    /// The bytes after the last line break.
    rest: Vec<u8>,
    /// A line that was too long has not ended yet.
    inside_line: bool,
    /// The format that its content must not look different from, until there is any.
    taken_for: Option<Format>,
}

impl Cutter {
    fn open(source: Source, read_bytes: usize) -> Result<Self, InputError> {
        let name: Arc<str> = source.name.as_str().into();
        let taken_for = source.taken_for;
        let opened = Decompressed::new(Path::new(&*name), source.open()?);
        let reader = opened.map_err(InputError::unreadable(&name))?;
        Ok(Self {
            source: name,
            reader,
            read_bytes,
            line: 1,
            rest: Vec::new(),
            inside_line: false,
            taken_for,
        })
    }

    /// The next chunk, in a buffer that may hold anything.
    fn next(&mut self, mut buffer: Vec<u8>) -> Result<Option<Chunk>, InputError> {
        if self.inside_line {
            self.pass_over_line(&mut buffer)?;
        }
        let mut filled = self.rest.len();
        grow(&mut buffer, filled);
        buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        let mut searched = 0;
        loop {
            match memchr::memrchr(b'\n', &buffer[searched..filled]) {
                None => searched = filled,
                Some(place) => {
                    let end = searched + place + 1;
                    if let Some(shown) = self.shown(&buffer[..filled], end) {
                        self.check(shown)?;
                        self.rest.extend_from_slice(&buffer[end..filled]);
                        return Ok(Some(self.chunk(buffer, end)));
                    }
                }
            }
            if filled >= LINE_BYTES {
                self.check(&buffer[..filled])?;
                self.inside_line = true;
                return Ok(Some(self.too_long(buffer)));
            }
            // A line that goes on and on is read in ever larger pieces.
            grow(
                &mut buffer,
                (filled + self.read_bytes.max(filled)).min(LINE_BYTES + self.read_bytes),
            );
            let most = self.read(&mut buffer[filled..])?;
            if most == 0 {
                self.check(&buffer[..filled])?;
                let last = (filled > 0).then(|| self.chunk(buffer, filled));
                return Ok(last);
            }
            filled += most;
        }
    }

    /// What shows the format: whole lines, up to this end. Comments may come before a page of HTML, so more is looked at
    /// then. `None` if that is not there yet.
    fn shown<'a>(&self, bytes: &'a [u8], end: usize) -> Option<&'a [u8]> {
        let lines = &bytes[..end];
        let is_blank = lines.trim_ascii_start().is_empty();
        if self.taken_for.is_none() || is_blank || !may_precede_a_page(lines) {
            return Some(lines);
        }
        (!may_precede_a_page(bytes)).then_some(bytes)
    }

    /// Refuses the first content if it looks like another format.
    fn check(&mut self, bytes: &[u8]) -> Result<(), InputError> {
        if let Some(format) = self.taken_for
            && !bytes.trim_ascii_start().is_empty()
        {
            self.taken_for = None;
            Looks::check(bytes, &self.source, format)?;
        }
        Ok(())
    }

    fn chunk(&mut self, buffer: Vec<u8>, end: usize) -> Chunk {
        let first_line = self.line;
        let lines = line_breaks(&buffer[..end]);
        self.line += lines as u64;
        Chunk {
            source: self.source.clone(),
            first_line,
            then_too_long: false,
            buffer,
            end,
            lines,
        }
    }

    fn too_long(&mut self, buffer: Vec<u8>) -> Chunk {
        let mut chunk = self.chunk(buffer, 0);
        chunk.then_too_long = true;
        self.line += 1;
        chunk
    }

    /// Reads to the end of a line that is too long, and keeps what follows it.
    fn pass_over_line(&mut self, buffer: &mut Vec<u8>) -> Result<(), InputError> {
        grow(buffer, self.read_bytes);
        loop {
            let filled = self.read(buffer)?;
            if let Some(end) = memchr::memchr(b'\n', &buffer[..filled]) {
                self.rest.extend_from_slice(&buffer[end + 1..filled]);
            } else if filled > 0 {
                continue;
            }
            self.inside_line = false;
            return Ok(());
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, InputError> {
        self.reader.read(buffer).map_err(|error| match error {
            ReadError::Refused(error) => InputError::unreadable(&self.source)(error),
            ReadError::Damaged(compression, error) => InputError::Damaged {
                file: self.source.to_string(),
                line: self.line,
                compression,
                error,
            },
        })
    }
}

fn line_breaks(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Makes a buffer at least this long.
fn grow(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        buffer.reserve_exact(length - buffer.len());
        buffer.resize(length, 0);
    }
}
