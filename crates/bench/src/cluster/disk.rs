//! The disk under a cluster: whether it is one, how long it takes to sync, and what lies on it.

use std::fs::{self, File, ReadDir};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{FallocateFlags, FsWord, fallocate, statfs};

use crate::settings::BadSettings;

/// The types that `statfs` reports for file systems in memory: tmpfs and ramfs.
const IN_MEMORY: [FsWord; 2] = [0x0102_1994, 0x8584_58f6];

/// Bytes of the file that is synced, as a log allocates them ahead, and of each write.
const FILE_BYTES: u64 = 4 << 20;
const WRITE_BYTES: u64 = 128;

/// Refuses a folder in memory, where syncing costs nothing.
pub(super) fn check_is_disk(folder: &Path) -> anyhow::Result<()> {
    let system = statfs(folder).map_err(|error| {
        let message = format!(
            "cannot use {}: {}",
            folder.display(),
            io::Error::from(error)
        );
        BadSettings(message)
    })?;
    if IN_MEMORY.contains(&system.f_type) {
        let message = format!(
            "{} is in memory, where syncing costs nothing: choose a folder on a disk with --folder",
            folder.display()
        );
        return Err(BadSettings(message).into());
    }
    Ok(())
}

/// A file whose space is allocated, as that of a log is, which small writes go to.
pub(super) struct Synced {
    file: File,
    writes: u64,
}

impl Synced {
    /// Makes it, without a name.
    pub(super) fn create(folder: &Path) -> anyhow::Result<Self> {
        let create = || {
            let file = tempfile::tempfile_in(folder)?;
            // Where the file system cannot, the file grows, as a log does there.
            let _ = fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES);
            file.sync_all()?;
            io::Result::Ok(file)
        };
        let file = create().with_context(|| format!("cannot make a file in {}", folder.display()));
        Ok(Self {
            file: file?,
            writes: 0,
        })
    }

    /// How long this machine takes for a write and `fdatasync` after it.
    pub(super) fn sync(&mut self) -> io::Result<Duration> {
        let start = Instant::now();
        let offset = self.writes * WRITE_BYTES % FILE_BYTES;
        self.file
            .write_all_at(&[0x5a; WRITE_BYTES as usize], offset)?;
        self.file.sync_data()?;
        self.writes += 1;
        Ok(start.elapsed())
    }
}

/// The bytes of disk that the files below a folder take. Files and folders in it come and go while a node runs: what is
/// gone takes none.
pub(super) fn bytes_below(folder: &Path) -> io::Result<u64> {
    bytes_of(fs::read_dir(folder)?)
}

fn bytes_of(entries: ReadDir) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in entries {
        let Some(entry) = unless_gone(entry)? else {
            break;
        };
        bytes += match unless_gone(entry.metadata())? {
            Some(metadata) if metadata.is_dir() => {
                let inner = unless_gone(fs::read_dir(entry.path()))?;
                inner.map_or(Ok(0), bytes_of)?
            }
            // In blocks of 512 bytes, whatever those of the disk are.
            Some(metadata) => metadata.blocks() * 512,
            None => 0,
        };
    }
    Ok(bytes)
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_take_is_counted_folder_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        // Of bytes that no file system makes fewer.
        let random = |count| -> Vec<u8> { (0..count).map(|_| fastrand::u8(..)).collect() };
        fs::write(inner.join("c"), random(100_000)).unwrap();
        fs::write(folder.path().join("d"), random(50_000)).unwrap();
        for name in ["a/b/c", "d"] {
            File::open(folder.path().join(name))
                .unwrap()
                .sync_all()
                .unwrap();
        }
        let bytes = bytes_below(folder.path()).unwrap();
        assert!((150_000..400_000).contains(&bytes), "{bytes}");
        let inner = fs::read_dir(&inner).unwrap();
        fs::remove_dir_all(folder.path().join("a")).unwrap();
        assert_eq!(bytes_of(inner).unwrap(), 0);
        assert!(bytes_below(&folder.path().join("a")).is_err());
    }

    #[test]
    fn writes_stay_within_the_file_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let mut synced = Synced::create(folder.path()).unwrap();
        synced.writes = FILE_BYTES / WRITE_BYTES - 1;
        for _ in 0..3 {
            synced.sync().unwrap();
        }
        assert_eq!(synced.file.metadata().unwrap().len(), FILE_BYTES);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
