//! Folders as the files of one format in them, and files of other formats that are left out.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::error::InputError;
use crate::format::Format;
use crate::head;
use crate::kinds::Kinds;
use crate::passed::Passed;
use crate::paths::is_stdin;
use crate::problem::excerpt;
use crate::suggested::format_of_name;

/// The files that are read, and those that are not.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) paths: Vec<PathBuf>,
    /// By what they are.
    pub(crate) left_out: Kinds,
    /// Whether some of them would be read if they were named.
    passed_over: bool,
}

/// The files of a format among some paths. In folders these are those of its names; files that are named must be of it,
/// unless the others are skipped.
pub(crate) fn files_of(
    format: Format,
    paths: Vec<PathBuf>,
    skips_others: bool,
) -> Result<Chosen, InputError> {
    let mut chosen = Chosen::default();
    if format == Format::Files || paths.is_empty() {
        chosen.paths = paths;
        return Ok(chosen);
    }
    for path in paths {
        if format.has_names() && !is_stdin(&path) && path.is_dir() {
            let listed = if format == Format::Arrow {
                listed(&path)?
            } else {
                None
            };
            match listed {
                Some(files) => chosen.paths.extend(files),
                None => chosen.add_folder(format, &path)?,
            }
        } else if skips_others
            && !is_stdin(&path)
            && let Some(other) = other(format, &path)?
        {
            tracing::warn!(?path, "skipped: looks like {other}");
            chosen.left_out.add(&other, 1);
        } else {
            chosen.paths.push(path);
        }
    }
    if chosen.paths.is_empty() {
        return Err(InputError::NoneOfFormat {
            format,
            left_out: chosen.left_out,
            passed_over: chosen.passed_over,
        });
    }
    Ok(chosen)
}

impl Chosen {
    /// Takes the files of a folder. What is in an unreadable folder below it is not known, and so an error.
    fn add_folder(&mut self, format: Format, folder: &Path) -> Result<(), InputError> {
        let mut paths = Vec::new();
        let passed = Passed::over(&[folder.to_owned()], |path| paths.push(path));
        let paths: Result<Vec<_>, _> = paths.into_iter().collect();
        for path in paths.map_err(InputError::unreadable(folder.display()))? {
            match format_of_name(&path) {
                Some(found) if found == format => self.paths.push(path),
                Some(found) => self.left_out.add(&found.to_string(), 1),
                None => self.left_out.add(&extension(&path), 1),
            }
        }
        for (what, count) in passed.counts() {
            self.left_out.add(what, count);
            self.passed_over = true;
        }
        Ok(())
    }
}

/// The ending of a name, for people.
pub(crate) fn extension(path: &Path) -> String {
    match path.extension() {
        Some(extension) => format!(".{}", extension.to_string_lossy().to_ascii_lowercase()),
        None => "without extension".to_owned(),
    }
}

/// What a file is instead of one of a format, by its name or its beginning; `None` if it may be of it.
fn other(format: Format, path: &Path) -> Result<Option<String>, InputError> {
    if let Some(found) = format_of_name(path).filter(|found| *found != format) {
        return Ok(Some(found.to_string()));
    }
    let looks = head::looks_of_file(path)?;
    let looks = looks.filter(|looks| looks.format() != Some(format));
    Ok(looks.map(|looks| looks.to_string()))
}

/// What the library `datasets` writes beside the files of a set.
#[derive(Deserialize)]
struct State {
    #[serde(rename = "_data_files")]
    data_files: Vec<DataFile>,
}

#[derive(Deserialize)]
struct DataFile {
    filename: String,
}

/// The splits of several sets.
#[derive(Deserialize)]
struct Splits {
    splits: Vec<String>,
}

/// Whether a folder holds a set that the library `datasets` saved.
pub(crate) fn is_saved_set(folder: &Path) -> bool {
    let has = |name| folder.join(name).is_file();
    has(SPLITS) || has(STATE) && has(INFO)
}

const STATE: &str = "state.json";
const INFO: &str = "dataset_info.json";
const SPLITS: &str = "dataset_dict.json";

/// The files of Arrow that a saved set lists, in its order: other files beside them, such as what was cached, are not of
/// it. `None` if the folder holds no such set.
fn listed(folder: &Path) -> Result<Option<Vec<PathBuf>>, InputError> {
    let list = folder.join(SPLITS);
    if !list.is_file() {
        return files_of_state(folder);
    }
    let Splits { splits } = json(&list)?;
    let mut files = Vec::new();
    for split in splits {
        check_name(&split, &list)?;
        let Some(of_split) = files_of_state(&folder.join(&split))? else {
            let reason = format!("{} is not there", Path::new(&split).join(STATE).display());
            return Err(bad_state(&list, reason));
        };
        files.extend(of_split);
    }
    Ok(Some(files))
}

/// The files that the list in a folder names; `None` if there is no list.
fn files_of_state(folder: &Path) -> Result<Option<Vec<PathBuf>>, InputError> {
    let list = folder.join(STATE);
    if !list.is_file() {
        return Ok(None);
    }
    let State { data_files } = json(&list)?;
    let mut files = Vec::new();
    for DataFile { filename } in data_files {
        check_name(&filename, &list)?;
        files.push(folder.join(filename));
    }
    Ok(Some(files))
}

/// Refuses a name that leads elsewhere than into the folder of its list.
fn check_name(name: &str, list: &Path) -> Result<(), InputError> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(()),
        _ => {
            let reason = format!("\"{}\" is no name of what is in its folder", excerpt(name));
            Err(bad_state(list, reason))
        }
    }
}

fn bad_state(list: &Path, reason: String) -> InputError {
    InputError::BadState {
        file: list.to_owned(),
        reason,
    }
}

fn json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, InputError> {
    let bytes = fs::read(path).map_err(InputError::unreadable(path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| bad_state(path, error.to_string()))
}
