//! Reading a segment: the index stays in memory, blocks come from the cache or the file.

use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, Version};
use uuid::Uuid;

use super::block::Block;
use super::cache::BlockCache;
use super::frame::{FRAME_BYTES, Footer, Header};
use super::index::Index;
use super::scan::Scan;
use super::{Origin, SegmentId, SegmentMeta};
use crate::directory::{Directory, Opening, ReadAt, StoredFile};
use crate::element::{Element, State};
use crate::error::{Fault, ReadError};

/// Bytes that are read at once where a whole file is.
const CHUNK_BYTES: usize = 1 << 18;

/// A segment that is open.
#[derive(Debug)]
pub(crate) struct Segment<S = Box<dyn StoredFile>> {
    source: S,
    path: PathBuf,
    header: Header,
    meta: SegmentMeta,
    index: Index,
    cache: Arc<BlockCache>,
    /// Its number in the cache.
    number: u64,
    /// The first damage that was found (G3).
    fault: OnceLock<Fault>,
}

impl Segment {
    /// Opens a segment in the directory of segments. Its header, footer and index are read and checked.
    pub(crate) fn open(
        directory: &dyn Directory,
        store: Uuid,
        id: SegmentId,
        meta: SegmentMeta,
        cache: Arc<BlockCache>,
    ) -> Result<Self, ReadError> {
        let name = id.to_string();
        let path = directory.path().join(&name);
        match directory.open(&name, Opening::Read) {
            Ok(file) => Self::from_source(file, path, Header { store, id }, meta, cache),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }
}

impl<S: ReadAt> Segment<S> {
    /// Opens what can be read like a file.
    pub(super) fn from_source(
        source: S,
        path: PathBuf,
        header: Header,
        meta: SegmentMeta,
        cache: Arc<BlockCache>,
    ) -> Result<Self, ReadError> {
        let index = read_index(&source, header, meta).map_err(|failure| failure.in_file(&path))?;
        Ok(Self {
            source,
            path,
            header,
            meta,
            index,
            number: cache.number(),
            cache,
            fault: OnceLock::new(),
        })
    }

    #[cfg(test)]
    pub(super) fn source(&self) -> &S {
        &self.source
    }

    #[cfg(test)]
    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// Its name in the store.
    pub(crate) const fn id(&self) -> SegmentId {
        self.header.id
    }

    /// Its entry in the manifest.
    pub(crate) const fn meta(&self) -> SegmentMeta {
        self.meta
    }

    /// Number of elements.
    pub(crate) const fn elements(&self) -> u64 {
        self.meta.elements
    }

    /// The highest version of an element.
    pub(crate) const fn highest_version(&self) -> Version {
        self.meta.highest_version
    }

    /// Whether damage was found (G3).
    pub(crate) fn is_damaged(&self) -> bool {
        self.fault.get().is_some()
    }

    /// The corpora that have elements here, ascending.
    pub(crate) fn corpora(&self) -> impl ExactSizeIterator<Item = CorpusUid> {
        self.index.corpora()
    }

    /// Number of elements of a corpus.
    pub(crate) fn elements_of(&self, corpus: CorpusUid) -> u64 {
        let blocks = self.index.blocks_of(corpus);
        blocks
            .map(|place| u64::from(self.index.block(place).elements))
            .sum()
    }

