//! The manifest: which segments and corpora a data directory has, and where the log that it needs begins.
//!
//! # Invariants
//! - MF1: a manifest is on disk whole: it is replaced by a rename, after all its bytes are synced.
//! - MF2: reading yields the manifest that was written, or an error.
//! - MF3: a manifest is written only if reading accepts it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use simshard_simhash::Layout;
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use uuid::Uuid;

use crate::bytes::{Bytes, Put};
use crate::directory::{Directory, Opening};
use crate::error::{Fault, ReadError, WriteError};
use crate::files;
use crate::seal::{SEAL_BYTES, seal, unseal};
use crate::segment::{Origin, SegmentId, SegmentMeta, put_origin, take_origin};
use crate::{ASIDE_FORMAT, FIRST_FORMAT, FLOOR_FORMAT, FORMAT_VERSION, REPLICA_FORMAT};

mod replica;

pub(crate) use replica::ReplicaMeta;
use replica::{put_replica, take_replica};

/// The name of its file.
pub(crate) const NAME: &str = "manifest";

const MAGIC: [u8; 8] = *b"SIMSHMAN";

/// Whether a data directory was made here. It may be damaged, or of another format.
#[must_use]
pub fn is_data_directory(directory: &Path) -> bool {
    directory.join(NAME).exists()
}

/// Bytes up to and with the length of what follows.
const HEAD_BYTES: usize = 16;

/// All that a data directory is, but for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The store whose directory this is.
    pub(crate) store: Uuid,
    /// One more with each manifest that is written.
    pub(crate) generation: u64,
    /// The first record of the log that is needed: all before it are in segments.
    pub(crate) first_sequence: u64,
    /// No segment has or had this number or a higher one.
    pub(crate) next_segment: u64,
    /// The shards that the directory holds.
    pub(crate) shards: ShardSet,
    /// The corpora, and how each is laid out.
    pub(crate) corpora: BTreeMap<CorpusUid, Layout>,
    /// Corpora that are gone, though segments may still have elements of them.
    pub(crate) dropped: BTreeSet<CorpusUid>,
    pub(crate) segments: BTreeMap<SegmentId, SegmentMeta>,
    /// Segments that were set aside, when their shards began anew.
    pub(crate) aside: BTreeMap<SegmentId, SegmentMeta>,
    /// What records of shards said that were installed; none if nodes have no such records.
    pub(crate) replicas: BTreeMap<ShardId, ReplicaMeta>,
}

impl Manifest {
    /// The manifest of a store that holds nothing yet; the log starts with record 1.
    pub(crate) fn new(store: Uuid) -> Self {
        Self {
            store,
            generation: 0,
            first_sequence: 1,
            next_segment: 1,
            shards: ShardSet::EMPTY,
            corpora: BTreeMap::new(),
            dropped: BTreeSet::new(),
            segments: BTreeMap::new(),
            aside: BTreeMap::new(),
            replicas: BTreeMap::new(),
        }
    }

    /// All segments, those that were set aside among them.
    pub(crate) fn all_segments(&self) -> BTreeMap<SegmentId, SegmentMeta> {
        let all = self.segments.iter().chain(&self.aside);
        all.map(|(id, meta)| (*id, *meta)).collect()
    }

    /// The format version that can say all this.
    fn format(&self) -> u32 {
        if self.replicas.values().any(ReplicaMeta::has_floor) {
            return FLOOR_FORMAT;
        }
        if !self.aside.is_empty() {
            return ASIDE_FORMAT;
        }
        if self.replicas.is_empty() && !self.segments.values().any(|meta| meta.origin.is_some()) {
            FIRST_FORMAT
        } else {
            REPLICA_FORMAT
        }
    }

