//! Reading documents: from fingerprints, text lines, JSON lines, TSV, Parquet, WARC or whole files.
//!
//! | format   | a document is      | its id                             | it carries                       |
//! |----------|--------------------|------------------------------------|----------------------------------|
//! | `hashes` | one line           | line number (`path:line` if many)  | a fingerprint                    |
//! | `lines`  | one line           | line number (`path:line` if many)  | text                             |
//! | `jsonl`  | one JSON object    | the id field, string or number     | text, a fingerprint, or features |
//! | `tsv`    | `id<TAB>number`    | first column                       | a fingerprint                    |
//! | `parquet`| one row            | the id column, string or integer   | text, or a fingerprint           |
//! | `warc`   | a record of text   | the address of its page            | text                             |
//! | `files`  | one file           | its path                           | text                             |
//!
//! Each file may be compressed. Parquet is there in programs that were built with the feature of its
//! name; it is read from its end, so what is no file, or is compressed, is first copied to one. Data
//! flows one way:
//!
//! ```text
//!     args ─▶ paths ─▶ source ─▶ decompress ─▶ chunk ─▶ parse ──▶ documents   (one by one, owned)
//!                  │        └──▶ warc, parquet ─▶ records ─┐  └─▶ in_order ─▶ columns  (many at once)
//!                  └─▶ files ──▶ decompress ───────────▶ batches
//! ```
//!
//! A raw NUL byte is in no text: it is an error of its line or record, and makes a file binary. A
//! `\u0000` in JSON, and the same in a value of Parquet, is data as it was meant.
//!
//! # Invariants
//! - I1: where a command asks for it and bad lines are not skipped, every line, row and record of
//!   every source has been read without fault before the first document is handed out, so a caller
//!   never acts on half an input.
//! - I2: no more than [`MAX_RECORD_BYTES`] of one record is ever held, however long the record is.
//! - I3: nothing is dropped in silence but blank lines, TSV headers, hidden files and links;
//!   the rest is an error or counted in [`Skipped`].
//! - I5: how a source is cut into reads and chunks, and whether it is compressed, changes no record
//!   and no error.
//!
//! Everything here blocks on I/O: keep it off async threads.

mod args;
mod batches;
mod chunk;
mod columns;
mod decompress;
mod digest;
mod documents;
mod error;
mod files;
mod gzip;
mod identity;
mod ids;
mod in_order;
mod needs;
#[cfg(feature = "parquet")]
pub mod parquet;
mod parse;
mod paths;
mod position;
mod records;
mod skipped;
mod source;
mod suggested;
#[cfg(test)]
mod tests;
pub mod warc;

use std::io::{self, Read};
use std::path::PathBuf;

use simshard_client::MAX_ID_BYTES;
use simshard_simhash::{Fingerprint, Recipe, TextRecipe};

pub use args::{Format, InputArgs};
pub use batches::Found;
pub use chunk::Chunk;
pub use columns::{Columns, IdColumn, columns};
pub use decompress::Compression;
pub use digest::Digest;
pub use documents::Documents;
pub use error::{InputError, LineProblem};
pub use identity::InputIdentity;
pub use ids::Ids;
pub use needs::{Check, Needs};
pub use parse::{LineParser, Outcome, Record, RecordContent, RecordId, parse_decimal};
pub use position::Position;
pub use skipped::Skipped;

pub(crate) use batches::Batch;
pub(crate) use columns::for_each_part;

use batches::{Batches, DocumentBatches, SourceReader};
use chunk::READ_BYTES;
use files::FileDocuments;
use source::Source;

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

/// What the documents of an input carry, before they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Texts, yet to be fingerprinted.
    Texts,
    /// Hashed features with weights: fingerprints once they are read.
    Features,
    /// Fingerprints computed earlier.
    Fingerprints,
}

/// Input that is ready to be read, and already checked where the command needs it.
pub struct Input {
    document_count: Option<u64>,
    carries: Carries,
    /// Whether the documents are fingerprints alone, without ids.
    is_bare: bool,
    batches: Batches,
}

impl Input {
    /// Opens what `args` name and, where `needs` says so, checks all of it (I1).
    ///
    /// # Errors
    /// What cannot be read, arguments that contradict each other, and the first bad line, row or
    /// record; one whose id `needs` does not allow is bad.
    pub fn open(args: &InputArgs, needs: Needs) -> Result<Self, InputError> {
        Self::open_with_stdin(args, needs, Box::new(io::stdin()))
    }

