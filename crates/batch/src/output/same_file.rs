//! Whether an output is one of the inputs, by whatever name.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::place::Place;

/// Refuses an output that is an input already, or lies in a folder that is one, whether it is there
/// already or not. The walk through a folder may read what appears in it meanwhile.
pub(super) fn check(
    name: &str,
    output: &Path,
    place: &Place,
    inputs: &[PathBuf],
) -> Result<(), OutputError> {
    if let Ok(metadata) = fs::metadata(output) {
        refuse_same(name, &metadata, inputs)?;
        if !metadata.is_file() {
            return Ok(());
        }
    }
    let Some(real) = real_path(output, place) else {
        return Ok(());
    };
    let within = |input: &&PathBuf| {
        input.is_dir() && fs::canonicalize(input).is_ok_and(|folder| real.starts_with(folder))
    };
    match inputs.iter().find(within) {
        Some(folder) => Err(OutputError::InInput {
            output: name.to_owned(),
            folder: folder.clone(),
        }),
        None => Ok(()),
    }
}

/// Where an output lies, by a path without links.
fn real_path(output: &Path, place: &Place) -> Option<PathBuf> {
    match place {
        Place::Named(path) => Some(path.clone()),
        Place::Stdout | Place::Stderr | Place::Descriptor(_) => fs::canonicalize(output).ok(),
    }
}

/// Refuses an open output that is an input.
pub(super) fn check_open(name: &str, output: &File, inputs: &[PathBuf]) -> Result<(), OutputError> {
    match output.metadata() {
        Ok(metadata) => refuse_same(name, &metadata, inputs),
        Err(_) => Ok(()),
    }
}

/// Whether both are of one file.
pub(super) fn is_same(one: &Metadata, two: &Metadata) -> bool {
    (one.dev(), one.ino()) == (two.dev(), two.ino())
}

fn refuse_same(name: &str, output: &Metadata, inputs: &[PathBuf]) -> Result<(), OutputError> {
    if !output.is_file() {
        return Ok(());
    }
    let is_output = |input: Metadata| is_same(&input, output);
    let same = |input: String| {
        Err(OutputError::IsInput {
            output: name.to_owned(),
            input,
        })
    };
    for path in inputs {
        if fs::metadata(path).is_ok_and(is_output) {
            return same(path.display().to_string());
        }
    }
    let reads_stdin = inputs.is_empty() || inputs.iter().any(|path| path.as_os_str() == "-");
    if reads_stdin && stdin_metadata().is_ok_and(is_output) {
        return same("<stdin>".to_owned());
    }
    Ok(())
}

fn stdin_metadata() -> io::Result<Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
}
