//! The format that paths suggest, for inputs without an explicit format.

use std::path::{Path, PathBuf};

use glob::Pattern;

use crate::decompress::Compression;
use crate::error::InputError;
use crate::files;
use crate::folders;
use crate::format::Format;
use crate::head;
use crate::paths::is_stdin;
use crate::separator::Separator;

/// The format that all these paths suggest: by their extensions, or because there is a folder among them. A folder is
/// one of texts unless it holds tables alone. `None` where none of the paths suggests any.
pub(crate) fn format(paths: &[PathBuf], skips_others: bool) -> Result<Option<Format>, InputError> {
    if !paths.is_empty() && paths.iter().all(|path| folders::is_saved_set(path)) {
        return Ok(Some(Format::Arrow));
    }
    if let Some(folder) = paths.iter().find(|path| !is_stdin(path) && path.is_dir()) {
        if let Some(format) = tables(paths) {
            return Ok(Some(format));
        }
        if !skips_others {
            refuse_data(paths, folder)?;
        }
        return Ok(Some(Format::Files));
    }
    let suggestions = || paths.iter().map(|path| (path, format_of_name(path)));
    let Some((path, suggested)) = suggestions().find_map(|(path, format)| Some((path, format?)))
    else {
        return Ok(None);
    };
    // Reading all of them as lines would fingerprint the JSON or the TSV.
    match suggestions().find(|(_, format)| *format != Some(suggested)) {
        None => Ok(Some(suggested)),
        Some((other, _)) => Err(InputError::MixedFormats {
            path: path.clone(),
            suggested,
            other: other.clone(),
        }),
    }
}

/// Files beside the tables of a set on a hub, or in the cache of the library `datasets`.
const DESCRIPTIONS: [&[u8]; 6] = [
    b"README.md",
    b"LICENSE",
    b"LICENSE.md",
    b"LICENSE.txt",
    b"dataset_info.json",
    b"dataset_infos.json",
];

/// The format of tables that all these files are of, and all files in these folders, by their names. Read as one
/// document each, tables would be no texts. In a folder, a name such as `_SUCCESS` is a mark of the program that wrote
/// it, and others only describe the tables.
fn tables(paths: &[PathBuf]) -> Option<Format> {
    let is_mark = |file: &Path| {
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        name.starts_with(b"_") || DESCRIPTIONS.contains(&name)
    };
    let mut found = None;
    for path in paths {
        if is_stdin(path) {
            return None;
        }
        // A folder that cannot be read is an error once the format is known, or counted.
        let files = files::candidates(std::slice::from_ref(path)).flatten();
        for file in files.filter(|file| file == path || !is_mark(file)) {
            let format = format_of_name(&file)?;
            if !format.is_table() || found.is_some_and(|before| before != format) {
                return None;
            }
            found = Some(format);
        }
    }
    found
}

/// `lines` for standard input. A file is no texts by its name alone, for it may be one, or something
/// else: it is looked at for what to suggest, and refused.
pub(crate) fn lines(paths: &[PathBuf]) -> Result<Format, InputError> {
    let Some(path) = paths.iter().find(|path| !is_stdin(path)) else {
        return Ok(Format::Lines);
    };
    Err(InputError::UnknownFormat {
        path: path.clone(),
        looks: head::looks_of_file(path)?,
    })
}

/// The format of a file of many documents, by its name.
pub(crate) fn of_many(path: &Path) -> Option<Format> {
    format_of_name(path).filter(|format| *format != Format::Files)
}

/// Refuses a file of many documents among those that would be one document each.
fn refuse_data(paths: &[PathBuf], folder: &Path) -> Result<(), InputError> {
    let Some((path, depth)) = files::first(paths, |path| of_many(path).is_some()) else {
        return Ok(());
    };
    let Some(suggested) = of_many(&path) else {
        return Ok(());
    };
    Err(match depth {
        0 => InputError::MixedFormats {
            path,
            suggested,
            other: folder.to_owned(),
        },
        _ => InputError::DataInFolder {
            pattern: pattern(&path, depth),
            path,
            suggested,
        },
    })
}

/// The pattern of all files with the extensions of `path`, below the folder `depth` steps above it.
fn pattern(path: &Path, depth: usize) -> String {
    let folder = path.ancestors().nth(depth).unwrap_or(path);
    let folder = Pattern::escape(&folder.display().to_string());
    let name = path.file_name().unwrap_or_default();
    let stem = if Compression::of_name(path).is_some() {
        Path::new(name).with_extension("")
    } else {
        PathBuf::from(name)
    };
    let stem = stem.file_stem().unwrap_or_default().to_string_lossy().len();
    let ending = &name.to_string_lossy()[stem..];
    let any = match depth {
        1 => format!("*{ending}"),
        _ => format!("**/*{ending}"),
    };
    Path::new(&folder).join(any).display().to_string()
}

/// The format that the extension of a name suggests.
#[must_use]
pub fn format_of_name(path: &Path) -> Option<Format> {
    Some(match plain_extension(path)?.as_str() {
        "jsonl" | "jl" | "jsonlines" | "ndjson" => Format::Jsonl,
        "tsv" => Format::Tsv,
        "csv" => Format::Csv,
        "parquet" => Format::Parquet,
        "arrow" | "arrows" | "feather" => Format::Arrow,
        "warc" | "wet" | "wat" | "arc" => Format::Warc,
        "html" | "htm" | "xhtml" => Format::Files,
        _ => return None,
    })
}

impl Separator {
    /// That of a file of CSV with this name, without an option: a tab for `.tsv`, compressed or not, else a comma.
    #[must_use]
    pub fn of_name(path: &Path) -> Self {
        if format_of_name(path) == Some(Format::Tsv) {
            Self::TAB
        } else {
            Self::COMMA
        }
    }
}

/// Whether the name of a file says that it is a page of HTML.
pub(crate) fn is_page(path: &Path) -> bool {
    format_of_name(path) == Some(Format::Files)
}

/// Whether the name of a page says that it is XHTML.
pub(crate) fn is_xhtml(path: &Path) -> bool {
    plain_extension(path).as_deref() == Some("xhtml")
}

/// The extension in lower case, that of what is compressed where a name says so.
fn plain_extension(path: &Path) -> Option<String> {
    let stem;
    let extension = match Compression::of_name(path) {
        Some(_) => {
            stem = path.with_extension("");
            stem.extension()?
        }
        None => path.extension()?,
    };
    Some(extension.to_str()?.to_ascii_lowercase())
}
