//! The file that a store leaves when it fails for good. While the file is there, the store does not open, so that an
//! operator checks the disk first.
//!
//! After a failed write or sync, the page cache may differ from the disk. Reads then succeed until the cache is
//! dropped. With one replica, a node must not go on by itself.

use std::io;
use std::path::PathBuf;

use super::open::LOG;
use super::{OpenError, Store};
use crate::directory::{Directory, Opening};
use crate::writer::Failure;

/// The name of the file.
const NAME: &str = "FAILED";

/// The content of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureNote {
    /// The file that says so. While it is there the store is not opened.
    pub path: PathBuf,
    /// Why the store failed.
    pub reason: String,
}

/// Refuses a directory whose store has failed.
pub(super) fn check(directory: &dyn Directory) -> Result<(), OpenError> {
    match read_failure_note(directory)? {
        None => Ok(()),
        Some(FailureNote { path, reason }) => Err(OpenError::Failed {
            path,
            directory: directory.path().to_owned(),
            reason,
        }),
    }
}

/// The note of a directory's store, if it has failed.
pub(crate) fn read_failure_note(
    directory: &dyn Directory,
) -> Result<Option<FailureNote>, OpenError> {
    let path = directory.path().join(NAME);
    let opened = directory.open(NAME, Opening::Read);
    match opened.and_then(|file| file.read(usize::MAX)) {
        Ok(reason) => Ok(Some(FailureNote {
            path,
            reason: String::from_utf8_lossy(reason.trim_ascii()).into_owned(),
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(OpenError::Io {
            action: "read",
            path,
            source,
        }),
    }
}

impl Store {
    /// The failure that an error of the log amounts to, which names the folder.
    pub(crate) fn log_failure(&self, error: &io::Error) -> Failure {
        let Some(disk) = &self.disk else {
            return Failure::new(error);
        };
        let folder = disk.directory.path().join(LOG);
        let text = format!("cannot write the log in {}: {error}", folder.display());
        Failure::new(&io::Error::other(text))
    }

    /// Leaves word that the store has failed, as well as its disk allows. The first failure stays.
    pub(crate) fn leave_word(&self, failure: &Failure) {
        let Some(disk) = &self.disk else { return };
        let directory = &*disk.directory;
        match write(directory, failure) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let path = directory.path().join(NAME);
                let path = path.display();
                tracing::error!(%path, %error, "cannot leave word that the storage has failed");
            }
            _ => drop(directory.sync()),
        }
    }
}

/// The name alone tells; the reason is for people.
fn write(directory: &dyn Directory, failure: &Failure) -> io::Result<()> {
    let file = directory.open(NAME, Opening::CreateNew)?;
    file.write_at(format!("{failure}\n").as_bytes(), 0)?;
    file.sync_all()
}
