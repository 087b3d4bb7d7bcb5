//! A store: the shards of one node, in memory and in a data directory.
//!
//! ```text
//! Writer -> log -> committed -> apply -> memtable -> flush -> segment -> compaction
//!                                  \________ lookups and scans ________/
//! ```
//!
//! # Invariants
//! - ST1: what was acknowledged is found after any end of the process or of the machine: in the log, or in segments
//!   that the manifest names.
//! - ST2: the log keeps every record from the manifest's first sequence on, and all before it are in segments.
//! - ST3: files that no manifest names are deleted only when everything that it names has been read.
//! - ST4: memtables that take changes hold at most twice their limit and one batch. Memtables that are being written
//!   hold as much. While the disk is full, or another shortage lasts, only removes continue. Then memtables hold at
//!   most four times their limit and what the log takes at once. Without a directory there is no such bound.
//! - ST5: the log has a few files, however often the same documents change.
//! - ST6: a store that failed for good is not opened again before an operator has removed the file `FAILED` that it left.
//! - ST7: a corpus that was dropped stays so while a segment or the log that is needed names it. After that it stays so
//!   while fewer than [`catalog::RECENT_DROPS`] others were dropped, as a message that makes it may be late.

mod aside;
mod catalog;
mod claim;
mod compaction;
mod copying;
mod create;
mod error;
mod failure;
mod floors;
mod flush;
mod former;
mod incarnations;
mod learning;
mod lock;
mod maintenance;
mod open;
mod page;
mod replay;
mod replicas;
mod resting;
mod roles;
mod room;
mod scrub;
mod set_aside;
mod snapshot;
#[cfg(test)]
mod tests;
mod upkeep;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use simshard_simhash::Fingerprint;
use simshard_topology::replication::StoreId;
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use crate::directory::{Directory, StoredFile};
use crate::disk_space::DiskSpace;
use crate::element::Operation;
use crate::error::{ReadError, WriteError};
use crate::log::{LogOptions, Tail};
use crate::manifest::Manifest;
use crate::segment::{BlockCache, Segment, SegmentId};
use crate::shard::{Effects, Lookup, Shard};
use crate::stored::SharedChange;
use crate::thread::AbortOnPanic;
use catalog::Catalog;
pub use catalog::Corpus;
pub use claim::Claim;
pub use copying::Pinned;
pub use error::OpenError;
pub use failure::FailureNote;
pub(crate) use failure::read_failure_note;
pub use learning::{CopyBase, CopyError, CopyWriter};
pub(crate) use lock::lock_for_looking;
pub(crate) use maintenance::Maintenance;
pub use maintenance::Merges;
pub use open::Holding;
pub(crate) use open::{LOG, SEGMENTS};
pub use page::PageStart;
pub(crate) use replay::NewCopies;
pub use replicas::Installation;
pub(crate) use replicas::{Replicas, entries_of};
use resting::Resting;
pub use snapshot::Snapshot;

/// Memtables are flushed once the log has this many files that only they need.
const LOG_FILES: u64 = 4;

/// How a store uses memory and disk.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of changes in memory from which on they are written to segments.
    pub memtable_bytes: usize,
    /// Bytes of segments that are kept in memory once read.
    pub cache_bytes: u64,
    /// How the log is written.
    pub(crate) log: LogOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memtable_bytes: 48 << 20,
            cache_bytes: 32 << 20,
            log: LogOptions::default(),
        }
    }
}

/// The shards of one node.
#[derive(Debug)]
pub struct Store {
    /// The shards that the node serves.
    owned: ShardSet,
    /// By id.
    shards: Vec<(ShardId, RwLock<Shard>)>,
    catalog: RwLock<Catalog>,
    replicas: RwLock<Replicas>,
    /// Bytes of all memtables that take changes.
    memory: AtomicUsize,
    /// Bytes of the log since memtables were last set aside, about.
    logged: AtomicUsize,
    /// Whether tombstones may go once memtables are written.
    has_settled: AtomicBool,
    /// `None` keeps everything in memory.
    disk: Option<Disk>,
    maintenance: Maintenance,
    /// Where the log goes on; taken by the writer.
    tail: Mutex<Option<Tail>>,
    options: Options,
}

