//! Asking a node to scrub a shard, what it has in common with others, and to settle it.

use std::collections::BTreeMap;
use std::error::Error;

use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_proto::{Reason, shards_from, shards_into};
use simshard_simhash::Fingerprint;
use simshard_storage::Digest;
use simshard_topology::replication::{State, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use simshard_transport::Dialer;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::floors::Goal;
use crate::peers::copying::in_time;
use crate::peers::said::status_text;

/// A node that is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// How it is reached.
    pub dialer: &'a Dialer,
    /// Where.
    pub address: &'a str,
}

/// How a shard is scrubbed.
#[derive(Clone, Copy, Debug)]
pub struct ScrubOptions {
    /// Documents with later versions are not compared.
    pub until: Version,
    /// Whether replicas are to get what they lack.
    pub repairs: bool,
    /// Documents that differ of which the node takes note at once.
    pub most_differences: u32,
}

/// A document of which the replicas of a shard, or two shards, have different states.
#[derive(Clone, Debug)]
pub struct ScrubDifference {
    /// Its corpus.
    pub corpus: CorpusUid,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Its id.
    pub id: String,
    /// The state of each replica that was read.
    pub states: Vec<ReplicaState>,
    /// Whether all have the newest state now.
    pub is_repaired: bool,
}

/// The state of a document in a shard of a store.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaState {
    /// The shard.
    pub shard: ShardId,
    /// The store.
    pub store: StoreId,
    /// The state; `None` if the store has nothing of it.
    pub state: Option<State>,
}

/// Why a shard is not compared, or not repaired.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ScrubError {
    message: String,
    /// Whether the same may succeed later, with the record that the shard has then.
    pub may_succeed_later: bool,
}

impl ScrubError {
    /// The node that would do it has not registered.
    #[must_use]
    pub fn unregistered() -> Self {
        Self {
            message: "its node has not registered: start it, and run this command again".to_owned(),
            may_succeed_later: false,
        }
    }

    /// A store that held it has left it meanwhile.
    #[must_use]
    pub fn left() -> Self {
        Self {
            message: "a node left it meanwhile: run this command again".to_owned(),
            may_succeed_later: true,
        }
    }
}

impl From<Status> for ScrubError {
    fn from(status: Status) -> Self {
        // A node leaves the shards whose files are damaged.
        let storage_failed = Reason::of(&status) == Some(Reason::StorageFailed);
        // The connection broke: what a node says has no source.
        let is_cut = status.source().is_some();
        let may_pass = matches!(
            status.code(),
            Code::FailedPrecondition
                | Code::Unavailable
                | Code::DeadlineExceeded
                | Code::ResourceExhausted
                // The node stops.
                | Code::Cancelled
        );
        Self {
            message: status_text(&status),
            may_succeed_later: storage_failed || is_cut || may_pass,
        }
    }
}

/// What comes of a scrub.
#[derive(Clone, Debug, Default)]
pub struct ScrubSummary {
    /// The stores whose replicas were compared.
    pub stores: Vec<StoreId>,
    /// Elements that were compared, tombstones among them.
    pub compared: u64,
    /// Documents that differ.
    pub differences: u64,
    /// Those of them that are repaired.
    pub repaired: u64,
    /// Whether more of them differ than the node could take note of.
    pub has_more: bool,
    /// Bytes of the messages between the replicas.
    pub message_bytes: u64,
}

/// Has a node compare the replicas of a shard, which its store holds in sync. `visit` gets the documents
/// that differ.
///
/// # Errors
/// If the replicas cannot be compared, or repaired.
pub async fn scrub_shard(
    node: Asked<'_>,
    store: StoreId,
    shard: ShardId,
    options: ScrubOptions,
    visit: impl FnMut(ScrubDifference),
) -> Result<ScrubSummary, ScrubError> {
    scrub(node, request(store, shard, options), visit).await
}

