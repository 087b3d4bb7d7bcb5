//! How a file comes into being: it is written beside its place, synced, and renamed; then its directory is synced. Only
//! after that may another file name it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::directory::{Directory, Opening, StoredFile};
use crate::error::WriteError;

/// The extension of files that are not finished.
const UNFINISHED: &str = "new";

/// A large file is synced on the way, each time after this many bytes. So no sync takes so long that the disk seems to
/// hang.
const SYNCED_AT_ONCE: u64 = 8 << 20;

/// A file that is being written beside its place; removed again unless it is put there.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: Box<dyn StoredFile>,
    /// Bytes that were written.
    length: u64,
    /// Bytes that were synced on the way.
    synced: u64,
    place: Place,
}

impl NewFile {
    /// Makes an empty file beside the place of this name, instead of one that was not finished.
    pub(crate) fn create(directory: &Arc<dyn Directory>, name: &str) -> Result<Self, WriteError> {
        let unfinished = unfinished_name(name);
        match directory.open(&unfinished, Opening::Truncate) {
            Ok(file) => Ok(Self {
                file,
                length: 0,
                synced: 0,
                place: Place {
                    directory: Arc::clone(directory),
                    name: name.to_owned(),
                    unfinished: Some(unfinished),
                },
            }),
            Err(source) => Err(WriteError::Create {
                path: directory.path().join(unfinished),
                source,
            }),
        }
    }

    /// Syncs the file.
    pub(crate) fn sync(&self) -> Result<(), WriteError> {
        let synced = self.file.sync_all();
        synced.map_err(self.place.failed_to("sync"))
    }

    /// Puts the file, which is synced, in its place. That lasts once the directory is synced too.
    pub(crate) fn put_in_place(mut self) -> Result<Box<dyn StoredFile>, WriteError> {
        self.place.take()?;
        Ok(self.file)
    }

    /// Syncs the file and puts it in its place. That lasts once the directory is synced too.
    pub(crate) fn finish(self) -> Result<(), WriteError> {
        self.sync()?;
        self.put_in_place().map(drop)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        if self.length - self.synced >= SYNCED_AT_ONCE {
            self.file.sync_data()?;
            self.synced = self.length;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a file is to be, and where it is until then.
#[derive(Debug)]
struct Place {
    directory: Arc<dyn Directory>,
    name: String,
    /// None once the file is in its place.
    unfinished: Option<String>,
}

impl Place {
    fn take(&mut self) -> Result<(), WriteError> {
        if let Some(unfinished) = &self.unfinished {
            let renamed = self.directory.rename(unfinished, &self.name);
            renamed.map_err(self.failed_to("rename"))?;
        }
        self.unfinished = None;
        Ok(())
    }

    fn failed_to(&self, doing: &'static str) -> impl FnOnce(io::Error) -> WriteError + use<> {
        let name = self.unfinished.as_ref().unwrap_or(&self.name);
        WriteError::io(doing, &self.directory.path().join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished
            && let Err(error) = self.directory.remove(unfinished)
        {
            // It is replaced by the next one, or deleted at the next start.
            let path = self.directory.path().join(unfinished);
            tracing::warn!(path = %path.display(), %error, "cannot delete an unfinished file");
        }
    }
}

/// The name that a file has until it is finished.
pub(crate) fn unfinished_name(name: &str) -> String {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    format!("{stem}.{UNFINISHED}")
}

/// Whether this is the name of a file that was not finished.
pub(crate) fn is_unfinished(name: &str) -> bool {
    Path::new(name).extension() == Some(OsStr::new(UNFINISHED))
}

/// Puts a file with these bytes in the place of the one of this name; when this returns, that lasts.
pub(crate) fn replace(
    directory: &Arc<dyn Directory>,
    name: &str,
    bytes: &[u8],
) -> Result<(), WriteError> {
    let mut new = NewFile::create(directory, name)?;
    let written = new.write_all(bytes);
    written.map_err(WriteError::io("write", &directory.path().join(name)))?;
    new.finish()?;
    sync(&**directory)
}

/// Makes the names in a directory last.
pub(crate) fn sync(directory: &dyn Directory) -> Result<(), WriteError> {
    let synced = directory.sync();
    synced.map_err(WriteError::io("sync directory", directory.path()))
}

/// Opens a folder of a directory.
pub(crate) fn folder(
    directory: &dyn Directory,
    name: &str,
) -> Result<Arc<dyn Directory>, WriteError> {
    let opened = directory.folder(name);
    opened.map_err(WriteError::io(
        "open directory",
        &directory.path().join(name),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::directory::DiskDirectory;

    fn names(directory: &dyn Directory) -> Vec<String> {
        let mut names = directory.names().unwrap();
        names.sort();
        names
    }

    fn opened(path: &Path) -> Arc<dyn Directory> {
        Arc::new(DiskDirectory::open(path).unwrap())
    }

    #[test]
    fn a_file_is_replaced_whole_and_an_unfinished_one_vanishes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let directory = opened(path);
        replace(&directory, "a", b"old").unwrap();
        let mut new = NewFile::create(&directory, "a").unwrap();
        new.write_all(b"half").unwrap();
        assert_eq!(names(&*directory), ["a", "a.new"]);
        drop(new);
        assert_eq!(names(&*directory), ["a"]);
        assert_eq!(fs::read(path.join("a")).unwrap(), b"old");

        fs::write(path.join("a.new"), b"of a crash, and longer").unwrap();
        replace(&directory, "a", b"new").unwrap();
        assert_eq!(names(&*directory), ["a"]);
        assert_eq!(fs::read(path.join("a")).unwrap(), b"new");
    }

    #[test]
    fn what_is_written_in_pieces_stands_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut new = NewFile::create(&opened(directory.path()), "a").unwrap();
        for piece in ["one ", "", "two ", "three"] {
            new.write_all(piece.as_bytes()).unwrap();
        }
        new.finish().unwrap();
        let written = fs::read(directory.path().join("a")).unwrap();
        assert_eq!(written, b"one two three");
    }

    #[test]
    fn unfinished_files_are_told_by_their_names() {
        for name in ["3f-07.seg", "3f-07", "a.b.log"] {
            assert!(!is_unfinished(name), "{name}");
            assert!(is_unfinished(&unfinished_name(name)), "{name}");
        }
        assert_eq!(unfinished_name("a.b.log"), "a.b.new");
        assert!(!is_unfinished(".new"));
    }

    #[test]
    fn what_fails_is_said_with_its_path() {
        let nowhere: Arc<dyn Directory> = opened(Path::new("/dev/null"));
        let error = NewFile::create(&nowhere, "a").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot create /dev/null/a.new, check the disk, its space and the permissions"
        );
        assert!(std::error::Error::source(&error).is_some());
        let error = folder(&*nowhere, "a").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot open directory /dev/null/a, check the disk, its space and the permissions"
        );
    }
}