/// The data directory of a store.
#[derive(Debug)]
struct Disk {
    directory: Arc<dyn Directory>,
    segments: Arc<dyn Directory>,
    manifest: Mutex<Manifest>,
    /// The number of the next segment.
    next_segment: AtomicU64,
    /// Segments that are not needed any more, to be deleted once a manifest does not name them.
    left: Mutex<Vec<SegmentId>>,
    /// Segments of copies that are finished, until the log names them.
    finished: Mutex<BTreeMap<SegmentId, Arc<Segment>>>,
    cache: Arc<BlockCache>,
    space: DiskSpace,
    resting: Mutex<Resting>,
    /// Up to which version tombstones of shards have gone, or were left to the next time.
    collected: Mutex<BTreeMap<ShardId, Version>>,
    /// Locked as long as it is open.
    _lock: Box<dyn StoredFile>,
}

impl Store {
    /// A store without a directory: it forgets everything when it is dropped.
    #[must_use]
    pub fn in_memory(owned: ShardSet) -> Self {
        let shards = owned.iter().map(|id| (id, RwLock::default()));
        Self {
            owned,
            shards: shards.collect(),
            catalog: RwLock::default(),
            replicas: RwLock::new(Replicas::new(StoreId([0; 16]))),
            memory: AtomicUsize::new(0),
            logged: AtomicUsize::new(0),
            has_settled: AtomicBool::new(false),
            disk: None,
            maintenance: Maintenance::default(),
            tail: Mutex::new(Some(Tail::nowhere())),
            options: Options::default(),
        }
    }

    /// The shards that the node serves.
    #[must_use]
    pub const fn shards(&self) -> ShardSet {
        self.owned
    }

    /// What the records of shards say of this store.
    pub(crate) const fn replicas(&self) -> &RwLock<Replicas> {
        &self.replicas
    }

