//! Scanning: the documents at home in shards, page by page.

use std::sync::Arc;

use futures_util::Stream;
use simshard_cluster::CorpusUid;
use simshard_simhash::Fingerprint;
use simshard_storage::{Documents, PageStart};
use simshard_topology::{ShardId, ShardSet};

use super::pages::{PAGE, Pages};
use super::{Cancellation, Engine};
use crate::error::NodeError;
use crate::target::Target;

/// Where a scan is.
struct Scan {
    corpus: CorpusUid,
    /// The shards that are left, the last first.
    shards: Vec<ShardId>,
    /// Where the last of them goes on.
    start: Option<PageStart>,
}

impl Engine {
    /// The documents at home in these shards, each once: by shard, fingerprint, and id.
    pub(crate) async fn scan(
        self: &Arc<Self>,
        target: Target,
        shards: ShardSet,
    ) -> Result<impl Stream<Item = Result<Documents, NodeError>> + use<>, NodeError> {
        let mut left: Vec<ShardId> = shards.iter().collect();
        left.reverse();
        let scan = Scan {
            corpus: target.corpus,
            shards: left,
            start: None,
        };
        self.pages(&target, shards, scan).await
    }
}

impl Pages for Scan {
    fn is_done(&self) -> bool {
        self.shards.is_empty()
    }

    /// The next documents, of as many shards as it takes: each is read by as many elements as a page has documents.
    fn page(
        &mut self,
        engine: &Engine,
        cancellation: &Cancellation,
    ) -> Result<Documents, NodeError> {
        let mut page = Documents::default();
        while page.fingerprints.len() < PAGE
            && let Some(&shard) = self.shards.last()
        {
            if cancellation.is_over() {
                return Err(NodeError::Abandoned);
            }
            let (first, last) = at_home(shard);
            let start = self.start.take().unwrap_or(PageStart::of(first));
            let take = |fingerprint, id: &str| {
                page.fingerprints.push(fingerprint);
                page.ids.push(id.to_owned());
            };
            let store = &engine.store;
            self.start = store.page(shard, self.corpus, &start, last, PAGE, take)?;
            if self.start.is_none() {
                self.shards.pop();
            }
        }
        Ok(page)
    }
}

/// The first and the last fingerprint that are at home in a shard.
fn at_home(shard: ShardId) -> (Fingerprint, Fingerprint) {
    let first = u64::from(shard.0) << 56;
    (Fingerprint(first), Fingerprint(first | u64::MAX >> 8))
}
