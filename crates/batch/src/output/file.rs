//! The place that results are written to: an open descriptor, a device or pipe, or a file that is
//! replaced whole.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use simshard_input::Compression;

use super::error::OutputError;
use super::place::Place;
use super::same_file;
use super::unfinished::Unfinished;

const STDOUT: &str = "<stdout>";

/// The name that the operating system has for what is standard output.
const STDOUT_LINK: &str = "/proc/self/fd/1";

/// An output that is ready to be written.
///
/// Output goes to a file beside the target until [`Complete::commit`]. Without a commit, that file is deleted.
/// Open descriptors, such as standard output by any name, devices and pipes are written as it comes.
pub struct Output {
    /// For messages.
    name: String,
    place: Place,
    file: File,
    /// Where the file is one that is to be renamed.
    unfinished: Option<Unfinished>,
}

/// An output all of which has been written, and reached the disk where it is a file.
#[must_use = "a file is in its place only once it is committed"]
pub struct Complete {
    name: String,
    unfinished: Option<Unfinished>,
}

impl Output {
    /// Opens `path`, or standard output for `-` and nothing. Before that it makes sure that none of the `inputs` (`-`
    /// and nothing: standard input) is that file, or a folder that holds it. Nothing is changed yet.
    ///
    /// # Errors
    /// If the output is an input or within one, or cannot be written.
    pub fn open(path: Option<&Path>, inputs: &[PathBuf]) -> Result<Self, OutputError> {
        if let Some(path) = path {
            refuse_compressed(path)?;
        }
        Self::open_compressed(path, inputs)
    }

    /// As [`Output::open`], for what is compressed as its name says.
    ///
    /// # Errors
    /// As [`Output::open`].
    pub fn open_compressed(path: Option<&Path>, inputs: &[PathBuf]) -> Result<Self, OutputError> {
        let path = path.filter(|path| path.as_os_str() != "-");
        let name = path.map_or(STDOUT.to_owned(), |path| path.display().to_string());
        let place = path.map_or(Ok(Place::Stdout), Place::of);
        let place = place.map_err(|error| refused(&name, &error))?;
        if let Some(path) = path {
            refuse_folder(path)?;
        }
        same_file::check(
            &name,
            path.unwrap_or(Path::new(STDOUT_LINK)),
            &place,
            inputs,
        )?;
        let (file, unfinished) =
            open_place(&place).map_err(|error| match missing_folder(&place) {
                Some(folder) => OutputError::Refused {
                    reason: format!("there is no folder {}", folder.display()),
                    output: name.clone(),
                },
                None => refused(&name, &error),
            })?;
        if unfinished.is_none() {
            same_file::check_open(&name, &file, inputs)?;
        }
        Ok(Self {
            name,
            place,
            file,
            unfinished,
        })
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is standard output, by whatever name.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        self.place == Place::Stdout
    }

    /// Whether a terminal shows what is written.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.file.is_terminal()
    }

    /// Whether both are the same place, or the same file or pipe by two names.
    ///
    /// # Errors
    /// If the system does not say what stands there.
    pub fn is_the_same_as(&self, other: &Self) -> io::Result<bool> {
        if self.unfinished.is_some() && self.place == other.place {
            return Ok(true);
        }
        let (one, two) = (self.standing()?, other.standing()?);
        Ok(matches!((one, two), (Some(one), Some(two)) if same_file::is_same(&one, &two)))
    }

    /// Whether its place is the one of this path.
    ///
    /// # Errors
    /// If the system does not say what place that is.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.place == Place::of(path)?)
    }

    /// The file at the target: `None` if there is none, or a device, which all may write to.
    fn standing(&self) -> io::Result<Option<Metadata>> {
        let metadata = match (&self.place, &self.unfinished) {
            (Place::Named(path), Some(_)) => match fs::metadata(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                metadata => metadata?,
            },
            _ => self.file.metadata()?,
        };
        Ok(Some(metadata).filter(|found| !found.file_type().is_char_device()))
    }

    /// Writes a page and ends the output.
    pub fn write_whole(mut self, page: &str) -> Result<Complete, OutputError> {
        let failed = OutputError::failed(self.name.clone());
        let written = self.write_all(page.as_bytes());
        written.and_then(|()| self.complete()).map_err(failed)
    }

    /// Ends the output: all of a file has reached the disk, though not its place.
    pub fn complete(self) -> io::Result<Complete> {
        if self.unfinished.is_some() {
            self.file.sync_all()?;
        }
        Ok(Complete {
            name: self.name,
            unfinished: self.unfinished,
        })
    }
}

impl Complete {
    /// Puts a file in its place (W3: of several, once all of them are complete). When this returns, that lasts.
    ///
    /// # Errors
    /// If that fails; then what stood there before still does, unless the disk fails at the end.
    pub fn commit(self) -> Result<(), OutputError> {
        match self.unfinished {
            Some(unfinished) => unfinished.finish().map_err(OutputError::failed(self.name)),
            None => Ok(()),
        }
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

/// Opens what is open already, a device or a pipe as it is, and a new file for any other path.
fn open_place(place: &Place) -> io::Result<(File, Option<Unfinished>)> {
    let as_it_is = |file| Ok((file, None));
    match place {
        Place::Stdout => as_it_is(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Place::Stderr => as_it_is(io::stderr().as_fd().try_clone_to_owned()?.into()),
        Place::Descriptor(path) => as_it_is(OpenOptions::new().append(true).open(path)?),
        Place::Named(path) => open_named(path),
    }
}

fn open_named(path: &Path) -> io::Result<(File, Option<Unfinished>)> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(metadata) => {
            // A file that must not be written must not be replaced either.
            let file = OpenOptions::new().write(true).open(path)?;
            if !metadata.is_file() {
                return Ok((file, None));
            }
        }
    }
    let (unfinished, file) = Unfinished::create(path.to_owned())?;
    Ok((file, Some(unfinished)))
}

/// The folder of a place, if it is not there.
fn missing_folder(place: &Place) -> Option<&Path> {
    match place {
        Place::Named(path) => path.parent().filter(|folder| !folder.exists()),
        Place::Stdout | Place::Stderr | Place::Descriptor(_) => None,
    }
}

/// Refuses a name that promises compressed content.
pub(super) fn refuse_compressed(path: &Path) -> Result<(), OutputError> {
    let is_zip = |extension: &OsStr| extension.eq_ignore_ascii_case("zip");
    if Compression::of_name(path).is_none() && !path.extension().is_some_and(is_zip) {
        return Ok(());
    }
    let plain = path.with_extension("");
    Err(OutputError::Refused {
        output: path.display().to_string(),
        reason: format!(
            "outputs are not compressed: name it {}, or pipe standard output to a program such as \
             gzip",
            plain.display(),
        ),
    })
}

/// Refuses a name that only a folder can have, such as `new/`: a file `new` is not meant. What is
/// there already is refused by the operating system.
fn refuse_folder(path: &Path) -> Result<(), OutputError> {
    let name = path.as_os_str().as_encoded_bytes();
    if path.is_dir() || !(name.ends_with(b"/") || name.ends_with(b"/.")) {
        return Ok(());
    }
    Err(OutputError::Refused {
        output: path.display().to_string(),
        reason: "its name is that of a folder: name a file".to_owned(),
    })
}

fn refused(name: &str, error: &io::Error) -> OutputError {
    OutputError::Refused {
        output: name.to_owned(),
        reason: error.to_string(),
    }
}
