//! Looking at a data directory that no process uses, without changing anything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_topology::replication::Epoch;
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use uuid::Uuid;

use crate::directory::{Directory, DiskDirectory, StoredFile};
use crate::error::ReadError;
use crate::files;
use crate::log::{AbruptEnd, Record, Torn, survey};
use crate::manifest::Manifest;
use crate::merge::Cursor;
use crate::segment::{BlockCache, Segment, SegmentId, SegmentMeta};
use crate::store::{
    Corpus, FailureNote, LOG, NewCopies, OpenError, Replicas, SEGMENTS, lock_for_looking,
    read_failure_note,
};

/// The content of a data directory. No process can open the directory as long as this lives.
#[derive(Debug)]
pub struct Inspection {
    /// The identity of the store.
    pub store: Uuid,
    /// How many manifests were written.
    pub generation: u64,
    /// The shards that it holds.
    pub shards: ShardSet,
    /// The epochs of the records of shards that it has installed, in manifest and log.
    pub epochs: BTreeMap<ShardId, Epoch>,
    /// The corpora, by uid.
    pub corpora: Vec<Corpus>,
    /// Corpora that were dropped, by uid.
    pub dropped: BTreeSet<CorpusUid>,
    /// The segments that the next start reads, by shard, then age: those of the manifest and of copies that only the log
    /// names yet.
    pub segments: Vec<SegmentFile>,
    /// Files of the log.
    pub log_files: usize,
    /// Records of the log that are in no segment yet.
    pub log_records: u64,
    /// The torn write that the next start will cut off.
    pub torn: Option<Torn>,
    /// The end of the log, if it cannot be told from that of a file that was cut short.
    pub abrupt_end: Option<AbruptEnd>,
    /// The note of the store, if it has failed for good.
    pub failed: Option<FailureNote>,
    folder: Arc<dyn Directory>,
    metas: BTreeMap<SegmentId, SegmentMeta>,
    /// `None` if the directory has no file to lock.
    lock: Option<Box<dyn StoredFile>>,
}

/// A segment, as manifest or log name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its shard.
    pub shard: ShardId,
    /// Its file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// Elements, tombstones among them.
    pub elements: u64,
    /// The highest version of an element.
    pub highest_version: Version,
    /// Whether it was set aside when its shard began anew, and is no part of it.
    pub is_set_aside: bool,
}

/// Reads manifest and log of a data directory.
///
/// # Errors
/// If there is none, a process uses it, or they cannot be read.
pub fn inspect(directory: &Path) -> Result<Inspection, OpenError> {
    inspect_in(&DiskDirectory::read_only(directory))
}

/// `inspect`, in any directory.
pub(crate) fn inspect_in(directory: &dyn Directory) -> Result<Inspection, OpenError> {
    let lock = lock_for_looking(directory)?;
    let manifest = Manifest::read(directory).map_err(OpenError::Manifest)?;
    let manifest = manifest.ok_or_else(|| OpenError::NoStore {
        path: directory.path().to_owned(),
    })?;
    let mut replicas = Replicas::of(&manifest);
    let mut copies = NewCopies::default();
    let mut anew = ShardSet::EMPTY;
    let visit = |sequence: u64, record: Record| {
        if let Record::Operation(operation) = record {
            let begun = copies.take(&mut replicas, sequence, &operation);
            anew = anew.union(&begun);
        }
        Ok::<(), OpenError>(())
    };
    let log = files::folder(directory, LOG)?;
    let survey = survey(log, manifest.store, manifest.first_sequence, visit)?;
    let folder = files::folder(directory, SEGMENTS)?;
    let metas = copies.all_segments(&manifest);
    let copied = copies.iter().flat_map(|copy| &copy.segments);
    let copied: BTreeSet<SegmentId> = copied.map(|(id, _)| *id).collect();
    let segments = metas.iter().map(|(id, meta)| SegmentFile {
        shard: id.shard,
        path: folder.path().join(id.to_string()),
        bytes: meta.bytes,
        elements: meta.elements,
        highest_version: meta.highest_version,
        is_set_aside: !copied.contains(id)
            && (manifest.aside.contains_key(id) || anew.contains(id.shard)),
    });
    let corpora = manifest.corpora.iter();
    Ok(Inspection {
        store: manifest.store,
        generation: manifest.generation,
        shards: manifest.shards,
        epochs: replicas.epochs(),
        corpora: corpora
            .map(|(&uid, &layout)| Corpus { uid, layout })
            .collect(),
        dropped: manifest.dropped.clone(),
        segments: segments.collect(),
        log_files: survey.files,
        log_records: survey.next_sequence.saturating_sub(manifest.first_sequence),
        torn: survey.torn,
        abrupt_end: survey.abrupt_end,
        failed: read_failure_note(directory)?,
        folder,
        metas,
        lock,
    })
}

impl Inspection {
    /// Whether other processes are kept out. They are not where the directory has no file to lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Reads every byte of the segments, and checks it: hashes, checksums, order. Manifest and log were checked when
    /// they were read. `progress` hears of the bytes of each segment as it is done.
    ///
    /// # Errors
    /// The first damage that is found, with its file and offset.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<(), ReadError> {
        let cache = Arc::new(BlockCache::new(0));
        for (&id, &meta) in &self.metas {
            let segment = Segment::open(&*self.folder, self.store, id, meta, Arc::clone(&cache))?;
            segment.verify(|_| true)?;
            walk(&segment)?;
            progress(meta.bytes);
        }
        Ok(())
    }
}

/// Decodes every block.
fn walk(segment: &Segment) -> Result<(), ReadError> {
    let mut elements = segment.scan_all(|_| true)?;
    while elements.element().is_some() {
        elements.advance()?;
    }
    Ok(())
}
