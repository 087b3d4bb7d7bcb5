//! The records of the log, and their bytes: the body of a frame (`FORMAT.md`, section Log). Pure.

use std::sync::Arc;

use simshard_simhash::{Documents, Fingerprint, Layout, LayoutError};
use simshard_topology::replication::{Epoch, ShardRecord};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use crate::bytes::{Bytes, Put};
use crate::element::{Change, ChangeKind, MAX_ID_BYTES, Operation, ShardCopy};
use crate::log::frame::{Body, MAX_BODY_BYTES};
use crate::segment::{SegmentId, SegmentMeta, put_origin, take_origin};
use crate::shard_record::{has_floor, put_epoch, put_shard_record, take_epoch, take_shard_record};
use crate::{ASIDE_FORMAT, FIRST_FORMAT, FLOOR_FORMAT, REPLICA_FORMAT};

const CREATE_CORPUS: u8 = 1;
const DROP_CORPUS: u8 = 2;
const INSERT: u8 = 3;
const REMOVE: u8 = 4;
const MARK: u8 = 5;
const INSTALL: u8 = 6;
const COPIED: u8 = 7;
const COPIED_IN_PARTS: u8 = 8;

/// Bytes of an insert or remove before its fingerprints.
const CHANGE_BYTES: usize = 1 + 16 + 8 + 32 + 4 + 4;

/// One step in the life of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Something that was done.
    Operation(Operation),
    /// Nothing: the frame tells by its `synced` that what stands before it was on disk. The log
    /// writes these itself.
    Mark,
}

/// A record that may not be written, as it could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodeError {
    #[error("the record takes {bytes} bytes, at most {MAX_BODY_BYTES} are allowed: split it")]
    TooLong { bytes: usize },
    #[error("an id has {bytes} bytes, at most {MAX_ID_BYTES} are allowed")]
    IdTooLong { bytes: usize },
    #[error(
        "the ids are {ids}, the fingerprints {fingerprints}: give one id for each, or none at all"
    )]
    UnequalColumns { ids: usize, fingerprints: usize },
}

/// Why a body is no record of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("there is no record of kind {0}")]
    UnknownKind(u8),
    #[error("the record is cut short")]
    Short,
    #[error("the record is followed by {0} bytes")]
    Long(usize),
    #[error("the ids are no UTF-8")]
    NotText,
    #[error("the ends of the ids do not ascend to the end of their bytes, character by character")]
    Ends,
    /// Blocks and distance make no corpus.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("an id has {0} bytes, at most {MAX_ID_BYTES} are allowed")]
    IdTooLong(usize),
    #[error("the shards do not ascend, or one has no record")]
    Shards,
}

impl Record {
    /// The bytes of the record.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut body = Vec::new();
        match self {
            Self::Operation(Operation::CreateCorpus { uid, layout }) => {
                body.put(&[CREATE_CORPUS]);
                body.put(&uid.0);
                // A layout has at most 64 blocks.
                body.put(&[layout.blocks() as u8, layout.distance() as u8]);
            }
            Self::Operation(Operation::DropCorpus { uid }) => {
                body.put(&[DROP_CORPUS]);
                body.put(&uid.0);
            }
            Self::Operation(Operation::Change(change)) => body = encode_change(change)?,
            Self::Operation(Operation::Install(installed)) => {
                body.put(&[INSTALL]);
                body.put_u32(installed.len() as u32);
                for (shard, record) in installed {
                    body.put_u32(u32::from(shard.0));
                    put_shard_record(&mut body, record);
                }
            }
            Self::Operation(Operation::Copied(copy)) => encode_copied(copy, &mut body),
            Self::Mark => body.put(&[MARK]),
        }
        Ok(body)
    }

    /// The format version of the files that can hold it.
    pub(crate) fn format(&self) -> u32 {
        match self {
            Self::Operation(Operation::Install(records))
                if records.iter().any(|(_, record)| has_floor(record)) =>
            {
                FLOOR_FORMAT
            }
            Self::Operation(Operation::Copied(copy)) if copy.is_in_parts() => ASIDE_FORMAT,
            Self::Operation(Operation::Install(_) | Operation::Copied(_)) => REPLICA_FORMAT,
            Self::Operation(
                Operation::CreateCorpus { .. }
                | Operation::DropCorpus { .. }
                | Operation::Change(_),
            )
            | Self::Mark => FIRST_FORMAT,
        }
    }

    /// The record that `encode` gave these bytes, in a file of this format version.
    pub(crate) fn decode(body: &[u8], format: u32) -> Result<Self, DecodeError> {
        let mut bytes = Bytes(body);
        let kind = bytes.u8().ok_or(DecodeError::Short)?;
        let record = match kind {
            CREATE_CORPUS => Self::Operation(decode_create(&mut bytes)?),
            DROP_CORPUS => Self::Operation(Operation::DropCorpus {
                uid: CorpusUid(bytes.array().ok_or(DecodeError::Short)?),
            }),
            INSERT => Self::change(decode_change(ChangeKind::Insert, &mut bytes)?),
            REMOVE => Self::change(decode_change(ChangeKind::Remove, &mut bytes)?),
            MARK => Self::Mark,
            INSTALL if format >= REPLICA_FORMAT => {
                Self::Operation(decode_install(&mut bytes, format)?)
            }
            COPIED if format >= REPLICA_FORMAT => Self::Operation(decode_copied(&mut bytes)?),
            COPIED_IN_PARTS if format >= ASIDE_FORMAT => {
                Self::Operation(decode_copied_in_parts(&mut bytes)?)
            }
            unknown => return Err(DecodeError::UnknownKind(unknown)),
        };
        match bytes.0.len() {
            0 => Ok(record),
            left => Err(DecodeError::Long(left)),
        }
    }

    /// The record of a change.
    pub(super) const fn change(change: Change) -> Self {
        Self::Operation(Operation::Change(change))
    }
}

