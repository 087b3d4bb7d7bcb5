//! Segments against a plain map, under damage, and byte by byte.

mod damage;
mod fuzz;
mod golden;
mod model;
mod open;
mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, ShardId, Version};
use uuid::Uuid;

use super::block::Block;
use super::frame::{Footer, Header};
use super::index::{BlockEntry, Index};
use super::{BlockCache, Segment, SegmentId, SegmentMeta, SegmentWriter};
use crate::directory::{Directory, DiskDirectory, ReadAt};
use crate::element::{Element, State};
use crate::error::{ReadError, WriteError};
use crate::merge::Cursor;
use crate::seal::{SEAL_BYTES, seal};

pub(crate) const STORE: Uuid = Uuid::from_bytes([7; 16]);

pub(crate) const ID: SegmentId = SegmentId {
    shard: ShardId(0x3f),
    number: 7,
};

/// What a store is, in the plainest form.
pub(crate) type Model = BTreeMap<(CorpusUid, Fingerprint, String), State>;

/// Any model of this many corpora. What it is like depends on the seed: many or few fingerprints, short
/// or long ids.
pub(crate) fn model(seed: u64, corpora: usize) -> Model {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::new();
    for _ in 0..corpora {
        let corpus = CorpusUid([random.u8(0..8); 16]);
        let (fingerprints, most_ids, longest) = match random.u8(0..5) {
            0 => (6_000, 1, 0),
            1 => (300, 2, 1024),
            2 => (3, 200, 1024),
            3 => (50, 20, 9),
            _ => (random.usize(1..5), 1, 3),
        };
        for _ in 0..fingerprints {
            let fingerprint = Fingerprint(match random.u8(0..20) {
                0 => 0,
                1 => u64::MAX,
                _ => random.u64(..),
            });
            for _ in 0..random.usize(1..=most_ids) {
                let state = State {
                    version: Version(random.u64(1..1 << 40)),
                    live: random.bool(),
                };
                model.insert((corpus, fingerprint, id(&mut random, longest)), state);
            }
        }
    }
    model
}

/// An id of at most this many bytes.
fn id(random: &mut fastrand::Rng, longest: usize) -> String {
    let length = match random.u8(0..4) {
        0 => 0,
        1 => longest,
        _ => random.usize(0..=longest),
    };
    let mut id = String::new();
    while id.len() < length {
        let left = length - id.len();
        match random.u8(0..8) {
            0 if left >= 4 => id.push('🙂'),
            1 if left >= 2 => id.push('é'),
            _ => id.push(random.alphanumeric()),
        }
    }
    id
}

/// The elements of a model, ascending.
pub(crate) fn elements(model: &Model) -> impl Iterator<Item = (CorpusUid, Element<'_>)> {
    model.iter().map(|((corpus, fingerprint, id), state)| {
        let element = Element {
            fingerprint: *fingerprint,
            id,
            version: state.version,
            live: state.live,
        };
        (*corpus, element)
    })
}

/// Begins a segment.
fn begin(directory: &Path) -> Result<SegmentWriter, WriteError> {
    let opened: Arc<dyn Directory> = Arc::new(DiskDirectory::open(directory).unwrap());
    SegmentWriter::create(&opened, STORE, ID)
}

/// Writes a model, which has elements, as a segment.
pub(crate) fn write(directory: &Path, model: &Model) -> SegmentMeta {
    let mut writer = begin(directory).unwrap();
    for (corpus, element) in elements(model) {
        writer.push(corpus, element).unwrap();
    }
    writer.finish().unwrap().unwrap()
}

pub(crate) fn open(
    directory: &Path,
    meta: SegmentMeta,
    cache_bytes: u64,
) -> Result<Segment, ReadError> {
    let cache = Arc::new(BlockCache::new(cache_bytes));
    let opened = DiskDirectory::read_only(directory);
    Segment::open(&opened, STORE, ID, meta, cache)
}

/// Opens bytes in memory, with nothing cached.
fn open_bytes<S: ReadAt>(source: S, meta: SegmentMeta) -> Result<Segment<S>, ReadError> {
    let cache = Arc::new(BlockCache::new(0));
    let header = Header {
        store: STORE,
        id: ID,
    };
    Segment::from_source(source, PathBuf::from("segment"), header, meta, cache)
}

/// All that a cursor gives.
pub(crate) fn rest(mut cursor: impl Cursor) -> Result<Model, ReadError> {
    let mut model = Model::new();
    while let Some((corpus, element)) = cursor.element() {
        let key = (corpus, element.fingerprint, element.id.to_owned());
        let last = model.last_key_value();
        assert!(last.is_none_or(|(last, _)| *last < key), "{key:?}");
        model.insert(key, element.into());
        cursor.advance()?;
    }
    Ok(model)
}

/// The bytes of a segment of these blocks, whatever is in them, and its metadata.
fn assemble(blocks: &[(CorpusUid, Block)]) -> (Vec<u8>, SegmentMeta) {
    let mut bytes = Header {
        store: STORE,
        id: ID,
    }
    .encode();
    let mut index = Index::default();
    for (corpus, block) in blocks {
        let offset = bytes.len() as u64;
        let sum = block.encode(&mut bytes);
        let entry = BlockEntry {
            offset,
            bytes: (bytes.len() as u64 - offset) as u32,
            elements: block.len() as u32,
            sum,
            bounds: block.bounds().unwrap(),
        };
        index.push(*corpus, entry);
    }
    let elements = blocks.iter().map(|(_, block)| block.len() as u64).sum();
    let index_offset = bytes.len() as u64;
    let encoded = index.encode();
    let footer = Footer {
        index_offset,
        corpora: index.corpora().len() as u32,
        blocks: blocks.len() as u32,
        elements,
        highest_version: Version(9),
        index_sum: crc32c::crc32c(&encoded),
    };
    bytes.extend(encoded);
    bytes.extend(footer.encode());
    let meta = meta_of(&bytes, elements);
    (bytes, meta)
}

/// What a manifest says of these bytes, the highest version being 9.
fn meta_of(bytes: &[u8], elements: u64) -> SegmentMeta {
    SegmentMeta {
        bytes: bytes.len() as u64,
        elements,
        highest_version: Version(9),
        hash: blake3::hash(bytes).into(),
        origin: None,
    }
}

/// A block of documents with these fingerprints and ids.
fn block(documents: &[(u64, &str)]) -> Block {
    let mut block = Block::default();
    for &(fingerprint, id) in documents {
        block.push(Element {
            fingerprint: Fingerprint(fingerprint),
            id,
            version: Version(9),
            live: true,
        });
    }
    block
}

/// The same bytes with the right checksum at the end.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.len().checked_sub(SEAL_BYTES) {
        bytes.truncate(end);
        seal(&mut bytes, 0);
    }
    bytes
}
