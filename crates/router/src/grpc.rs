//! The gRPC edge of the router: decode, delegate, convert.

mod batches;
mod convert;
mod corpus_streams;
mod rights;

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use simshard_proto::v1::corpus_service_server::CorpusService;
use simshard_proto::{Violations, v1 as pb};
use simshard_transport::{Admitted, InJson};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::deadline::Deadline;
use crate::decode;
use crate::router::Router;
use crate::streams::{AnswerStream, BatchPermit, answer_each};
pub(crate) use rights::Rights;

/// `simshard.v1.CorpusService` over a router.
#[derive(Clone)]
pub(crate) struct CorpusGrpc {
    pub(crate) router: Arc<Router>,
    /// How long a request may take if the client does not say.
    pub(crate) timeout: Duration,
    /// Once it is cancelled, streams take no more.
    pub(crate) stopping: CancellationToken,
    /// What the caller may do: nothing before there is a caller.
    pub(crate) rights: Rights,
}

impl CorpusGrpc {
    /// The edge with the rights of the caller of a request.
    fn of_caller<T>(&self, request: &Request<T>) -> Self {
        Self {
            rights: Rights::of(request),
            ..self.clone()
        }
    }

    fn deadline<T>(&self, request: &Request<T>) -> Deadline {
        Deadline::from_metadata(request.metadata(), self.timeout)
    }

    /// The answers to a stream of batches, each of which has as much time as a request, but none beyond the client's
    /// deadline for the stream.
    fn answers<Q, A, F>(
        &self,
        requests: Request<Streaming<Q>>,
        answer: impl Fn(Self, Q, Deadline, BatchPermit) -> F + Send + Sync + 'static,
    ) -> Response<AnswerStream<A>>
    where
        Q: Send + 'static,
        A: Message + 'static,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        let edge = self.of_caller(&requests);
        let end = Deadline::of_client(requests.metadata());
        let answer = move |request, held| {
            let own = Deadline::within(edge.timeout);
            let deadline = end.map_or(own, |end| end.min(own));
            answer(edge.clone(), request, deadline, held)
        };
        let stopping = self.stopping.clone();
        Response::new(answer_each(requests, end, self.timeout, stopping, answer))
    }
}

/// The form of matches that a request asks for. A client that says nothing gets rows in JSON.
fn form<T>(request: &Request<T>, asked: i32) -> i32 {
    let says_nothing = asked == pb::ResultForm::Unspecified as i32;
    if says_nothing && request.extensions().get::<InJson>().is_some() {
        return pb::ResultForm::Rows.into();
    }
    asked
}

#[tonic::async_trait]
impl CorpusService for CorpusGrpc {
    async fn create_corpus(
        &self,
        request: Request<pb::CreateCorpusRequest>,
    ) -> Result<Response<pb::CreateCorpusResponse>, Status> {
        let deadline = self.deadline(&request);
        let new = decode::new_corpus(request.get_ref())?;
        Rights::of(&request).check(&new.name)?;
        let record = self.router.create(new, deadline).await?;
        let corpus = Some(convert::corpus(&record));
        Ok(Response::new(pb::CreateCorpusResponse { corpus }))
    }

    async fn get_corpus(
        &self,
        request: Request<pb::GetCorpusRequest>,
    ) -> Result<Response<pb::GetCorpusResponse>, Status> {
        let deadline = self.deadline(&request);
        let name = &request.get_ref().name;
        let name = decode::corpus_name("name", name, Violations::default())?;
        Rights::of(&request).check(&name)?;
        // Nodes that do not hold it are described, not refused, so one that is remembered might be gone. It is described only
        // while the metadata is away.
        let corpus = self.router.newest(&name, "").await?;
        let contents = self.router.contents(&corpus, deadline).await?;
        let cluster = self.router.cluster();
        let shards = |node: &_| cluster.shards_of(node);
        let cold = |node: &_| cluster.cold_of(node);
        let response = convert::get_corpus_response(&corpus.record, contents, shards, cold);
        Ok(Response::new(response))
    }

