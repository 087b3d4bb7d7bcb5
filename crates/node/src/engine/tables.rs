//! The tables of a shard follow its changes: at once, or once those that are being made are complete.

use std::collections::HashSet;

use simshard_cluster::CorpusUid;
use simshard_simhash::Fingerprint;
use simshard_storage::{AbortOnPanic, Change, ChangeKind, Documents, ReadError};
use simshard_topology::ShardId;

use crate::corpora::{NodeCorpora, NodeCorpus};

/// Changed documents that the tables of a shard may miss, apart from those of one change. More changes wait.
pub(super) const MOST_MISSED: usize = 1 << 14;

/// What changed in a shard while its tables were being made from what was stored before, in order.
#[derive(Debug, Default)]
pub(super) struct Missed {
    parts: Vec<Part>,
    /// Documents of all parts.
    documents: usize,
}

/// Documents that one change made live, or that ceased to be by it.
#[derive(Debug)]
struct Part {
    corpus: CorpusUid,
    kind: ChangeKind,
    documents: Documents,
}

impl Missed {
    /// Takes note of the documents of a change that became live, or ceased to be.
    pub(super) fn note(&mut self, change: &Change, changed: &[u32]) {
        if changed.is_empty() {
            return;
        }
        self.documents += changed.len();
        self.parts.push(Part {
            corpus: change.corpus,
            kind: change.kind,
            documents: change.documents.select(changed),
        });
    }

    /// Whether no more changes may be noted.
    pub(super) const fn is_full(&self) -> bool {
        self.documents >= MOST_MISSED
    }

    /// Lets the tables of a shard follow.
    ///
    /// # Errors
    /// If the node does not own the shard.
    pub(super) fn replay(self, corpora: &NodeCorpora, id: ShardId) -> Result<(), ReadError> {
        for part in self.parts {
            // It may be dropped meanwhile.
            let Ok(corpus) = corpora.get(part.corpus) else {
                continue;
            };
            let fingerprints = &part.documents.fingerprints;
            let known = match corpus.read(id)? {
                Some(shard) => shard.known(fingerprints.iter().copied()),
                None => HashSet::new(),
            };
            let ids = (0..fingerprints.len()).map(|place| part.documents.id(place));
            let documents = fingerprints.iter().copied().zip(ids);
            change_tables(&corpus, id, part.kind, documents, &known)?;
        }
        Ok(())
    }
}

/// Lets the tables of a shard follow documents that became live, or ceased to be. `known` are at least those of
/// their fingerprints that other live documents had.
///
/// # Errors
/// If the node does not own the shard.
pub(super) fn change_tables<'a>(
    corpus: &NodeCorpus,
    id: ShardId,
    kind: ChangeKind,
    documents: impl Iterator<Item = (Fingerprint, &'a str)>,
    known: &HashSet<Fingerprint>,
) -> Result<(), ReadError> {
    let mut shard = corpus.write(id)?;
    // A half-changed shard must not be searched.
    let _guard = AbortOnPanic;
    match kind {
        ChangeKind::Insert => shard.insert(documents, known),
        ChangeKind::Remove => shard.remove(documents.map(|(fingerprint, _)| fingerprint)),
    }
    // Before searches can find the new fingerprints.
    corpus.note_ids(&shard);
    Ok(())
}
