//! Writing the copy of a shard at a learner, on top of what it had before.

use std::mem;
use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::replication::Epoch;
use simshard_topology::{CorpusUid, ShardId, Version};

use super::scrub::LOCK_TIMEOUT;
use super::{Disk, Store};
use crate::delta::{
    CompareError, Comparison, CopyRange, Differing, Digest, RangeElements, Versions, is_outdone,
};
use crate::element::{Element, ShardCopy};
use crate::error::{ReadError, WriteError};
use crate::files;
use crate::merge::{Cursor, Merge};
use crate::segment::{Segment, SegmentId, SegmentMeta, SegmentWriter};

/// Why a copy cannot be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum CopyError {
    #[error("a store without a directory cannot copy shards")]
    NoDirectory,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Compare(#[from] CompareError),
}

type Elements<'a> = Merge<Box<dyn Cursor + 'a>>;

/// What a learner had of a shard before it began anew.
pub struct CopyBase {
    store: Arc<Store>,
    shard: ShardId,
    added: Epoch,
    /// What is settled by the learner's record, as long as it is a learner.
    settled: Version,
    segments: Vec<Arc<Segment>>,
}

impl CopyBase {
    /// The highest version of it, or that of no element. Up to this one it is compared with a source.
    #[must_use]
    pub fn until(&self) -> Version {
        let versions = self.segments.iter();
        let versions = versions.map(|segment| segment.highest_version());
        versions.max().unwrap_or(Version::NONE)
    }

    /// Whether it was found damaged: forget it.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.segments.iter().any(|segment| segment.is_damaged())
    }

    /// Begins a copy from a source that holds these corpora.
    ///
    /// # Errors
    /// If no file can be made for it, or what was set aside cannot be read.
    pub fn begin(&self, mut corpora: Vec<CorpusUid>) -> Result<CopyWriter<'_>, CopyError> {
        corpora.sort_unstable();
        let compared = Versions {
            until: self.until(),
            settled: self.settled,
        };
        let comparison = Comparison::new(self.elements(&corpora)?, compared);
        Ok(CopyWriter {
            base: self,
            corpora,
            comparison: Some(comparison),
            differing: Differing::default(),
            made: Made::new(&self.store),
            writer: self.writer()?,
        })
    }

    fn writer(&self) -> Result<(SegmentId, SegmentWriter), CopyError> {
        let disk = self.store.copies()?;
        let id = disk.next_segment(self.shard);
        let store = disk.manifest.lock().store;
        Ok((id, SegmentWriter::create(&disk.segments, store, id)?))
    }

    fn elements(&self, corpora: &[CorpusUid]) -> Result<Elements<'_>, ReadError> {
        elements(&self.segments, corpora)
    }
}

/// The elements of segments, of these corpora.
fn elements<'a>(
    segments: &'a [Arc<Segment>],
    corpora: &[CorpusUid],
) -> Result<Elements<'a>, ReadError> {
    let mut streams: Vec<Box<dyn Cursor + 'a>> = Vec::new();
    for segment in segments {
        let is_held = |corpus| corpora.binary_search(&corpus).is_ok();
        streams.push(Box::new(segment.scan_all(is_held)?));
    }
    Ok(Merge::new(streams))
}

/// Segments that no manifest names, and no log yet: they are deleted unless they are taken.
struct Made<'a> {
    store: &'a Store,
    segments: Vec<(SegmentId, SegmentMeta)>,
}

impl<'a> Made<'a> {
    const fn new(store: &'a Store) -> Self {
        let segments = Vec::new();
        Self { store, segments }
    }

    /// Completes a segment, and its place in the directory.
    fn finish(&mut self, (id, writer): (SegmentId, SegmentWriter)) -> Result<(), CopyError> {
        if let Some(meta) = writer.finish()? {
            self.segments.push((id, meta));
        }
        Ok(())
    }

    fn open(&self) -> Result<Vec<Arc<Segment>>, CopyError> {
        let disk = self.store.copies()?;
        let opened = self.segments.iter();
        let opened = opened.map(|(id, meta)| Ok(Arc::new(disk.open(*id, *meta)?)));
        opened.collect()
    }

    fn take(mut self) -> Vec<(SegmentId, SegmentMeta)> {
        mem::take(&mut self.segments)
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for (id, _) in &self.segments {
            // The next start deletes what stays.
            let _ = self.store.copies().map(|disk| disk.delete_segment(*id));
        }
    }
}

/// A copy that is being written. First come the elements with a later version than the base, beside the ends of ranges,
/// then those of the ranges that differ. Unless it is finished, nothing stays of it.
pub struct CopyWriter<'a> {
    base: &'a CopyBase,
    corpora: Vec<CorpusUid>,
    /// Until all ranges have ended.
    comparison: Option<Comparison<Elements<'a>>>,
    differing: Differing,
    made: Made<'a>,
    writer: (SegmentId, SegmentWriter),
}

