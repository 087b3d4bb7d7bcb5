//! The names of output files in a folder: those of the inputs, below a folder that all of them are in.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use simshard_input::Compression;

/// A compression for files whose own is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Recompress {
    /// gzip: `a.jsonl.bz2` becomes `a.jsonl.gz`
    Gz,
    /// Zstandard: `a.jsonl.bz2` becomes `a.jsonl.zst`
    Zst,
}

impl Recompress {
    /// The name with its own extension, where that of a file is of a compression that is only read.
    fn name(self, name: PathBuf) -> PathBuf {
        let is_read_only = Compression::of_name(&name).is_some_and(|found| !found.is_written());
        match self {
            Self::Gz if is_read_only => name.with_extension("gz"),
            Self::Zst if is_read_only => name.with_extension("zst"),
            Self::Gz | Self::Zst => name,
        }
    }
}

/// The names of the inputs below the innermost folder that all of them are in, and the folders that were `given`.
pub(super) fn names(
    inputs: &[PathBuf],
    given: &[PathBuf],
    recompress: Option<Recompress>,
) -> Result<Vec<PathBuf>, String> {
    if inputs.is_empty() {
        return Err("standard input needs a file to go to, not a folder".to_owned());
    }
    let files = inputs.iter().map(|input| place(input));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let folders = given.iter().filter(|path| path.is_dir());
    let folders = folders.filter_map(|folder| fs::canonicalize(folder).ok());
    let above = files.iter().filter_map(|file| file.parent());
    let above: Vec<PathBuf> = above.map(Path::to_owned).chain(folders).collect();
    let common = common(&above);
    let (mut places, mut names) = (HashSet::new(), Vec::new());
    let mut taken = HashSet::new();
    for (file, input) in files.iter().zip(inputs) {
        if !places.insert(file) {
            return Err(format!("{} is named more than once", input.display()));
        }
        let name = file.strip_prefix(&common).unwrap_or(file).to_owned();
        let name = recompress.map_or(name.clone(), |compression| compression.name(name));
        if !taken.insert(name.clone()) {
            return Err(format!(
                "{} and another input would both be {}: choose another --recompress",
                input.display(),
                name.display()
            ));
        }
        names.push(name);
    }
    Ok(names)
}

/// Where a file is. The name is its own, though it may be a link: the folder is what tells inputs apart.
fn place(input: &Path) -> Result<PathBuf, String> {
    let named = || {
        fs::canonicalize(input).ok().filter(|real| real.is_file())?;
        let folder = input
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(input.file_name()?))
    };
    named().ok_or_else(|| {
        format!(
            "{} has no name for a file in a folder: name a file as the output, or files as inputs",
            input.display()
        )
    })
}

/// The innermost folder that is above all of these, or one of them.
fn common(folders: &[PathBuf]) -> PathBuf {
    let mut common = folders.first().map(PathBuf::as_path);
    while let Some(folder) = common
        && !folders.iter().all(|path| path.starts_with(folder))
    {
        common = folder.parent();
    }
    common.map(Path::to_owned).unwrap_or_default()
}
