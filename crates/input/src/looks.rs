//! What content looks like by its first bytes, for input whose format was not said.
//!
//! Read as something else, a file of JSON would be a text a line, braces and all. So content that looks
//! like another format than its name says is refused, and the error says what to give.

use std::fmt;

use crate::byte_order_mark::without_byte_order_mark;
use crate::error::InputError;
use crate::format::Format;
use crate::html;
use crate::parse::is_tsv;
use crate::utf16::{UTF_16_REMEDY, is_utf16};

/// Most bytes that are looked at.
pub(crate) const LOOKED_AT: usize = 4096;

/// What content looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of formats")]
pub enum Looks {
    /// An object.
    Json,
    /// An array of objects.
    JsonArray,
    /// An array of strings.
    JsonStrings,
    Tsv,
    Warc,
    Arc,
    Page,
    Parquet,
    Arrow,
    /// The first version of Feather.
    Feather,
    Zip,
    Pdf,
    Utf16,
}

impl Looks {
    /// What content looks like that begins with these bytes, which hold its first line as far as it goes;
    /// `None` if it may be anything.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = without_byte_order_mark(bytes);
        let bytes = &bytes[..bytes.len().min(LOOKED_AT)];
        for (beginning, looks) in [
            (&b"PAR1"[..], Self::Parquet),
            (b"ARROW1", Self::Arrow),
            (b"FEA1", Self::Feather),
            (b"\xFF\xFF\xFF\xFF", Self::Arrow),
            (b"PK\x03\x04", Self::Zip),
            (html::PDF, Self::Pdf),
        ] {
            if bytes.starts_with(beginning) {
                return Some(looks);
            }
        }
        // These may begin with empty lines.
        let text = bytes.trim_ascii_start();
        if text.starts_with(b"WARC/") {
            return Some(Self::Warc);
        }
        if text.starts_with(b"filedesc:") {
            return Some(Self::Arc);
        }
        if is_utf16(bytes) {
            return Some(Self::Utf16);
        }
        if let Some(rest) = text.strip_prefix(b"{") {
            let next = rest.trim_ascii_start().first();
            return matches!(next, None | Some(b'"' | b'}')).then_some(Self::Json);
        }
        if let Some(rest) = text.strip_prefix(b"[") {
            return match rest.trim_ascii_start().first() {
                None | Some(b'{') => Some(Self::JsonArray),
                Some(b'"') => Some(Self::JsonStrings),
                Some(_) => None,
            };
        }
        if html::begins_a_page(bytes) {
            return Some(Self::Page);
        }
        let line = bytes.split(|byte| *byte == b'\n').next()?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        is_tsv(line).then_some(Self::Tsv)
    }

    /// The format that it is read as; `None` if it is not read.
    pub(crate) fn format(self) -> Option<Format> {
        match self {
            Self::Json => Some(Format::Jsonl),
            Self::Tsv => Some(Format::Tsv),
            Self::Warc | Self::Arc => Some(Format::Warc),
            Self::Page => Some(Format::Files),
            Self::Parquet => Some(Format::Parquet),
            Self::Arrow => Some(Format::Arrow),
            Self::JsonArray
            | Self::JsonStrings
            | Self::Feather
            | Self::Zip
            | Self::Pdf
            | Self::Utf16 => None,
        }
    }

    /// What a file looks like if that is no document for a walk through folders. A page is one. So is JSON or TSV
    /// of one line or value, such as a `package.json`, unless the file is a page by its name.
    pub(crate) fn of_no_document(content: &[u8], is_page: bool) -> Option<Self> {
        let looks = Self::of(content)?;
        let lines = || lines(without_byte_order_mark(content));
        let is_other = match looks {
            Self::Page | Self::Utf16 => false,
            Self::Warc | Self::Arc | Self::Pdf => true,
            Self::JsonArray | Self::JsonStrings => is_page,
            Self::Json => is_page || are_objects(lines()),
            Self::Tsv => is_page || lines().nth(1).is_some_and(is_tsv),
            Self::Parquet | Self::Arrow | Self::Feather | Self::Zip => {
                is_page
                    || memchr::memchr(0, content).is_some()
                    || std::str::from_utf8(content).is_err()
            }
        };
        is_other.then_some(looks)
    }

    /// Whether a file of this would be taken for a text, were it not looked at.
    pub(crate) const fn is_text(self) -> bool {
        match self {
            Self::Json
            | Self::JsonArray
            | Self::JsonStrings
            | Self::Tsv
            | Self::Warc
            | Self::Arc
            | Self::Page => true,
            Self::Parquet | Self::Arrow | Self::Feather | Self::Zip | Self::Pdf | Self::Utf16 => {
                false
            }
        }
    }

    /// Refuses what looks like another format than it is taken for.
    pub(crate) fn check(bytes: &[u8], file: &str, taken_for: Format) -> Result<(), InputError> {
        match Self::of(bytes) {
            Some(looks) if looks.format() != Some(taken_for) => Err(InputError::OtherContent {
                file: file.to_owned(),
                looks,
                taken_for,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// What to do, for an error.
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::Json => "add --format jsonl if each line is an object",
            Self::JsonArray => {
                "write each of its objects on a line, as `jq -c '.[]'` does, and add --format jsonl"
            }
            Self::JsonStrings => {
                "write an object for each of its strings on a line, as `jq -c '.[] | {text: .}'` does, and add \
                 --format jsonl --id row"
            }
            Self::Tsv => "add --format tsv",
            Self::Warc | Self::Arc => "add --format warc",
            Self::Page => "add --format files, and name the files of pages or their folder",
            Self::Parquet => "add --format parquet",
            Self::Arrow => "add --format arrow",
            Self::Feather => "write it as Arrow or Parquet first: Feather 1 is not read",
            Self::Zip => "unpack it first, as `unzip` does",
            Self::Pdf => "write its text first, as `pdftotext` does",
            Self::Utf16 => UTF_16_REMEDY,
        }
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::JsonArray => "an array of JSON",
            Self::JsonStrings => "an array of JSON strings",
            Self::Tsv => "TSV of ids and fingerprints",
            Self::Warc => "WARC",
            Self::Arc => "ARC",
            Self::Page => "a page of HTML",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
            Self::Feather => "Feather 1",
            Self::Zip => "a zip archive",
            Self::Pdf => "PDF",
            Self::Utf16 => "UTF-16",
        })
    }
}

