//! Looking up the documents behind fingerprints, at their homes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use simshard_proto::{Documents, documents_of_columns, shard::v1 as pb, shards_from};
use simshard_simhash::{Fingerprint, Tables};
use simshard_topology::{NodeId, ShardId, ShardSet};

use super::CorpusStream;
use crate::error::RouterError;
use crate::nodes::Client;

/// Documents by fingerprint: the ids of each, ascending.
pub(super) type ByFingerprint = BTreeMap<Fingerprint, Vec<String>>;

/// Bytes of a document in memory beside its id, about.
const HELD_BYTES: usize = 32;

/// The bytes that documents may still take.
struct Room(AtomicUsize);

impl Room {
    /// Takes some; says whether there was enough.
    fn take(&self, bytes: usize) -> bool {
        let take = |room: usize| room.checked_sub(bytes);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_update(set, fetch, take).is_ok()
    }
}

impl CorpusStream {
    /// The documents that have these distinct fingerprints; `None` if they take more than `room` bytes.
    pub(super) async fn documents(
        &self,
        fingerprints: &[Fingerprint],
        room: usize,
    ) -> Result<Option<ByFingerprint>, RouterError> {
        let mut by_node: BTreeMap<&NodeId, (ShardSet, Vec<u64>)> = BTreeMap::new();
        for fingerprint in fingerprints {
            let home = ShardId(Tables::home_shard(*fingerprint));
            let owner = self.readers.of(home);
            let (shards, of_node) = by_node.entry(owner).or_default();
            shards.insert(home);
            of_node.push(fingerprint.0);
        }
        let room = &Room(AtomicUsize::new(room));
        let parts = by_node.into_iter().map(|(node, (shards, fingerprints))| {
            self.documents_of(node.clone(), shards, fingerprints, room)
        });
        let parts: Option<Vec<ByFingerprint>> = try_join_all(parts).await?.into_iter().collect();
        Ok(parts.map(|parts| parts.into_iter().flatten().collect()))
    }

    async fn documents_of(
        &self,
        node: NodeId,
        shards: ShardSet,
        fingerprints: Vec<u64>,
        room: &Room,
    ) -> Result<Option<ByFingerprint>, RouterError> {
        let request = pb::LookUpRequest {
            target: Some(self.target(shards)),
            shards: shards_from(shards),
            fingerprints,
        };
        let look_up = async |mut client: Client, request| client.look_up(request).await;
        let mut pages = self.ask(node, shards, request, look_up).await?;
        let mut documents = ByFingerprint::new();
        while let Some(page) = self.next(&mut pages).await? {
            let mut page = self.columns(&pages.node, page.fingerprints, page.ids)?;
            let bytes = page.ids.iter().map(|id| HELD_BYTES + id.len()).sum();
            if !room.take(bytes) {
                return Ok(None);
            }
            page.ids.resize(page.fingerprints.len(), String::new());
            for (fingerprint, id) in page.fingerprints.into_iter().zip(page.ids) {
                documents.entry(fingerprint).or_default().push(id);
            }
        }
        Ok(Some(documents))
    }

    /// The documents that a node has sent.
    pub(super) fn columns(
        &self,
        node: &NodeId,
        fingerprints: Vec<u64>,
        ids: Vec<String>,
    ) -> Result<Documents, RouterError> {
        let documents = documents_of_columns(fingerprints, ids);
        documents.map_err(|problem| RouterError::Malformed {
            node: node.clone(),
            problem,
        })
    }
}