    /// Visits the elements with a fingerprint, by ascending id, until `visit` breaks. After an error, what was
    /// visited must not be used.
    pub(crate) fn lookup(
        &self,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
        mut visit: impl FnMut(Element<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.check()?;
        for place in self.index.covering(corpus, fingerprint) {
            let block = self.cached(place)?;
            for element in block.places(fingerprint) {
                if visit(block.element(element)).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The state of one document.
    pub(crate) fn find(
        &self,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
        id: &str,
    ) -> Result<Option<State>, ReadError> {
        self.check()?;
        let covering = self.index.covering(corpus, fingerprint);
        if covering.is_empty() {
            return Ok(None);
        }
        let block = self.cached(self.narrow(covering, fingerprint, id)?)?;
        let place = block.seek(fingerprint, id);
        let found = place < block.len() && block.compare(place, fingerprint, id).is_eq();
        Ok(found.then(|| block.element(place).into()))
    }

    /// The elements of a corpus, ascending, from the first on that is not before the key, if one is given.
    pub(crate) fn scan(
        &self,
        corpus: CorpusUid,
        from: Option<(Fingerprint, &str)>,
    ) -> Result<Scan<'_, S>, ReadError> {
        self.check()?;
        let mut blocks = self.index.blocks_of(corpus);
        if let Some((fingerprint, id)) = from {
            let covering = self.index.covering(corpus, fingerprint);
            blocks.start = if covering.is_empty() {
                covering.start
            } else {
                self.narrow(covering, fingerprint, id)?
            };
        }
        Scan::start(self, vec![(corpus, blocks)], from)
    }

    /// The elements of all corpora that are kept, ascending. The blocks of others are not read.
    pub(crate) fn scan_all(
        &self,
        keep: impl Fn(CorpusUid) -> bool,
    ) -> Result<Scan<'_, S>, ReadError> {
        self.check()?;
        let corpora = self.corpora().filter(|&corpus| keep(corpus));
        let runs = corpora.map(|corpus| (corpus, self.index.blocks_of(corpus)));
        Scan::start(self, runs.collect(), None)
    }

    /// Reads the whole file and compares its hash with that of the manifest; where it differs, names the part of the
    /// file that is damaged. `go_on` hears of the bytes of each
    /// read, and may end it; says whether it came to the end.
    pub(crate) fn verify(&self, mut go_on: impl FnMut(u64) -> bool) -> Result<bool, ReadError> {
        self.check()?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut offset = 0;
        while offset < self.meta.bytes {
            let length = (self.meta.bytes - offset).min(CHUNK_BYTES as u64);
            let chunk = &mut buffer[..length as usize];
            let read = read_at(&self.source, chunk, offset);
            read.map_err(|failure| self.failed(failure))?;
            hasher.update(chunk);
            offset += length;
            if !go_on(length) {
                return Ok(false);
            }
        }
        if hasher.finalize() != self.meta.hash {
            return Err(self.locate_damage());
        }
        Ok(true)
    }

    /// The first part of the file that is not sound by itself; the whole file if all are.
    fn locate_damage(&self) -> ReadError {
        if let Err(failure) = read_index(&self.source, self.header, self.meta) {
            return self.failed(failure);
        }
        let mut buffer = Vec::new();
        for place in 0..self.index.len() {
            if let Err(error) = self.load(place, &mut buffer) {
                return error;
            }
        }
        let fault = Fault::damaged(0, "the hash is not that of the manifest");
        self.failed(Failure::Fault(fault))
    }

    /// Reads and checks a block, past the cache.
    pub(super) fn load(&self, place: usize, buffer: &mut Vec<u8>) -> Result<Block, ReadError> {
        self.check()?;
        let entry = self.index.block(place);
        buffer.resize(entry.bytes as usize, 0);
        let read = read_at(&self.source, buffer, entry.offset);
        read.map_err(|failure| self.failed(failure))?;
        let decoded = Block::decode(buffer).and_then(|(block, sum)| {
            let is_listed = block.len() == entry.elements as usize
                && block.bounds() == Some(entry.bounds)
                && sum == entry.sum;
            let other = Fault::damaged(0, "the block is not the one that the index lists");
            if is_listed { Ok(block) } else { Err(other) }
        });
        decoded.map_err(|fault| self.failed(Failure::Fault(fault.shifted(entry.offset))))
    }

    /// Notes that the elements of a block do not come after those of the block before it.
    pub(super) fn out_of_order(&self, place: usize) -> ReadError {
        let fault = Fault::damaged(0, "elements are out of order between blocks");
        let offset = self.index.block(place).offset;
        self.failed(Failure::Fault(fault.shifted(offset)))
    }

    fn cached(&self, place: usize) -> Result<Arc<Block>, ReadError> {
        let load = || self.load(place, &mut Vec::new());
        self.cache.get_or_load((self.number, place), load)
    }

    /// The only block that can hold a key, of those that may hold its fingerprint: the last one that does
    /// not start behind it.
    fn narrow(
        &self,
        covering: Range<usize>,
        fingerprint: Fingerprint,
        id: &str,
    ) -> Result<usize, ReadError> {
        let Range { mut start, mut end } = covering;
        while end - start > 1 {
            let middle = start.midpoint(end);
            if self.cached(middle)?.compare(0, fingerprint, id).is_le() {
                start = middle;
            } else {
                end = middle;
            }
        }
        Ok(start)
    }

    /// Refuses a segment that was found damaged.
    fn check(&self) -> Result<(), ReadError> {
        match self.fault.get() {
            Some(fault) => Err(fault.in_file(&self.path)),
            None => Ok(()),
        }
    }

    /// Takes note of damage. Answers the error of the first one.
    fn failed(&self, failure: Failure) -> ReadError {
        match failure {
            Failure::Fault(fault) => self.fault.get_or_init(|| fault).in_file(&self.path),
            Failure::Io(_) => failure.in_file(&self.path),
        }
    }
}

/// Why bytes cannot be had, or not be believed.
#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Fault(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Failure {
    fn in_file(self, path: &Path) -> ReadError {
        match self {
            Self::Fault(fault) => fault.in_file(path),
            Self::Io(source) => ReadError::Io {
                path: path.to_owned(),
                source,
            },
        }
    }
}

/// Fills the buffer. A file is damaged if it ends too early, or if the disk has lost what is read.
fn read_at(source: &impl ReadAt, buffer: &mut [u8], offset: u64) -> Result<(), Failure> {
    source.read_exact_at(buffer, offset).map_err(|error| {
        let damaged = |what| Failure::Fault(Fault::Damaged { offset, what });
        if error.kind() == io::ErrorKind::UnexpectedEof {
            damaged("the file ends in what starts here")
        } else if error.raw_os_error() == Some(Errno::IO.raw_os_error()) {
            damaged("the disk cannot read what starts here")
        } else {
            Failure::Io(error)
        }
    })
}

/// Reads both ends and the index, and compares them with what is known.
fn read_index(source: &impl ReadAt, own: Header, meta: SegmentMeta) -> Result<Index, Failure> {
    let adopted = |origin: Origin| Header {
        store: origin.store,
        id: SegmentId {
            number: origin.number,
            ..own.id
        },
    };
    let expected = meta.origin.map_or(own, adopted);
    let mut frame = [0; FRAME_BYTES];
    read_at(source, &mut frame, 0)?;
    let header = Header::decode(&frame)?;
    let (found, store) = (header.store, expected.store);
    if found != store {
        return Err(Failure::Fault(Fault::OtherStore {
            found,
            expected: store,
        }));
    }
    if header.id != expected.id {
        return Err(Fault::damaged(0, "this is another segment").into());
    }
    let length = source.length().map_err(Failure::Io)?;
    let ends = 2 * FRAME_BYTES as u64;
    if length != meta.bytes || length < ends {
        let what = "the file is not as long as the manifest says";
        return Err(Failure::Fault(Fault::Damaged {
            offset: length,
            what,
        }));
    }
    let footer_offset = length - FRAME_BYTES as u64;
    read_at(source, &mut frame, footer_offset)?;
    let in_footer = |fault: Fault| fault.shifted(footer_offset);
    let footer = Footer::decode(&frame).map_err(in_footer)?;
    let is_listed = footer.elements == meta.elements
        && footer.highest_version == meta.highest_version
        && footer.index_offset.checked_add(Index::encoded_len(&footer)) == Some(footer_offset);
    if !is_listed {
        let fault = Fault::damaged(0, "the footer is not that of the segment in the manifest");
        return Err(in_footer(fault).into());
    }
    let mut index = vec![0; (footer_offset - footer.index_offset) as usize];
    read_at(source, &mut index, footer.index_offset)?;
    Ok(Index::decode(&index, &footer)?)
}
