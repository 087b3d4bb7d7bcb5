//! The gRPC edge of a node: decode, delegate, convert.

mod decode;
mod streams;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::Map;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::{Violations, epochs_from, shards_from, shards_into};
use simshard_storage::Room;
use simshard_topology::replication::StoreId;
use simshard_topology::{CorpusUid, MapDigest, NodeId, ShardId, ShardSet, Version};
use simshard_transport::{Admitted, Dialer, WorkWatch};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::engine::Engine;
use crate::error::NodeError;
use crate::floors::{Floors, Goal};
use crate::peers::{Peers, columns_of, records_of, scrub, sum_cells};

/// `simshard.shard.v1.ShardService` over an engine.
pub(crate) struct ShardGrpc {
    pub(crate) engine: Arc<Engine>,
    /// The name of the node.
    pub(crate) node: NodeId,
    /// How other nodes are reached.
    pub(crate) dialer: Dialer,
    /// The other stores of its shards, if it has registered itself.
    pub(crate) peers: Option<Arc<Peers>>,
    /// The floors of the shards that it looks after, if it has registered itself.
    pub(crate) floors: Option<Arc<Floors>>,
    /// The layout, as the metadata has it.
    pub(crate) layout: watch::Receiver<Arc<ClusterLayout>>,
    /// Once it is cancelled, streams of work take no more.
    pub(crate) stopping: CancellationToken,
    /// What watches the work.
    pub(crate) watch: Arc<WorkWatch>,
}

impl ShardGrpc {
    /// Refuses a request that means another node. Its shards would not tell, as it concerns the whole corpus.
    fn check_node(&self, meant: String) -> Result<(), NodeError> {
        if meant == self.node.as_str() {
            return Ok(());
        }
        let node = self.node.clone();
        Err(NodeError::OtherNode { meant, node })
    }

    /// What this node knows of others. Refuses a request that means another store.
    fn peers_of(&self, store: &[u8]) -> Result<&Peers, Status> {
        let peers = self.peers.as_ref().ok_or_else(unregistered)?;
        if store == peers.own().0.0 {
            return Ok(peers);
        }
        Err(Status::not_found("this node has another store"))
    }
}

#[tonic::async_trait]
impl pb::shard_service_server::ShardService for ShardGrpc {
    async fn create_corpus(
        &self,
        request: Request<pb::CreateCorpusRequest>,
    ) -> Result<Response<pb::CreateCorpusResponse>, Status> {
        let request = request.into_inner();
        self.check_node(request.node)?;
        let target = decode::target(request.target, &[])?;
        self.engine.create_corpus(target).await?;
        Ok(Response::new(pb::CreateCorpusResponse {}))
    }

    async fn delete_corpus(
        &self,
        request: Request<pb::DeleteCorpusRequest>,
    ) -> Result<Response<pb::DeleteCorpusResponse>, Status> {
        let request = request.into_inner();
        self.check_node(request.node)?;
        let target = decode::target(request.target, &[])?;
        self.engine.delete_corpus(target).await?;
        Ok(Response::new(pb::DeleteCorpusResponse {}))
    }

    async fn list_corpora(
        &self,
        request: Request<pb::ListCorporaRequest>,
    ) -> Result<Response<pb::ListCorporaResponse>, Status> {
        let request = request.into_inner();
        self.check_node(request.node)?;
        let map = MapDigest(request.map_digest);
        let (uids, []) = request.left_out.as_chunks() else {
            return Err(Violations::of(
                "left_out",
                "is not made of 16 bytes for each uid",
            ));
        };
        let left_out = uids.iter().copied().map(CorpusUid).collect();
        let held = self.engine.list(map, left_out).await?.into_iter();
        let corpora = held.map(|(uid, layout, documents)| pb::HeldCorpus {
            corpus_uid: uid.to_string(),
            blocks: layout.blocks(),
            distance: layout.distance(),
            home_document_count: documents,
        });
        Ok(Response::new(pb::ListCorporaResponse {
            corpora: corpora.collect(),
        }))
    }

    async fn describe_corpus(
        &self,
        request: Request<pb::DescribeCorpusRequest>,
    ) -> Result<Response<pb::DescribeCorpusResponse>, Status> {
        let request = request.into_inner();
        self.check_node(request.node)?;
        let target = decode::target(request.target, &[])?;
        let mut response = pb::DescribeCorpusResponse::default();
        for (shard, counts) in self.engine.counts(target).await? {
            response.shards.push(shard.0.into());
            response.document_counts.push(counts.documents);
            response.home_document_counts.push(counts.home_documents);
            response
                .home_fingerprint_counts
                .push(counts.home_fingerprints);
        }
        Ok(Response::new(response))
    }

