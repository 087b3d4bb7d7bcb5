//! Opening a data directory: manifest, segments, log, then memtables as they were.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use parking_lot::{Mutex, RwLock};
use simshard_topology::replication::{Epoch, ShardRecords};
use simshard_topology::{ShardId, ShardSet};

use super::catalog::Catalog;
use super::lock::lock;
use super::replay::{Replayed, add_copies, renew, replay_log};
use super::replicas::{Installation, Replicas, entries_of};
use super::{Disk, Maintenance, OpenError, Options, Store, create, failure};
use crate::directory::{Directory, DiskDirectory};
use crate::disk_space::DiskSpace;
use crate::element::Operation;
use crate::error::ReadError;
use crate::files;
use crate::log::Tail;
use crate::manifest::Manifest;
use crate::segment::{BlockCache, Segment, SegmentId};
use crate::shard::Shard;

/// The folder of the log.
pub(crate) const LOG: &str = "log";

/// The folder of the segments.
pub(crate) const SEGMENTS: &str = "segments";

/// The shards that a store is to hold.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The shards.
    pub shards: ShardSet,
    /// The records of all shards by the metadata; `None` if it has no such records.
    pub records: Option<ShardRecords>,
}

impl From<ShardSet> for Holding {
    fn from(shards: ShardSet) -> Self {
        Self {
            shards,
            records: None,
        }
    }
}

impl Store {
    /// Opens a data directory, or makes one, for a node that owns these shards. Everything that was
    /// acknowledged is there again when this returns.
    ///
    /// # Errors
    /// If the directory is in use, damaged, of another format, does not hold the shards, or has installed other records
    /// (IR1).
    pub fn open(
        directory: &Path,
        holding: impl Into<Holding>,
        options: Options,
    ) -> Result<Self, OpenError> {
        DiskDirectory::make(directory).map_err(failed("make", directory))?;
        let opened = DiskDirectory::open(directory).map_err(failed("open", directory))?;
        Self::open_in(Arc::new(opened), holding.into(), options)
    }

    /// `open`, in any directory.
    pub(super) fn open_in(
        directory: Arc<dyn Directory>,
        holding: Holding,
        options: Options,
    ) -> Result<Self, OpenError> {
        let (owned, records) = (holding.shards, holding.records);
        create::check_is_free(&*directory)?;
        let lock = lock(&*directory)?;
        failure::check(&*directory)?;
        let mut manifest = match Manifest::read(&*directory).map_err(OpenError::Manifest)? {
            Some(manifest) => manifest,
            None => create::manifest(&directory, owned)?,
        };
        let segments = files::folder(&*directory, SEGMENTS)?;
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let mut shards = open_segments(&*segments, &manifest, &cache)?;
        let mut log = replay_log(&*directory, &manifest, &mut shards)?;
        // A process that was killed may have left names of files in memory only.
        files::sync(&*directory)?;
        files::sync(&*segments)?;
        add_copies(&*segments, &manifest, &log, &cache, &mut shards)?;
        renew(&mut manifest, &shards);
        report(&*directory, &manifest, &log.tail);
        settle(&directory, &mut manifest, &mut log, owned, records.as_ref())?;
        shards.retain(|id, _| owned.contains(*id));
        delete_leftovers(&*segments, &manifest)?;
        let disk = Disk {
            space: DiskSpace::new(Arc::clone(&directory)),
            directory,
            segments,
            next_segment: AtomicU64::new(manifest.next_segment),
            left: Mutex::default(),
            finished: Mutex::default(),
            manifest: Mutex::new(manifest),
            cache,
            resting: Mutex::default(),
            collected: Mutex::new(log.replicas.collected()),
            _lock: lock,
        };
        let applied = log.note_replayed();
        let memory = shards.values().map(Shard::changing_bytes).sum();
        let store = Self {
            owned,
            shards: all_of(owned, shards),
            catalog: RwLock::new(log.catalog),
            replicas: RwLock::new(log.replicas),
            memory: AtomicUsize::new(memory),
            logged: AtomicUsize::new(log.tail.needed_bytes),
            has_settled: AtomicBool::new(false),
            disk: Some(disk),
            maintenance: Maintenance::default(),
            tail: Mutex::new(Some(log.tail)),
            options,
        };
        store.maintenance.note_applied(applied, store.fullness());
        store.note_what_is_due();
        Ok(store)
    }

    /// Takes note of what maintenance has to do from the start on.
    fn note_what_is_due(&self) {
        if !self.catalog.read().dropped.is_empty() {
            self.maintenance.note_dropped();
        }
        let mut shards = self.shards.iter();
        if shards.any(|(_, shard)| !shard.read().aside.memtable.is_empty()) {
            self.maintenance.ask_for_flush();
        }
    }
}