    async fn list_corpora(
        &self,
        request: Request<pb::ListCorporaRequest>,
    ) -> Result<Response<pb::ListCorporaResponse>, Status> {
        let page = decode::page(request.get_ref())?;
        let may_know = Rights::of(&request).filter()?;
        let corpora = self.router.list().await?;
        let page = convert::list_corpora_response(&corpora, &page, may_know);
        Ok(Response::new(page))
    }

    async fn delete_corpus(
        &self,
        request: Request<pb::DeleteCorpusRequest>,
    ) -> Result<Response<pb::DeleteCorpusResponse>, Status> {
        let deadline = self.deadline(&request);
        let name = &request.get_ref().name;
        let name = decode::corpus_name("name", name, Violations::default())?;
        Rights::of(&request).check(&name)?;
        self.router.delete(&name, deadline).await?;
        Ok(Response::new(pb::DeleteCorpusResponse {}))
    }

    async fn list_stored_corpora(
        &self,
        request: Request<pb::ListStoredCorporaRequest>,
    ) -> Result<Response<pb::ListStoredCorporaResponse>, Status> {
        let deadline = self.deadline(&request);
        let stored = self.router.list_stored(deadline).await?;
        let corpora = stored.into_iter().map(convert::stored_corpus).collect();
        Ok(Response::new(pb::ListStoredCorporaResponse { corpora }))
    }

    async fn recover_corpus(
        &self,
        request: Request<pb::RecoverCorpusRequest>,
    ) -> Result<Response<pb::RecoverCorpusResponse>, Status> {
        let deadline = self.deadline(&request);
        let (uid, name, recipe) = decode::recover_corpus(request.get_ref())?;
        let record = self.router.recover(uid, name, recipe, deadline).await?;
        let corpus = Some(convert::corpus(&record));
        Ok(Response::new(pb::RecoverCorpusResponse { corpus }))
    }

    async fn insert(
        &self,
        request: Request<pb::InsertRequest>,
    ) -> Result<Response<pb::InsertResponse>, Status> {
        let deadline = self.deadline(&request);
        let held = Admitted::of(&request);
        let edge = self.of_caller(&request);
        let response = edge
            .insert_batch(request.into_inner(), deadline, held)
            .await?;
        Ok(Response::new(response))
    }

    async fn remove(
        &self,
        request: Request<pb::RemoveRequest>,
    ) -> Result<Response<pb::RemoveResponse>, Status> {
        let deadline = self.deadline(&request);
        let held = Admitted::of(&request);
        let edge = self.of_caller(&request);
        let response = edge
            .remove_batch(request.into_inner(), deadline, held)
            .await?;
        Ok(Response::new(response))
    }

    async fn find_first(
        &self,
        request: Request<pb::FindFirstRequest>,
    ) -> Result<Response<pb::FindFirstResponse>, Status> {
        let deadline = self.deadline(&request);
        let result_form = form(&request, request.get_ref().result_form);
        let edge = self.of_caller(&request);
        let request = pb::FindFirstRequest {
            result_form,
            ..request.into_inner()
        };
        let response = edge.find_first_batch(request, deadline).await?;
        Ok(Response::new(response))
    }

    async fn find_all(
        &self,
        request: Request<pb::FindAllRequest>,
    ) -> Result<Response<pb::FindAllResponse>, Status> {
        let deadline = self.deadline(&request);
        let result_form = form(&request, request.get_ref().result_form);
        let edge = self.of_caller(&request);
        let request = pb::FindAllRequest {
            result_form,
            ..request.into_inner()
        };
        let response = edge.find_all_batch(request, deadline).await?;
        Ok(Response::new(response))
    }

    type InsertStreamStream = AnswerStream<pb::InsertStreamResponse>;

