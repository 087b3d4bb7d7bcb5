//! All corpora of a cluster as one value, and the changes that this value can go through. Pure: each backend keeps
//! the value and decides by these rules.

use std::collections::BTreeMap;

use simshard_topology::CorpusUid;

use crate::corpus::{CorpusName, CorpusRecord, CorpusState};
use crate::store::MetadataError;

/// The corpora of a cluster, by name, as one reading of the store found them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corpora {
    revision: u64,
    by_name: BTreeMap<CorpusName, CorpusRecord>,
}

impl Corpora {
    /// Those of a store that has been written. The records must have names and uids of their own.
    pub(crate) const fn at(revision: u64, by_name: BTreeMap<CorpusName, CorpusRecord>) -> Self {
        Self { revision, by_name }
    }

    /// How many changes the store has seen. 0 means that it was never written: the file is missing, or the store in
    /// memory is fresh.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The corpus of this name, in whatever state.
    #[must_use]
    pub fn get(&self, name: &CorpusName) -> Option<&CorpusRecord> {
        self.by_name.get(name)
    }

    /// The corpus with this uid, in whatever state.
    #[must_use]
    pub fn of_uid(&self, uid: CorpusUid) -> Option<&CorpusRecord> {
        self.records().find(|record| record.uid == uid)
    }

    /// All corpora, by name.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &CorpusRecord> {
        self.by_name.values()
    }

    /// How many there are, whatever their state.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// As [`create_corpus`](crate::MetadataStore::create_corpus).
    pub(crate) fn create(
        &mut self,
        record: CorpusRecord,
        max_corpora: usize,
    ) -> Result<CorpusRecord, MetadataError> {
        if let Some(taken) = self.by_name.get(&record.name) {
            if record.completes(taken) {
                return Ok(taken.clone());
            }
            return Err(MetadataError::AlreadyExists {
                name: record.name,
                uid: taken.uid,
                state: taken.state,
            });
        }
        if let Some(other) = self.of_uid(record.uid) {
            return Err(MetadataError::UidTaken {
                uid: record.uid,
                name: other.name.clone(),
            });
        }
        if self.len() >= max_corpora {
            return Err(MetadataError::TooMany { max_corpora });
        }
        self.by_name.insert(record.name.clone(), record.clone());
        self.revision += 1;
        Ok(record)
    }

    /// As [`finish_creation`](crate::MetadataStore::finish_creation).
    pub(crate) fn finish_creation(
        &mut self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        let record = self.record_mut(name, uid)?;
        match record.state {
            CorpusState::Creating => record.state = CorpusState::Live,
            state @ (CorpusState::Live | CorpusState::Deleting) => {
                let (name, uid) = (name.clone(), *uid);
                return Err(MetadataError::AlreadyExists { name, uid, state });
            }
        }
        self.revision += 1;
        Ok(())
    }

    /// As [`begin_deletion`](crate::MetadataStore::begin_deletion).
    pub(crate) fn begin_deletion(
        &mut self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        let record = self.record_mut(name, uid)?;
        match record.state {
            CorpusState::Creating | CorpusState::Live => record.state = CorpusState::Deleting,
            CorpusState::Deleting => return Ok(()),
        }
        self.revision += 1;
        Ok(())
    }

    /// As [`finish_deletion`](crate::MetadataStore::finish_deletion).
    pub(crate) fn finish_deletion(
        &mut self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        if self.record_mut(name, uid)?.state != CorpusState::Deleting {
            return Err(MetadataError::NotDeleting { name: name.clone() });
        }
        self.by_name.remove(name);
        self.revision += 1;
        Ok(())
    }

    fn record_mut(
        &mut self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<&mut CorpusRecord, MetadataError> {
        let found = self.by_name.get_mut(name);
        let found = found.filter(|record| record.uid == *uid);
        found.ok_or_else(|| not_found(name, uid))
    }
}

fn not_found(name: &CorpusName, uid: &CorpusUid) -> MetadataError {
    MetadataError::NotFound {
        name: name.clone(),
        uid: *uid,
    }
}