    type WorkStream = Map<
        ReceiverStream<Result<work::WorkMessage, Status>>,
        fn(Result<work::WorkMessage, Status>) -> Result<pb::WorkResponse, Status>,
    >;

    async fn work(
        &self,
        request: Request<Streaming<pb::WorkRequest>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let (answers, receiver) = mpsc::channel(1);
        let admitted = Admitted::of(&request);
        let lane = work::WorkStream {
            engine: Arc::clone(&self.engine),
            answers,
            admitted,
            stopping: self.stopping.clone(),
            watch: Arc::clone(&self.watch),
        };
        tokio::spawn(lane.run(request.into_inner()));
        let respond: fn(Result<_, _>) -> _ =
            |message| message.map(work::WorkMessage::into_response);
        Ok(Response::new(ReceiverStream::new(receiver).map(respond)))
    }

    type ScanStream = streams::AnswerStream<pb::ScanResponse>;

    async fn scan(
        &self,
        request: Request<pb::ScanRequest>,
    ) -> Result<Response<Self::ScanStream>, Status> {
        streams::scan(&self.engine, request.into_inner()).await
    }

    type FindPairsStream = streams::AnswerStream<pb::FindPairsResponse>;

    async fn find_pairs(
        &self,
        request: Request<pb::FindPairsRequest>,
    ) -> Result<Response<Self::FindPairsStream>, Status> {
        streams::find_pairs(&self.engine, request.into_inner()).await
    }

    type LookUpStream = streams::AnswerStream<pb::LookUpResponse>;

    async fn look_up(
        &self,
        request: Request<pb::LookUpRequest>,
    ) -> Result<Response<Self::LookUpStream>, Status> {
        streams::look_up(&self.engine, request.into_inner()).await
    }

    type CopyShardStream = streams::AnswerStream<pb::CopyShardResponse>;

    async fn copy_shard(
        &self,
        request: Request<Streaming<pb::CopyShardRequest>>,
    ) -> Result<Response<Self::CopyShardStream>, Status> {
        streams::copy_shard(&self.engine, request.into_inner()).await
    }

    type ScrubShardStream = streams::AnswerStream<pb::ScrubShardResponse>;

    async fn scrub_shard(
        &self,
        request: Request<pb::ScrubShardRequest>,
    ) -> Result<Response<Self::ScrubShardStream>, Status> {
        let layout = Arc::clone(&self.layout.borrow());
        let messages = scrub(&self.engine, &self.dialer, layout, &request.into_inner())?;
        Ok(Response::new(Box::pin(ReceiverStream::new(messages))))
    }

    async fn sum_cells(
        &self,
        request: Request<pb::SumCellsRequest>,
    ) -> Result<Response<pb::SumCellsResponse>, Status> {
        let summed = sum_cells(&self.engine, &request.into_inner()).await?;
        Ok(Response::new(summed))
    }

    async fn settle_shards(
        &self,
        request: Request<pb::SettleShardsRequest>,
    ) -> Result<Response<pb::SettleShardsResponse>, Status> {
        let request = request.into_inner();
        self.peers_of(&request.store)?;
        let floors = self.floors.as_ref().ok_or_else(unregistered)?;
        let goal = if request.settles {
            Goal::Settled
        } else {
            Goal::Raised
        };
        let shards = shards_into(&request.shards)?;
        let reached = floors.reach(goal, Version(request.version), shards).await?;
        let (left, problems) = reached.left.into_iter().unzip();
        Ok(Response::new(pb::SettleShardsResponse {
            done_shards: shards_from(reached.done),
            left_shards: shards_from(ShardSet::from_iter::<Vec<ShardId>>(left)),
            problems,
        }))
    }

    async fn list_records(
        &self,
        request: Request<pb::ListRecordsRequest>,
    ) -> Result<Response<pb::ListRecordsResponse>, Status> {
        let request = request.into_inner();
        self.peers_of(&request.store)?;
        let shards = shards_into(&request.shards)?;
        let store = self.engine.store();
        let record = |shard| Some((shard, store.synced_record(shard)?));
        let (shards, records) = columns_of(&shards.iter().filter_map(record).collect());
        Ok(Response::new(pb::ListRecordsResponse { shards, records }))
    }