/// The lines of content that are not blank.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = content.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.trim_ascii().is_empty())
}

/// Whether the first line is an object, and another begins in the second. One object may take several lines.
fn are_objects<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> bool {
    let first = lines
        .next()
        .is_some_and(|line| line.trim_ascii_end().ends_with(b"}"));
    let begins = |line: &[u8]| Looks::of(line) == Some(Looks::Json);
    first && lines.next().is_some_and(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_shows_by_its_first_bytes() {
        for (bytes, looks) in [
            ("{\"id\": 1}\n", Looks::Json),
            ("\u{feff} \n{ \"id\": 1}", Looks::Json),
            ("{}\n", Looks::Json),
            ("{\n", Looks::Json),
            ("[{\"id\": 1}]", Looks::JsonArray),
            ("[\n  {", Looks::JsonArray),
            ("[\"a\", \"b\"]\n", Looks::JsonStrings),
            ("a\t17\nb\t18\n", Looks::Tsv),
            ("id\thash\r\n", Looks::Tsv),
            ("WARC/1.0\r\n", Looks::Warc),
            ("\r\nWARC/1.0\r\n", Looks::Warc),
            ("\nfiledesc://a", Looks::Arc),
            ("filedesc://a.arc 0.0.0.0 2008 text/plain 76\n", Looks::Arc),
            ("<!-- x -->\n<!DOCTYPE html>", Looks::Page),
            ("PAR1\u{15}", Looks::Parquet),
            ("ARROW1\0\0", Looks::Arrow),
        ] {
            assert_eq!(Looks::of(bytes.as_bytes()), Some(looks), "{bytes}");
        }
        for bytes in [
            "",
            "\n",
            "a text",
            "{braces} in a text",
            "[1] a note",
            "[a, b]",
            "17\n",
            "a\tb",
            "a\t17\t18",
            "id\ta text",
            "par1",
            "\"a\",\"b\"",
        ] {
            assert_eq!(Looks::of(bytes.as_bytes()), None, "{bytes}");
        }
    }
}
