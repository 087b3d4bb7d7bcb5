//! Comparing a replica with another one, which says what it has range by range.

use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::CorpusUid;

use super::{CompareError, Comparison, CopyRange, Digest, Versions};
use crate::merge::{Cursor, Merge};

/// A replica of a shard, beside the ranges of another one.
pub struct ReplicaComparison<'a> {
    corpora: Arc<[CorpusUid]>,
    comparison: Comparison<Merge<Box<dyn Cursor + 'a>>>,
}

impl<'a> ReplicaComparison<'a> {
    /// Begins to compare the elements of these corpora, which ascend.
    pub(crate) fn new(
        elements: Merge<Box<dyn Cursor + 'a>>,
        corpora: Arc<[CorpusUid]>,
        versions: Versions,
    ) -> Self {
        Self {
            corpora,
            comparison: Comparison::new(elements, versions),
        }
    }

    /// Takes the end of a range of the other replica. Corpora that are not compared are passed over.
    ///
    /// # Errors
    /// If it does not follow the one before, or a segment cannot be read.
    pub fn end_range(
        &mut self,
        corpus: CorpusUid,
        last: Fingerprint,
        digest: Digest,
    ) -> Result<(), CompareError> {
        if self.corpora.binary_search(&corpus).is_err() {
            return Ok(());
        }
        self.comparison.end_range(corpus, last, digest)
    }

    /// The ranges that differ, and how many elements of this replica were compared.
    ///
    /// # Errors
    /// If ranges are missing.
    pub fn finish(self) -> Result<(Vec<CopyRange>, u64), CompareError> {
        let compared = self.comparison.compared();
        Ok((self.comparison.finish()?.ranges, compared))
    }
}