/// Has a node compare a shard, which its store holds in sync, with others, which are above it: the
/// documents of these corpora. `visit` gets those that differ.
///
/// # Errors
/// If the shards cannot be compared, or repaired.
pub async fn compare_shard(
    node: Asked<'_>,
    store: StoreId,
    shard: ShardId,
    others: ShardSet,
    corpora: &[CorpusUid],
    options: ScrubOptions,
    visit: impl FnMut(ScrubDifference),
) -> Result<ScrubSummary, ScrubError> {
    let request = pb::ScrubShardRequest {
        other_shards: shards_from(others),
        corpora: bytes_of(corpora),
        ..request(store, shard, options)
    };
    scrub(node, request, visit).await
}

/// Asks a node what a shard, which its store holds in sync, has in common with each other one. The
/// documents of these corpora count that have no later version than `until`, but for tombstones up to `settled`. For shards
/// that are compared, this must be the same: one of them may have dropped these. Answers a sum for each other shard.
///
/// # Errors
/// If the shard cannot be read.
pub async fn sum_cells_of(
    node: Asked<'_>,
    store: StoreId,
    shard: ShardId,
    corpora: &[CorpusUid],
    (until, settled): (Version, Version),
) -> Result<Vec<Digest>, ScrubError> {
    let request = pb::SumCellsRequest {
        store: store.0.to_vec(),
        shard: shard.0.into(),
        corpora: bytes_of(corpora),
        compared_version: until.0,
        settled_version: settled.0,
    };
    let mut client = client(node.dialer, node.address)?;
    // It may take as long as the shard is large; the transport sees whether the node lives.
    let summed = client.sum_cells(request).await;
    let summed = summed
        .map_err(|status| explain(node.address, status))?
        .into_inner();
    let (sums, rest) = summed.sums.as_chunks();
    if sums.len() != ShardId::COUNT || !rest.is_empty() {
        return Err(Status::internal("the node answers what makes no sense").into());
    }
    Ok(sums.to_vec())
}

/// Has a node bring shards to a goal, at a version. Its store holds them in sync before all others. Answers
/// why some have not come there. Without shards, the node only compares the version with its clock.
///
/// # Errors
/// If the version is ahead of the node's clock. Else when the node does not answer, or cannot change records.
pub async fn settle_shards(
    node: Asked<'_>,
    store: StoreId,
    shards: ShardSet,
    version: Version,
    goal: Goal,
) -> Result<BTreeMap<ShardId, String>, ScrubError> {
    let request = pb::SettleShardsRequest {
        store: store.0.to_vec(),
        shards: shards_from(shards),
        version: version.0,
        settles: goal == Goal::Settled,
    };
    // It may take as long as the shards are large; the transport sees whether the node lives.
    let answer = client(node.dialer, node.address)?
        .settle_shards(request)
        .await;
    let answer = answer
        .map_err(|status| explain(node.address, status))?
        .into_inner();
    let left = shards_into(&answer.left_shards)?;
    let unknown = shards.difference(&shards_into(&answer.done_shards)?);
    let unknown = unknown
        .iter()
        .map(|shard| (shard, "its node did not say why".to_owned()));
    Ok(unknown.chain(left.iter().zip(answer.problems)).collect())
}

fn request(store: StoreId, shard: ShardId, options: ScrubOptions) -> pb::ScrubShardRequest {
    pb::ScrubShardRequest {
        store: store.0.to_vec(),
        shard: shard.0.into(),
        compared_version: options.until.0,
        repairs: options.repairs,
        most_differences: options.most_differences,
        ..pb::ScrubShardRequest::default()
    }
}

fn client(dialer: &Dialer, address: &str) -> Result<ShardServiceClient<Channel>, Status> {
    Ok(ShardServiceClient::new(dialer.channel_to(address)?))
}

fn bytes_of(corpora: &[CorpusUid]) -> Vec<u8> {
    corpora.iter().flat_map(|corpus| corpus.0).collect()
}

