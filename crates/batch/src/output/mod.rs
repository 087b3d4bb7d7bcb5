//! Where the batch commands write, and in which form.
//!
//! | format    | a pair                                  | clusters                                     | a document                 |
//! |-----------|-----------------------------------------|----------------------------------------------|----------------------------|
//! | `json`    | `[4, 5]`, or `["a", "b"]` by ids        | `[4, 5, 7]`: all members of one on a line    | as `jsonl`                 |
//! | `jsonl`   | an object with both documents' fields   | an object a member: id, fingerprint, cluster | an object: id, fingerprint |
//! | `tsv`     | `id_a<TAB>id_b<TAB>distance`            | `id<TAB>hash<TAB>cluster`, a line a member   | `id<TAB>hash`              |
//! | `parquet` | a row with both documents' fields       | a row a member: id, fingerprint, cluster     | a row: id, fingerprint     |
//!
//! `parquet` is there in programs that were built with the feature of its name.
//!
//! Commands know [`Sink`] alone: a further format is one more of them.

mod error;
mod escaped_json;
mod file;
mod folder;
mod format;
mod json;
mod jsonl;
#[cfg(feature = "parquet")]
mod parquet;
mod place;
mod replaced;
mod same_file;
mod sinks;
mod text;
mod tsv;
mod unfinished;

pub use error::OutputError;
pub use escaped_json::write_json;
pub(crate) use file::Complete;
pub use file::Output;
pub(crate) use folder::{CompleteFolder, FolderFile, OutputFolder};
pub use format::OutputFormat;
pub use replaced::Replaced;
pub use sinks::{Rows, Sink};
