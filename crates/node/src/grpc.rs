//! The gRPC edge of a node: decode, delegate, convert.

use std::sync::Arc;

use simshard_cluster::CorpusUid;
use simshard_proto::shard::v1 as pb;
use simshard_proto::{Documents, Reason, Violations, check_batch, check_ids, matches_from};
use simshard_simhash::{Fingerprint, LeadGroups};
use simshard_topology::{ShardId, ShardSet};
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
            .create_corpus(uid, request.blocks, request.distance)?;
        Ok(Response::new(pb::CreateCorpusResponse {}))
    }

    async fn delete_corpus(
        &self,
        request: Request<pb::DeleteCorpusRequest>,
    ) -> Result<Response<pb::DeleteCorpusResponse>, Status> {
        let uid = corpus_uid(&request.into_inner().corpus_uid)?;
        self.engine.delete_corpus(uid);
        Ok(Response::new(pb::DeleteCorpusResponse {}))
    }

    async fn describe_corpus(
        &self,
        request: Request<pb::DescribeCorpusRequest>,
    ) -> Result<Response<pb::DescribeCorpusResponse>, Status> {
        let uid = corpus_uid(&request.into_inner().corpus_uid)?;
        let mut response = pb::DescribeCorpusResponse::default();
        for (shard, counts) in self.engine.counts(uid)? {
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
        let uid = corpus_uid(&request.corpus_uid)?;
        let shards = shard_set(&request.shards)?;
        let documents = documents(request.fingerprints, request.ids)?;
        let inserted_count = self.engine.insert(uid, shards, documents).await?;
        Ok(Response::new(pb::InsertResponse { inserted_count }))
    }

    async fn remove(
        &self,
        request: Request<pb::RemoveRequest>,
    ) -> Result<Response<pb::RemoveResponse>, Status> {
        let request = request.into_inner();
        let uid = corpus_uid(&request.corpus_uid)?;
        let shards = shard_set(&request.shards)?;
        let documents = documents(request.fingerprints, request.ids)?;
        let removed_count = self.engine.remove(uid, shards, documents).await?;
        Ok(Response::new(pb::RemoveResponse { removed_count }))
    }

    async fn find_all(
        &self,
        request: Request<pb::FindAllRequest>,
    ) -> Result<Response<pb::FindAllResponse>, Status> {
        let request = request.into_inner();
        let limit = request.limit;
        let answer = self.engine.find(near_query(request)?).await?;
        let matches = matches_from(answer.matches, limit, answer.truncated);
        Ok(Response::new(pb::FindAllResponse {
            matches: Some(matches),
        }))
    }
}

#[allow(clippy::result_large_err, reason = "tonic's own error type")]
fn near_query(request: pb::FindAllRequest) -> Result<NearQuery, Status> {
    let mut violations = Violations::default();
    check_batch("fingerprints", request.fingerprints.len(), &mut violations);
    violations.check()?;
    Ok(NearQuery {
        corpus: corpus_uid(&request.corpus_uid)?,
        shards: shard_set(&request.shards)?,
        active: LeadGroups(request.active_lead_groups),
        max_distance: request.max_distance,
        limit: request.limit,
        max_ids: request.max_ids,
        fingerprints: fingerprints(request.fingerprints),
    })
}

#[allow(clippy::result_large_err, reason = "tonic's own error type")]
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

#[allow(clippy::result_large_err, reason = "tonic's own error type")]
fn corpus_uid(uid: &str) -> Result<CorpusUid, Status> {
    uid.parse().map_err(|_| {
        let message = format!("corpus_uid {uid:?} is no uid");
        Reason::InvalidRequest.status(message, [])
    })
}

#[allow(clippy::result_large_err, reason = "tonic's own error type")]
fn shard_set(shards: &[u32]) -> Result<ShardSet, Status> {
    let mut set = ShardSet::EMPTY;
    for &shard in shards {
        let Ok(shard) = u8::try_from(shard) else {
            let message = format!("shards has {shard}: a shard is 0 to 255");
            return Err(Reason::InvalidRequest.status(message, []));
        };
        set.insert(ShardId(shard));
    }
    Ok(set)
}

impl From<NodeError> for Status {
    fn from(error: NodeError) -> Self {
        let shards = match &error {
            NodeError::NotOwner(shards) => Some(("shards", shards.to_string())),
            NodeError::CorpusNotLoaded(_)
            | NodeError::LayoutConflict(_)
            | NodeError::Layout(_)
            | NodeError::OutsideLayout
            | NodeError::AnswerTooLarge { .. }
            | NodeError::Stopping => None,
        };
        error.reason().status(error.to_string(), shards)
    }
}
