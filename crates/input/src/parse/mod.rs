//! From a chunk of lines to its records, whatever the format.
//!
//! Nothing here reads, waits or keeps state: the same chunk gives the same records. A record
//! borrows from its chunk, and text is copied only where it was written with escapes.

mod decimal;
mod exact_json;
mod features;
mod hashes;
mod json;
mod lines;
mod parser;
mod tsv;
mod walk;

pub(crate) use decimal::fingerprint;
pub use decimal::parse_decimal;
pub(crate) use exact_json::{Decoded as DecodedJson, decode as decode_json, field as json_field};
pub use parser::LineParser;
pub use tsv::is_header as is_tsv_header;
pub(crate) use tsv::looks_like as is_tsv;
pub use walk::ChunkOutcome;