impl CopyWriter<'_> {
    /// Adds an element, which must come after the last one by corpus, fingerprint and id.
    ///
    /// # Errors
    /// If it does not, or cannot be written.
    pub fn push(&mut self, corpus: CorpusUid, element: Element<'_>) -> Result<(), CopyError> {
        if let Some(comparison) = &mut self.comparison {
            comparison.later(corpus, element)?;
        }
        Ok(self.writer.1.push(corpus, element)?)
    }

    /// Takes the end of a range.
    ///
    /// # Errors
    /// If it does not follow the one before, or what was set aside cannot be read.
    pub fn end_range(
        &mut self,
        corpus: CorpusUid,
        last: Fingerprint,
        digest: Digest,
    ) -> Result<(), CopyError> {
        let comparison = self.comparison.as_mut();
        let comparison = comparison.ok_or(CompareError::OutOfOrder)?;
        Ok(comparison.end_range(corpus, last, digest)?)
    }

    /// Takes note that all ranges have ended. Answers those that differ: their elements come next.
    ///
    /// # Errors
    /// If ranges are missing, or a file cannot be written.
    pub fn end_ranges(&mut self) -> Result<&[CopyRange], CopyError> {
        let comparison = self.comparison.take();
        let comparison = comparison.ok_or(CompareError::OutOfOrder)?;
        self.differing = comparison.finish()?;
        let later = mem::replace(&mut self.writer, self.base.writer()?);
        self.made.finish(later)?;
        Ok(&self.differing.ranges)
    }

    /// Completes the copy. When this returns, it is on disk.
    ///
    /// # Errors
    /// If ranges have not ended, or it cannot be written.
    pub fn finish(self) -> Result<ShardCopy, CopyError> {
        let Self {
            base,
            corpora,
            comparison: None,
            differing,
            mut made,
            writer,
        } = self
        else {
            return Err(CompareError::OutOfOrder.into());
        };
        made.finish(writer)?;
        let mut opened = made.open()?;
        let mut segments = Vec::new();
        if base.is_kept(&corpora, &opened, &differing)? {
            let kept = base.segments.iter();
            segments.extend(kept.map(|segment| (segment.id(), segment.meta())));
        } else {
            let mut whole = Made::new(&base.store);
            whole.finish(base.rewrite(&corpora, &opened, &differing.ranges)?)?;
            opened = whole.open()?;
            // What was received goes.
            made = whole;
        }
        let disk = base.store.copies()?;
        files::sync(&*disk.segments)?;
        disk.keep_open(opened);
        segments.extend(made.take());
        Ok(ShardCopy {
            shard: base.shard,
            added: base.added,
            segments,
        })
    }
}

impl CopyBase {
    /// Whether it is part of the copy as it is, below what was received (DC3).
    fn is_kept(
        &self,
        corpora: &[CorpusUid],
        received: &[Arc<Segment>],
        differing: &Differing,
    ) -> Result<bool, ReadError> {
        let mut held = self.segments.iter().flat_map(|segment| segment.corpora());
        let is_known = held.all(|corpus| corpora.binary_search(&corpus).is_ok());
        if !is_known || differing.has_later || differing.ranges.is_empty() {
            return Ok(is_known && !differing.has_later);
        }
        let received = elements(received, corpora)?;
        is_outdone(self.elements(corpora)?, received, &differing.ranges)
    }

    /// Writes what a source has: what was received, and what was set aside outside of the ranges that differ (DC1).
    fn rewrite(
        &self,
        corpora: &[CorpusUid],
        received: &[Arc<Segment>],
        ranges: &[CopyRange],
    ) -> Result<(SegmentId, SegmentWriter), CopyError> {
        let (id, mut writer) = self.writer()?;
        let rest = RangeElements::outside(self.elements(corpora)?, ranges, self.until())?;
        let mut streams: Vec<Box<dyn Cursor + '_>> = vec![Box::new(rest)];
        streams.push(Box::new(elements(received, corpora)?));
        let mut merged = Merge::new(streams);
        while let Some((corpus, element)) = merged.element() {
            writer.push(corpus, element)?;
            merged.advance()?;
        }
        Ok((id, writer))
    }
}

impl Disk {
    /// Keeps these segments open until the log names them: then nothing must stand in their way.
    fn keep_open(&self, segments: Vec<Arc<Segment>>) {
        let by_id = segments.into_iter().map(|segment| (segment.id(), segment));
        self.finished.lock().extend(by_id);
    }
}

impl Store {
    /// What this store, a learner of a shard that was added at an epoch, had of it before. `None` while something of that
    /// is not written yet, or the shard is being changed for long: try again later.
    ///
    /// # Errors
    /// If the shard is not in the store.
    pub fn copy_base(
        self: &Arc<Self>,
        shard: ShardId,
        added: Epoch,
    ) -> Result<Option<CopyBase>, ReadError> {
        let settled = self.replicas.read().settled(shard);
        let Some(held) = self.shard(shard)?.try_read_for(LOCK_TIMEOUT) else {
            return Ok(None);
        };
        let aside = &held.aside;
        let is_written = aside.memtable.is_empty();
        Ok(is_written.then(|| CopyBase {
            store: Arc::clone(self),
            shard,
            added,
            settled,
            segments: aside.segments.clone(),
        }))
    }

    /// Deletes a copy that the log does not name.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn abandon_copy(&self, copy: &ShardCopy) -> Result<(), CopyError> {
        let disk = self.copies()?;
        for (id, _) in &copy.segments {
            disk.finished.lock().remove(id);
            if !disk.manifest.lock().aside.contains_key(id) {
                disk.delete_segment(*id)?;
            }
        }
        Ok(())
    }

    fn copies(&self) -> Result<&Disk, CopyError> {
        self.disk.as_ref().ok_or(CopyError::NoDirectory)
    }
}
