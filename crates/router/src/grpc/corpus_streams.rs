//! The streams about whole corpora: decode, delegate.

use std::sync::Arc;
use std::time::Duration;

use simshard_proto::{Violations, v1 as pb};
use simshard_transport::Admitted;
use tonic::{Request, Response, Status};

use super::CorpusGrpc;
use crate::deadline::Deadline;
use crate::decode;
use crate::error::RouterError;
use crate::router::CorpusStream;
use crate::streams::{AnswerStream, Sink, answers};

/// How long such a stream waits for its reader.
const PATIENCE: Duration = Duration::from_secs(600);

impl CorpusGrpc {
    /// What a stream about a corpus needs. The corpus is read anew: once the stream has begun, it cannot begin again
    /// with another that took its name.
    async fn corpus_stream(&self, name: &str, recipe: &str) -> Result<CorpusStream, Status> {
        let name = decode::corpus_name("corpus", name, Violations::default())?;
        self.rights.check(&name)?;
        let corpus = self.router.newest(&name, recipe).await?;
        Ok(CorpusStream::new(&self.router, Arc::clone(&corpus)).await?)
    }

    /// The answers that `work` sends, until the router stops.
    fn about_all<T, F>(
        &self,
        admitted: Admitted,
        deadline: Option<Deadline>,
        work: impl FnOnce(Sink<T>) -> F,
    ) -> Response<AnswerStream<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<(), RouterError>> + Send + 'static,
    {
        let stopping = self.stopping.clone();
        let until_stopped = |sink| {
            let work = work(sink);
            async move {
                let done = stopping.run_until_cancelled(work).await;
                done.unwrap_or(Err(RouterError::Stopping))
            }
        };
        Response::new(answers(admitted, deadline, PATIENCE, until_stopped))
    }

    pub(super) async fn scan_all(
        &self,
        request: Request<pb::ScanRequest>,
    ) -> Result<Response<AnswerStream<pb::ScanResponse>>, Status> {
        let admitted = Admitted::of(&request);
        let deadline = Deadline::of_client(request.metadata());
        let request = request.into_inner();
        let stream = self.corpus_stream(&request.corpus, &request.recipe).await?;
        Ok(self.about_all(admitted, deadline, |sink| stream.scan(sink)))
    }

    pub(super) async fn find_all_pairs(
        &self,
        request: Request<pb::FindPairsRequest>,
    ) -> Result<Response<AnswerStream<pb::FindPairsResponse>>, Status> {
        let admitted = Admitted::of(&request);
        let deadline = Deadline::of_client(request.metadata());
        let request = request.into_inner();
        let stream = self.corpus_stream(&request.corpus, &request.recipe).await?;
        let distance = decode::distance(request.max_distance, stream.layout())?;
        let find = |sink| stream.find_pairs(distance, sink);
        Ok(self.about_all(admitted, deadline, find))
    }

    pub(super) async fn find_all_clusters(
        &self,
        request: Request<pb::FindClustersRequest>,
    ) -> Result<Response<AnswerStream<pb::FindClustersResponse>>, Status> {
        let admitted = Admitted::of(&request);
        let deadline = Deadline::of_client(request.metadata());
        let request = request.into_inner();
        let stream = self.corpus_stream(&request.corpus, &request.recipe).await?;
        let distance = decode::distance(request.max_distance, stream.layout())?;
        let find = |sink| stream.find_clusters(distance, sink);
        Ok(self.about_all(admitted, deadline, find))
    }
}
