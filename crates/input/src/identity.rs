//! The identity of an input, without reading it: its paths, the arguments that say how it is
//! read, and the sizes and modification times of its files.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::InputError;
use crate::files;
use crate::format::Format;
use crate::needs::Needs;
use crate::notation::Notation;
use crate::options::{InputOptions, Resolved};

/// The identity of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputIdentity {
    /// The paths and patterns as they were given.
    paths: Vec<String>,
    /// The format, whether it was given or suggested by the paths.
    format: String,
    id_field: Option<String>,
    #[serde(default)]
    row_ids: bool,
    text_field: Option<String>,
    #[serde(default)]
    more_text_fields: Vec<String>,
    #[serde(default)]
    signed: bool,
    fingerprint_field: Option<String>,
    #[serde(default)]
    separator: Option<String>,
    features_field: Option<String>,
    html: Option<String>,
    skip_bad_lines: bool,
    #[serde(default)]
    skip_formats: bool,
    file_count: u64,
    byte_count: u64,
    /// Of the path, size and modification time of every file, in the order in which they are read.
    files: Digest,
}

impl InputIdentity {
    /// That of the input that `options` name.
    ///
    /// # Errors
    /// If some of it can be read only once, or there is no such input.
    pub fn of(options: &InputOptions, needs: Needs) -> Result<Self, InputError> {
        let Resolved { paths, format, .. } = options.resolve(needs.preferred_format)?;
        let mut identity = Self {
            paths: options.names(),
            format: format.to_string(),
            id_field: options.id_field.clone(),
            row_ids: options.row_ids,
            text_field: options.text_fields.first().cloned(),
            more_text_fields: options.text_fields.iter().skip(1).cloned().collect(),
            signed: options.notation == Notation::Signed,
            fingerprint_field: options.fingerprint_field.clone(),
            separator: options.separator.map(|separator| separator.to_string()),
            features_field: options.features_field.clone(),
            html: options.html.map(|html| format!("{html:?}").to_lowercase()),
            skip_bad_lines: options.skip_bad_lines,
            skip_formats: options.skip_formats,
            file_count: 0,
            byte_count: 0,
            files: Digest::default(),
        };
        if options.reads_stdin() {
            return Err(read_once(Path::new("standard input")));
        }
        let files = if format == Format::Files {
            // What cannot be read is left out when the documents are read, too.
            files::candidates(&paths).flatten().collect()
        } else {
            paths
        };
        for path in &files {
            identity.add(path)?;
        }
        Ok(identity)
    }

    /// In what this differs from the identity `before` it, for people.
    #[must_use]
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let facts = before.facts().into_iter().zip(self.facts());
        let mut differences: Vec<String> = facts
            .filter(|(then, now)| then != now)
            .map(|((what, then), (_, now))| format!("{what} {then} then, {now} now"))
            .collect();
        if differences.is_empty() && self.files != before.files {
            differences.push("a file was modified, renamed or replaced".to_owned());
        }
        differences
    }

    fn add(&mut self, path: &Path) -> Result<(), InputError> {
        let metadata = fs::metadata(path).map_err(InputError::unreadable(path.display()))?;
        // Folders are refused with a better reason where the format has none.
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(read_once(path));
        }
        self.file_count += 1;
        self.byte_count += metadata.len();
        self.files.add(path.as_os_str().as_bytes());
        self.files.add(&metadata.len().to_le_bytes());
        self.files.add(&metadata.mtime().to_le_bytes());
        self.files.add(&metadata.mtime_nsec().to_le_bytes());
        Ok(())
    }

    fn facts(&self) -> [(&'static str, String); 14] {
        let text_fields = || {
            let all = self.text_field.iter().chain(&self.more_text_fields);
            all.map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let field = |field: &Option<String>| field.as_deref().unwrap_or("not given").to_owned();
        [
            ("input", self.paths.join(" ")),
            ("--format", self.format.clone()),
            ("--id-field", field(&self.id_field)),
            ("--id row", self.row_ids.to_string()),
            (
                "--text-field",
                field(&self.text_field.is_some().then(text_fields)),
            ),
            ("--signed", self.signed.to_string()),
            ("--fingerprint-field", field(&self.fingerprint_field)),
            ("--separator", field(&self.separator)),
            ("--features-field", field(&self.features_field)),
            ("--html", field(&self.html)),
            ("--skip-bad-lines", self.skip_bad_lines.to_string()),
            ("--skip-formats", self.skip_formats.to_string()),
            ("files", self.file_count.to_string()),
            ("bytes", self.byte_count.to_string()),
        ]
    }
}

fn read_once(path: &Path) -> InputError {
    InputError::ReadOnce {
        path: PathBuf::from(path),
    }
}
