//! A data directory before its shards are known: what its store is, and whether it may go on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use simshard_topology::replication::{Epoch, HeldIncarnations, ShardRecords, StoreId};
use simshard_topology::{CorpusUid, ShardSet};
use uuid::Uuid;

use super::catalog::Catalog;
use super::lock::lock;
use super::open::{LOG, SEGMENTS, failed, news};
use super::replay::NewCopies;
use super::replicas::Replicas;
use super::{OpenError, Store, create, failure, incarnations, set_aside};
use crate::directory::{Directory, DiskDirectory, StoredFile};
use crate::element::Operation;
use crate::files;
use crate::log::{Record, survey};
use crate::manifest::Manifest;
use crate::segment::{BlockCache, Segment, SegmentId, SegmentMeta};

/// A data directory that no other process can open as long as this lives. Drop it to open the store.
#[derive(Debug)]
pub struct Claim {
    /// The identity of the store.
    pub store: StoreId,
    /// The generation after that of the records that it has installed; 0 if it has none.
    pub next_generation: u32,
    /// The corpora that it holds.
    pub corpora: BTreeSet<CorpusUid>,
    /// The last record of its log; 0 if there is none.
    pub recovered: u64,
    incarnations: Option<HeldIncarnations>,
    replicas: Replicas,
    /// Those that the next start opens.
    segments: BTreeMap<SegmentId, SegmentMeta>,
    pub(super) directory: Arc<dyn Directory>,
    _lock: Box<dyn StoredFile>,
}

impl Claim {
    /// Where the directory is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The shards that it holds in sync by the records that it has installed, by their epochs.
    #[must_use]
    pub fn in_sync(&self) -> BTreeMap<Epoch, ShardSet> {
        self.replicas.in_sync()
    }

    /// The other stores that these records name in sync, and the shards of each.
    #[must_use]
    pub fn partners(&self) -> BTreeMap<StoreId, ShardSet> {
        self.replicas.partners()
    }

    /// Checks that the store may open with these records of shards.
    ///
    /// # Errors
    /// [`OpenError::OtherRecords`] if a record may not follow the one that is installed.
    pub fn check_records(&self, records: &ShardRecords) -> Result<(), OpenError> {
        news(&*self.directory, &self.replicas, Some(records)).map(|_| ())
    }

    /// Checks that the store has not failed.
    ///
    /// # Errors
    /// [`OpenError::Failed`] if it has.
    pub fn check_failure(&self) -> Result<(), OpenError> {
        failure::check(&*self.directory)
    }

    /// Checks that the segments can be opened. It reads their heads and indexes, not their contents.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub fn check_segments(&self) -> Result<(), OpenError> {
        let folder = files::folder(&*self.directory, SEGMENTS)?;
        let (store, cache) = (Uuid::from_bytes(self.store.0), Arc::new(BlockCache::new(0)));
        for (&id, &meta) in &self.segments {
            Segment::open(&*folder, store, id, meta, Arc::clone(&cache))?;
        }
        Ok(())
    }

    /// The last starts of the store; `None` if it never registered itself.
    #[must_use]
    pub const fn incarnations(&self) -> Option<&HeldIncarnations> {
        self.incarnations.as_ref()
    }

    /// Keeps these as the last starts of the store. When this returns, that lasts.
    ///
    /// # Errors
    /// If the file cannot be written. The directory has these starts then, or those before.
    pub fn keep(&mut self, held: HeldIncarnations) -> Result<(), OpenError> {
        incarnations::write(&self.directory, self.store, &held)?;
        self.incarnations = Some(held);
        Ok(())
    }
}

impl Store {
    /// Claims a data directory before its shards are known. Without a store there, makes one that holds none yet.
    ///
    /// # Errors
    /// If the directory is in use, damaged or of another format.
    pub fn claim(directory: &Path) -> Result<Claim, OpenError> {
        DiskDirectory::make(directory).map_err(failed("make", directory))?;
        let opened = DiskDirectory::open(directory).map_err(failed("open", directory))?;
        Self::claim_in(Arc::new(opened))
    }

    /// `claim`, in any directory.
    pub(super) fn claim_in(directory: Arc<dyn Directory>) -> Result<Claim, OpenError> {
        let unfinished = set_aside::unfinished(&*directory)?;
        if unfinished.is_none() {
            create::check_is_free(&*directory)?;
        }
        let lock = lock(&*directory)?;
        if let Some(unfinished) = unfinished {
            set_aside::finish(&*directory, &unfinished)?;
        }
        let manifest = match Manifest::read(&*directory).map_err(OpenError::Manifest)? {
            Some(manifest) => manifest,
            None => create::manifest(&directory, ShardSet::EMPTY)?,
        };
        let store = StoreId(manifest.store.into_bytes());
        let contents = Contents::of(&*directory, &manifest)?;
        Ok(Claim {
            store,
            next_generation: contents.replicas.next_generation(),
            replicas: contents.replicas,
            segments: contents.copies.all_segments(&manifest),
            corpora: contents.catalog.corpora.into_keys().collect(),
            recovered: contents.last_sequence,
            incarnations: incarnations::read(&*directory, store)?,
            directory,
            _lock: lock,
        })
    }
}

/// What a directory has, in manifest and log.
struct Contents {
    catalog: Catalog,
    replicas: Replicas,
    copies: NewCopies,
    last_sequence: u64,
}

impl Contents {
    /// Reads it, and changes nothing.
    fn of(directory: &dyn Directory, manifest: &Manifest) -> Result<Self, OpenError> {
        let (mut catalog, mut replicas) = (Catalog::of(manifest), Replicas::of(manifest));
        let mut copies = NewCopies::default();
        let visit = |sequence, record| {
            match record {
                Record::Operation(Operation::CreateCorpus { uid, layout }) => {
                    catalog.create(sequence, uid, layout);
                }
                Record::Operation(Operation::DropCorpus { uid }) => {
                    catalog.drop_corpus(sequence, uid);
                }
                Record::Operation(operation @ (Operation::Install(_) | Operation::Copied(_))) => {
                    copies.take(&mut replicas, sequence, &operation);
                }
                Record::Operation(Operation::Change(_)) | Record::Mark => {}
            }
            Ok::<(), OpenError>(())
        };
        let log = files::folder(directory, LOG)?;
        let surveyed = survey(log, manifest.store, manifest.first_sequence, visit)?;
        Ok(Self {
            catalog,
            replicas,
            copies,
            last_sequence: surveyed.next_sequence.saturating_sub(1),
        })
    }
}
