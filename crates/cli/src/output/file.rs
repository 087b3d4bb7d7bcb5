//! The place that results are written to: standard output, a device or pipe, or a file that is
//! replaced whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::same_file;
use super::unfinished::Unfinished;

const STDOUT: &str = "<stdout>";

/// An output that is ready to be written.
///
/// What is written to a file stands beside it until [`Output::commit`]; dropped before, it vanishes.
/// Standard output, devices and pipes are written as it comes.
pub struct Output {
    /// For messages.
    name: String,
    file: File,
    /// Where the file is one that is to be renamed.
    unfinished: Option<Unfinished>,
}

impl Output {
    /// Opens `path`, or standard output for `-` and nothing, having made sure that none of the
    /// `inputs` (`-` and nothing: standard input) is that file. Nothing is changed yet.
    ///
    /// # Errors
    /// If the output is an input, or cannot be written.
    pub fn open(path: Option<&Path>, inputs: &[PathBuf]) -> Result<Self, OutputError> {
        let path = path.filter(|path| path.as_os_str() != "-");
        let name = path.map_or(STDOUT.to_owned(), |path| path.display().to_string());
        let Some(path) = path else {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let file = File::from(stdout.map_err(|error| refused(&name, &error))?);
            same_file::check_open(&name, &file, inputs)?;
            return Ok(Self {
                name,
                file,
                unfinished: None,
            });
        };
        same_file::check(path, inputs)?;
        let (file, unfinished) = open_file(path).map_err(|error| {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            match folder.filter(|folder| !folder.exists()) {
                Some(folder) => OutputError::Refused {
                    reason: format!("there is no folder {}", folder.display()),
                    output: name.clone(),
                },
                None => refused(&name, &error),
            }
        })?;
        Ok(Self {
            name,
            file,
            unfinished,
        })
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are to be the same file.
    pub(crate) fn replaces_the_file_of(&self, other: &Self) -> bool {
        let target = |output: &Self| output.unfinished.as_ref().map(Unfinished::target);
        target(self).is_some() && target(self) == target(other)
    }

    /// Ends the output: a file is put in its place, once all of it has reached the disk.
    ///
    /// # Errors
    /// If that fails; then what stood there before still does.
    pub fn commit(self) -> io::Result<()> {
        let Some(unfinished) = self.unfinished else {
            return Ok(());
        };
        self.file.sync_all()?;
        unfinished.finish()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a device or a pipe as it is, and a new file for any other path.
fn open_file(path: &Path) -> io::Result<(File, Option<Unfinished>)> {
    let target = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
        Ok(metadata) => {
            // A file that must not be written must not be replaced either.
            let file = OpenOptions::new().write(true).open(path)?;
            if !metadata.is_file() {
                return Ok((file, None));
            }
            // Through a link, the file that it points to is replaced.
            fs::canonicalize(path)?
        }
    };
    let target = std::path::absolute(target)?;
    let (unfinished, file) = Unfinished::create(target)?;
    Ok((file, Some(unfinished)))
}

fn refused(name: &str, error: &io::Error) -> OutputError {
    OutputError::Refused {
        output: name.to_owned(),
        reason: error.to_string(),
    }
}
