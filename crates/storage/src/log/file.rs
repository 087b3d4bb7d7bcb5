//! Names of log files, and how a file comes into being: under another name, until it is sure to have a header.

use std::io;

use super::disk::{Directory, LogFile};
use super::frame::{FILE_HEADER_BYTES, FileHeader};

/// Digits of a sequence in a name.
const DIGITS: usize = 20;

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

/// Makes a file that nobody reads yet. If that fails, nothing of it stays.
pub(super) fn prepare(
    directory: &dyn Directory,
    header: &FileHeader,
) -> io::Result<Box<dyn LogFile>> {
    let name = unfinished_name(header.first);
    let written = directory.create(&name).and_then(|file| {
        file.write_at(&header.encode(), 0)?;
        file.sync_all()?;
        Ok(file)
    });
    written.inspect_err(|_| discard(directory, header.first))
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

/// Where the first frame of a file stands.
pub(super) const START: u64 = FILE_HEADER_BYTES as u64;
