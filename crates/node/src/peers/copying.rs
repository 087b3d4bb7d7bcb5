//! Copying shards that this node is a learner of, from stores in sync.

use std::sync::Arc;

use simshard_proto::endpoint;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_simhash::{Fingerprint, Layout};
use simshard_storage::{CopyWriter, Element, ShardCopy};
use simshard_topology::replication::{Epoch, Pin, StoreId};
use simshard_topology::{CorpusUid, ShardId, Version};
use tokio::task::spawn_blocking;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};

use crate::engine::Engine;

/// Where a shard is copied from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) store: StoreId,
    pub(super) address: String,
}

/// Copies a shard, for a store that an epoch added as a learner. Answers whether it has the copy: if not, the source has
/// left.
pub(super) async fn copy(
    engine: &Engine,
    source: &Source,
    shard: ShardId,
    added: Epoch,
) -> Result<bool, Status> {
    let endpoint = Endpoint::from_shared(source.address.clone());
    let endpoint = endpoint.map_err(|error| Status::invalid_argument(error.to_string()))?;
    let channel = endpoint::limited(endpoint).connect_lazy();
    let request = pb::CopyShardRequest {
        store: source.store.0.to_vec(),
        shard: shard.0.into(),
        added_number: added.number,
        added_generation: added.generation,
    };
    let mut client = ShardServiceClient::new(channel);
    let mut parts = client.copy_shard(request).await?.into_inner();
    let first = parts.message().await?.and_then(|first| first.source);
    let first = first.ok_or_else(|| nonsense("it does not begin with its source"))?;
    for corpus in &first.corpora {
        let uid: CorpusUid = corpus.corpus_uid.parse().map_err(|_| nonsense("a uid"))?;
        let layout = Layout::new(corpus.blocks, corpus.distance);
        let layout = layout.map_err(|_| nonsense("the layout of a corpus"))?;
        engine.make_copied(uid, layout).await?;
    }
    let pin = Pin {
        source: source.store,
        at: Epoch {
            generation: first.epoch_generation,
            number: first.epoch_number,
        },
    };
    let copy = write(engine, parts, shard, added).await?;
    if engine.end_copy(pin, copy.clone()).await? {
        return Ok(true);
    }
    engine.store().abandon_copy(&copy).map_err(failed)?;
    Ok(false)
}

/// Writes what comes.
async fn write(
    engine: &Engine,
    mut parts: Streaming<pb::CopyShardResponse>,
    shard: ShardId,
    added: Epoch,
) -> Result<ShardCopy, Status> {
    let store = Arc::clone(engine.store());
    let mut writer = on_disk(move || store.begin_copy(shard, added).map_err(failed)).await?;
    while let Some(part) = parts.message().await? {
        writer = on_disk(move || {
            push(&mut writer, &part)?;
            Ok(writer)
        })
        .await?;
    }
    on_disk(move || writer.finish().map_err(failed)).await
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Status::cancelled("the node stops")))
}

/// Adds the elements of a part.
fn push(writer: &mut CopyWriter, part: &pb::CopyShardResponse) -> Result<(), Status> {
    let uid = <[u8; 16]>::try_from(&*part.corpus_uid).map_err(|_| nonsense("a uid"))?;
    let count = part.fingerprints.len();
    let has_ids = !part.ids.is_empty();
    if part.versions.len() != count || (has_ids && part.ids.len() != count) {
        return Err(nonsense("the columns of elements"));
    }
    let mut removed = part.removed.iter().peekable();
    for (place, (&fingerprint, &version)) in
        part.fingerprints.iter().zip(&part.versions).enumerate()
    {
        let is_removed = removed.next_if(|&&next| next as usize == place).is_some();
        let element = Element {
            fingerprint: Fingerprint(fingerprint),
            id: part.ids.get(place).map_or("", |id| id),
            version: Version(version),
            live: !is_removed,
        };
        writer.push(CorpusUid(uid), element).map_err(failed)?;
    }
    match removed.next() {
        None => Ok(()),
        Some(_) => Err(nonsense("the places of tombstones")),
    }
}

fn nonsense(what: &str) -> Status {
    Status::internal(format!(
        "the source of a copy sends what makes no sense: {what}"
    ))
}

fn failed(error: impl std::error::Error) -> Status {
    Status::internal(error.to_string())
}