/// The shards of a store: those that have contents, and empty ones for the others.
fn all_of(owned: ShardSet, mut shards: BTreeMap<ShardId, Shard>) -> Vec<(ShardId, RwLock<Shard>)> {
    let mut shard = |id| RwLock::new(shards.remove(&id).unwrap_or_default());
    owned.iter().map(|id| (id, shard(id))).collect()
}

fn report(directory: &dyn Directory, manifest: &Manifest, tail: &Tail) {
    let (directory, segments) = (directory.path().display(), manifest.segments.len());
    let records = tail.sequence - manifest.first_sequence;
    let cut_bytes = tail.cut().map_or(0, |cut| cut.bytes);
    tracing::info!(%directory, segments, records, cut_bytes, "opened what is stored");
}

pub(super) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io {
        action,
        path,
        source,
    }
}

/// Gives the directory the shards and records that it is to hold, before anything is served.
fn settle(
    directory: &Arc<dyn Directory>,
    manifest: &mut Manifest,
    log: &mut Replayed,
    owned: ShardSet,
    records: Option<&ShardRecords>,
) -> Result<(), OpenError> {
    let install = Operation::Install(news(&**directory, &log.replicas, records)?);
    let is_held = hold(
        &**directory,
        manifest,
        owned,
        &log.catalog,
        records.is_some(),
    )?;
    // No learner is added without a report of another store, so no shard begins anew.
    log.replicas
        .restore(&entries_of(&install).unwrap_or_default(), 0);
    let installed = log.replicas.to_manifest();
    if is_held && installed == manifest.replicas {
        return Ok(());
    }
    manifest.replicas = installed;
    manifest.generation += 1;
    Ok(manifest.write(directory)?)
}

/// The records that are to be installed before anything is served. So a forced record holds from the start on, though the
/// node did not run when the operator wrote it (FO3).
pub(super) fn news(
    directory: &dyn Directory,
    replicas: &Replicas,
    records: Option<&ShardRecords>,
) -> Result<Installation, OpenError> {
    let path = || directory.path().to_owned();
    match records {
        Some(records) => replicas
            .news(records, |_, _| Epoch::NONE)
            .map_err(|(shard, problem)| {
                let path = path();
                OpenError::OtherRecords {
                    path,
                    shard,
                    problem,
                }
            }),
        None if replicas.is_empty() => Ok(Installation::new()),
        None => Err(OpenError::NoRecords { path: path() }),
    }
}

/// Gives shards to a directory that has no documents yet. One that has is of use for its own shards only. Answers
/// whether it has them already.
fn hold(
    directory: &dyn Directory,
    manifest: &mut Manifest,
    owned: ShardSet,
    catalog: &Catalog,
    may_grow: bool,
) -> Result<bool, OpenError> {
    if owned == manifest.shards {
        return Ok(true);
    }
    if may_grow && manifest.shards.difference(&owned).is_empty() {
        manifest.shards = owned;
        return Ok(false);
    }
    if !catalog.corpora.is_empty() {
        return Err(OpenError::OtherShards {
            path: directory.path().to_owned(),
            held: manifest.shards,
            owned,
        });
    }
    manifest.shards = owned;
    // They are of dropped corpora.
    manifest.segments.clear();
    manifest.aside.clear();
    Ok(false)
}

/// Opens every segment that the manifest names, for shards or set aside; nothing in memory yet.
fn open_segments(
    folder: &dyn Directory,
    manifest: &Manifest,
    cache: &Arc<BlockCache>,
) -> Result<BTreeMap<ShardId, Shard>, ReadError> {
    let mut shards: BTreeMap<ShardId, Shard> = BTreeMap::new();
    for (id, meta) in manifest.all_segments() {
        let segment = Segment::open(folder, manifest.store, id, meta, Arc::clone(cache))?;
        let shard = shards.entry(id.shard).or_default();
        if manifest.aside.contains_key(&id) {
            shard.aside.segments.push(Arc::new(segment));
        } else {
            Arc::make_mut(&mut shard.segments).push(Arc::new(segment));
        }
    }
    Ok(shards)
}

/// Deletes segments that were never finished, or that no manifest names any more. A manifest would name those if the
/// step that made or replaced them had come to its end. Other files are left alone.
fn delete_leftovers(folder: &dyn Directory, manifest: &Manifest) -> Result<(), OpenError> {
    let names = folder.names().map_err(failed("list", folder.path()))?;
    let mut files = 0;
    for name in names {
        let id: Option<SegmentId> = name.parse().ok();
        let is_leftover = id.is_some_and(|id| {
            !manifest.segments.contains_key(&id) && !manifest.aside.contains_key(&id)
        });
        if is_leftover || files::is_unfinished(&name) {
            let path = folder.path().join(&name);
            folder.remove(&name).map_err(failed("delete", &path))?;
            tracing::debug!(file = %path.display(), "deleted a file that no manifest names");
            files += 1;
        }
    }
    if files > 0 {
        tracing::info!(files, "deleted what a step that was cut off left behind");
    }
    Ok(())
}