    fn open_with_stdin(
        args: &InputArgs,
        needs: Needs,
        stdin: Box<dyn Read + Send>,
    ) -> Result<Self, InputError> {
        let (paths, format) = args.resolve(needs.preferred_format)?;
        let check = needs.check == Check::BeforeUse && !args.skip_bad_lines;
        let Some(reader) = SourceReader::new(args, needs, format, paths.len() > 1)? else {
            return Self::open_files(&paths, needs.ids, check);
        };
        let mut sources = source::collect(&paths, format, stdin)?;
        let mut document_count = None;
        if check {
            let (checked, count) = check_all(sources, &reader)?;
            sources = checked;
            document_count = Some(count);
        }
        Ok(Self {
            document_count,
            carries: args.carries(format, needs.recipe),
            is_bare: format == Format::Hashes,
            batches: reader.batches(sources),
        })
    }

    fn open_files(roots: &[PathBuf], ids: Ids, count: bool) -> Result<Self, InputError> {
        files::check_roots(roots)?;
        let documents = FileDocuments::new(roots, ids);
        Ok(Self {
            document_count: count.then(|| files::count(roots)),
            carries: Carries::Texts,
            is_bare: false,
            batches: Batches::Documents(DocumentBatches::new(documents)),
        })
    }

    /// How many documents there are, for a progress bar; `None` where nothing is checked before
    /// use. For `files` it is an upper bound: files that will turn out to be binary, say, are in
    /// it.
    #[must_use]
    pub fn document_count(&self) -> Option<u64> {
        self.document_count
    }

    /// What all the documents carry.
    #[must_use]
    pub fn carries(&self) -> Carries {
        self.carries
    }

    /// The recipe for the texts among the documents, where there are any.
    ///
    /// # Errors
    /// If the recipe is not for what the documents carry.
    pub(crate) fn text_recipe(&self, recipe: Recipe) -> Result<TextRecipe, InputError> {
        match (self.carries(), recipe) {
            (Carries::Texts, _) => recipe.for_texts().map_err(InputError::TakesNoTexts),
            (Carries::Features, Recipe::Text(_)) => {
                Err(InputError::FeaturesNeedTheirRecipe { recipe })
            }
            (Carries::Features, Recipe::Features) | (Carries::Fingerprints, _) => {
                Ok(TextRecipe::default())
            }
        }
    }

    /// Whether the documents are fingerprints alone, without ids.
    fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// The documents, in the order of the input.
    #[must_use]
    pub fn documents(self) -> Documents {
        Documents::new(self.batches)
    }

    /// Does `work` with each batch on all cores and hands the results to `take`, several at once,
    /// in the order of the input, until that says `false`.
    ///
    /// What cannot be read is the last result; bad lines are for `work` to pass on.
    ///
    /// # Errors
    /// Those of `take`.
    pub(crate) fn for_each_batch<T: Send, E>(
        mut self,
        work: impl Fn(&Batch) -> T + Sync,
        take: impl FnMut(Vec<Result<T, InputError>>) -> Result<bool, E>,
    ) -> Result<(), E> {
        in_order::for_each(&mut self.batches, work, take)
    }
}

/// The documents in some bytes, read as standard input would be: what hostile input meets, without
/// files.
///
/// # Errors
/// As [`Input::open`], and the first bad line where the input is checked as it is read.
pub fn parse_bytes(
    args: &InputArgs,
    needs: Needs,
    bytes: Vec<u8>,
) -> Result<Vec<Document>, InputError> {
    let stdin = Box::new(io::Cursor::new(bytes));
    Input::open_with_stdin(args, needs, stdin)?
        .documents()
        .collect()
}

/// Reads all sources once and throws the documents away, so that the first fault shows before
/// anything is done; returns the sources, which can still be read, and how many documents there
/// are.
fn check_all(
    sources: Vec<Source>,
    reader: &SourceReader,
) -> Result<(Vec<Source>, u64), InputError> {
    let mut checked = Vec::with_capacity(sources.len());
    let mut documents = 0;
    for source in sources {
        let (first, again) = reader.twice(source)?;
        let mut batches = reader.batches(vec![first]);
        while let Some(batch) = batches.next(READ_BYTES) {
            let batch = batch?;
            let outcome = batch.parse(|_| documents += 1);
            if let Some(error) = outcome.error {
                return Err(error);
            }
            batches.reuse(batch);
        }
        checked.push(again);
    }
    Ok((checked, documents))
}
