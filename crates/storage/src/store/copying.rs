//! A shard as others copy it: a view of it at the source.
//!
//! # Invariants
//! - CY1: a view has all that the source had applied when it was pinned, and stays as it is. Only tombstones may be missing
//!   that were settled and dropped. Where it is compared, no settled one counts (DC5).

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_simhash::{Fingerprint, Tables};
use simshard_topology::replication::{Epoch, Pin};
use simshard_topology::{CorpusUid, ShardId, Version};

use super::Store;
use super::catalog::Corpus;
use crate::delta::{
    CellDigester, CellSums, Compared, CopyRange, Digest, RangeElements, ReplicaComparison,
    Versions, compare, elements_per_range,
};
use crate::element::Element;
use crate::error::ReadError;
use crate::memtable::Memtable;
use crate::merge::{Cursor, Merge};
use crate::segment::Segment;

/// A shard as it was when it was pinned.
#[derive(Debug)]
pub struct Pinned {
    /// The source, and the epoch that it had applied.
    pub pin: Pin,
    /// The corpora that the source held.
    pub corpora: Vec<Corpus>,
    /// What is settled by the record of this epoch.
    pub settled: Version,
    memtable: Memtable,
    frozen: Arc<Memtable>,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl Pinned {
    /// Visits the elements that have a later version than `until`, of the corpora that were held, and the ends of
    /// ranges of the others (DC2). They come by corpus, fingerprint and id, until `visit` returns false.
    ///
    /// # Errors
    /// If a segment cannot be read. Then what was visited is not all.
    pub fn compare(
        &self,
        until: Version,
        visit: impl FnMut(CorpusUid, Compared<'_>) -> bool,
    ) -> Result<bool, ReadError> {
        let segments = self.segments.iter().map(|segment| segment.elements());
        let in_memory = self.memtable.elements() + self.frozen.elements();
        let per_range = elements_per_range(segments.sum::<u64>() + in_memory);
        let corpora = self.corpora.iter().map(|corpus| corpus.uid);
        compare(
            &mut self.elements()?,
            corpora,
            self.compared(until),
            per_range,
            visit,
        )
    }

    /// Visits the ends of ranges of at least `per_range` elements each, until `visit` returns false (DC2). Their digests
    /// are of the elements that have no later version than `until`.
    ///
    /// # Errors
    /// If a segment cannot be read. Then what was visited is not all.
    pub fn digests(
        &self,
        until: Version,
        per_range: u64,
        mut visit: impl FnMut(CorpusUid, Fingerprint, Digest) -> bool,
    ) -> Result<(), ReadError> {
        let corpora = self.corpora.iter().map(|corpus| corpus.uid);
        let visit = |corpus, compared: Compared<'_>| match compared {
            Compared::Later(_) => true,
            Compared::RangeEnd(last, digest) => visit(corpus, last, digest),
        };
        compare(
            &mut self.elements()?,
            corpora,
            self.compared(until),
            per_range,
            visit,
        )?;
        Ok(())
    }

    /// Compares the elements that have no later version than `until` with what another replica says of its ranges, of
    /// the corpora that both hold.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn comparison(
        &self,
        corpora: &[CorpusUid],
        until: Version,
    ) -> Result<ReplicaComparison<'_>, ReadError> {
        let held = self.corpora.iter().map(|corpus| corpus.uid);
        let both: Arc<[CorpusUid]> = held.filter(|uid| corpora.contains(uid)).collect();
        let compared = Arc::clone(&both);
        let elements = self.elements_of(move |uid| compared.binary_search(&uid).is_ok())?;
        Ok(ReplicaComparison::new(elements, both, self.compared(until)))
    }

    /// The sums of the cells of `shard`, which this is (DC4). Elements of these corpora count that have no later version
    /// than `until`, without tombstones up to `settled`.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn cells(
        &self,
        shard: ShardId,
        corpora: &[CorpusUid],
        until: Version,
        settled: Version,
    ) -> Result<CellSums, ReadError> {
        let compared = Versions { until, settled };
        let held = self
            .corpora
            .iter()
            .filter(|held| corpora.contains(&held.uid));
        let tables: BTreeMap<CorpusUid, Tables> = held
            .map(|corpus| (corpus.uid, Tables::new(corpus.layout)))
            .collect();
        let mut elements = self.elements_of(|uid| tables.contains_key(&uid))?;
        let mut cells = CellDigester::new(shard);
        while let Some((uid, element)) = elements.element() {
            if compared.has(element.into()) {
                cells.add(uid, &tables[&uid], element);
            }
            elements.advance()?;
        }
        Ok(cells.finish())
    }

    /// Visits the elements in some ranges that have no later version than `until`, until `visit` returns false.
    ///
    /// # Errors
    /// If a segment cannot be read. Then what was visited is not all.
    pub fn visit(
        &self,
        ranges: &[CopyRange],
        until: Version,
        mut visit: impl FnMut(CorpusUid, Element<'_>) -> bool,
    ) -> Result<(), ReadError> {
        let mut part = RangeElements::within(self.elements()?, ranges, until)?;
        while let Some((corpus, element)) = part.element()
            && visit(corpus, element)
        {
            part.advance()?;
        }
        Ok(())
    }

    const fn compared(&self, until: Version) -> Versions {
        Versions {
            until,
            settled: self.settled,
        }
    }

    /// The elements of the corpora that were held.
    fn elements(&self) -> Result<Merge<Box<dyn Cursor + '_>>, ReadError> {
        self.elements_of(|corpus| self.corpora.iter().any(|held| held.uid == corpus))
    }

    /// The elements of some corpora.
    fn elements_of<'a>(
        &'a self,
        is_held: impl Fn(CorpusUid) -> bool + Clone + 'a,
    ) -> Result<Merge<Box<dyn Cursor + 'a>>, ReadError> {
        let mut streams: Vec<Box<dyn Cursor + 'a>> = Vec::new();
        for segment in &*self.segments {
            streams.push(Box::new(segment.scan_all(&is_held)?));
        }
        for table in [&self.memtable, &*self.frozen] {
            streams.push(Box::new(table.cursor(is_held.clone())));
        }
        Ok(Merge::new(streams))
    }
}

impl Store {
    /// Pins what is applied of a shard now, for a learner that was added at an epoch. `None` if the store is no source
    /// for it.
    ///
    /// # Errors
    /// If the shard is not in the store.
    pub fn pin(&self, shard: ShardId, added: Epoch) -> Result<Option<Pinned>, ReadError> {
        // The records first: all that stands before them in the log is applied.
        let replicas = self.replicas.read();
        let Some(pin) = replicas.pin(shard, added) else {
            return Ok(None);
        };
        let corpora = self.corpora();
        let settled = replicas.settled(shard);
        let shard = self.read(shard)?;
        Ok(Some(Pinned {
            pin,
            corpora,
            settled,
            memtable: shard.memtable.clone(),
            frozen: Arc::clone(&shard.frozen),
            segments: Arc::clone(&shard.segments),
        }))
    }
}
