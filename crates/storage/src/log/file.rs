//! The files of a log: their names, the first of them, and which there are.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use super::frame::{FILE_HEADER_BYTES, FileHeader};
use crate::FIRST_FORMAT;
use crate::directory::{Directory, Opening};
use crate::error::WriteError;
use crate::files::{replace, unfinished_name};

/// Digits of a sequence in a name.
const DIGITS: usize = 20;

/// The sequence of the first record of all.
const FIRST: u64 = 1;

/// The name of the file that starts with this sequence.
pub(super) fn name(first: u64) -> String {
    format!("{first:0DIGITS$}.log")
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

/// Begins the log of a new data directory: a file without a record. It takes the place of one that is so.
pub(crate) fn begin(directory: &Arc<dyn Directory>, store: Uuid) -> Result<(), WriteError> {
    let first = FIRST;
    let header = FileHeader {
        format: FIRST_FORMAT,
        store,
        first,
    };
    replace(directory, &name(first), &header.encode())
}

/// Whether a folder has more than the first file of a log without a record, finished or not. That is what stays of a
/// data directory that was being made.
pub(crate) fn has_begun(folder: &dyn Directory) -> io::Result<bool> {
    let first = name(FIRST);
    let unfinished = unfinished_name(&first);
    for name in folder.names()? {
        let is_first = name == first || name == unfinished;
        if !is_first || folder.open(&name, Opening::Read)?.length()? > START {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The files of a log, for all who make or delete them.
#[derive(Debug)]
pub(crate) struct Files {
    directory: Arc<dyn Directory>,
    /// The first sequence of each file, ascending; the last is open.
    firsts: Mutex<Vec<u64>>,
}

impl Files {
    pub(super) fn new(directory: Arc<dyn Directory>, firsts: Vec<u64>) -> Self {
        let firsts = Mutex::new(firsts);
        Self { directory, firsts }
    }

    pub(super) fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// Adds the file that is open from now on.
    pub(super) fn add(&self, first: u64) {
        self.firsts.lock().push(first);
    }

    /// Deletes the files whose records are all below `sequence`, oldest first.
    pub(crate) fn trim(&self, below: u64) -> io::Result<()> {
        let mut firsts = self.firsts.lock();
        let mut is_trimmed = false;
        while firsts.get(1).is_some_and(|next| *next <= below) {
            self.directory.remove(&name(firsts[0]))?;
            firsts.remove(0);
            is_trimmed = true;
        }
        drop(firsts);
        if is_trimmed {
            self.directory.sync()?;
        }
        Ok(())
    }
}

/// Where the first frame of a file stands.
pub(super) const START: u64 = FILE_HEADER_BYTES as u64;
