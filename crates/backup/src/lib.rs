//! Backups of corpora, in a folder or in an object store that speaks S3.
//!
//! ```text
//! a corpus, scanned --> cut into segments --> those that are not stored yet --> a manifest
//!                       (`cut`, `segment`)    (`repository`)                    (`manifest`)
//! ```
//!
//! A place holds any number of backups, which share what is equal. A segment is some documents of a corpus, named
//! by the BLAKE3 hash of its contents. Where segments begin depends on the documents alone. So a backup of a corpus
//! that has hardly changed finds nearly all of its segments stored. A manifest lists the segments of a backup, and is
//! written last, whole: a backup that was cut short leaves segments that the next one finds.
//!
//! A backup has each document that was acknowledged before it began, unless it was removed meanwhile: the rule of
//! `Scan`. It knows nothing of nodes, so it is restored into a cluster of any size and replication factor.

mod create;
mod cut;
mod error;
mod manifest;
mod repository;
mod restore;
mod segment;
mod threads;
mod throttle;
mod verify;

pub use create::{CreateOptions, Created, create};
pub use error::BackupError;
pub use manifest::{CorpusBackup, Manifest, NodeEntry, SegmentEntry};
pub use repository::Repository;
pub use restore::{RestoreOptions, Restored, restore};
pub use throttle::Throttle;
pub use verify::{Verified, verify};
