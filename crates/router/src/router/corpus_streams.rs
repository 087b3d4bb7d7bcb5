//! Requests about a whole corpus: streams from the nodes, over connections of their own. A reader that stops leaves
//! answers of nodes half read. On a shared connection, these would block all other requests.

mod clusters;
mod look_up;
mod pairs;
mod scan;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use simshard_proto::MAX_MESSAGE_BYTES;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_simhash::Layout;
use simshard_topology::{NodeId, ShardId, ShardSet};
use simshard_transport::Dialer;
use tokio::sync::OwnedSemaphorePermit;
use tonic::transport::Endpoint;
use tonic::{Response, Status, Streaming};

use super::proof::Claim;
use super::rounds::Rounds;
use super::{Failures, Router};
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::{CallError, Client};
use crate::readers::{Avoided, Readers};
use crate::remembered::OpenCorpus;

/// Streams about whole corpora that a router serves at a time.
pub(super) const MOST_AT_ONCE: usize = 16;

/// Bytes of a node's stream that may be on their way. A connection has room for several, as documents are looked up
/// while pairs wait.
const WINDOW: u32 = 1 << 20;

/// How long a node may take to say whether it will do its part. It answers before it begins.
const OPENING: Duration = Duration::from_secs(30);

/// A corpus, and connections to all nodes, for one stream about it.
#[derive(Debug)]
pub(crate) struct CorpusStream {
    /// The cluster as it was when the stream began.
    cluster: Arc<ClusterView>,
    readers: Arc<Readers>,
    corpus: Arc<OpenCorpus>,
    connections: HashMap<NodeId, Client>,
    /// Held by all that works for the stream, threads that outlive it for a moment included.
    permit: Arc<OwnedSemaphorePermit>,
}

/// The answers of one node.
struct FromNode<A> {
    node: NodeId,
    /// The shards that it was asked about.
    shards: ShardSet,
    answers: Streaming<A>,
}

impl Router {
    /// The cluster, and replicas that serve all of a corpus by the records of now. While records change, as when a node
    /// is lost, they are looked for again.
    async fn proven_readers(
        &self,
        corpus: &OpenCorpus,
    ) -> Result<(Arc<ClusterView>, Arc<Readers>), RouterError> {
        let deadline = Deadline::within(OPENING);
        let mut rounds = Rounds::new();
        loop {
            let cluster = self.cluster.view();
            let avoided = if cluster.layout.map().is_replicated() {
                self.not_serving(&cluster, corpus).await?
            } else {
                Avoided::default()
            };
            let readers = cluster.readers(&avoided);
            let claim = Claim {
                cluster: &cluster,
                readers: &readers,
                corpus: corpus.record.uid,
                shards: ShardSet::ALL,
                down: &avoided.down,
                readers_confirm: false,
                deadline,
            };
            let unproven = self.prove(claim).await;
            let is_again =
                unproven.is_stale_only() && rounds.another(self, &cluster, deadline).await;
            if !is_again {
                unproven.check(&corpus.record.name)?;
                return Ok((cluster, readers));
            }
        }
    }
}

impl CorpusStream {
    /// Gets ready, unless too many are in flight.
    pub(crate) async fn new(
        router: &Arc<Router>,
        corpus: Arc<OpenCorpus>,
    ) -> Result<Self, RouterError> {
        let permit = Arc::clone(&router.corpus_streams).try_acquire_owned();
        let permit = permit.map_err(|_| RouterError::TooManyStreams { most: MOST_AT_ONCE })?;
        let (cluster, readers) = router.proven_readers(&corpus).await?;
        let mut connections = HashMap::new();
        for node in cluster.layout.nodes() {
            // A node with an address that is none is unreachable.
            if let Ok(endpoint) = router.dialer.endpoint(&node.address) {
                let connection = connection(&router.dialer, endpoint);
                connections.insert(node.id.clone(), connection);
            }
        }
        Ok(Self {
            readers,
            cluster,
            corpus,
            connections,
            permit: Arc::new(permit),
        })
    }

    pub(crate) fn layout(&self) -> Layout {
        self.corpus.layout()
    }

    /// The nodes and their shards: one run of neighbours after the other, from the first shard to the last.
    fn runs(&self) -> Vec<(NodeId, ShardSet)> {
        let mut runs: Vec<(NodeId, ShardSet)> = Vec::new();
        for shard in ShardId::all() {
            let owner = self.readers.of(shard);
            if runs.last().is_none_or(|(node, _)| node != owner) {
                runs.push((owner.clone(), ShardSet::EMPTY));
            }
            if let Some((_, shards)) = runs.last_mut() {
                shards.insert(shard);
            }
        }
        runs
    }

    fn target(&self, shards: ShardSet) -> pb::Target {
        self.cluster.target(&self.corpus.record, shards)
    }

    /// Asks a node about shards of its own.
    async fn ask<M, A, F>(
        &self,
        node: NodeId,
        shards: ShardSet,
        request: M,
        method: impl Fn(Client, M) -> F,
    ) -> Result<FromNode<A>, RouterError>
    where
        M: Clone,
        F: Future<Output = Result<Response<Streaming<A>>, Status>>,
    {
        let Some(own) = self.connections.get(&node) else {
            return Err(self.lost(node, shards, CallError::Unreachable));
        };
        let call = |_shared: Client, request| method(own.clone(), request);
        let deadline = Deadline::within(OPENING);
        let answers = self.cluster.nodes.call(&node, deadline, &request, call);
        match answers.await {
            Ok(answers) => Ok(FromNode {
                node,
                shards,
                answers,
            }),
            Err(error) => Err(self.lost(node, shards, error)),
        }
    }

    /// The next answer of a node; `None` at the end.
    async fn next<A>(&self, from: &mut FromNode<A>) -> Result<Option<A>, RouterError> {
        let answer = from.answers.message().await;
        answer.map_err(|status| self.lost(from.node.clone(), from.shards, status.into()))
    }

    /// All answers of a node.
    fn answers<A>(&self, from: FromNode<A>) -> impl Stream<Item = Result<A, RouterError>> {
        stream::try_unfold(from, async |mut from| {
            let answer = self.next(&mut from).await?;
            Ok(answer.map(|answer| (answer, from)))
        })
    }

    /// A node has not done its part: nothing is complete without it.
    fn lost(&self, node: NodeId, shards: ShardSet, error: CallError) -> RouterError {
        let mut failures = Failures::default();
        match failures.note(node, shards, error) {
            Ok(()) => failures.error(&self.corpus.record.name),
            Err(refused) => refused,
        }
    }
}

fn connection(dialer: &Dialer, endpoint: Endpoint) -> Client {
    let endpoint = endpoint
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(4 * WINDOW);
    ShardServiceClient::new(dialer.connect(&endpoint))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(usize::MAX)
}
