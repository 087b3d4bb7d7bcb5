//! The gRPC edge of a node: decode, delegate, convert.

mod live;

use std::sync::Arc;

use simshard_cluster::CorpusUid;
use simshard_proto::shard::v1 as pb;
use simshard_proto::{Violations, check_batch, check_ids, shards_into};
use simshard_simhash::{Fingerprint, LeadGroups};
use simshard_storage::{Change, ChangeKind, Documents};
use simshard_topology::Version;
use tonic::{Request, Response, Status};

use crate::engine::{Engine, NearQuery};
use crate::error::NodeError;

/// `simshard.shard.v1.ShardService` over an engine.
pub(crate) struct ShardGrpc {
    pub(crate) engine: Arc<Engine>,
}

#[tonic::async_trait]
impl pb::shard_service_server::ShardService for ShardGrpc {
    async fn create_corpus(
        &self,
        request: Request<pb::CreateCorpusRequest>,
    ) -> Result<Response<pb::CreateCorpusResponse>, Status> {
        let request = request.into_inner();
        let uid = corpus_uid(&request.corpus_uid)?;
        self.engine
            .create_corpus(uid, request.blocks, request.distance)
            .await?;
        Ok(Response::new(pb::CreateCorpusResponse {}))
    }

    async fn delete_corpus(
        &self,
        request: Request<pb::DeleteCorpusRequest>,
    ) -> Result<Response<pb::DeleteCorpusResponse>, Status> {
        let uid = corpus_uid(&request.into_inner().corpus_uid)?;
        self.engine.delete_corpus(uid).await?;
        Ok(Response::new(pb::DeleteCorpusResponse {}))
    }

    async fn describe_corpus(
        &self,
        request: Request<pb::DescribeCorpusRequest>,
    ) -> Result<Response<pb::DescribeCorpusResponse>, Status> {
        let uid = corpus_uid(&request.into_inner().corpus_uid)?;
        let mut response = pb::DescribeCorpusResponse::default();
        for (shard, counts) in self.engine.counts(uid).await? {
            response.shards.push(shard.0.into());
            response.document_counts.push(counts.documents);
            response.home_document_counts.push(counts.home_documents);
            response
                .home_fingerprint_counts
                .push(counts.home_fingerprints);
        }
        Ok(Response::new(response))
    }

    async fn insert(
        &self,
        request: Request<pb::InsertRequest>,
    ) -> Result<Response<pb::InsertResponse>, Status> {
        let request = request.into_inner();
        let change = Change {
            kind: ChangeKind::Insert,
            corpus: corpus_uid(&request.corpus_uid)?,
            version: version(request.version)?,
            shards: shards_into(&request.shards)?,
            documents: documents(request.fingerprints, request.ids)?,
        };
        let outcome = self.engine.change(change).await?;
        Ok(Response::new(pb::InsertResponse {
            inserted_count: outcome.changed,
            newer_version: outcome.newer.0,
        }))
    }

    async fn remove(
        &self,
        request: Request<pb::RemoveRequest>,
    ) -> Result<Response<pb::RemoveResponse>, Status> {
        let request = request.into_inner();
        let change = Change {
            kind: ChangeKind::Remove,
            corpus: corpus_uid(&request.corpus_uid)?,
            version: version(request.version)?,
            shards: shards_into(&request.shards)?,
            documents: documents(request.fingerprints, request.ids)?,
        };
        let outcome = self.engine.change(change).await?;
        Ok(Response::new(pb::RemoveResponse {
            removed_count: outcome.changed,
            newer_version: outcome.newer.0,
        }))
    }

    async fn find_all(
        &self,
        request: Request<pb::FindAllRequest>,
    ) -> Result<Response<pb::FindAllResponse>, Status> {
        let query = near_query(request.into_inner())?;
        let matches = self.engine.find(query).await?;
        Ok(Response::new(pb::FindAllResponse {
            matches: Some(matches),
        }))
    }

    type ScanStream = live::Answers<pb::ScanResponse>;

    async fn scan(
        &self,
        request: Request<pb::ScanRequest>,
    ) -> Result<Response<Self::ScanStream>, Status> {
        live::scan(&self.engine, request.get_ref())
    }

    type FindPairsStream = live::Answers<pb::FindPairsResponse>;

    async fn find_pairs(
        &self,
        request: Request<pb::FindPairsRequest>,
    ) -> Result<Response<Self::FindPairsStream>, Status> {
        live::find_pairs(&self.engine, request.get_ref())
    }

    type LookUpStream = live::Answers<pb::LookUpResponse>;

    async fn look_up(
        &self,
        request: Request<pb::LookUpRequest>,
    ) -> Result<Response<Self::LookUpStream>, Status> {
        live::look_up(&self.engine, request.into_inner())
    }
}

/// A router's clock never gives out 0, which means that a document was never written.
fn version(value: u64) -> Result<Version, Status> {
    match value {
        0 => Err(Violations::of("version", "is 0, which is none")),
        value => Ok(Version(value)),
    }
}

fn near_query(request: pb::FindAllRequest) -> Result<NearQuery, Status> {
    let mut violations = Violations::default();
    check_batch("fingerprints", request.fingerprints.len(), &mut violations);
    violations.check()?;
    Ok(NearQuery {
        corpus: corpus_uid(&request.corpus_uid)?,
        shards: shards_into(&request.shards)?,
        active: LeadGroups(request.active_lead_groups),
        max_distance: request.max_distance,
        limit: request.limit,
        max_ids: request.max_ids,
        fingerprints: fingerprints(request.fingerprints),
    })
}

fn documents(values: Vec<u64>, ids: Vec<String>) -> Result<Documents, Status> {
    let mut violations = Violations::default();
    check_batch("fingerprints", values.len(), &mut violations);
    check_ids(&ids, values.len(), &mut violations);
    violations.check()?;
    Ok(Documents {
        fingerprints: fingerprints(values),
        ids,
    })
}

fn fingerprints(values: Vec<u64>) -> Vec<Fingerprint> {
    values.into_iter().map(Fingerprint).collect()
}

fn corpus_uid(uid: &str) -> Result<CorpusUid, Status> {
    uid.parse()
        .map_err(|_| Violations::of("corpus_uid", format!("is {uid:?}, which is no uid")))
}

impl From<NodeError> for Status {
    fn from(error: NodeError) -> Self {
        let shards = match &error {
            NodeError::NotOwner(shards) => Some(("shards", shards.to_string())),
            NodeError::CorpusNotLoaded(_)
            | NodeError::LayoutConflict(_)
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