    /// Reads the manifest of a data directory; none if there is none.
    pub(crate) fn read(directory: &dyn Directory) -> Result<Option<Self>, ReadError> {
        let path = directory.path().join(NAME);
        let opened = directory.open(NAME, Opening::Read);
        match opened.and_then(|file| file.read(usize::MAX)) {
            Ok(bytes) => match Self::decode(&bytes) {
                Ok(manifest) => Ok(Some(manifest)),
                Err(fault) => Err(fault.in_file(&path)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    /// Puts this manifest in the place of the one before. When this returns, that lasts.
    pub(crate) fn write(&self, directory: &Arc<dyn Directory>) -> Result<(), WriteError> {
        let bytes = self.encode();
        if let Err(fault) = Self::decode(&bytes) {
            let path = directory.path().join(NAME);
            let source = Box::new(fault.in_file(&path));
            return Err(WriteError::Refused { path, source });
        }
        files::replace(directory, NAME, &bytes)
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let format = self.format();
        let mut body = Vec::new();
        body.put(self.store.as_bytes());
        body.put_u64(self.generation);
        body.put_u64(self.first_sequence);
        body.put_u64(self.next_segment);
        body.put(&self.shards.to_bytes());
        body.put_u32(self.corpora.len() as u32);
        body.put_u32(self.dropped.len() as u32);
        body.put_u32((self.segments.len() + self.aside.len()) as u32);
        body.put_u32(self.replicas.len() as u32);
        for (uid, layout) in &self.corpora {
            body.put(&uid.0);
            // Both are at most 64.
            body.put(&[layout.blocks() as u8, layout.distance() as u8]);
            body.put(&[0; 6]);
        }
        for uid in &self.dropped {
            body.put(&uid.0);
        }
        for (id, meta) in &self.all_segments() {
            body.put_u32(u32::from(id.shard.0));
            body.put_u32(u32::from(self.aside.contains_key(id)));
            body.put_u64(id.number);
            body.put_u64(meta.bytes);
            body.put_u64(meta.elements);
            body.put_u64(meta.highest_version.0);
            body.put(&meta.hash);
            if format >= REPLICA_FORMAT {
                put_origin(&mut body, meta.origin);
            }
        }
        for (shard, replica) in &self.replicas {
            put_replica(&mut body, *shard, replica);
        }
        let mut buffer = Vec::with_capacity(HEAD_BYTES + body.len() + SEAL_BYTES);
        buffer.put(&MAGIC);
        buffer.put_u32(format);
        buffer.put_u32(body.len() as u32);
        buffer.put(&body);
        seal(&mut buffer, 0);
        buffer
    }

    /// Checks the bytes of a file and takes them apart. Magic and format version are read before the
    /// checksum, which a later format may keep elsewhere.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut rest = Bytes(bytes);
        let expected = NAME;
        if rest.array() != Some(MAGIC) {
            return Err(Fault::Foreign { expected });
        }
        let format = rest.u32().unwrap_or_default();
        if format > FORMAT_VERSION {
            let (version, reads) = (format, FORMAT_VERSION);
            return Err(Fault::Newer { version, reads });
        }
        let length = rest.u32().map_or(0, u64::from);
        if length + (HEAD_BYTES + SEAL_BYTES) as u64 != bytes.len() as u64 {
            return Err(Fault::damaged(
                bytes.len(),
                "the file is not as long as it says",
            ));
        }
        let Some((sealed, _)) = unseal(bytes) else {
            return Err(Fault::damaged(0, "the checksum does not match"));
        };
        if format < FIRST_FORMAT {
            return Err(Fault::damaged(8, "there is no such format version"));
        }
        Reader {
            rest: Bytes(&sealed[HEAD_BYTES..]),
            end: sealed.len(),
            format,
        }
        .manifest()
    }
}

/// Takes the body apart, and knows where it is.
struct Reader<'a> {
    rest: Bytes<'a>,
    /// Where the body ends in the file.
    end: usize,
    format: u32,
}

impl Reader<'_> {
    fn manifest(&mut self) -> Result<Manifest, Fault> {
        let mut manifest = Manifest::new(Uuid::from_bytes(self.array()?));
        manifest.generation = self.u64()?;
        manifest.first_sequence = self.u64()?;
        manifest.next_segment = self.u64()?;
        manifest.shards = ShardSet::from_bytes(self.array()?);
        let [corpora, dropped, segments] = [self.u32()?, self.u32()?, self.u32()?];
        let replicas = if self.format >= REPLICA_FORMAT {
            self.u32()?
        } else {
            self.zeros::<4>()?;
            0
        };
        for _ in 0..corpora {
            let (start, uid) = (self.offset(), CorpusUid(self.array()?));
            ascends(
                start,
                manifest.corpora.last_key_value().map(|(last, _)| last),
                &uid,
            )?;
            manifest.corpora.insert(uid, self.layout()?);
        }
        for _ in 0..dropped {
            let (start, uid) = (self.offset(), CorpusUid(self.array()?));
            ascends(start, manifest.dropped.last(), &uid)?;
            if manifest.corpora.contains_key(&uid) {
                return Err(Fault::damaged(start, "a corpus is both there and dropped"));
            }
            manifest.dropped.insert(uid);
        }
        let mut last = None;
        for _ in 0..segments {
            last = Some(self.add_segment(&mut manifest, last)?);
        }
        for _ in 0..replicas {
            let start = self.offset();
            let (id, replica) = self.replica()?;
            let last = manifest.replicas.last_key_value();
            ascends(start, last.map(|(last, _)| last), &id)?;
            manifest.replicas.insert(id, replica);
        }
        if self.rest.0.is_empty() {
            Ok(manifest)
        } else {
            Err(Fault::damaged(
                self.offset(),
                "more follows than is counted",
            ))
        }
    }

    fn add_segment(
        &mut self,
        manifest: &mut Manifest,
        last: Option<SegmentId>,
    ) -> Result<SegmentId, Fault> {
        let start = self.offset();
        let (id, meta, is_aside) = self.segment()?;
        ascends(start, last.as_ref(), &id)?;
        if id.number >= manifest.next_segment {
            let what = "a segment has a number that was not given yet";
            return Err(Fault::damaged(start, what));
        }
        if !manifest.shards.contains(id.shard) {
            let what = "a segment is of a shard that the directory does not hold";
            return Err(Fault::damaged(start, what));
        }
        let place = if is_aside {
            &mut manifest.aside
        } else {
            &mut manifest.segments
        };
        place.insert(id, meta);
        Ok(id)
    }

    fn layout(&mut self) -> Result<Layout, Fault> {
        let start = self.offset();
        let [blocks, distance] = self.array()?;
        self.zeros::<6>()?;
        let layout = Layout::new(blocks.into(), distance.into());
        layout.map_err(|_| Fault::damaged(start, "no corpus has these blocks and distance"))
    }

    /// A segment, and whether it was set aside.
    fn segment(&mut self) -> Result<(SegmentId, SegmentMeta, bool), Fault> {
        let shard = self.shard()?;
        let is_aside = self.is_aside()?;
        let id = SegmentId {
            shard,
            number: self.u64()?,
        };
        let meta = SegmentMeta {
            bytes: self.u64()?,
            elements: self.u64()?,
            highest_version: Version(self.u64()?),
            hash: self.array()?,
            origin: self.origin()?,
        };
        Ok((id, meta, is_aside))
    }

    fn is_aside(&mut self) -> Result<bool, Fault> {
        if self.format < ASIDE_FORMAT {
            self.zeros::<4>()?;
            return Ok(false);
        }
        let start = self.offset();
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::damaged(
                start,
                "a segment is neither set aside nor not",
            )),
        }
    }

    fn origin(&mut self) -> Result<Option<Origin>, Fault> {
        if self.format < REPLICA_FORMAT {
            return Ok(None);
        }
        let fault = Fault::damaged(self.offset(), "less follows than is counted");
        take_origin(&mut self.rest).ok_or(fault)
    }

    fn replica(&mut self) -> Result<(ShardId, ReplicaMeta), Fault> {
        let start = self.offset();
        let replica = take_replica(&mut self.rest);
        let may_have_one = self.format >= FLOOR_FORMAT;
        let replica = replica.filter(|(_, meta)| may_have_one || !meta.has_floor());
        replica.ok_or(Fault::damaged(start, "this is no shard with a record"))
    }

    fn shard(&mut self) -> Result<ShardId, Fault> {
        let start = self.offset();
        let shard = u8::try_from(self.u32()?);
        let shard = shard.map_err(|_| Fault::damaged(start, "there is no such shard"))?;
        Ok(ShardId(shard))
    }

    fn zeros<const N: usize>(&mut self) -> Result<(), Fault> {
        let start = self.offset();
        if self.array()? == [0; N] {
            Ok(())
        } else {
            Err(Fault::damaged(start, "there are no zeros"))
        }
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let fault = Fault::damaged(self.offset(), "less follows than is counted");
        self.rest.array().ok_or(fault)
    }

    /// Where the next byte stands in the file.
    fn offset(&self) -> usize {
        self.end - self.rest.0.len()
    }
}

/// Checks that an entry comes after the last one.
fn ascends<T: Ord>(start: usize, last: Option<&T>, next: &T) -> Result<(), Fault> {
    if last.is_none_or(|last| last < next) {
        Ok(())
    } else {
        Err(Fault::damaged(start, "entries are out of order"))
    }
}

#[cfg(test)]
mod tests;
