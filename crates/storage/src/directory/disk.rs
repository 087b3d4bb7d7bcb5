//! A directory of the file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};

use super::{Directory, Opening, ReadAt, Space, StoredFile};

/// A directory of the file system.
#[derive(Debug)]
pub(crate) struct DiskDirectory {
    path: PathBuf,
    /// Kept open, so that a sync cannot fail for want of a file descriptor. `None` if it is read only.
    opened: Option<File>,
}

impl DiskDirectory {
    /// Opens a directory that exists.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            opened: Some(File::open(path)?),
        })
    }

    /// Opens a directory that may be missing, and whose files can only be read.
    pub(crate) fn read_only(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            opened: None,
        }
    }

    /// Makes a directory and its missing parents. Their names are durable when this returns.
    pub(crate) fn make(path: &Path) -> io::Result<()> {
        let parents = parents_of_missing(path);
        fs::create_dir_all(path)?;
        for parent in parents {
            File::open(parent)?.sync_all()?;
        }
        Ok(())
    }

    /// Refuses changes of a read-only directory.
    fn writable(&self) -> io::Result<&File> {
        let opened = self.opened.as_ref();
        opened.ok_or_else(|| ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// The directories that get a new entry when this one and its missing parents are made.
fn parents_of_missing(path: &Path) -> Vec<PathBuf> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing = path.ancestors().take_while(is_missing);
    let parents = missing.filter_map(Path::parent);
    parents.map(|parent| Path::new(".").join(parent)).collect()
}

impl Directory for DiskDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn open(&self, name: &str, opening: Opening) -> io::Result<Box<dyn StoredFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        if opening != Opening::Read {
            self.writable()?;
            options.write(true);
        }
        match opening {
            Opening::Read | Opening::Write => &mut options,
            Opening::Create => options.create(true).truncate(false),
            Opening::CreateNew => options.create_new(true),
            Opening::Truncate => options.create(true).truncate(true),
        };
        Ok(Box::new(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.writable()?;
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn move_into(&self, name: &str, folder: &str) -> io::Result<()> {
        self.writable()?;
        fs::rename(self.path.join(name), self.path.join(folder).join(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.writable()?;
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        self.writable()?;
        fs::create_dir_all(self.path.join(name))
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        let path = self.path.join(name);
        Ok(Arc::new(match self.opened {
            Some(_) => Self::open(&path)?,
            None => Self::read_only(&path),
        }))
    }

    fn sync(&self) -> io::Result<()> {
        self.writable()?.sync_all()
    }

    fn space(&self) -> io::Result<Space> {
        let disk = rustix::fs::statvfs(&self.path)?;
        let used = disk.f_blocks.saturating_sub(disk.f_bfree);
        Ok(Space {
            used: used.saturating_mul(disk.f_frsize),
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}

impl StoredFile for File {
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

    fn try_lock(&self) -> Result<(), TryLockError> {
        File::try_lock(self)
    }

    fn try_lock_shared(&self) -> Result<(), TryLockError> {
        File::try_lock_shared(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_folder_is_a_name_in_the_one_above() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("a");
        let path = top.join("b/c");
        let parents = [top.join("b"), top.clone(), directory.path().to_owned()];
        assert_eq!(parents_of_missing(&path), parents);
        DiskDirectory::make(&path).unwrap();
        assert!(parents_of_missing(&path).is_empty());
        let relative = Path::new("a-folder-that-is-not-there/below");
        let parents = ["./a-folder-that-is-not-there", "."].map(PathBuf::from);
        assert_eq!(parents_of_missing(relative), parents);
    }

    #[test]
    fn a_file_is_deleted_if_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, b"").unwrap();
        let opened = DiskDirectory::open(directory.path()).unwrap();
        opened.remove("a").unwrap();
        assert!(!path.exists());
        opened.remove("a").unwrap();
        opened.remove(".").unwrap_err();
    }

    #[test]
    fn files_are_opened_as_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let opened = DiskDirectory::open(directory.path()).unwrap();
        for opening in [Opening::Read, Opening::Write] {
            let error = opened.open("a", opening).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{opening:?}");
        }
        let file = opened.open("a", Opening::CreateNew).unwrap();
        file.write_at(b"01", 1).unwrap();
        let error = opened.open("a", Opening::CreateNew).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        for opening in [Opening::Read, Opening::Write, Opening::Create] {
            let file = opened.open("a", opening).unwrap();
            assert_eq!(file.read(2).unwrap(), b"\x000", "{opening:?}");
            let is_writable = file.write_at(b"0", 1).is_ok();
            assert_eq!(is_writable, opening != Opening::Read, "{opening:?}");
        }
        opened.open("a", Opening::Truncate).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        opened.open("b", Opening::Create).unwrap();
        let mut names = opened.names().unwrap();
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_can_be_read_only_is_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a"), "a").unwrap();
        let looking = DiskDirectory::read_only(directory.path());
        let file = looking.open("a", Opening::Read).unwrap();
        assert_eq!(file.read(9).unwrap(), b"a");
        file.write_at(&[1], 0).unwrap_err();
        for opening in [Opening::Write, Opening::Create, Opening::Truncate] {
            looking.open("a", opening).unwrap_err();
        }
        looking.open("b", Opening::CreateNew).unwrap_err();
        looking.rename("a", "b").unwrap_err();
        looking.remove("a").unwrap_err();
        looking.make_folder("b").unwrap_err();
        looking.sync().unwrap_err();
        assert_eq!(looking.names().unwrap(), ["a"]);
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"a");
    }

    #[test]
    fn the_space_of_a_directory_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let space = DiskDirectory::read_only(directory.path()).space().unwrap();
        assert!(space.used.checked_add(space.free).is_some());
        let missing = DiskDirectory::read_only(Path::new("/nowhere/at/all"));
        assert!(missing.space().is_err());
    }

    #[test]
    fn bytes_in_memory_are_read_like_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, b"0123").unwrap();
        let file = File::open(&path).unwrap();
        let bytes = &b"0123"[..];
        assert_eq!(ReadAt::length(&file).unwrap(), bytes.length().unwrap());
        for (start, length) in [(0, 4), (2, 2), (4, 0), (3, 2), (9, 1)] {
            let (mut a, mut b) = ([0; 4], [0; 4]);
            let from_file = ReadAt::read_exact_at(&file, &mut a[..length], start);
            let from_memory = bytes.read_exact_at(&mut b[..length], start);
            let kinds = (
                from_file.map_err(|e| e.kind()),
                from_memory.map_err(|e| e.kind()),
            );
            assert_eq!(kinds.0, kinds.1, "{start} {length}");
            assert!(kinds.0.is_err() || a == b, "{start} {length}");
        }
    }
}
