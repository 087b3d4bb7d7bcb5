//! The places that lines come from, and how each is read twice.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::args::is_stdin;
use super::{Format, InputError};

const STDIN: &str = "<stdin>";

/// One file, pipe or stream of lines.
pub(super) struct Source {
    /// For messages and ids: the path as given, or `<stdin>`.
    pub(super) name: String,
    origin: Origin,
}

enum Origin {
    /// A regular file: opened afresh for each pass.
    File(PathBuf),
    /// A path that can be read once, such as a named pipe. Opened only when its turn comes, since
    /// opening a pipe waits for its writer.
    Pipe(PathBuf),
    /// Standard input.
    Stream(Box<dyn Read + Send>),
    /// The unnamed copy of what could be read once.
    Copy(File),
}

/// The sources at `paths`, in order, each known to exist and to be no folder.
pub(super) fn collect(
    paths: &[PathBuf],
    format: Format,
    stdin: Box<dyn Read + Send>,
) -> Result<Vec<Source>, InputError> {
    if paths.is_empty() {
        return Ok(vec![Source::stdin(stdin)]);
    }
    let mut stdin = Some(stdin);
    let mut sources = Vec::new();
    for path in paths {
        if is_stdin(path) {
            let stream = stdin.take().ok_or(InputError::StdinTwice)?;
            sources.push(Source::stdin(stream));
            continue;
        }
        let numbered = matches!(format, Format::Lines | Format::Hashes);
        if numbered && paths.len() > 1 && path.to_str().is_none() {
            return Err(InputError::PathIsNoId { path: path.clone() });
        }
        sources.push(Source::at(path, format)?);
    }
    Ok(sources)
}

impl Source {
    pub(super) fn stdin(stream: Box<dyn Read + Send>) -> Self {
        Self {
            name: STDIN.to_owned(),
            origin: Origin::Stream(stream),
        }
    }

    fn at(path: &Path, format: Format) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let metadata = fs::metadata(path).map_err(|error| unreadable(&name, error))?;
        if metadata.is_dir() {
            let path = path.to_owned();
            return Err(InputError::Folder { path, format });
        }
        let origin = if metadata.is_file() {
            Origin::File(path.to_owned())
        } else {
            Origin::Pipe(path.to_owned())
        };
        Ok(Self { name, origin })
    }

    /// Opens the source for the only or the last time.
    pub(super) fn open(self) -> Result<Box<dyn Read + Send>, InputError> {
        let opened = match self.origin {
            Origin::File(path) | Origin::Pipe(path) => File::open(path),
            Origin::Stream(stream) => return Ok(stream),
            Origin::Copy(mut file) => file.rewind().map(|()| file),
        };
        match opened {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(unreadable(&self.name, error)),
        }
    }

    /// The source twice, to be read one after the other. What can be read only once is copied to
    /// an unnamed temporary file as the first is read, so one that is not read to its end copies
    /// no further.
    pub(super) fn twice(self) -> Result<(Self, Self), InputError> {
        let name = self.name.clone();
        let (first, second) = match self.origin {
            Origin::File(path) => (Origin::File(path.clone()), Origin::File(path)),
            Origin::Pipe(_) | Origin::Stream(_) | Origin::Copy(_) => {
                let from = self.open()?;
                let (tee, copy) = Tee::new(from).map_err(|error| unreadable(&name, error))?;
                (Origin::Stream(Box::new(tee)), Origin::Copy(copy))
            }
        };
        let named = |origin| Self {
            name: name.clone(),
            origin,
        };
        Ok((named(first), named(second)))
    }
}

fn unreadable(name: &str, error: io::Error) -> InputError {
    InputError::Unreadable {
        file: name.to_owned(),
        error,
    }
}

/// A reader that keeps a copy of all it reads.
struct Tee {
    from: Box<dyn Read + Send>,
    copy: File,
}

impl Tee {
    fn new(from: Box<dyn Read + Send>) -> io::Result<(Self, File)> {
        let kept = tempfile::tempfile().map_err(|error| cannot_copy(&error))?;
        let copy = kept.try_clone().map_err(|error| cannot_copy(&error))?;
        Ok((Self { from, copy }, kept))
    }
}

impl Read for Tee {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.copy
            .write_all(&buffer[..read])
            .map_err(|error| cannot_copy(&error))?;
        Ok(read)
    }
}

fn cannot_copy(error: &io::Error) -> io::Error {
    let advice = "cannot copy it to a temporary file (--skip-bad-lines needs no copy)";
    io::Error::new(error.kind(), format!("{advice}: {error}"))
}
