//! The disk under a cluster: whether it is one, how long it takes to sync, and what lies on it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{FallocateFlags, fallocate, statfs};

use crate::exit::UsageError;

/// What `statfs` calls the file systems that are in memory: tmpfs and ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

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
        UsageError(message)
    })?;
    if IN_MEMORY.contains(&i64::from(system.f_type)) {
        let message = format!(
            "{} is in memory, where syncing costs nothing: choose a folder on a disk with --folder",
            folder.display()
        );
        return Err(UsageError(message).into());
    }
    Ok(())
}

/// How long this machine takes for `fdatasync` after each of `count` small writes, one after the other, to a file
/// whose space is allocated.
pub(super) fn sync_times(folder: &Path, count: usize) -> anyhow::Result<Vec<Duration>> {
    let path = folder.join("synced");
    let durations = sync_file(&path, count);
    let removed = fs::remove_file(&path);
    let durations = durations.with_context(|| format!("cannot sync {}", path.display()))?;
    removed?;
    Ok(durations)
}

fn sync_file(path: &Path, count: usize) -> io::Result<Vec<Duration>> {
    let file = File::create(path)?;
    // Where the file system cannot, the file grows, as a log does there.
    let _ = fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES);
    file.sync_all()?;
    let sync = |number: u64| {
        let start = Instant::now();
        file.write_all_at(
            &[0x5a; WRITE_BYTES as usize],
            number * WRITE_BYTES % FILE_BYTES,
        )?;
        file.sync_data()?;
        Ok(start.elapsed())
    };
    (0..count as u64).map(sync).collect()
}

/// The bytes of disk that the files below a folder take.
pub(super) fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += bytes_below(&entry.path())?,
            // In blocks of 512 bytes, whatever those of the disk are.
            Ok(metadata) => bytes += metadata.blocks() * 512,
            // Files come and go while a node runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_take_is_counted_folder_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("c"), vec![1; 100_000]).unwrap();
        fs::write(folder.path().join("d"), vec![1; 50_000]).unwrap();
        for name in ["a/b/c", "d"] {
            File::open(folder.path().join(name))
                .unwrap()
                .sync_all()
                .unwrap();
        }
        let bytes = bytes_below(folder.path()).unwrap();
        assert!((150_000..400_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_file_is_synced_as_often_as_asked_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let times = sync_times(folder.path(), 3).unwrap();
        assert_eq!(times.len(), 3);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
