//! Small steps with files, from which everything durable is made.
//!
//! A file is written beside its place, synced, and renamed; then its directory is synced. Only after that
//! may another file name it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::WriteError;

/// The extension of files that are not finished.
const UNFINISHED: &str = "new";

/// Bytes that can be read anywhere, by several readers at once.
pub(crate) trait ReadAt {
    /// How many bytes there are.
    fn length(&self) -> io::Result<u64>;

    /// Fills the buffer with the bytes from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
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

/// A file that is being written beside its place; removed again unless it is finished.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    target: PathBuf,
    /// Where it stands until it is finished.
    unfinished: Option<PathBuf>,
}

impl NewFile {
    /// Makes an empty file beside `target`, in place of one that was not finished.
    pub(crate) fn create(target: PathBuf) -> Result<Self, WriteError> {
        let unfinished = target.with_extension(UNFINISHED);
        match File::create(&unfinished) {
            Ok(file) => Ok(Self {
                file,
                target,
                unfinished: Some(unfinished),
            }),
            Err(source) => Err(WriteError::Create {
                path: unfinished,
                source,
            }),
        }
    }

    /// Syncs the file and puts it in its place. That lasts once the directory is synced too.
    pub(crate) fn finish(mut self) -> Result<(), WriteError> {
        if let Some(unfinished) = &self.unfinished {
            let synced = self.file.sync_all();
            synced.map_err(WriteError::io("sync", unfinished))?;
            let renamed = fs::rename(unfinished, &self.target);
            renamed.map_err(WriteError::io("rename", unfinished))?;
        }
        self.unfinished = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // What stays is replaced by the next one, or deleted at the next start.
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// Whether a path is that of a file that was not finished.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(UNFINISHED))
}

/// Deletes a file that is needed no longer; one that is not there is none to delete.
pub(crate) fn delete(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    }
}

/// A directory that stays open: its names can be made to last even when no more files may be open.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    opened: File,
}

impl Folder {
    /// Opens a directory that exists.
    pub(crate) fn open(path: PathBuf) -> Result<Self, WriteError> {
        match File::open(&path) {
            Ok(opened) => Ok(Self { path, opened }),
            Err(source) => Err(WriteError::io("open directory", &path)(source)),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the names in it last.
    pub(crate) fn sync(&self) -> Result<(), WriteError> {
        let synced = self.opened.sync_all();
        synced.map_err(WriteError::io("sync directory", &self.path))
    }

    /// Puts a file with these bytes in the place of the one of this name; when this returns, that lasts.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let target = self.path.join(name);
        let mut new = NewFile::create(target.clone())?;
        let written = new.write_all(bytes);
        written.map_err(WriteError::io("write", &target))?;
        new.finish()?;
        self.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_an_unfinished_one_vanishes() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path().to_owned()).unwrap();
        folder.replace("a", b"old").unwrap();
        let mut new = NewFile::create(directory.path().join("a")).unwrap();
        new.write_all(b"half").unwrap();
        assert_eq!(names(directory.path()), ["a", "a.new"]);
        drop(new);
        assert_eq!(names(directory.path()), ["a"]);
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"old");

        fs::write(directory.path().join("a.new"), b"of a crash, and longer").unwrap();
        folder.replace("a", b"new").unwrap();
        assert_eq!(names(directory.path()), ["a"]);
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"new");
    }

    #[test]
    fn unfinished_files_are_told_by_their_names() {
        assert!(is_unfinished(Path::new("d/3f-07.new")));
        assert!(!is_unfinished(Path::new("d.new/3f-07.seg")));
    }

    #[test]
    fn a_file_is_deleted_if_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, b"").unwrap();
        delete(&path).unwrap();
        assert!(!path.exists());
        delete(&path).unwrap();
        delete(directory.path()).unwrap_err();
    }

    #[test]
    fn what_fails_is_said_with_its_path() {
        let error = NewFile::create(PathBuf::from("/nowhere/a")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot create /nowhere/a.new, check the disk, its space and the permissions"
        );
        assert!(std::error::Error::source(&error).is_some());
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
