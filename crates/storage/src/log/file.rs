//! Names of log files, and how a file comes into being: under another name, until it is sure to have a header.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use uuid::Uuid;

use super::disk::{Directory, Disk, LogFile};
use super::error::LogError;
use super::frame::{FILE_HEADER_BYTES, FileHeader};

/// Digits of a sequence in a name.
const DIGITS: usize = 20;

/// The sequence of the first record of all.
const FIRST: u64 = 1;

/// The name of the file that starts with this sequence.
pub(super) fn name(first: u64) -> String {
    format!("{first:0DIGITS$}.log")
}

/// Its name until it is finished.
fn unfinished_name(first: u64) -> String {
    format!("{first:0DIGITS$}.new")
}

/// The sequence that a file with this name starts with, if it is one of a log.
pub(super) fn first_of(file_name: &str) -> Option<u64> {
    digits(file_name.strip_suffix(".log")?)
}

/// Whether this is the name of a file that was not finished.
pub(super) fn is_unfinished(file_name: &str) -> bool {
    let stem = file_name.strip_suffix(".new");
    stem.and_then(digits).is_some()
}

fn digits(stem: &str) -> Option<u64> {
    let is_sequence = stem.len() == DIGITS && stem.bytes().all(|byte| byte.is_ascii_digit());
    stem.parse().ok().filter(|_| is_sequence)
}

/// Makes an empty file that nobody reads yet. If that fails, nothing of it stays.
pub(super) fn create(directory: &dyn Directory, first: u64) -> io::Result<Box<dyn LogFile>> {
    let created = directory.create(&unfinished_name(first));
    created.inspect_err(|_| discard(directory, first))
}

/// Gives a new file its header, and syncs it. If that fails, nothing of it stays.
pub(super) fn fill(
    directory: &dyn Directory,
    file: &dyn LogFile,
    header: &FileHeader,
) -> io::Result<()> {
    let written = file.write_at(&header.encode(), 0);
    let synced = written.and_then(|()| file.sync_all());
    synced.inspect_err(|_| discard(directory, header.first))
}

/// Deletes a prepared file; where this fails it is deleted at the next start.
fn discard(directory: &dyn Directory, first: u64) {
    let name = unfinished_name(first);
    if let Err(error) = directory.remove(&name) {
        let directory = directory.path().display();
        tracing::warn!(%directory, name, %error, "cannot delete an unfinished log file");
    }
}

/// Makes a prepared file part of the log; that is sure once the directory is synced. If that fails,
/// nothing of it stays.
pub(super) fn publish(directory: &dyn Directory, first: u64) -> io::Result<()> {
    let renamed = directory.rename(&unfinished_name(first), &name(first));
    renamed.inspect_err(|_| discard(directory, first))
}

/// Begins the log of a new data directory: a file without a record. It takes the place of one that is so.
pub(crate) fn begin(directory: &Path, store: Uuid) -> Result<(), LogError> {
    match Disk::open(directory) {
        Ok(directory) => begin_in(&directory, store),
        Err(source) => Err(LogError::Io {
            action: "open",
            path: directory.to_owned(),
            source,
        }),
    }
}

/// `begin`, in any directory.
pub(super) fn begin_in(directory: &dyn Directory, store: Uuid) -> Result<(), LogError> {
    let header = FileHeader {
        store,
        first: FIRST,
    };
    let made = create(directory, header.first).and_then(|file| {
        fill(directory, &*file, &header)?;
        publish(directory, header.first)?;
        directory.sync()
    });
    made.map_err(|source| LogError::Io {
        action: "create",
        path: directory.path().join(name(header.first)),
        source,
    })
}

/// Whether a folder has more than the first file of a log, without a record, finished or not: that is what stays
/// of a data directory that was being made.
pub(crate) fn has_begun(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_first = [name(FIRST), unfinished_name(FIRST)]
            .map(OsString::from)
            .contains(&entry.file_name());
        if !is_first || entry.metadata()?.len() > START {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where the first frame of a file stands.
pub(super) const START: u64 = FILE_HEADER_BYTES as u64;
