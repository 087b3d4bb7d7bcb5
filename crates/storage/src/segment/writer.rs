//! Writing a segment: elements go in by ascending key, and a file comes out whole.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, Version};
use uuid::Uuid;

use super::block::Block;
use super::frame::{Footer, Header};
use super::index::{BlockEntry, Index};
use super::{SegmentId, SegmentMeta};
use crate::directory::Directory;
use crate::element::{Element, MAX_ID_BYTES};
use crate::error::WriteError;
use crate::files::NewFile;

/// Bytes that are gathered before the system is called.
const BUFFER_BYTES: usize = 1 << 18;

/// A segment that is being written. Unless it is finished, nothing stays of it.
pub(crate) struct SegmentWriter {
    /// None once writing has failed: what was written is gone, and with it the space it took.
    output: Option<BufWriter<NewFile>>,
    path: PathBuf,
    hasher: blake3::Hasher,
    index: Index,
    /// The elements of the last corpus that are in no block yet.
    block: Block,
    encoded: Vec<u8>,
    elements: u64,
    highest_version: Version,
    /// Corpus and fingerprint of the last element; its id stands beside, so that its memory is kept.
    last: Option<(CorpusUid, Fingerprint)>,
    last_id: String,
}

impl SegmentWriter {
    /// Begins the segment of this id in the directory of segments.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        store: Uuid,
        id: SegmentId,
    ) -> Result<Self, WriteError> {
        let name = id.to_string();
        let path = directory.path().join(&name);
        let new = NewFile::create(directory, &name)?;
        let mut writer = Self {
            output: Some(BufWriter::with_capacity(BUFFER_BYTES, new)),
            path,
            hasher: blake3::Hasher::new(),
            index: Index::default(),
            block: Block::default(),
            encoded: Vec::new(),
            elements: 0,
            highest_version: Version::NONE,
            last: None,
            last_id: String::new(),
        };
        writer.write(&Header { store, id }.encode())?;
        Ok(writer)
    }

    /// Adds an element, which must come after the last one by corpus, fingerprint and id.
    pub(crate) fn push(
        &mut self,
        corpus: CorpusUid,
        element: Element<'_>,
    ) -> Result<(), WriteError> {
        self.check(corpus, element)?;
        let other_corpus = self.last.is_some_and(|(last, _)| last != corpus);
        if other_corpus || !self.block.fits(element.id.len()) {
            self.end_block()?;
        }
        self.block.push(element);
        self.elements += 1;
        self.highest_version = self.highest_version.max(element.version);
        self.last = Some((corpus, element.fingerprint));
        self.last_id.clear();
        self.last_id.push_str(element.id);
        Ok(())
    }

    /// Completes and syncs the segment and gives it its name, which lasts once the directory is synced.
    /// None if it has no elements: there is no such segment.
    pub(crate) fn finish(mut self) -> Result<Option<SegmentMeta>, WriteError> {
        if self.elements == 0 {
            return Ok(None);
        }
        self.end_block()?;
        let index = self.index.encode();
        let footer = Footer {
            index_offset: self.index.end_offset(),
            corpora: self.index.corpora().len() as u32,
            blocks: self.index.len() as u32,
            elements: self.elements,
            highest_version: self.highest_version,
            index_sum: crc32c::crc32c(&index),
        }
        .encode();
        self.write(&index)?;
        self.write(&footer)?;
        let meta = SegmentMeta {
            bytes: self.hasher.count(),
            elements: self.elements,
            highest_version: self.highest_version,
            hash: self.hasher.finalize().into(),
            origin: None,
        };
        let output = self.output.take().ok_or_else(|| self.abandoned())?;
        let flushed = output.into_inner().map_err(|error| error.into_error());
        flushed
            .map_err(WriteError::io("write", &self.path))?
            .finish()?;
        Ok(Some(meta))
    }

    fn check(&self, corpus: CorpusUid, element: Element<'_>) -> Result<(), WriteError> {
        let key = (corpus, element.fingerprint);
        let is_next = self
            .last
            .is_none_or(|last| last < key || (last == key && self.last_id.as_str() < element.id));
        let (path, bytes) = (&self.path, element.id.len());
        if !is_next {
            return Err(WriteError::OutOfOrder {
                path: path.clone(),
                element: self.elements,
            });
        }
        if bytes > MAX_ID_BYTES {
            return Err(WriteError::IdTooLong {
                path: path.clone(),
                element: self.elements,
                bytes,
            });
        }
        Ok(())
    }

    /// Writes the elements that are in no block yet as one.
    fn end_block(&mut self) -> Result<(), WriteError> {
        let (Some(bounds), Some((corpus, _))) = (self.block.bounds(), self.last) else {
            return Ok(());
        };
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        let sum = self.block.encode(&mut encoded);
        self.write(&encoded)?;
        let entry = BlockEntry {
            offset: self.index.end_offset(),
            bytes: encoded.len() as u32,
            elements: self.block.len() as u32,
            sum,
            bounds,
        };
        self.index.push(corpus, entry);
        self.block.clear();
        self.encoded = encoded;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let Some(output) = &mut self.output else {
            return Err(self.abandoned());
        };
        self.hasher.update(bytes);
        let written = output.write_all(bytes);
        if written.is_err() {
            self.output = None;
        }
        written.map_err(WriteError::io("write", &self.path))
    }

    fn abandoned(&self) -> WriteError {
        let path = self.path.clone();
        WriteError::Abandoned { path }
    }
}
