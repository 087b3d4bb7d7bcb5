//! What the log asks of a file system: one directory, and files that grow. Tests put doubles in its place,
//! which fail, tear writes, and forget what was not synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};

use crate::files;

/// A directory of log files.
pub(crate) trait Directory: Send + Sync {
    /// Where it is, for messages.
    fn path(&self) -> &Path;
    /// The names in it; those that are no UTF-8 are left out.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes a file, empty even if there was one.
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>>;
    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>>;
    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes a file; one that is not there is none to delete.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns once all names are on disk.
    fn sync(&self) -> io::Result<()>;
}

/// A file of the log, open for reading and writing.
pub(crate) trait LogFile: Send {
    /// The bytes of the file, at most `limit` of them.
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
}

/// A directory of the file system.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
    /// Open all the time: a sync must not fail because no more files may be open. `None` where it is read only.
    opened: Option<File>,
}

impl Disk {
    /// Opens a directory that exists.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            opened: Some(File::open(path)?),
        })
    }

    /// The same, whose files can be read only.
    pub(crate) fn read_only(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            opened: None,
        }
    }

    fn open_with(&self, name: &str, options: &mut OpenOptions) -> io::Result<Box<dyn LogFile>> {
        let options = options.read(true).write(self.opened.is_some());
        let file = options.open(self.path.join(name))?;
        Ok(Box::new(file))
    }
}

impl Directory for Disk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.open_with(name, OpenOptions::new().create(true).truncate(true))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.open_with(name, &mut OpenOptions::new())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        files::delete(&self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.opened.as_ref().map_or(Ok(()), File::sync_all)
    }
}

impl LogFile for File {
    fn read(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take(limit as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn allocate(&self, length: u64) -> io::Result<bool> {
        let allocate = || rustix::fs::fallocate(self, FallocateFlags::empty(), 0, length);
        match retry_on_intr(allocate) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }
}

/// A directory that keeps nothing, for stores that live in memory.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Directory for Nowhere {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(Self))
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(Self))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for Nowhere {
    fn read(&self, _: usize) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<bool> {
        Ok(true)
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}
