//! Where kept documents go: a file, or a folder of files that is put in its place whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use simshard_input::{Compression, Compressor, Format, Piece, format_of_name};

use super::names::{Recompress, names};
use crate::job::JobError;
use crate::output::{Complete, CompleteFolder, FolderFile, Output, OutputError, OutputFolder};

/// A place for what is kept.
pub(super) enum Target {
    /// One file, or standard output.
    File(String, Compressor<Output>),
    /// A folder, with a file for each source.
    Folder {
        folder: OutputFolder,
        /// The names of the files, by source.
        names: Vec<PathBuf>,
        /// The file of this source, which is being written.
        open: Option<(usize, Compressor<FolderFile>)>,
        /// The source whose file is to be made next.
        next: usize,
    },
}

/// All of it, on the disk but not in its place.
pub(super) enum Written {
    File(Complete),
    Folder(CompleteFolder),
}

impl Target {
    /// Opens the target; it is none of the inputs, in no folder that is read, and not the list of what is dropped.
    pub(super) fn open(
        path: &Path,
        inputs: &[PathBuf],
        given: &[PathBuf],
        format: Format,
        dropped: Option<&Output>,
        recompress: Option<Recompress>,
    ) -> Result<Self, JobError> {
        let all = [inputs, given].concat();
        let has_folder = given.iter().any(|path| path.is_dir());
        if inputs.len() > 1 || has_folder || is_folder(path) {
            let names = names(inputs, given, recompress).map_err(JobError::Target)?;
            check_folder(path, inputs.len())?;
            names.iter().try_for_each(|name| check_compression(name))?;
            let folder = OutputFolder::open(path, &all)?;
            let failed = OutputError::failed(folder.name().to_owned());
            let is_same = dropped.map_or(Ok(false), |dropped| dropped.is_at(path));
            refuse_same(is_same.map_err(failed)?)?;
            return Ok(Self::Folder {
                folder,
                names,
                open: None,
                next: 0,
            });
        }
        if recompress.is_some() {
            return Err(JobError::Target(format!(
                "--recompress is for a folder, and {} is a file, whose own name says how it is compressed",
                path.display()
            )));
        }
        check_format(path, inputs, format)?;
        check_compression(path)?;
        let output = Output::open_compressed(Some(path), &all)?;
        let name = output.name().to_owned();
        if let Some(dropped) = dropped {
            let is_same = dropped.is_the_same_as(&output);
            let are_stdout = dropped.is_stdout() && output.is_stdout();
            let is_same = is_same.map_err(OutputError::failed(name.clone()))?;
            refuse_same(are_stdout || is_same)?;
        }
        let compressor = Compressor::new(Compression::of_name(path), output);
        let compressor = compressor.map_err(OutputError::failed(name.clone()))?;
        Ok(Self::File(name, compressor))
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::File(name, _) => name,
            Self::Folder { folder, .. } => folder.name(),
        }
    }

    /// Writes something of a source; sources come in their order.
    pub(super) fn write(&mut self, source: usize, piece: &Piece) -> Result<(), OutputError> {
        match self {
            Self::File(name, file) => write(file, piece).map_err(OutputError::failed(name.clone())),
            Self::Folder { .. } => {
                self.open_file(source)?;
                let failed = OutputError::failed(self.name().to_owned());
                match self {
                    Self::Folder {
                        open: Some((_, file)),
                        ..
                    } => write(file, piece).map_err(failed),
                    Self::Folder { open: None, .. } | Self::File(..) => Ok(()),
                }
            }
        }
    }

    /// Makes the files up to that of a source. A source without anything kept has a file too.
    fn open_file(&mut self, source: usize) -> Result<(), OutputError> {
        let failed = OutputError::failed(self.name().to_owned());
        let Self::Folder {
            folder,
            names,
            open,
            next,
        } = self
        else {
            return Ok(());
        };
        while *next <= source && *next < names.len() {
            if let Some((_, file)) = open.take() {
                file.finish()
                    .and_then(FolderFile::complete)
                    .map_err(&failed)?;
            }
            let name = &names[*next];
            let file = folder.create(name).map_err(&failed)?;
            let file = Compressor::new(Compression::of_name(name), file).map_err(&failed)?;
            *open = Some((*next, file));
            *next += 1;
        }
        Ok(())
    }

    /// Ends all files.
    pub(super) fn complete(mut self) -> Result<Written, OutputError> {
        self.open_file(usize::MAX)?;
        match self {
            Self::File(name, file) => {
                let complete = file.finish().and_then(Output::complete);
                let complete = complete.map_err(OutputError::failed(name))?;
                Ok(Written::File(complete))
            }
            Self::Folder { folder, open, .. } => {
                let failed = OutputError::failed(folder.name().to_owned());
                if let Some((_, file)) = open {
                    file.finish()
                        .and_then(FolderFile::complete)
                        .map_err(&failed)?;
                }
                folder.complete().map(Written::Folder).map_err(&failed)
            }
        }
    }
}

impl Written {
    /// Puts it in its place.
    pub(super) fn commit(self) -> Result<(), OutputError> {
        match self {
            Self::File(complete) => complete.commit(),
            Self::Folder(complete) => complete.commit(),
        }
    }
}

fn write<W: Write>(file: &mut Compressor<W>, piece: &Piece) -> io::Result<()> {
    file.write_all(&piece.bytes)?;
    if piece.ends_member {
        file.end_member()?;
    }
    Ok(())
}

/// Refuses one place for the list and what is kept.
fn refuse_same(is_same: bool) -> Result<(), JobError> {
    if !is_same {
        return Ok(());
    }
    Err(JobError::Target(
        "--dropped and --output name the same file: choose another for one".to_owned(),
    ))
}

/// Refuses a name that says another format, unless that of the input says it too, as `.tsv` does of some CSV.
fn check_format(path: &Path, inputs: &[PathBuf], format: Format) -> Result<(), JobError> {
    let said = |path: &Path| format_of_name(path).filter(|other| *other != format);
    let Some(other) = said(path) else {
        return Ok(());
    };
    if inputs.iter().any(|input| said(input) == Some(other)) {
        return Ok(());
    }
    let mut remedy = "choose another name".to_owned();
    if format == Format::Lines {
        remedy += &format!(", or give --format {other} if the input is that");
    }
    Err(JobError::Target(format!(
        "the output is {format} as the input is, and {} looks like {other}: {remedy}",
        path.display()
    )))
}

/// Refuses a name that says a compression that is only read.
fn check_compression(name: &Path) -> Result<(), JobError> {
    match Compression::of_name(name).filter(|compression| !compression.is_written()) {
        None => Ok(()),
        Some(compression) => Err(JobError::Target(format!(
            "{compression} is read, not written, and {} would be {compression}: name a file in .gz or .zst \
             as the output, or for a folder add --recompress gz or --recompress zst",
            name.display()
        ))),
    }
}

/// Refuses a file where a folder is needed, and what looks like the name of one.
fn check_folder(path: &Path, inputs: usize) -> Result<(), JobError> {
    let is_named = is_folder(path) || format_of_name(path).is_none();
    if is_named && !path.is_file() && path.as_os_str() != "-" {
        return Ok(());
    }
    let inputs = match inputs {
        1 => "the files of a folder".to_owned(),
        several => format!("{several} inputs"),
    };
    Err(JobError::Target(format!(
        "{inputs} need a folder to go to, and {} is none by its name or as it is: name a new folder with \
         --output, such as clean/",
        path.display()
    )))
}

/// Whether a path is meant to be a folder.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}
