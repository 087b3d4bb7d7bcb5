//! A shard as another node copies it: all that is applied, part by part, as fast as the reader takes it.

use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_storage::{Corpus, Element, Pinned};
use simshard_topology::replication::{Epoch, Pin, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use tokio::sync::mpsc;

use super::Engine;
use crate::error::NodeError;

/// Shards that are copied from here at once. Each takes a thread, and memory for what of it is not in segments.
pub(super) const MOST_AT_ONCE: usize = 4;

/// Elements of a part.
const ELEMENTS: usize = 4096;

/// Bytes of ids of a part, about.
const ID_BYTES: usize = 256 << 10;

/// Parts that wait for the reader.
const WAITING: usize = 4;

/// Elements of one corpus, in order.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) corpus: CorpusUid,
    pub(crate) fingerprints: Vec<Fingerprint>,
    pub(crate) versions: Vec<Version>,
    /// Places of tombstones.
    pub(crate) removed: Vec<u32>,
    pub(crate) ids: Vec<String>,
    id_bytes: usize,
}

/// What is copied, and its parts.
#[derive(Debug)]
pub(crate) struct CopySource {
    pub(crate) pin: Pin,
    pub(crate) corpora: Vec<Corpus>,
    pub(crate) parts: mpsc::Receiver<Result<Part, NodeError>>,
}

impl Part {
    const fn new(corpus: CorpusUid) -> Self {
        Self {
            corpus,
            fingerprints: Vec::new(),
            versions: Vec::new(),
            removed: Vec::new(),
            ids: Vec::new(),
            id_bytes: 0,
        }
    }

    fn has_room(&self, corpus: CorpusUid) -> bool {
        let is_small = self.fingerprints.len() < ELEMENTS && self.id_bytes < ID_BYTES;
        is_small && self.corpus == corpus
    }

    fn push(&mut self, element: Element<'_>) {
        if !element.live {
            self.removed.push(self.fingerprints.len() as u32);
        }
        self.fingerprints.push(element.fingerprint);
        self.versions.push(element.version);
        self.ids.push(element.id.to_owned());
        self.id_bytes += element.id.len();
    }
}

impl Engine {
    /// Pins a shard and begins to copy it, for a learner that was added at an epoch.
    pub(crate) async fn copy_source(
        self: &Arc<Self>,
        store: StoreId,
        shard: ShardId,
        added: Epoch,
    ) -> Result<CopySource, NodeError> {
        let permit = Arc::clone(&self.copies).acquire_owned().await;
        let permit = permit.map_err(|_| NodeError::Stopping)?;
        let pinned = self.store.pin(shard, added)?;
        let Some(pinned) = pinned.filter(|pinned| pinned.pin.source == store) else {
            return Err(NodeError::WrongEpoch(ShardSet::from_iter([shard])));
        };
        let (sender, parts) = mpsc::channel(WAITING);
        let (pin, corpora) = (pinned.pin, pinned.corpora.clone());
        tokio::task::spawn_blocking(move || {
            send(&pinned, &sender);
            drop(permit);
        });
        Ok(CopySource {
            pin,
            corpora,
            parts,
        })
    }
}

/// Sends all parts, unless the reader goes.
fn send(pinned: &Pinned, sender: &mpsc::Sender<Result<Part, NodeError>>) {
    let mut part: Option<Part> = None;
    let visited = pinned.visit(|corpus, element| {
        if let Some(full) = part.take_if(|part| !part.has_room(corpus))
            && sender.blocking_send(Ok(full)).is_err()
        {
            return false;
        }
        part.get_or_insert_with(|| Part::new(corpus)).push(element);
        true
    });
    let last = match visited {
        Ok(()) => part.map(Ok),
        Err(error) => Some(Err(error.into())),
    };
    // The reader may have gone.
    let _ = last.map(|last| sender.blocking_send(last));
}