async fn scrub(
    node: Asked<'_>,
    request: pb::ScrubShardRequest,
    mut visit: impl FnMut(ScrubDifference),
) -> Result<ScrubSummary, ScrubError> {
    let compares_shards = !request.other_shards.is_empty();
    let mut client = client(node.dialer, node.address)?;
    let messages = in_time(client.scrub_shard(request), "the node does not answer").await?;
    let mut messages = messages.into_inner();
    // It may take as long as the shard is large; the transport sees whether the node lives.
    while let Some(message) = messages.message().await? {
        for difference in message.differences {
            visit(difference_of(difference)?);
        }
        if let Some(summary) = message.summary {
            if summary.compares_shards != compares_shards {
                return Err(too_old(node.address).into());
            }
            return Ok(ScrubSummary {
                stores: stores_of(&summary.stores),
                compared: summary.compared_count,
                differences: summary.difference_count,
                repaired: summary.repaired_count,
                has_more: summary.has_more,
                message_bytes: summary.message_bytes,
            });
        }
    }
    Err(Status::unavailable("the answer was cut short").into())
}

/// Says what it means that a node does not know a method.
fn explain(address: &str, status: Status) -> Status {
    if status.code() == Code::Unimplemented {
        too_old(address)
    } else {
        status
    }
}

fn too_old(address: &str) -> Status {
    let message =
        format!("the node at {address} is of a version that does not know this: upgrade it");
    Status::unimplemented(message)
}

fn stores_of(bytes: &[u8]) -> Vec<StoreId> {
    let (ids, _) = bytes.as_chunks();
    ids.iter().copied().map(StoreId).collect()
}

fn difference_of(difference: pb::ScrubDifference) -> Result<ScrubDifference, Status> {
    let senseless = || Status::internal("the node answers what makes no sense");
    let nonsense = |_| senseless();
    let corpus = <[u8; 16]>::try_from(&*difference.corpus_uid).map_err(nonsense)?;
    let mut states = Vec::new();
    for state in difference.states {
        let store = <[u8; 16]>::try_from(&*state.store).map_err(nonsense)?;
        let version = Version(state.version);
        let live = state.live;
        let shard = u8::try_from(state.shard).map_err(|_| senseless())?;
        states.push(ReplicaState {
            shard: ShardId(shard),
            store: StoreId(store),
            state: (version != Version::NONE).then_some(State { version, live }),
        });
    }
    Ok(ScrubDifference {
        corpus: CorpusUid(corpus),
        fingerprint: Fingerprint(difference.fingerprint),
        id: difference.id,
        states,
        is_repaired: difference.repaired,
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_passes_once_a_node_leaves_or_dies_is_tried_again() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        let damaged = Reason::StorageFailed.status("a file is damaged", None);
        for (status, may_succeed_later) in [
            (Status::from_error(Box::new(broken)), true),
            (damaged, true),
            (Status::unavailable("it stops"), true),
            (Status::cancelled("it stops"), true),
            (Status::internal("nonsense"), false),
            (Status::unimplemented("it is too old"), false),
        ] {
            let error = ScrubError::from(status);
            assert_eq!(error.may_succeed_later, may_succeed_later, "{error}");
        }
    }

    #[tokio::test]
    async fn an_error_says_why_a_node_does_not_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let ask = async |address: &str| {
            let (store, none) = (StoreId([1; 16]), ShardSet::EMPTY);
            let node = Asked {
                dialer: &Dialer::PLAIN,
                address,
            };
            let asked = settle_shards(node, store, none, Version(1), Goal::Raised).await;
            asked.unwrap_err()
        };
        let refused = ask(&address).await;
        assert!(refused.to_string().contains("refused"), "{refused}");
        assert!(refused.may_succeed_later);
        // The second one lacks http://.
        for senseless in ["no address", "10.0.0.1:7470"] {
            let refused = ask(senseless).await;
            let said = format!("{senseless} is no address");
            assert!(refused.to_string().starts_with(&said), "{refused}");
            assert!(!refused.may_succeed_later);
        }
    }
}
