//! Reading a log back: `FORMAT.md`, section Log, "Reading".

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::error::{Damage, LogError};
use super::file;
use super::frame::{AfterFrames, FILE_HEADER_BYTES, FileHeader, Frames, MAX_FILE_BYTES};
use super::record::{Record, is_mark};
use super::tail::{AbruptEnd, Tail, Torn};
use crate::directory::{Directory, Opening, StoredFile};

/// Reads the log in a directory, and visits its records from `first_needed` on, marks included, in order of sequence.
/// A torn tail is cut off, and everything is on disk before this returns (L11). If it fails, what was visited counts
/// for nothing.
pub(crate) fn recover<E: From<LogError>>(
    directory: Arc<dyn Directory>,
    store: Uuid,
    first_needed: u64,
    mut visit: impl FnMut(u64, Record) -> Result<(), E>,
) -> Result<Tail, E> {
    let reader = Reader {
        directory,
        opening: Opening::Write,
        store,
        first_needed,
    };
    let files = reader.files()?;
    reader.delete_unfinished()?;
    let (contents, end) = reader.read_all(&files, &mut visit)?;
    Ok(reader.finish(files, contents, end)?)
}

/// The content of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Number of files.
    pub(crate) files: usize,
    /// The sequence after the last record.
    pub(crate) next_sequence: u64,
    /// The bytes that recovery would cut off.
    pub(crate) torn: Option<Torn>,
    /// The last file, if no zeros behind its frames show that writing ended there.
    pub(crate) abrupt_end: Option<AbruptEnd>,
}

/// Reads a log like `recover`, and changes nothing.
pub(crate) fn survey<E: From<LogError>>(
    directory: Arc<dyn Directory>,
    store: Uuid,
    first_needed: u64,
    mut visit: impl FnMut(u64, Record) -> Result<(), E>,
) -> Result<Survey, E> {
    let reader = Reader {
        directory,
        opening: Opening::Read,
        store,
        first_needed,
    };
    let files = reader.files()?;
    let (contents, end) = reader.read_all(&files, &mut visit)?;
    let abrupt_end = || AbruptEnd {
        path: contents.path.clone(),
        bytes: contents.bytes.len() as u64,
    };
    Ok(Survey {
        files: files.len(),
        next_sequence: end.sequence,
        abrupt_end: end.is_abrupt.then(abrupt_end),
        torn: end.torn_bytes.map(|bytes| Torn {
            path: contents.path,
            offset: end.offset,
            bytes,
        }),
    })
}

/// A file that was read.
struct Contents {
    path: PathBuf,
    file: Box<dyn StoredFile>,
    header: FileHeader,
    bytes: Vec<u8>,
}

/// Where the frames of a file end.
#[derive(Clone, Copy)]
struct End {
    offset: usize,
    /// A frame says that all before this was on disk.
    synced: usize,
    sequence: u64,
    /// Bytes of the records that are needed.
    needed_bytes: usize,
    is_marked: bool,
    torn_bytes: Option<usize>,
    /// No zeros behind the frames show that writing ended there.
    is_abrupt: bool,
}

/// The parameters of recovery.
struct Reader {
    directory: Arc<dyn Directory>,
    /// How it opens files.
    opening: Opening,
    store: Uuid,
    first_needed: u64,
}

