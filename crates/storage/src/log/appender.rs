//! The open end of the log: it writes batches as frames, syncs them, and starts a new file when one is full.

use std::io::{self, Write};
use std::sync::Arc;

use super::file::{self, Files};
use super::frame::{Body, FileHeader, MAX_BODY_BYTES, MAX_FILE_BYTES, put_frame};
use super::record::mark;
use super::tail::Tail;
use crate::directory::StoredFile;
use crate::error::WriteError;
use crate::files::NewFile;
use crate::shortage::Shortage;

/// How a log is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOptions {
    /// Size in bytes at which a new file begins; at most half of the largest size.
    pub(crate) file_bytes: u64,
    /// Bytes by which a file is allocated ahead.
    pub(crate) allocate_bytes: u64,
    /// Bytes that are written and synced together; a record alone may have more.
    pub(crate) batch_bytes: usize,
    /// Most bytes that wait to be written; a single record may have more. They count with their size on disk.
    /// Memory holds each of them twice, as a record and as bytes.
    pub(crate) queue_bytes: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            allocate_bytes: 4 << 20,
            batch_bytes: 4 << 20,
            queue_bytes: 64 << 20,
        }
    }
}

impl LogOptions {
    /// The options, reduced to the limits of a file. A file has at most `file_bytes`, or one batch.
    pub(super) fn within_limits(self) -> Self {
        Self {
            file_bytes: self.file_bytes.min(MAX_FILE_BYTES as u64 / 2),
            allocate_bytes: self.allocate_bytes.clamp(1, MAX_BODY_BYTES as u64),
            batch_bytes: self.batch_bytes.min(MAX_BODY_BYTES),
            ..self
        }
    }
}

/// Why a batch was not written.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A resource ran out, such as disk space. Nothing of the batch is left, and the next one may fit.
    Shortage(Shortage),
    /// The content of the disk is unknown, so the log must not be written any more.
    Failed(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Shortage::of_space(&error).map_or(Self::Failed(error), Self::Shortage)
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error.shortage() {
            Some(shortage) => Self::Shortage(shortage),
            None => Self::Failed(io::Error::other(error)),
        }
    }
}

/// The end of the log. After `Fault::Failed` it must not be used.
pub(crate) struct Appender {
    files: Arc<Files>,
    header: FileHeader,
    seed: u32,
    file: Box<dyn StoredFile>,
    /// Where the next frame goes.
    position: u64,
    /// All bytes before it are on disk.
    synced: u64,
    /// Where the allocated space of the file ends.
    allocated: u64,
    can_allocate: bool,
    sequence: u64,
    is_marked: bool,
    /// The frames of a batch.
    buffer: Vec<u8>,
    options: LogOptions,
}

impl Appender {
    pub(crate) fn new(tail: Tail, options: LogOptions) -> Self {
        Self {
            files: Arc::new(Files::new(tail.directory, tail.files)),
            header: tail.header,
            seed: tail.header.seed(),
            file: tail.file,
            position: tail.position,
            synced: tail.position,
            allocated: tail.length,
            can_allocate: true,
            sequence: tail.sequence,
            is_marked: tail.is_marked,
            buffer: Vec::new(),
            options: options.within_limits(),
        }
    }

    /// The files of the log; shared with the code that trims the log.
    pub(crate) fn files(&self) -> Arc<Files> {
        Arc::clone(&self.files)
    }

    /// The limit for batches of more than one record, in bytes.
    pub(super) fn batch_bytes(&self) -> usize {
        self.options.batch_bytes
    }

