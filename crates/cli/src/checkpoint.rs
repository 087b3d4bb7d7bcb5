//! How far a bulk load has come, on disk: `simshard insert --checkpoint FILE`.
//!
//! A checkpoint records how many documents, counted from the start of an input, are durable in a corpus. It
//! names the input and the corpus; a load of any other input or corpus refuses it. This file defines what a
//! checkpoint records and when it matches; `file` reads and writes it.
//!
//! ```json
//! {
//!   "version": 1,
//!   "corpus": {"name": "default", "create_time": "2026-01-01T00:00:00.123456789Z"},
//!   "input": {"paths": ["pages.jsonl"], "format": "jsonl", ...},
//!   "documents": 4096,
//!   "digest": "9cf1ab2b5d4ee2a1",
//!   "complete": false
//! }
//! ```
//!
//! # Invariants
//! - CP1: a checkpoint never counts a document that is not durable.
//! - CP2: documents are left out only by a checkpoint of the same corpus, the same arguments, and files that have not
//!   been touched. They must also be those that it counted, by their digest.
//! - CP3: what is no checkpoint, or not of this version, is neither believed nor overwritten.
//! - CP4: a checkpoint is whole at every instant (W1).

mod file;

use serde::{Deserialize, Serialize};
use simshard_input::{Digest, InputIdentity, Position};

pub(crate) use file::{CheckpointError, CheckpointFile};

/// The version of the format.
const VERSION: u32 = 1;

/// The corpus that documents are in. One that was deleted and created anew is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorpusIdentity {
    pub(crate) name: String,
    /// To the nanosecond, in the form of RFC 3339.
    pub(crate) create_time: String,
}

/// The load that a checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) corpus: CorpusIdentity,
    pub(crate) input: InputIdentity,
}

/// The content of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Checkpoint {
    subject: Subject,
    /// How much of the input is durable.
    position: Position,
    /// Whether that is all of it.
    complete: bool,
}

/// Why bytes are no checkpoint.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    /// They are of another version.
    Version(u64),
    /// They are of none.
    Damaged(String),
}

/// A checkpoint as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    corpus: CorpusIdentity,
    input: InputIdentity,
    documents: u64,
    digest: Digest,
    complete: bool,
}

/// The fields of checkpoints of all versions.
#[derive(Deserialize)]
struct OfAnyVersion {
    version: u64,
}

impl Subject {
    /// In what this differs from the subject `before` it, for people.
    fn differences(&self, before: &Self) -> Vec<String> {
        let (now, then) = (&self.corpus, &before.corpus);
        if now.name != then.name {
            return vec![format!("corpus {} then, {} now", then.name, now.name)];
        }
        if now.create_time != then.create_time {
            let (name, then, now) = (&now.name, &then.create_time, &now.create_time);
            return vec![format!(
                "corpus {name} of {then} then, created anew at {now}"
            )];
        }
        self.input.differences(&before.input)
    }
}

impl Checkpoint {
    /// That of a load that has not begun.
    fn new(subject: Subject) -> Self {
        Self {
            subject,
            position: Position::default(),
            complete: false,
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
        let OfAnyVersion { version } = serde_json::from_slice(bytes).map_err(damaged)?;
        if version != u64::from(VERSION) {
            return Err(Unusable::Version(version));
        }
        let written: Written = serde_json::from_slice(bytes).map_err(damaged)?;
        Ok(Self {
            subject: Subject {
                corpus: written.corpus,
                input: written.input,
            },
            position: Position {
                documents: written.documents,
                digest: written.digest,
            },
            complete: written.complete,
        })
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let Subject { corpus, input } = self.subject.clone();
        let mut json = serde_json::to_vec_pretty(&Written {
            version: VERSION,
            corpus,
            input,
            documents: self.position.documents,
            digest: self.position.digest,
            complete: self.complete,
        })?;
        json.push(b'\n');
        Ok(json)
    }
}

#[cfg(test)]
mod tests;
