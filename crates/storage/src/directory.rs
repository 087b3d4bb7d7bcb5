//! What the storage asks of a file system: a directory, the files in it, and the folders in it. Every file of a data
//! directory is made, read, locked, renamed, synced and deleted through these traits.
//!
//! | implementation | what it is for |
//! |---|---|
//! | `disk` | the file system |
//! | `nowhere` | stores that live in memory: it keeps nothing |
//! | `tests/forgetful` | tests: it fails, tears writes, and forgets what was not synced |

mod disk;
mod nowhere;

use std::fmt;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(crate) use disk::DiskDirectory;
pub(crate) use nowhere::Nowhere;

/// A directory, with files and folders by name.
pub(crate) trait Directory: fmt::Debug + Send + Sync {
    /// Where it is, for messages.
    fn path(&self) -> &Path;
    /// The names in it. In a name that is no UTF-8, what is wrong is replaced: nothing here is opened by that.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Opens a file.
    fn open(&self, name: &str, opening: Opening) -> io::Result<Box<dyn StoredFile>>;
    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes a file. Succeeds if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes a folder. Succeeds if it is there.
    fn make_folder(&self, name: &str) -> io::Result<()>;
    /// Opens a folder that is there.
    fn folder(&self, name: &str) -> io::Result<Arc<dyn Directory>>;
    /// Returns once all names are on disk.
    fn sync(&self) -> io::Result<()>;
    /// The space of its file system.
    fn space(&self) -> io::Result<Space>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// For reading; it must be there.
    Read,
    /// For reading and writing; it must be there.
    Write,
    /// The same, and made unless it is there.
    Create,
    /// The same, and must not be there.
    CreateNew,
    /// Made, and emptied if it was there.
    Truncate,
}

/// Bytes on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Bytes that are taken.
    pub(crate) used: u64,
    /// Bytes that this process may take.
    pub(crate) free: u64,
}

/// Bytes that can be read anywhere, by several readers at once.
pub(crate) trait ReadAt {
    /// How many bytes there are.
    fn length(&self) -> io::Result<u64>;

    /// Fills the buffer with the bytes from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// An open file.
pub(crate) trait StoredFile: ReadAt + fmt::Debug + Send + Sync {
    /// The bytes of the file, at most `limit` of them. May be called once.
    fn read(&self, limit: usize) -> io::Result<Vec<u8>>;
    /// Writes all the bytes; where it fails, some of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file this long, with space for all of it; zeros fill what is new. Answers whether the
    /// file system can do so.
    fn allocate(&self, length: u64) -> io::Result<bool>;
    /// Cuts the file off.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Returns once the bytes are on disk (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Returns once the bytes and the length are on disk (`fsync`).
    fn sync_all(&self) -> io::Result<()>;
    /// Keeps all others from locking the file, as long as it is open.
    fn try_lock(&self) -> Result<(), TryLockError>;
    /// Keeps others from locking the file for themselves, as long as it is open.
    fn try_lock_shared(&self) -> Result<(), TryLockError>;
}

impl<F: ReadAt + ?Sized> ReadAt for Box<F> {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, offset)
    }
}

impl ReadAt for &[u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let from = start.and_then(|start| self.get(start..));
        let bytes = from.and_then(|from| from.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
