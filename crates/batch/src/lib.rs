//! Pairs and clusters of near-duplicates among files, and how results of any command are written.
//!
//! [`find_pairs`] and [`find_clusters`] read all documents, sort their distinct fingerprints, join
//! these with themselves, and write documents for fingerprints. No step holds pairs: memory is
//! O(input). Outputs and the sinks that write to them serve the other commands as well.
//!
//! | module | job |
//! |---|---|
//! | `documents`, `clusters`, `member` | the documents of a fingerprint, of a cluster, and one of them |
//! | `job`, `find_pairs`, `find_clusters`, `progress` | the searches, step by step |
//! | `dedup` | a set of documents without its near-duplicates |
//! | `statistics`, `texts`, `reported`, `report` | what was found, in numbers and as a page |
//! | `evaluate` | how well recipes find the near-duplicates of some texts |
//! | `output` | results in their forms, in files that are replaced whole |
//!
//! Nothing here writes on a terminal but results: the caller makes the bars that show how far a search is.

mod clusters;
mod dedup;
mod documents;
pub mod evaluate;
mod find_clusters;
mod find_pairs;
mod job;
#[cfg(test)]
mod made_up;
mod member;
mod output;
mod progress;
pub mod report;
mod reported;
mod statistics;
mod texts;

pub use dedup::{By, Dedup, Deduplicated, KeptDocuments, Known, ReadDocuments, Recompress};
pub use documents::TooManyDocuments;
pub use find_clusters::find_clusters;
pub use find_pairs::find_pairs;
pub use job::{Job, JobError, Summary};
pub use member::Member;
pub use output::{Output, OutputError, OutputFormat, Replaced, Rows, Sink, write_json};
pub use progress::Progress;
