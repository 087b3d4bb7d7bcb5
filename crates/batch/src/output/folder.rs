//! A folder of files that is put in its place whole.
//!
//! It is filled beside its place, under a name of its own, and then renamed (W1). So its place must be
//! free: there is no rename that replaces a folder with something in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::place::Place;
use super::same_file;
use super::unfinished::UnfinishedFolder;

/// A folder that is ready to be filled.
pub(crate) struct OutputFolder {
    /// For messages.
    name: String,
    unfinished: UnfinishedFolder,
}

/// A file of such a folder.
pub(crate) struct FolderFile(File);

/// A folder all of which has reached the disk.
#[must_use = "a folder is in its place only once it is committed"]
pub(crate) struct CompleteFolder {
    name: String,
    unfinished: UnfinishedFolder,
}

impl OutputFolder {
    /// A new or empty folder at `path`, having made sure that it is in no folder that is an input.
    ///
    /// # Errors
    /// If there is something already, or nothing can be there.
    pub(crate) fn open(path: &Path, inputs: &[PathBuf]) -> Result<Self, OutputError> {
        let name = path.display().to_string();
        let refused = |reason: String| OutputError::Refused {
            output: name.clone(),
            reason,
        };
        let place = Place::of(path).map_err(|error| refused(error.to_string()))?;
        same_file::check(&name, path, &place, inputs)?;
        let Place::Named(place) = place else {
            return Err(refused("it is no folder".to_owned()));
        };
        match fs::read_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error.to_string())),
            Ok(mut entries) => {
                if entries.next().is_some() {
                    let reason = "the folder is not empty: name a new one, or empty it";
                    return Err(refused(reason.to_owned()));
                }
            }
        }
        let unfinished = UnfinishedFolder::create(place);
        let unfinished = unfinished.map_err(|error| refused(error.to_string()))?;
        Ok(Self { name, unfinished })
    }

    /// Its name in messages.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes a file of this name, and the folders above it.
    pub(crate) fn create(&self, name: &Path) -> io::Result<FolderFile> {
        self.unfinished.create_file(name).map(FolderFile)
    }

    /// Ends the folder, all files of which are complete.
    pub(crate) fn complete(self) -> io::Result<CompleteFolder> {
        sync_folders(self.unfinished.path())?;
        Ok(CompleteFolder {
            name: self.name,
            unfinished: self.unfinished,
        })
    }
}

impl FolderFile {
    /// Ends the file: all of it has reached the disk.
    pub(crate) fn complete(self) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl Write for FolderFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl CompleteFolder {
    /// Puts the folder in its place (W3). When this returns, that lasts.
    ///
    /// # Errors
    /// If that fails; then nothing stands there, unless the disk fails at the end.
    pub(crate) fn commit(self) -> Result<(), OutputError> {
        self.unfinished
            .finish()
            .map_err(OutputError::failed(self.name))
    }
}

/// Makes the entries of a folder and of all below it last.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}