pub(crate) fn mark() -> Body {
    Body::new(vec![MARK], FIRST_FORMAT)
}

/// Whether these are the bytes of a mark.
pub(crate) fn is_mark(body: &[u8]) -> bool {
    body == [MARK]
}

fn encode_change(change: &Change) -> Result<Vec<u8>, EncodeError> {
    let Documents { fingerprints, ids } = &change.documents;
    if !ids.is_empty() && ids.len() != fingerprints.len() {
        return Err(EncodeError::UnequalColumns {
            ids: ids.len(),
            fingerprints: fingerprints.len(),
        });
    }
    if let Some(id) = ids.iter().find(|id| id.len() > MAX_ID_BYTES) {
        return Err(EncodeError::IdTooLong { bytes: id.len() });
    }
    let id_bytes: usize = ids.iter().map(String::len).sum();
    let end_bytes = if id_bytes == 0 { 0 } else { 4 * ids.len() };
    let bytes = CHANGE_BYTES + 8 * fingerprints.len() + end_bytes + id_bytes;
    if bytes > MAX_BODY_BYTES {
        return Err(EncodeError::TooLong { bytes });
    }
    let mut body = Vec::with_capacity(bytes);
    body.put(&[match change.kind {
        ChangeKind::Insert => INSERT,
        ChangeKind::Remove => REMOVE,
    }]);
    body.put(&change.corpus.0);
    body.put_u64(change.version.0);
    body.put(&change.shards.to_bytes());
    body.put_u32(fingerprints.len() as u32);
    body.put_u32(id_bytes as u32);
    for fingerprint in fingerprints {
        body.put_u64(fingerprint.0);
    }
    if id_bytes > 0 {
        let mut end = 0;
        for id in ids {
            end += id.len();
            body.put_u32(end as u32);
        }
        for id in ids {
            body.put(id.as_bytes());
        }
    }
    Ok(body)
}

fn decode_create(bytes: &mut Bytes<'_>) -> Result<Operation, DecodeError> {
    let uid = CorpusUid(bytes.array().ok_or(DecodeError::Short)?);
    let [blocks, distance] = bytes.array().ok_or(DecodeError::Short)?;
    let layout = Layout::new(blocks.into(), distance.into())?;
    Ok(Operation::CreateCorpus { uid, layout })
}

fn decode_install(bytes: &mut Bytes<'_>, format: u32) -> Result<Operation, DecodeError> {
    let count = bytes.u32().ok_or(DecodeError::Short)?;
    let mut installed: Vec<(ShardId, Arc<ShardRecord>)> = Vec::new();
    for _ in 0..count {
        let shard = bytes.u32().ok_or(DecodeError::Short)?;
        let shard = u8::try_from(shard).map_err(|_| DecodeError::Shards)?;
        let shard = ShardId(shard);
        if installed.last().is_some_and(|(last, _)| *last >= shard) {
            return Err(DecodeError::Shards);
        }
        let record = take_shard_record(bytes).ok_or(DecodeError::Shards)?;
        if has_floor(&record) && format < FLOOR_FORMAT {
            return Err(DecodeError::Shards);
        }
        installed.push((shard, Arc::new(record)));
    }
    Ok(Operation::Install(installed))
}

/// A copy of at most one segment is written as earlier programs did.
fn encode_copied(copy: &ShardCopy, body: &mut Vec<u8>) {
    let is_in_parts = copy.is_in_parts();
    body.put(&[if is_in_parts { COPIED_IN_PARTS } else { COPIED }]);
    body.put_u32(u32::from(copy.shard.0));
    put_epoch(body, copy.added);
    if is_in_parts {
        body.put_u32(copy.segments.len() as u32);
    } else {
        body.put(&[copy.segments.len() as u8]);
    }
    for (id, meta) in &copy.segments {
        body.put_u64(id.number);
        body.put_u64(meta.bytes);
        body.put_u64(meta.elements);
        body.put_u64(meta.highest_version.0);
        body.put(&meta.hash);
        if is_in_parts {
            put_origin(body, meta.origin);
        }
    }
}

