//! The traits through which the storage uses a file system: a directory, its files and its folders. Every file of a
//! data directory is made, read, locked, renamed, synced and deleted through them.
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
    /// The names in it. Bytes that are not UTF-8 are replaced; the store opens no file with such a name.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Opens a file.
    fn open(&self, name: &str, opening: Opening) -> io::Result<Box<dyn StoredFile>>;
    /// Renames a file or a folder, and replaces the file that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Moves a file or a folder into a folder, where nothing has its name.
    fn move_into(&self, name: &str, folder: &str) -> io::Result<()>;
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
    /// For reading; fails if the file does not exist.
    Read,
    /// For reading and writing; fails if the file does not exist.
    Write,
    /// For reading and writing; creates the file if it does not exist.
    Create,
    /// For reading and writing; fails if the file exists.
    CreateNew,
    /// For reading and writing; creates the file, or empties it.
    Truncate,
}

/// Bytes on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Bytes in use.
    pub(crate) used: u64,
    /// Bytes that this process may still use.
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
    /// Makes the file this long, filled with zeros, and allocates space for all of it. Returns whether the
    /// file system supports this.
    fn allocate(&self, length: u64) -> io::Result<bool>;
    /// Cuts the file off.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Returns once the bytes are on disk (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Returns once the bytes and the length are on disk (`fsync`).
    fn sync_all(&self) -> io::Result<()>;
    /// Takes an exclusive lock on the file, as long as it is open.
    fn try_lock(&self) -> Result<(), TryLockError>;
    /// Takes a shared lock on the file, as long as it is open.
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
