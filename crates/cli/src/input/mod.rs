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
mod error;
mod files;
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

use simshard_simhash::Fingerprint;

pub use args::{Format, InputArgs};
pub use error::{InputError, LineProblem};
pub use skipped::Skipped;

use files::FileDocuments;
use lines::LineDocuments;
use parser::LineParser;

/// The longest line or file that is taken as a document: 8 MiB.
pub const MAX_RECORD_BYTES: usize = 8 << 20;

/// The longest id, in bytes of UTF-8.
pub const MAX_ID_BYTES: usize = 1024;

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

/// How much input there is, or how much of it has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Documents handed out.
    pub documents: u64,
    /// Bytes read, separators and skipped records included.
    pub bytes: u64,
}

/// Input that is ready to be read, and already checked unless bad lines are skipped.
pub struct Input {
    totals: Option<Counts>,
    carries_fingerprints: bool,
    documents: Documents,
}

impl Input {
    /// Opens what `args` name and, unless bad lines are skipped, checks all of it (I1).
    ///
    /// # Errors
    /// What cannot be read, arguments that contradict each other, and the first bad line.
    pub fn open(args: &InputArgs) -> Result<Self, InputError> {
        Self::open_with_stdin(args, Box::new(io::stdin()))
    }

    fn open_with_stdin(args: &InputArgs, stdin: Box<dyn Read + Send>) -> Result<Self, InputError> {
        let format = args.effective_format()?;
        let parser = match format {
            Format::Files => return Self::open_files(args),
            Format::Lines => LineParser::Lines {
                ids_name_the_source: args.paths.len() > 1,
            },
            Format::Jsonl => LineParser::Jsonl(args.json_fields()),
            Format::Tsv => LineParser::Tsv,
        };
        let carries_fingerprints = parser.carries_fingerprints();
        let mut sources = source::collect(&args.paths, format, stdin)?;
        let mut totals = None;
        if !args.skip_bad_lines {
            let (checked, counts) = lines::check(sources, &parser)?;
            sources = checked;
            totals = Some(counts);
        }
        let reader = LineDocuments::new(sources, parser, args.skip_bad_lines);
        Ok(Self {
            totals,
            carries_fingerprints,
            documents: Documents::new(Reader::Lines(reader)),
        })
    }

    fn open_files(args: &InputArgs) -> Result<Self, InputError> {
        let roots: &[PathBuf] = &args.paths;
        files::check_roots(roots)?;
        let mut totals = None;
        if !args.skip_bad_lines {
            totals = Some(files::measure(roots));
        }
        Ok(Self {
            totals,
            carries_fingerprints: false,
            documents: Documents::new(Reader::Files(FileDocuments::new(roots))),
        })
    }

    /// What there is to read, for a progress bar; `None` where bad lines are skipped, since then
    /// nothing is read ahead. For `files` it is an upper bound: files that will turn out to be
    /// binary, say, are in it.
    #[must_use]
    pub fn totals(&self) -> Option<Counts> {
        self.totals
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
    read: Counts,
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
            read: Counts::default(),
            skipped: Skipped::default(),
            failed: false,
        }
    }

    /// What has been read so far, to hold against [`Input::totals`].
    #[must_use]
    pub fn progress(&self) -> Counts {
        self.read
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
            Reader::Lines(reader) => reader.next(&mut self.read.bytes, &mut self.skipped),
            Reader::Files(reader) => reader.next(&mut self.read.bytes, &mut self.skipped).map(Ok),
        };
        match &next {
            Some(Ok(_)) => self.read.documents += 1,
            Some(Err(_)) => self.failed = true,
            None => {}
        }
        next
    }
}
