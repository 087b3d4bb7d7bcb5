//! The places that documents come from, and how each is read twice.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "parquet")]
use crate::decompress::Decompressed;
use crate::error::InputError;
use crate::format::Format;
use crate::paths::is_stdin;

const STDIN: &str = "<stdin>";

/// One file, pipe or stream.
pub(crate) struct Source {
    /// For messages and ids: the path as given, or `<stdin>`.
    pub(crate) name: String,
    /// The format that it is read as, where the caller did not say it: content that looks like another is
    /// refused.
    pub(crate) taken_for: Option<Format>,
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
    /// The unnamed copy of what could be read once. Its handles share their position, and are read
    /// one after the other.
    Copy(File),
}

/// The sources at `paths`, in order, each known to exist and to be no folder.
pub(crate) fn collect(
    paths: &[PathBuf],
    format: Format,
    is_given: bool,
    row_ids: bool,
    stdin: Box<dyn Read + Send>,
) -> Result<Vec<Source>, InputError> {
    let mut sources = named(paths, format, row_ids, stdin)?;
    for source in &mut sources {
        source.taken_for = (!is_given).then_some(format);
    }
    Ok(sources)
}

fn named(
    paths: &[PathBuf],
    format: Format,
    row_ids: bool,
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
        if (format.has_line_ids() || row_ids) && paths.len() > 1 && path.to_str().is_none() {
            return Err(InputError::PathIsNoId { path: path.clone() });
        }
        sources.push(Source::at(path, format)?);
    }
    Ok(sources)
}

impl Source {
    pub(crate) fn stdin(stream: Box<dyn Read + Send>) -> Self {
        Self {
            name: STDIN.to_owned(),
            taken_for: None,
            origin: Origin::Stream(stream),
        }
    }

    fn at(path: &Path, format: Format) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let metadata = fs::metadata(path).map_err(InputError::unreadable(&name))?;
        if metadata.is_dir() {
            let path = path.to_owned();
            return Err(InputError::Folder { path, format });
        }
        let origin = if metadata.is_file() {
            Origin::File(path.to_owned())
        } else {
            Origin::Pipe(path.to_owned())
        };
        Ok(Self {
            name,
            taken_for: None,
            origin,
        })
    }

    /// The path of a regular file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File(path) => Some(path),
            Origin::Pipe(_) | Origin::Stream(_) | Origin::Copy(_) => None,
        }
    }

    /// Opens the source for the only or the last time.
    pub(crate) fn open(self) -> Result<Box<dyn Read + Send>, InputError> {
        let opened = match self.origin {
            Origin::File(path) | Origin::Pipe(path) => File::open(path),
            Origin::Stream(stream) => return Ok(stream),
            Origin::Copy(mut file) => file.rewind().map(|()| file),
        };
        Ok(Box::new(opened.map_err(InputError::unreadable(self.name))?))
    }

    /// Opens the source as a file that can be read in any order, copied to an unnamed temporary file
    /// where it is none, or compressed.
    #[cfg(feature = "parquet")]
    pub(crate) fn open_file(self) -> Result<File, InputError> {
        let name = Path::new(&self.name);
        let opened = match self.origin {
            Origin::File(path) => File::open(path).and_then(|file| uncompressed(name, file)),
            Origin::Copy(file) => uncompressed(name, file),
            Origin::Pipe(path) => File::open(path).and_then(|pipe| copy(name, Box::new(pipe))),
            Origin::Stream(stream) => copy(name, stream),
        };
        opened.map_err(InputError::unreadable(&self.name))
    }

    /// The source as one that is copied no more, however often it is opened as a file.
    #[cfg(feature = "parquet")]
    pub(crate) fn seekable(self) -> Result<Self, InputError> {
        match self.origin {
            Origin::File(_) | Origin::Copy(_) => Ok(self),
            Origin::Pipe(_) | Origin::Stream(_) => Ok(Self {
                name: self.name.clone(),
                taken_for: self.taken_for,
                origin: Origin::Copy(self.open_file()?),
            }),
        }
    }

    /// The source twice, to be read one after the other. What can be read only once is copied to an unnamed temporary
    /// file as the first reader reads it. If that one does not read to the end, the copy ends where it did.
    pub(crate) fn twice(self) -> Result<(Self, Self), InputError> {
        let name = self.name.clone();
        let taken_for = self.taken_for;
        let (first, second) = match self.origin {
            Origin::File(path) => (Origin::File(path.clone()), Origin::File(path)),
            Origin::Copy(file) => {
                let copy = file.try_clone();
                let copy = copy.map_err(InputError::unreadable(&name))?;
                (Origin::Copy(copy), Origin::Copy(file))
            }
            Origin::Pipe(_) | Origin::Stream(_) => {
                let from = self.open()?;
                let (tee, copy) = Tee::new(from).map_err(InputError::unreadable(&name))?;
                (Origin::Stream(Box::new(tee)), Origin::Copy(copy))
            }
        };
        let named = |origin| Self {
            name: name.clone(),
            taken_for,
            origin,
        };
        Ok((named(first), named(second)))
    }
}

/// A file, or the copy of what it holds where that is compressed.
#[cfg(feature = "parquet")]
fn uncompressed(name: &Path, mut file: File) -> io::Result<File> {
    file.rewind()?;
    let reader = Decompressed::new(name, Box::new(file.try_clone()?))?;
    if reader.is_compressed() {
        return keep(reader);
    }
    Ok(file)
}

/// A copy of a stream, decompressed.
#[cfg(feature = "parquet")]
fn copy(name: &Path, stream: Box<dyn Read + Send>) -> io::Result<File> {
    keep(Decompressed::new(name, stream)?)
}

#[cfg(feature = "parquet")]
fn keep(reader: Decompressed) -> io::Result<File> {
    let (mut tee, copy) = Tee::new(reader.into_reader())?;
    io::copy(&mut tee, &mut io::sink())?;
    Ok(copy)
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
    let problem = "cannot copy it to a temporary file (TMPDIR says where)";
    io::Error::new(error.kind(), format!("{problem}: {error}"))
}