    /// Writes a batch and syncs it; returns its first sequence.
    pub(crate) fn commit<'a>(
        &mut self,
        bodies: impl Iterator<Item = &'a Body> + Clone,
    ) -> Result<u64, Fault> {
        let bytes: usize = bodies.clone().map(Body::frame_bytes).sum();
        let format = bodies.clone().map(|body| body.format).max();
        let format = self.header.format.max(format.unwrap_or_default());
        let is_full = self.position + bytes as u64 > self.options.file_bytes;
        if is_full && !self.is_fresh() || format > self.header.format {
            self.rotate(format)?;
        }
        let first = self.sequence;
        self.write(bodies)?;
        self.file.sync_data().map_err(Fault::Failed)?;
        self.synced = self.position;
        self.is_marked = false;
        Ok(first)
    }

    /// Writes a mark without a sync, unless there is one. A mark tells recovery that all frames before it were on
    /// disk. On a full disk there is none.
    pub(crate) fn mark(&mut self) -> io::Result<()> {
        if self.is_marked {
            return Ok(());
        }
        match self.write([&mark()].into_iter()) {
            Ok(()) => self.is_marked = true,
            Err(Fault::Shortage(_)) => {}
            Err(Fault::Failed(error)) => return Err(error),
        }
        Ok(())
    }

    /// Writes a mark and syncs it.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.mark()?;
        self.file.sync_data()
    }

    fn write<'a>(&mut self, bodies: impl Iterator<Item = &'a Body>) -> Result<(), Fault> {
        self.buffer.clear();
        self.buffer.shrink_to(self.options.batch_bytes);
        let mut sequence = self.sequence;
        for body in bodies {
            put_frame(&mut self.buffer, self.seed, sequence, self.synced, body);
            sequence += 1;
        }
        let end = self.position + self.buffer.len() as u64;
        self.allocate(end)?;
        match self.file.write_at(&self.buffer, self.position) {
            Ok(()) => {
                self.position = end;
                self.sequence = sequence;
                Ok(())
            }
            Err(error) => match Shortage::of_space(&error) {
                Some(shortage) => self.undo(shortage),
                None => Err(Fault::Failed(error)),
            },
        }
    }

    /// Allocates space for the file up to `end`, and ahead of it if the disk has room.
    fn allocate(&mut self, end: u64) -> Result<(), Fault> {
        if end <= self.allocated || !self.can_allocate {
            return Ok(());
        }
        let ahead = end.next_multiple_of(self.options.allocate_bytes);
        let (length, allocated) = match self.file.allocate(ahead) {
            Err(error) if Shortage::of_space(&error).is_some() => (end, self.file.allocate(end)),
            other => (ahead, other),
        };
        self.can_allocate = allocated?;
        if self.can_allocate {
            self.allocated = length;
        }
        Ok(())
    }

    /// Removes bytes that a failed write may have left after the last frame. The sync ensures that they cannot
    /// come back after a crash, among frames that were written later.
    fn undo(&mut self, shortage: Shortage) -> Result<(), Fault> {
        let truncated = self.file.truncate(self.position);
        let synced = truncated.and_then(|()| self.file.sync_all());
        synced.map_err(Fault::Failed)?;
        self.synced = self.position;
        self.allocated = self.position;
        Err(Fault::Shortage(shortage))
    }

    /// Whether the file has no frame yet.
    fn is_fresh(&self) -> bool {
        self.position == file::START
    }

    /// Starts a new file, once all of this one is on disk. It takes the place of one without a frame.
    fn rotate(&mut self, format: u32) -> Result<(), Fault> {
        let header = FileHeader {
            format,
            first: self.sequence,
            ..self.header
        };
        let directory = self.files.directory();
        let mut new = NewFile::create(directory, &file::name(header.first))?;
        new.write_all(&header.encode())?;
        new.sync()?;
        let truncated = self.file.truncate(self.position);
        let synced = truncated.and_then(|()| self.file.sync_all());
        synced.map_err(Fault::Failed)?;
        self.synced = self.position;
        self.allocated = self.position;
        let file = new.put_in_place()?;
        directory.sync().map_err(Fault::Failed)?;
        if !self.is_fresh() {
            self.files.add(header.first);
        }
        self.file = file;
        self.header = header;
        self.seed = header.seed();
        self.position = file::START;
        self.synced = file::START;
        self.allocated = file::START;
        Ok(())
    }
}
