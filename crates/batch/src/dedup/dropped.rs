//! The list of what was dropped, as TSV: ids come from outside, and may hold tabs and line breaks.

use std::borrow::Cow;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use simshard_input::Places;

use super::choice::{Cause, Choice};
use super::known::Known;
use crate::documents::DocumentSet;
use crate::job::JobError;
use crate::output::{Complete, Output, OutputError};

/// Bytes gathered of the list before they are written.
const PIECE_BYTES: usize = 256 << 10;

/// What was dropped, and why.
pub(super) struct Dropped<'a> {
    pub(super) documents: &'a DocumentSet,
    pub(super) choice: &'a Choice,
    pub(super) known: &'a [Known],
    /// What tells equal ids in a file apart.
    pub(super) places: Places<'a>,
    /// Where there are several files, what tells equal ids in them apart.
    pub(super) files: Option<Files<'a>>,
}

/// The files that documents came from.
pub(super) struct Files<'a> {
    pub(super) paths: &'a [PathBuf],
    /// By file, how many documents came up to its end.
    pub(super) ends: &'a [usize],
}

impl Files<'_> {
    /// The name of the file with a document, as it stands in a column.
    fn name(&self, document: usize) -> String {
        let file = self.ends.partition_point(|&end| end <= document);
        let path = self.paths.get(file);
        path.map_or(String::new(), |path| escaped_path(path))
    }
}

impl Dropped<'_> {
    /// Writes what each document is called, why it was dropped, and how far apart the two are. With several files,
    /// two more columns name the files of both. The last two say where both stand in their files.
    pub(super) fn write(&self, mut output: Output) -> Result<Complete, JobError> {
        let failed = OutputError::failed(output.name().to_owned());
        let written = self.write_to(&mut output);
        let written = written.and_then(|()| output.complete());
        Ok(written.map_err(failed)?)
    }

    fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let id = |document| self.documents.id_of(document).unwrap_or_default();
        let mut text = b"id\tkept\tdistance".to_vec();
        if self.files.is_some() {
            text.extend_from_slice(b"\tfile\tkept_file");
        }
        text.extend_from_slice(b"\tnumber\tkept_number\n");
        for (document, cause, distance) in self.choice.dropped() {
            let (kept, kept_document) = match cause {
                Cause::Kept(kept) => (id(kept), Some(kept)),
                Cause::Known(number) => (Cow::Borrowed(self.known[number].id.as_str()), None),
            };
            let id = id(document);
            write!(text, "{}\t{}\t{distance}", escaped(&id), escaped(&kept))?;
            if let Some(files) = &self.files {
                let kept = kept_document.map(|kept| files.name(kept));
                let (file, kept) = (files.name(document), kept.unwrap_or_default());
                write!(text, "\t{file}\t{kept}")?;
            }
            write!(text, "\t{}\t", self.places.unit(document))?;
            if let Some(kept) = kept_document {
                write!(text, "{}", self.places.unit(kept))?;
            }
            text.push(b'\n');
            if text.len() >= PIECE_BYTES {
                output.write_all(&text)?;
                text.clear();
            }
        }
        output.write_all(&text)
    }
}

/// A path as it stands in a column: bytes that are not UTF-8 by their numbers.
fn escaped_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text += &escaped(chunk.valid());
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02X}");
        }
    }
    text
}

/// A value as it stands in a column: with a backslash before what would end it, and before a backslash.
fn escaped(value: &str) -> Cow<'_, str> {
    let special = ['\\', '\t', '\n', '\r', '\0'];
    if !value.contains(special) {
        return Cow::Borrowed(value);
    }
    let mut escaped = String::with_capacity(value.len() + 2);
    for character in value.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\0' => escaped.push_str("\\0"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_so_that_no_two_look_alike() {
        for (value, shown) in [
            ("a b", "a b"),
            ("a\tb\nc\rd\0", "a\\tb\\nc\\rd\\0"),
            ("a\\tb", "a\\\\tb"),
        ] {
            assert_eq!(escaped(value), shown);
        }
    }
}
