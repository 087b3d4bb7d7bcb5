//! Exact near-duplicate search over 64-bit simhash fingerprints.
//!
//! Everything here is pure: no async, no I/O, no clock, no serialisation.

mod clusters;
mod compute;
mod corpus;
mod counting;
mod degenerate;
mod documents;
mod fingerprint;
mod index;
mod layout;
mod lead_groups;
mod pairs;
mod recipe;
mod scan;
pub mod synthetic;
mod table;
mod tables;

pub use clusters::Clusters;
pub use compute::{BitCounter, compute};
pub use corpus::{BulkMatches, Corpus, Match};
pub use degenerate::Degenerate;
pub use documents::Documents;
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use index::{Bounds, Hit, Index, Search};
pub use layout::{Layout, LayoutError, MAX_BLOCKS, MAX_TABLES, chance_pairs};
pub use lead_groups::LeadGroups;
pub use pairs::{FingerprintSet, Lead, Pair, PairProgress, PairSearch, PairsWanted, Unsorted};
pub use recipe::{
    Explanation, Recipe, Takes, TakesNoTexts, TextRecipe, UnknownRecipe, Window, features,
    normalized, word_runs,
};
pub use scan::{LevelError, level, levels, limit_level};
pub use table::Table;
pub use tables::{ActiveTables, Tables};