impl Reader {
    /// Deletes files that were not finished.
    fn delete_unfinished(&self) -> Result<(), LogError> {
        let path = self.directory.path();
        for name in self
            .names()?
            .iter()
            .filter(|name| file::is_unfinished(name))
        {
            let removed = self.directory.remove(name);
            removed.map_err(io("delete the unfinished file", &path.join(name)))?;
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, LogError> {
        let names = self.directory.names();
        names.map_err(io("list", self.directory.path()))
    }

    /// The first sequences of all files, ascending.
    fn files(&self) -> Result<Vec<u64>, LogError> {
        let names = self.names()?;
        let mut files: Vec<u64> = names
            .iter()
            .filter_map(|name| file::first_of(name))
            .collect();
        files.sort_unstable();
        Ok(files)
    }

    /// Visits the records of these files that are needed, and answers the last file with its end, which counts the bytes of
    /// all files.
    fn read_all<E: From<LogError>>(
        &self,
        files: &[u64],
        visit: &mut impl FnMut(u64, Record) -> Result<(), E>,
    ) -> Result<(Contents, End), E> {
        let covered = files.partition_point(|first| *first <= self.first_needed);
        let Some(start) = covered.checked_sub(1) else {
            return Err(self.missing().into());
        };
        let mut sequence = files[start];
        let mut needed_bytes = 0;
        let mut last = None;
        for first in &files[start..] {
            if *first != sequence {
                return Err(self.out_of_order(*first, sequence).into());
            }
            let contents = self.read(*first)?;
            let is_last = files.last() == Some(first);
            let mut end = self.visit(&contents, is_last, visit)?;
            sequence = end.sequence;
            needed_bytes += end.needed_bytes;
            end.needed_bytes = needed_bytes;
            last = Some((contents, end));
        }
        match last {
            Some(last) if sequence >= self.first_needed => Ok(last),
            _ => Err(self.missing().into()),
        }
    }

    fn read(&self, first: u64) -> Result<Contents, LogError> {
        let path = self.path(first);
        let opened = self.directory.open(&file::name(first), self.opening);
        let file = opened.map_err(io("open", &path))?;
        let read = file.read(MAX_FILE_BYTES + 1);
        let bytes = read.map_err(io("read", &path))?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(damaged(&path, MAX_FILE_BYTES, Damage::TooLong));
        }
        let header = match FileHeader::decode(&bytes) {
            Ok(header) => header,
            Err(why) => return Err(LogError::Header { path, why }),
        };
        if header.store != self.store {
            let (found, expected) = (header.store, self.store);
            return Err(LogError::OtherStore {
                path,
                found,
                expected,
            });
        }
        if header.first != first {
            let found = header.first;
            return Err(LogError::OtherName { path, found });
        }
        Ok(Contents {
            path,
            file,
            header,
            bytes,
        })
    }

    /// Visits the records of a file that are needed.
    fn visit<E: From<LogError>>(
        &self,
        contents: &Contents,
        is_last: bool,
        visit: &mut impl FnMut(u64, Record) -> Result<(), E>,
    ) -> Result<End, E> {
        let path = &contents.path;
        let mut frames = Frames::new(&contents.bytes, &contents.header);
        // A file begins when all that is in the one before it is on disk.
        let mut is_marked = true;
        let mut synced = FILE_HEADER_BYTES;
        let mut needed_from = None;
        for frame in frames.by_ref() {
            is_marked = is_mark(frame.body);
            synced = synced.max(frame.synced);
            if frame.sequence >= self.first_needed {
                needed_from.get_or_insert(frame.offset);
                let decoded = Record::decode(frame.body, contents.header.format);
                let record = decoded.map_err(|why| damaged(path, frame.offset, why.into()))?;
                visit(frame.sequence, record)?;
            }
        }
        let offset = frames.offset();
        let torn_bytes = match frames.rest() {
            AfterFrames::End => None,
            AfterFrames::TornTail { bytes } if is_last => Some(bytes),
            AfterFrames::TornTail { .. } => {
                return Err(damaged(path, offset, Damage::NotLast).into());
            }
            AfterFrames::Damage { witness } => {
                return Err(damaged(path, offset, Damage::Witnessed { witness }).into());
            }
        };
        Ok(End {
            offset,
            synced,
            sequence: frames.sequence(),
            needed_bytes: needed_from.map_or(0, |from| offset - from),
            is_marked,
            torn_bytes,
            is_abrupt: frames.is_abrupt(),
        })
    }

    /// Sees to it that what was read is on disk, and nothing behind it. A sync may have failed when the last process
    /// wrote. Then the system holds bytes that it takes for written, and another sync alone would not bring them to the
    /// disk. So those of which nothing says that they were there are written once more.
    fn finish(self, files: Vec<u64>, contents: Contents, end: End) -> Result<Tail, LogError> {
        let Contents {
            path, file, header, ..
        } = contents;
        let mut length = contents.bytes.len() as u64;
        let position = end.offset as u64;
        if let Some(bytes) = end.torn_bytes {
            let (offset, file) = (end.offset, path.display());
            if end.is_abrupt {
                tracing::warn!(
                    %file, offset, bytes,
                    "cut off the end of the log, in the midst of which its file ends: it was never acknowledged, \
                     unless something else cut the file short"
                );
            } else {
                tracing::warn!(
                    %file, offset, bytes,
                    "cut off the end of the log: it was never acknowledged"
                );
            }
            length = position;
        }
        let cut = match end.torn_bytes {
            Some(_) => file.truncate(position),
            None => Ok(()),
        };
        let unproven = &contents.bytes[end.synced..end.offset];
        let written = cut.and_then(|()| file.write_at(unproven, end.synced as u64));
        let synced = written.and_then(|()| file.sync_all());
        synced.map_err(io("write the end of", &path))?;
        // A process that was killed may have left the name of the file in memory only.
        let directory = self.directory.path();
        self.directory.sync().map_err(io("sync", directory))?;
        let offset = end.offset;
        Ok(Tail {
            directory: self.directory,
            header,
            file,
            files,
            position,
            length,
            sequence: end.sequence,
            needed_bytes: end.needed_bytes,
            is_marked: end.is_marked,
            cut: end.torn_bytes.map(|bytes| Torn {
                path,
                offset,
                bytes,
            }),
        })
    }

    fn path(&self, first: u64) -> PathBuf {
        self.directory.path().join(file::name(first))
    }

    fn out_of_order(&self, found: u64, expected: u64) -> LogError {
        LogError::OutOfOrder {
            path: self.path(found),
            found,
            expected,
        }
    }

    fn missing(&self) -> LogError {
        LogError::Missing {
            path: self.directory.path().to_owned(),
            sequence: self.first_needed,
        }
    }
}

fn damaged(path: &Path, offset: usize, what: Damage) -> LogError {
    let path = path.to_owned();
    LogError::Damaged { path, offset, what }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}
