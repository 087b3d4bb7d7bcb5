//! Reading documents: from fingerprints, text lines, JSON lines, TSV, CSV, Parquet, Arrow, WARC or whole files.
//!
//! | format   | a document is      | its id                             | it carries                       |
//! |----------|--------------------|------------------------------------|----------------------------------|
//! | `hashes` | one line           | line number (`path:line` if many)  | a fingerprint                    |
//! | `lines`  | one line           | line number (`path:line` if many)  | text                             |
//! | `jsonl`  | one JSON object    | the id field, string or number     | text, a fingerprint, or features |
//! | `tsv`    | `id<TAB>number`    | first column                       | a fingerprint                    |
//! | `csv`    | one row            | the id column                      | text, or a fingerprint           |
//! | `parquet`| one row            | the id column, string or integer   | text, or a fingerprint           |
//! | `arrow`  | one row            | the id column, string or integer   | text, or a fingerprint           |
//! | `warc`   | a record of text   | the address of its page            | text                             |
//! | `files`  | one file           | its path                           | text                             |
//!
//! Each file may be compressed. Parquet is there in programs that were built with the feature of its name. It is read
//! from its end, so what is no file, or is compressed, is first copied to one. Data flows one way:
//!
//! ```text
//!     options ─▶ paths ─▶ source ─▶ decompress ─▶ chunk ─────────────▶ parse ──▶ documents   (one by one, owned)
//!                  │        └──▶ csv, parquet, arrow, warc ─▶ records ─┐  └─▶ in_order ─▶ columns ─▶ parts  (many at once)
//!                  └─▶ files ──▶ decompress ───────────────────────▶ batches
//! ```
//!
//! A raw NUL byte is in no text: it is an error of its line or record, and makes a file binary. A
//! `\u0000` in JSON, and the same in a value of Parquet, is data as it was meant, unless it is read as HTML.
//!
//! # Invariants
//! - I1: a checked input hands out its first document only after it has read every line, row and record of
//!   every source without fault. So its command never acts on half an input. A command chooses the check;
//!   an input whose bad lines are skipped is not checked.
//! - I2: no more than [`MAX_RECORD_BYTES`] of one record is ever held, however long the record is.
//! - I3: nothing is dropped in silence but blank lines, TSV headers, hidden files and links;
//!   the rest is an error or counted in [`Skipped`].
//! - I7: content is refused that looks like another format than the one taken from its name, or than the default of
//!   standard input. A file whose name says no format is refused, too. In a folder, tables, zip archives and PDF are
//!   counted instead. One object or array of JSON, or one line of TSV, is a document there.
//! - I5: how a source is cut into reads and chunks, and whether it is compressed, changes no record
//!   and no error.
//!
//! Everything here blocks on I/O: keep it off async threads.

pub mod arrow;
mod batches;
mod byte_order_mark;
mod cell;
mod chunk;
mod columns;
mod compress;
mod csv;
mod decompress;
mod degenerate;
mod digest;
mod document;
mod documents;
mod error;
mod fields;
mod files;
mod first_bad;
mod folders;
mod format;
mod gzip;
mod head;
mod held;
mod html;
mod identity;
mod ids;
mod in_order;
mod input;
mod kinds;
mod lengths;
mod looks;
mod lz4;
mod needs;
mod next_item;
mod notation;
mod options;
#[cfg(feature = "parquet")]
pub mod parquet;
mod parse;
mod parts;
mod passed;
mod paths;
mod piece;
mod position;
mod preference;
mod problem;
mod rank;
mod records;
mod refusal;
mod rewrite;
mod row_number;
mod row_problem;
mod separator;
mod skipped;
mod source;
mod suggested;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod utf16;
pub mod warc;
mod without_parquet;
mod xz;

pub use byte_order_mark::without_byte_order_mark;
pub use chunk::Chunk;
pub use columns::{Columns, for_each_part};
pub use compress::Compressor;
pub use decompress::Compression;
pub use degenerate::DegenerateTexts;
pub use digest::Digest;
pub use document::{
    Carries, Content, Document, MAX_ID_BYTES, MAX_RECORD_BYTES, Record, RecordContent, RecordId,
};
pub use documents::Documents;
pub use error::InputError;
pub use fields::{ContentColumn, RankField, RankedBy, TableColumns};
pub use first_bad::FirstBad;
pub use format::Format;
pub use html::{Extraction, Html};
pub use identity::InputIdentity;
pub use ids::Ids;
pub use input::{Input, parse_bytes};
pub use kinds::Kinds;
pub use lengths::TextLengths;
pub use looks::Looks;
pub use needs::{Check, Needs};
pub use notation::Notation;
pub use options::InputOptions;
pub use parse::{ChunkOutcome, LineParser, is_tsv_header, parse_decimal};
pub use parts::{Parts, parts};
pub use piece::Piece;
pub use position::Position;
pub use preference::{ParsePreferenceError, Preference};
pub use problem::LineProblem;
pub use rewrite::{MarkedDocuments, Marks, Places, Rewrite};
pub use row_number::RowNumber;
pub use row_problem::RowProblem;
pub use separator::{ParseSeparatorError, Separator};
pub use skipped::{DoubtfulPages, Skipped};
pub use suggested::format_of_name;
pub use table::TableError;
pub use texts::for_each_text;
pub use without_parquet::WithoutParquet;
