//! Reading documents: from text lines, JSON lines, TSV or whole files to [`Document`]s.
//!
//! | format  | a document is      | its id                             | it carries              |
//! |---------|--------------------|------------------------------------|-------------------------|
//! | `lines` | one line           | line number (`path:line` if many)  | text                    |
//! | `jsonl` | one JSON object    | the id field, string or number     | text, or a fingerprint  |
//! | `tsv`   | `id<TAB>number`    | first column                       | a fingerprint           |
//! | `files` | one file           | its path                           | text                    |
//!
//! # Invariants
//! - I1: unless bad lines are skipped, every line of every source has been parsed without fault
//!   before the first document is handed out, so a caller never acts on half an input.
//! - I2: no more than [`MAX_RECORD_BYTES`] of one record is ever held, however long the record is.
//! - I3: nothing is dropped in silence but blank lines, TSV headers, hidden files and links;
//!   the rest is an error or counted in [`Skipped`].
//!
//! Everything here blocks on I/O: keep it off async threads.

mod args;
mod columns;
mod error;
mod files;
mod ids;
mod json;
mod line_reader;
mod lines;
mod parser;
mod skipped;
mod source;
#[cfg(test)]
mod tests;
mod tsv;

use std::io::{self, Read};
use std::path::PathBuf;

use simshard_client::MAX_ID_BYTES;
use simshard_simhash::Fingerprint;

pub use args::{Format, InputArgs};
pub use columns::{Columns, IdColumn, columns};
pub use error::{InputError, LineProblem};
pub use ids::Ids;
pub use skipped::Skipped;

use files::FileDocuments;
use lines::LineDocuments;
use parser::{LineFormat, LineParser};

/// The longest line or file that is taken as a document: 8 MiB.
pub const MAX_RECORD_BYTES: usize = 8 << 20;

/// One document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// At most [`MAX_ID_BYTES`]; may be empty where the input says so.
    pub id: String,
    /// What is known of it.
    pub content: Content,
}

/// What a document carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A text, yet to be fingerprinted.
    Text(String),
    /// A fingerprint computed earlier.
    Fingerprint(Fingerprint),
}

/// Input that is ready to be read, and already checked unless bad lines are skipped.
pub struct Input {
    document_count: Option<u64>,
    carries_fingerprints: bool,
    documents: Documents,
}

impl Input {
    /// Opens what `args` name and, unless bad lines are skipped, checks all of it (I1).
    ///
    /// # Errors
    /// What cannot be read, arguments that contradict each other, and the first bad line; a line
    /// whose id `ids` does not allow is one.
    pub fn open(args: &InputArgs, ids: Ids) -> Result<Self, InputError> {
        Self::open_with_stdin(args, ids, Box::new(io::stdin()))
    }

    fn open_with_stdin(
        args: &InputArgs,
        ids: Ids,
        stdin: Box<dyn Read + Send>,
    ) -> Result<Self, InputError> {
        let format = args.effective_format()?;
        let line_format = match format {
            Format::Files => return Self::open_files(args, ids),
            Format::Lines => LineFormat::Lines {
                ids_name_the_source: args.paths.len() > 1,
            },
            Format::Jsonl => LineFormat::Jsonl(args.json_fields()),
            Format::Tsv => LineFormat::Tsv,
        };
        let parser = LineParser {
            format: line_format,
            ids,
        };
        let carries_fingerprints = parser.carries_fingerprints();
        let mut sources = source::collect(&args.paths, format, stdin)?;
        let mut document_count = None;
        if !args.skip_bad_lines {
            let (checked, count) = lines::check(sources, &parser)?;
            sources = checked;
            document_count = Some(count);
        }
        let reader = LineDocuments::new(sources, parser, args.skip_bad_lines);
        Ok(Self {
            document_count,
            carries_fingerprints,
            documents: Documents::new(Reader::Lines(reader)),
        })
    }

    fn open_files(args: &InputArgs, ids: Ids) -> Result<Self, InputError> {
        let roots: &[PathBuf] = &args.paths;
        files::check_roots(roots)?;
        let mut document_count = None;
        if !args.skip_bad_lines {
            document_count = Some(files::count(roots));
        }
        Ok(Self {
            document_count,
            carries_fingerprints: false,
            documents: Documents::new(Reader::Files(FileDocuments::new(roots, ids))),
        })
    }

    /// How many documents there are, for a progress bar; `None` where bad lines are skipped, since
    /// then nothing is read ahead. For `files` it is an upper bound: files that will turn out to
    /// be binary, say, are in it.
    #[must_use]
    pub fn document_count(&self) -> Option<u64> {
        self.document_count
    }

    /// Whether the documents carry fingerprints, all of them, rather than texts.
    #[must_use]
    pub fn carries_fingerprints(&self) -> bool {
        self.carries_fingerprints
    }

    /// The documents, in the order of the input.
    #[must_use]
    pub fn documents(self) -> Documents {
        self.documents
    }
}

/// The documents of an [`Input`], read as they are asked for. Ends after the first error.
pub struct Documents {
    reader: Reader,
    skipped: Skipped,
    failed: bool,
}

enum Reader {
    Lines(LineDocuments),
    Files(FileDocuments),
}

impl Documents {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            skipped: Skipped::default(),
            failed: false,
        }
    }

    /// What has been left out so far.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }
}

impl Iterator for Documents {
    type Item = Result<Document, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = match &mut self.reader {
            Reader::Lines(reader) => reader.next(&mut self.skipped),
            Reader::Files(reader) => reader.next(&mut self.skipped).map(Ok),
        };
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