    async fn tell_records(
        &self,
        request: Request<pb::TellRecordsRequest>,
    ) -> Result<Response<pb::TellRecordsResponse>, Status> {
        let request = request.into_inner();
        let peers = self.peers_of(&request.store)?;
        peers.hear(records_of(&request.shards, &request.records)?);
        Ok(Response::new(pb::TellRecordsResponse {}))
    }

    async fn ping(
        &self,
        request: Request<pb::PingRequest>,
    ) -> Result<Response<pb::PingResponse>, Status> {
        let Some(peers) = &self.peers else {
            return Err(unregistered());
        };
        let (store, incarnation) = peers.own();
        let (installations, mut reports) = self.engine.reports();
        let request = request.into_inner();
        if installations == request.known_installations {
            reports.clear();
        }
        let held = request.tells_corpora.then(|| self.engine.uids());
        let about = <[u8; 16]>::try_from(&*request.about_store).ok();
        let reached = match <[u8; 16]>::try_from(&*request.reach_store) {
            Ok(asking) => peers.reach().of(StoreId(asking), &request.reach_address),
            Err(_absent) => pb::Reached::Unspecified,
        };
        let (epoch_numbers, epoch_generations) = epochs_from(&reports);
        let counts = if request.counts_documents {
            // One that has too much to do to count lives all the same.
            self.engine.document_counts().await.ok()
        } else {
            None
        };
        let has_counted = counts.is_some();
        let counts = counts.unwrap_or_default();
        let stored = if has_counted {
            self.engine.store().stored_bytes()
        } else {
            BTreeMap::new()
        };
        Ok(Response::new(pb::PingResponse {
            store: store.0.to_vec(),
            incarnation,
            installations,
            shards: reports.iter().map(|(shard, _)| shard.0.into()).collect(),
            epoch_numbers,
            epoch_generations,
            silent_stores: peers.silent().iter().flat_map(|store| store.0).collect(),
            unheard_stores: peers.unheard().iter().flat_map(|store| store.0).collect(),
            synced: self.engine.synced(),
            heard_synced: about.map_or(0, |store| peers.heard_synced(StoreId(store))),
            damaged_shards: numbers_of(self.engine.damaged()),
            unbuilt_shards: numbers_of(self.engine.unbuilt()),
            log_delay_millis: self.engine.log_delay().map_or(0, millis_from_one),
            reached: reached.into(),
            lacks_room: Some(peers.room() <= Room::Little),
            has_room_for_copies: Some(peers.room() == Room::Ample),
            bytes_for_copies: peers.bytes_for_copies(),
            held_corpora: held.iter().flatten().flat_map(|uid| uid.0).collect(),
            has_counted,
            counted_shards: counts.keys().map(|shard| shard.0.into()).collect(),
            document_counts: counts.into_values().collect(),
            stored_shards: stored.keys().map(|shard| shard.0.into()).collect(),
            stored_bytes: stored.into_values().collect(),
        }))
    }
}

fn numbers_of(shards: ShardSet) -> Vec<u32> {
    shards.iter().map(|shard| shard.0.into()).collect()
}

/// Milliseconds, at least one.
fn millis_from_one(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn unregistered() -> Status {
    Status::unimplemented("this node has not registered itself")
}

impl From<NodeError> for Status {
    fn from(error: NodeError) -> Self {
        let shards = match &error {
            NodeError::NotOwner(shards)
            | NodeError::WrongEpoch(shards)
            | NodeError::Cold(shards) => Some(("shards", shards.to_string())),
            NodeError::CorpusNotLoaded(_)
            | NodeError::Metadata(_)
            | NodeError::MetadataLate(_)
            | NodeError::OtherMap { .. }
            | NodeError::OtherNode { .. }
            | NodeError::CorpusDiffers { .. }
            | NodeError::Layout(_)
            | NodeError::OutsideLayout
            | NodeError::PairsSpanShards
            | NodeError::TooManyJoins { .. }
            | NodeError::AnswerTooLarge { .. }
            | NodeError::ClockAhead(_)
            | NodeError::Refused(_)
            | NodeError::Read(_)
            | NodeError::StorageFailed(_)
            | NodeError::Abandoned
            | NodeError::Stopping => None,
        };
        error.reason().status(error.to_string(), shards)
    }
}
