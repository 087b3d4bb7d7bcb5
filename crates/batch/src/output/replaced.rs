//! A small file that is replaced whole, again and again, by what is to be known after a crash.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::place::Place;
use super::same_file;
use super::unfinished::Unfinished;

/// A file that is replaced whole (W1).
#[derive(Debug)]
pub struct Replaced {
    /// For messages.
    name: String,
    place: PathBuf,
}

impl Replaced {
    /// The file at `path`, having made sure that it is none of the `inputs`, nor in a folder of
    /// theirs. Nothing is changed yet.
    ///
    /// # Errors
    /// If it is an input or within one, or no file can be there.
    pub fn at(path: &Path, inputs: &[PathBuf]) -> Result<Self, OutputError> {
        let name = path.display().to_string();
        let refused = |reason: &str| OutputError::Refused {
            output: name.clone(),
            reason: reason.to_owned(),
        };
        let place = Place::of(path).map_err(|error| refused(&error.to_string()))?;
        same_file::check(&name, path, &place, inputs)?;
        let Place::Named(place) = place else {
            return Err(refused("it is no file"));
        };
        if fs::metadata(&place).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(refused("it is no file"));
        }
        if !folder(&place).is_dir() {
            let folder = folder(&place).display();
            return Err(refused(&format!("there is no folder {folder}")));
        }
        Ok(Self { name, place })
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its content, if it exists.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Puts these bytes in its place. When this returns, that lasts.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let replaced = || {
            let (unfinished, mut file) = Unfinished::create(self.place.clone())?;
            file.write_all(bytes)?;
            file.sync_all()?;
            unfinished.finish()
        };
        replaced().map_err(OutputError::failed(self.name.clone()))
    }
}

fn folder(place: &Path) -> &Path {
    place.parent().unwrap_or(Path::new("/"))
}