fn decode_copied(bytes: &mut Bytes<'_>) -> Result<Operation, DecodeError> {
    let (shard, added) = decode_copied_head(bytes)?;
    let count = bytes.u8().ok_or(DecodeError::Short)?;
    if count > 1 {
        return Err(DecodeError::Shards);
    }
    let segments = (0..count).map(|_| decode_copy(shard, bytes));
    let segments: Option<Vec<_>> = segments.collect();
    Ok(Operation::Copied(ShardCopy {
        shard,
        added,
        segments: segments.ok_or(DecodeError::Short)?,
    }))
}

fn decode_copied_in_parts(bytes: &mut Bytes<'_>) -> Result<Operation, DecodeError> {
    let (shard, added) = decode_copied_head(bytes)?;
    let count = bytes.u32().ok_or(DecodeError::Short)?;
    let mut segments: Vec<(SegmentId, SegmentMeta)> = Vec::new();
    for _ in 0..count {
        let (id, mut meta) = decode_copy(shard, bytes).ok_or(DecodeError::Short)?;
        meta.origin = take_origin(bytes).ok_or(DecodeError::Short)?;
        segments.push((id, meta));
    }
    let copy = ShardCopy {
        shard,
        added,
        segments,
    };
    // Others have a record of the kind before.
    if copy.is_in_parts() {
        Ok(Operation::Copied(copy))
    } else {
        Err(DecodeError::Shards)
    }
}

fn decode_copied_head(bytes: &mut Bytes<'_>) -> Result<(ShardId, Epoch), DecodeError> {
    let shard = bytes.u32().ok_or(DecodeError::Short)?;
    let shard = u8::try_from(shard).map_err(|_| DecodeError::Shards)?;
    let added = take_epoch(bytes).ok_or(DecodeError::Short)?;
    Ok((ShardId(shard), added))
}

fn decode_copy(shard: ShardId, bytes: &mut Bytes<'_>) -> Option<(SegmentId, SegmentMeta)> {
    let number = bytes.u64()?;
    let meta = SegmentMeta {
        bytes: bytes.u64()?,
        elements: bytes.u64()?,
        highest_version: Version(bytes.u64()?),
        hash: bytes.array()?,
        origin: None,
    };
    Some((SegmentId { shard, number }, meta))
}

fn decode_change(kind: ChangeKind, bytes: &mut Bytes<'_>) -> Result<Change, DecodeError> {
    let (mut change, count, id_bytes) = decode_head(kind, bytes).ok_or(DecodeError::Short)?;
    change.documents.fingerprints = decode_fingerprints(count, bytes).ok_or(DecodeError::Short)?;
    if id_bytes > 0 {
        change.documents.ids = decode_ids(count, id_bytes, bytes)?;
    }
    Ok(change)
}

/// A change without its documents, their number, and the bytes of all ids.
fn decode_head(kind: ChangeKind, bytes: &mut Bytes<'_>) -> Option<(Change, usize, usize)> {
    let change = Change {
        kind,
        corpus: CorpusUid(bytes.array()?),
        version: Version(bytes.u64()?),
        shards: ShardSet::from_bytes(bytes.array()?),
        documents: Documents::default(),
    };
    Some((change, bytes.u32()? as usize, bytes.u32()? as usize))
}

fn decode_fingerprints(count: usize, bytes: &mut Bytes<'_>) -> Option<Vec<Fingerprint>> {
    let (values, _) = bytes.take(count.checked_mul(8)?)?.as_chunks();
    let values = values.iter().map(|value| u64::from_le_bytes(*value));
    Some(values.map(Fingerprint).collect())
}

fn decode_ids(
    count: usize,
    id_bytes: usize,
    bytes: &mut Bytes<'_>,
) -> Result<Vec<String>, DecodeError> {
    let all_ends = count.checked_mul(4).and_then(|length| bytes.take(length));
    let (ends, _) = all_ends.ok_or(DecodeError::Short)?.as_chunks();
    let text = bytes.take(id_bytes).ok_or(DecodeError::Short)?;
    let text = std::str::from_utf8(text).map_err(|_| DecodeError::NotText)?;
    let mut ids = Vec::with_capacity(count);
    let mut start = 0;
    for end in ends {
        let end = u32::from_le_bytes(*end) as usize;
        let id = text.get(start..end).ok_or(DecodeError::Ends)?;
        if id.len() > MAX_ID_BYTES {
            return Err(DecodeError::IdTooLong(id.len()));
        }
        ids.push(id.to_owned());
        start = end;
    }
    if start != id_bytes {
        return Err(DecodeError::Ends);
    }
    Ok(ids)
}