    async fn insert_stream(
        &self,
        request: Request<Streaming<pb::InsertStreamRequest>>,
    ) -> Result<Response<Self::InsertStreamStream>, Status> {
        Ok(
            self.answers(request, |edge, request, deadline, held| async move {
                let batch = request.batch.unwrap_or_default();
                let result = Some(edge.insert_batch(batch, deadline, held).await?);
                let sequence = request.sequence;
                Ok(pb::InsertStreamResponse { sequence, result })
            }),
        )
    }

    type RemoveStreamStream = AnswerStream<pb::RemoveStreamResponse>;

    async fn remove_stream(
        &self,
        request: Request<Streaming<pb::RemoveStreamRequest>>,
    ) -> Result<Response<Self::RemoveStreamStream>, Status> {
        Ok(
            self.answers(request, |edge, request, deadline, held| async move {
                let batch = request.batch.unwrap_or_default();
                let result = Some(edge.remove_batch(batch, deadline, held).await?);
                let sequence = request.sequence;
                Ok(pb::RemoveStreamResponse { sequence, result })
            }),
        )
    }

    type FindFirstStreamStream = AnswerStream<pb::FindFirstStreamResponse>;

    async fn find_first_stream(
        &self,
        request: Request<Streaming<pb::FindFirstStreamRequest>>,
    ) -> Result<Response<Self::FindFirstStreamStream>, Status> {
        Ok(
            self.answers(request, |edge, request, deadline, _| async move {
                let batch = request.batch.unwrap_or_default();
                let result = Some(edge.find_first_batch(batch, deadline).await?);
                let sequence = request.sequence;
                Ok(pb::FindFirstStreamResponse { sequence, result })
            }),
        )
    }

    type FindAllStreamStream = AnswerStream<pb::FindAllStreamResponse>;

    async fn find_all_stream(
        &self,
        request: Request<Streaming<pb::FindAllStreamRequest>>,
    ) -> Result<Response<Self::FindAllStreamStream>, Status> {
        Ok(
            self.answers(request, |edge, request, deadline, _| async move {
                let batch = request.batch.unwrap_or_default();
                let result = Some(edge.find_all_batch(batch, deadline).await?);
                let sequence = request.sequence;
                Ok(pb::FindAllStreamResponse { sequence, result })
            }),
        )
    }

    type ScanStream = AnswerStream<pb::ScanResponse>;

    async fn scan(
        &self,
        request: Request<pb::ScanRequest>,
    ) -> Result<Response<Self::ScanStream>, Status> {
        self.of_caller(&request).scan_all(request).await
    }

    type FindPairsStream = AnswerStream<pb::FindPairsResponse>;

    async fn find_pairs(
        &self,
        request: Request<pb::FindPairsRequest>,
    ) -> Result<Response<Self::FindPairsStream>, Status> {
        self.of_caller(&request).find_all_pairs(request).await
    }

    type FindClustersStream = AnswerStream<pb::FindClustersResponse>;

    async fn find_clusters(
        &self,
        request: Request<pb::FindClustersRequest>,
    ) -> Result<Response<Self::FindClustersStream>, Status> {
        self.of_caller(&request).find_all_clusters(request).await
    }

    async fn fingerprint(
        &self,
        request: Request<pb::FingerprintRequest>,
    ) -> Result<Response<pb::FingerprintResponse>, Status> {
        let rights = Rights::of(&request);
        let request = decode::fingerprint(request.into_inner())?;
        rights.check(&request.name)?;
        // No node checks the recipe, so a remembered one might be old. It is used only while the metadata is away.
        let corpus = self.router.newest(&request.name, &request.recipe).await?;
        let fingerprints = request.batch.fingerprints(&corpus).await?;
        Ok(Response::new(pb::FingerprintResponse {
            fingerprints: fingerprints.iter().map(|value| value.0).collect(),
            recipe: corpus.recipe.to_string(),
        }))
    }
}
