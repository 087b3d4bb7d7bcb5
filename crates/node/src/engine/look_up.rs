//! Looking up the documents behind fingerprints, page by page.

use std::sync::Arc;
use std::vec;

use futures_util::Stream;
use simshard_cluster::CorpusUid;
use simshard_simhash::Fingerprint;
use simshard_storage::Documents;
use simshard_topology::ShardSet;

use super::pages::{PAGE, Pages};
use super::{Cancellation, Engine};
use crate::corpora::NodeCorpus;
use crate::error::NodeError;
use crate::shard::home;
use crate::target::Target;

/// A fingerprint, and ids of its documents.
type Ids = (Fingerprint, vec::IntoIter<Box<str>>);

/// Where a look-up is.
struct LookUp {
    corpus: CorpusUid,
    shards: ShardSet,
    /// Those that are left.
    fingerprints: vec::IntoIter<Fingerprint>,
    /// Ids of the last one that did not fit its page.
    rest: Option<Ids>,
}

impl Engine {
    /// The documents with these fingerprints that are at home in these shards, in their order, then by id.
    pub(crate) async fn look_up(
        self: &Arc<Self>,
        target: Target,
        shards: ShardSet,
        fingerprints: Vec<Fingerprint>,
    ) -> Result<impl Stream<Item = Result<Documents, NodeError>> + use<>, NodeError> {
        let look_up = LookUp {
            corpus: target.corpus,
            shards,
            fingerprints: fingerprints.into_iter(),
            rest: None,
        };
        self.pages(&target, shards, look_up).await
    }
}

impl Pages for LookUp {
    fn is_done(&self) -> bool {
        self.rest.is_none() && self.fingerprints.len() == 0
    }

    fn page(
        &mut self,
        engine: &Engine,
        cancellation: &Cancellation,
    ) -> Result<Documents, NodeError> {
        let corpus = engine.corpora.get(self.corpus)?;
        let mut page = Documents::default();
        while page.ids.len() < PAGE && !self.is_done() {
            if cancellation.is_over() {
                return Err(NodeError::Abandoned);
            }
            let Some((fingerprint, mut ids)) = self.next(engine, &corpus)? else {
                continue;
            };
            for id in ids.by_ref().take(PAGE - page.ids.len()) {
                page.fingerprints.push(fingerprint);
                page.ids.push(id.into_string());
            }
            self.rest = (ids.len() > 0).then_some((fingerprint, ids));
        }
        Ok(page)
    }
}

impl LookUp {
    /// The rest of the last fingerprint, or all of the next one, unless it is at home elsewhere.
    fn next(&mut self, engine: &Engine, corpus: &NodeCorpus) -> Result<Option<Ids>, NodeError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        let Some(fingerprint) = self.fingerprints.next() else {
            return Ok(None);
        };
        let home = home(fingerprint);
        if !self.shards.contains(home) {
            return Ok(None);
        }
        // A shard whose tables were thrown away would seem to have no documents.
        let bare = engine.while_built(home, || {
            let shard = corpus.read(home)?;
            Ok::<_, NodeError>(match shard {
                Some(shard) => shard.is_bare().then(|| shard.contains(fingerprint)),
                None => Some(false),
            })
        })??;
        let ids = match bare {
            Some(true) => vec![Box::default()],
            Some(false) => Vec::new(),
            None => engine
                .store
                .live_ids(home, self.corpus, fingerprint, None)?,
        };
        Ok(Some((fingerprint, ids.into_iter())))
    }
}
