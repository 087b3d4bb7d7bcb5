//! Reading the log of a data directory, on top of what its manifest says.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_simhash::{Fingerprint, Tables};
use simshard_topology::{CorpusUid, ShardId, ShardSet};

use super::OpenError;
use super::catalog::Catalog;
use super::open::LOG;
use super::replicas::{Replicas, entries_of};
use crate::directory::Directory;
use crate::element::{Change, Operation, ShardCopy};
use crate::error::ReadError;
use crate::log::{LogError, Record, Tail, recover};
use crate::manifest::Manifest;
use crate::segment::{BlockCache, Segment, SegmentId, SegmentMeta};
use crate::shard::{Aside, Shard};
use crate::stored::SharedChange;

/// Reads the log that is needed, into memtables and the catalog.
pub(super) fn replay_log(
    directory: &dyn Directory,
    manifest: &Manifest,
    shards: &mut BTreeMap<ShardId, Shard>,
) -> Result<Replayed, OpenError> {
    let mut recovery = Recovery {
        catalog: Catalog::of(manifest),
        replicas: Replicas::of(manifest),
        shards,
        tables: BTreeMap::new(),
        copies: NewCopies::default(),
    };
    let log = directory.folder(LOG).map_err(|source| LogError::Io {
        action: "open",
        path: directory.path().join(LOG),
        source,
    })?;
    let visit = |sequence, record| {
        recovery.replay(sequence, record);
        Ok::<(), OpenError>(())
    };
    let tail = recover(log, manifest.store, manifest.first_sequence, visit)?;
    Ok(Replayed {
        tail,
        catalog: recovery.catalog,
        replicas: recovery.replicas,
        copies: recovery.copies,
    })
}

/// What the log makes of what a manifest says.
pub(super) struct Replayed {
    pub(super) tail: Tail,
    pub(super) catalog: Catalog,
    pub(super) replicas: Replicas,
    copies: NewCopies,
}

impl Replayed {
    /// Takes note that all of the log is applied. Answers its last record.
    pub(super) fn note_replayed(&mut self) -> u64 {
        let last = self.tail.sequence - 1;
        self.replicas.note_replayed(last);
        last
    }
}

/// The copies that the log names and the manifest does not name yet, by shard.
#[derive(Debug, Default)]
pub(crate) struct NewCopies(BTreeMap<ShardId, ShardCopy>);

impl NewCopies {
    /// Takes what a record of the log says of shards. Answers those that begin anew.
    pub(crate) fn take(
        &mut self,
        replicas: &mut Replicas,
        sequence: u64,
        operation: &Operation,
    ) -> ShardSet {
        let entries = entries_of(operation).unwrap_or_default();
        let (anew, copied) = replicas.restore(&entries, sequence);
        for shard in anew.iter() {
            self.0.remove(&shard);
        }
        if let Operation::Copied(copy) = operation
            && copied.contains(copy.shard)
        {
            self.0.insert(copy.shard, copy.clone());
        }
        anew
    }

    /// The copies, by shard.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ShardCopy> {
        self.0.values()
    }

    /// The segments that a start opens: those of the manifest, and of these copies.
    pub(crate) fn all_segments(&self, manifest: &Manifest) -> BTreeMap<SegmentId, SegmentMeta> {
        let mut all = manifest.all_segments();
        all.extend(self.iter().flat_map(|copy| copy.segments.iter().copied()));
        all
    }
}

/// The state that is rebuilt while the log is read.
struct Recovery<'a> {
    catalog: Catalog,
    replicas: Replicas,
    shards: &'a mut BTreeMap<ShardId, Shard>,
    tables: BTreeMap<CorpusUid, Arc<Tables>>,
    copies: NewCopies,
}

impl Recovery<'_> {
    fn replay(&mut self, sequence: u64, record: Record) {
        match record {
            Record::Mark => {}
            Record::Operation(Operation::CreateCorpus { uid, layout }) => {
                self.catalog.create(sequence, uid, layout);
            }
            Record::Operation(Operation::DropCorpus { uid }) => {
                self.catalog.drop_corpus(sequence, uid);
                for shard in self.shards.values_mut() {
                    shard.memtable.drop_corpus(uid);
                }
            }
            Record::Operation(Operation::Change(change)) => self.change(sequence, &change),
            Record::Operation(operation @ (Operation::Install(_) | Operation::Copied(_))) => {
                self.take_entries(sequence, &operation);
            }
        }
    }

    /// Does what the store did when it took these entries (CY2, CY3).
    fn take_entries(&mut self, sequence: u64, operation: &Operation) {
        let anew = self.copies.take(&mut self.replicas, sequence, operation);
        for shard in anew.iter() {
            self.shards.entry(shard).or_default().begin_anew();
        }
    }

    fn change(&mut self, sequence: u64, change: &Change) {
        // A change that was committed after its corpus was dropped has no effect.
        let Some(&layout) = self.catalog.corpora.get(&change.corpus) else {
            return;
        };
        let tables = self
            .tables
            .entry(change.corpus)
            .or_insert_with(|| Tables::shared(layout));
        let shared = SharedChange::new(change);
        for (place, &fingerprint) in (0..).zip(&change.documents.fingerprints) {
            for id in shards_of(tables, fingerprint)
                .intersection(&change.shards)
                .iter()
            {
                if self.replicas.is_part(id, sequence) {
                    let shard = self.shards.entry(id).or_default();
                    shard.replay(&shared, place);
                }
            }
        }
    }
}

fn shards_of(tables: &Tables, fingerprint: Fingerprint) -> ShardSet {
    tables.document_shards(fingerprint).map(ShardId).collect()
}

/// Opens the copies that the log names. What was set aside is not needed beside them.
pub(super) fn add_copies(
    folder: &dyn Directory,
    manifest: &Manifest,
    log: &Replayed,
    cache: &Arc<BlockCache>,
    shards: &mut BTreeMap<ShardId, Shard>,
) -> Result<(), ReadError> {
    for copy in log.copies.iter() {
        let open = |(id, meta): &(SegmentId, SegmentMeta)| {
            let cache = Arc::clone(cache);
            Segment::open(folder, manifest.store, *id, *meta, cache).map(Arc::new)
        };
        let segments: Result<Vec<_>, _> = copy.segments.iter().map(open).collect();
        let shard = shards.entry(copy.shard).or_default();
        shard.aside = Aside::default();
        Arc::make_mut(&mut shard.segments).splice(0..0, segments?);
    }
    Ok(())
}

/// Names the segments that shards have after the log was read.
pub(super) fn renew(manifest: &mut Manifest, shards: &BTreeMap<ShardId, Shard>) {
    let named = |segments: &[Arc<Segment>]| -> Vec<(SegmentId, SegmentMeta)> {
        let segments = segments.iter();
        segments.map(|one| (one.id(), one.meta())).collect()
    };
    let of_shards = shards.values().flat_map(|shard| named(&shard.segments));
    manifest.segments = of_shards.collect();
    let aside = shards
        .values()
        .flat_map(|shard| named(&shard.aside.segments));
    manifest.aside = aside.collect();
    for id in manifest.all_segments().into_keys() {
        manifest.next_segment = manifest.next_segment.max(id.number + 1);
        manifest.shards.insert(id.shard);
    }
}