    /// The last record of the log that is on disk and applied.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.maintenance.applied()
    }

    /// The corpora that it holds, by uid.
    #[must_use]
    pub fn corpora(&self) -> Vec<Corpus> {
        self.catalog.read().corpora()
    }

    /// Whether it holds a corpus.
    #[must_use]
    pub fn holds(&self, corpus: CorpusUid) -> bool {
        self.catalog.read().holds(corpus)
    }

    /// Applies a committed change to the documents at `places`, in one shard. `is_stored` says whether live
    /// documents may have a fingerprint: where not, segments need not be read.
    pub fn apply(
        &self,
        id: ShardId,
        change: &SharedChange<'_>,
        places: &[u32],
        is_stored: impl Fn(Fingerprint) -> bool,
    ) -> Effects {
        let is_replicated = self.replicas.read().has(id);
        let mut shard = match self.shard(id) {
            Ok(shard) => shard.write(),
            Err(error) => {
                return Effects {
                    error: Some(error),
                    ..Effects::default()
                };
            }
        };
        let _guard = AbortOnPanic;
        let before = shard.memtable.bytes();
        let effects = shard.apply(change, places, is_replicated, is_stored);
        let more = shard.memtable.bytes() - before;
        self.memory.fetch_add(more, Ordering::Relaxed);
        effects
    }

    /// The ids of the live documents that have a fingerprint, ascending. If there are more than `most`, these are the
    /// first ones, and not many others are read for that.
    pub fn live_ids(
        &self,
        id: ShardId,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
        most: Option<NonZeroUsize>,
    ) -> Result<Vec<Box<str>>, ReadError> {
        let limit = most.map_or(usize::MAX, NonZeroUsize::get);
        let mut part = limit;
        loop {
            let lookup = Lookup::new(&*self.read(id)?, corpus, fingerprint, part);
            if let Some(ids) = lookup.live_ids(limit)? {
                return Ok(ids);
            }
            // Much of what is live in one place was removed in another.
            part = part.saturating_mul(2);
        }
    }

    /// Visits the live documents of a corpus in a shard, by fingerprint, then id. Changes of the shard wait
    /// meanwhile.
    ///
    /// # Errors
    /// If the shard is not in the store, or a segment cannot be read. Then what was visited is not all.
    pub fn scan(
        &self,
        id: ShardId,
        corpus: CorpusUid,
        visit: impl FnMut(Fingerprint, &str),
    ) -> Result<(), ReadError> {
        let shard = self.read(id)?;
        if !self.holds(corpus) {
            return Ok(());
        }
        let tables = [&*shard.frozen, &shard.memtable];
        snapshot::scan_live(&shard.segments, tables, corpus, visit)
    }

    /// Takes note of a committed operation, before it is applied. Answers a corpus that it drops.
    pub(crate) fn note(&self, sequence: u64, operation: &Operation) -> Option<CorpusUid> {
        match operation {
            Operation::CreateCorpus { uid, layout } => {
                self.catalog.write().create(sequence, *uid, *layout);
            }
            Operation::DropCorpus { uid } => {
                self.catalog.write().drop_corpus(sequence, *uid);
                return Some(*uid);
            }
            Operation::Install(_) | Operation::Copied(_) | Operation::Change(_) => {}
        }
        None
    }

    /// Frees what memtables hold of a corpus that was dropped, and then what segments do.
    pub(crate) fn forget(&self, corpus: CorpusUid) {
        for (_, shard) in &self.shards {
            let mut shard = shard.write();
            let before = shard.memtable.bytes();
            shard.memtable.drop_corpus(corpus);
            let less = before - shard.memtable.bytes();
            self.memory.fetch_sub(less, Ordering::Relaxed);
        }
        self.maintenance.note_dropped();
    }

    /// Takes note that all records up to a sequence are applied, and what they take in the log; waits if memory has
    /// to be written first.
    pub(crate) fn note_applied(&self, sequence: u64, bytes: usize) {
        self.logged.fetch_add(bytes, Ordering::Relaxed);
        self.maintenance.note_applied(sequence, self.fullness());
        if self.has_settled.swap(false, Ordering::Relaxed) && self.disk.is_some() {
            self.maintenance.ask_for_flush();
        }
        self.maintenance.wait_for_room();
    }

    pub(crate) fn stop_maintenance(&self) {
        self.maintenance.stop();
    }

    /// Where the log goes on: for the first who asks.
    pub(crate) fn take_tail(&self) -> Option<Tail> {
        let mut tail = self.tail.lock();
        tail.take()
    }

    pub(crate) const fn log_options(&self) -> LogOptions {
        self.options.log
    }

    /// How many times memtables have reached their limit, or the log its own. The log has a limit because an element
    /// that changes again and again takes no more memory, but more log.
    fn fullness(&self) -> usize {
        if self.disk.is_none() {
            return 0;
        }
        let memory = self.memory.load(Ordering::Relaxed) / self.options.memtable_bytes.max(1);
        let most = (LOG_FILES * self.options.log.file_bytes).max(1);
        let logged = self.logged.load(Ordering::Relaxed) as u64 / most;
        memory.max(usize::from(logged > 0))
    }

    /// The segments that were set aside.
    fn segments_aside(&self) -> Vec<Arc<Segment>> {
        let shards = self.shards.iter().map(|(_, shard)| shard.read());
        shards
            .flat_map(|shard| shard.aside.segments.clone())
            .collect()
    }

    /// The segments of all shards.
    fn all_segments(&self) -> Vec<Arc<Segment>> {
        let shards = self.shards.iter().map(|(_, shard)| shard.read());
        shards.flat_map(|shard| shard.segments.to_vec()).collect()
    }

    fn read(&self, id: ShardId) -> Result<RwLockReadGuard<'_, Shard>, ReadError> {
        Ok(self.shard(id)?.read())
    }

    fn shard(&self, id: ShardId) -> Result<&RwLock<Shard>, ReadError> {
        let place = self.shards.binary_search_by_key(&id, |(id, _)| *id);
        let place = place.map_err(|_| ReadError::ShardAbsent(id))?;
        Ok(&self.shards[place].1)
    }
}

impl Disk {
    /// Deletes the file of a segment that no manifest names.
    fn delete_segment(&self, id: SegmentId) -> Result<(), WriteError> {
        let name = id.to_string();
        let deleted = self.segments.remove(&name);
        deleted.map_err(WriteError::io("delete", &self.segments.path().join(name)))
    }

    /// Numbers the next segment of a shard. It counts once a manifest or the log names it.
    fn next_segment(&self, shard: ShardId) -> SegmentId {
        let number = self.next_segment.fetch_add(1, Ordering::Relaxed);
        SegmentId { shard, number }
    }
}
