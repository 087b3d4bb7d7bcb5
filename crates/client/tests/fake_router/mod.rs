//! A router that answers streams of inserts as a test says, and anything else not at all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use simshard_client::Reason;
use simshard_client::v1 as pb;
use simshard_proto::v1::corpus_service_server::{CorpusService, CorpusServiceServer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// What the router does with one stream. Numbers are of batches that it answers before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Answers all.
    Answer,
    /// Answers all, and says nothing at all before it has the first batch.
    AnswerOnceAsked,
    /// Breaks off, as a lost connection does.
    Break(usize),
    /// Ends as if all were well.
    End(usize),
    /// Fails.
    Fail(usize, Reason),
    /// Refuses the stream itself.
    Refuse(Reason),
    /// Reads on, and answers no more.
    Silence(usize),
    /// Answers another batch.
    OutOfTurn(usize),
}

/// A router that runs until the test ends.
#[derive(Clone)]
pub(crate) struct FakeRouter {
    /// For streams one after another; then all are answered.
    script: Arc<Mutex<VecDeque<Act>>>,
    /// The numbers of the batches of each stream, as they came.
    streams: Arc<Mutex<Vec<Vec<u64>>>>,
}

impl FakeRouter {
    /// Starts it; returns its URL too.
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> (Self, String) {
        let fake = Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            streams: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = CorpusServiceServer::new(fake.clone());
        let connections = TcpListenerStream::new(listener);
        let server = Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(connections));
        (fake, url)
    }

    /// The numbers of the batches that came, by stream.
    pub(crate) fn streams(&self) -> Vec<Vec<u64>> {
        self.streams.lock().unwrap().clone()
    }

    fn saw(&self, stream: usize, batch: &pb::InsertStreamRequest) {
        self.streams.lock().unwrap()[stream].push(batch.sequence);
    }
}

type AnswerSender = mpsc::Sender<Result<pb::InsertStreamResponse, Status>>;

/// An answer that counts all documents of the batch as new.
fn answer(batch: pb::InsertStreamRequest) -> pb::InsertStreamResponse {
    let inserted_count = batch.batch.unwrap().fingerprints.len() as u64;
    pb::InsertStreamResponse {
        sequence: batch.sequence,
        result: Some(pb::InsertResponse { inserted_count }),
    }
}

/// Answers `most` batches; whether there were that many.
async fn answer_some(
    fake: &FakeRouter,
    stream: usize,
    most: usize,
    batches: &mut Streaming<pb::InsertStreamRequest>,
    answers: &AnswerSender,
) -> bool {
    for _ in 0..most {
        let Ok(Some(batch)) = batches.message().await else {
            return false;
        };
        fake.saw(stream, &batch);
        let _ = answers.send(Ok(answer(batch))).await;
    }
    true
}

async fn act(
    fake: FakeRouter,
    stream: usize,
    act: Act,
    mut batches: Streaming<pb::InsertStreamRequest>,
    answers: AnswerSender,
) {
    let before = match act {
        Act::Answer | Act::AnswerOnceAsked | Act::Refuse(_) => usize::MAX,
        Act::Break(before)
        | Act::End(before)
        | Act::Fail(before, _)
        | Act::Silence(before)
        | Act::OutOfTurn(before) => before,
    };
    if !answer_some(&fake, stream, before, &mut batches, &answers).await {
        return;
    }
    match act {
        Act::Answer | Act::AnswerOnceAsked | Act::Refuse(_) | Act::End(_) => {}
        Act::Break(_) => drop(answers.send(Err(Status::unknown("broken"))).await),
        Act::Fail(_, reason) => drop(answers.send(Err(reason.status("no", []))).await),
        Act::Silence(_) => {
            while let Ok(Some(batch)) = batches.message().await {
                fake.saw(stream, &batch);
            }
        }
        Act::OutOfTurn(_) => {
            let mut batch = batches.message().await.unwrap().unwrap();
            fake.saw(stream, &batch);
            batch.sequence += 1;
            let _ = answers.send(Ok(answer(batch))).await;
        }
    }
}

type Unused<T> = Result<Response<T>, Status>;

/// A stream that no test asks for.
type Never<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn unused<T>() -> Unused<T> {
    Err(Status::unimplemented("no test asks for it"))
}

#[tonic::async_trait]
impl CorpusService for FakeRouter {
    type InsertStreamStream = ReceiverStream<Result<pb::InsertStreamResponse, Status>>;
    type RemoveStreamStream = Never<pb::RemoveStreamResponse>;
    type FindFirstStreamStream = Never<pb::FindFirstStreamResponse>;
    type FindAllStreamStream = Never<pb::FindAllStreamResponse>;
    type ScanStream = Never<pb::ScanResponse>;
    type FindPairsStream = Never<pb::FindPairsResponse>;
    type FindClustersStream = Never<pb::FindClustersResponse>;

    async fn insert_stream(
        &self,
        request: Request<Streaming<pb::InsertStreamRequest>>,
    ) -> Result<Response<Self::InsertStreamStream>, Status> {
        let next = self.script.lock().unwrap().pop_front();
        let next = next.unwrap_or(Act::Answer);
        let stream = {
            let mut streams = self.streams.lock().unwrap();
            streams.push(Vec::new());
            streams.len() - 1
        };
        if let Act::Refuse(reason) = next {
            return Err(reason.status("no", []));
        }
        let mut batches = request.into_inner();
        let (answers, receiver) = mpsc::channel(1);
        if let Act::AnswerOnceAsked = next {
            let (batches, answers) = (&mut batches, answers.clone());
            answer_some(self, stream, 1, batches, &answers).await;
        }
        tokio::spawn(act(self.clone(), stream, next, batches, answers));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn create_corpus(
        &self,
        _: Request<pb::CreateCorpusRequest>,
    ) -> Unused<pb::CreateCorpusResponse> {
        unused()
    }

    async fn get_corpus(&self, _: Request<pb::GetCorpusRequest>) -> Unused<pb::GetCorpusResponse> {
        unused()
    }

    async fn list_corpora(
        &self,
        _: Request<pb::ListCorporaRequest>,
    ) -> Unused<pb::ListCorporaResponse> {
        unused()
    }

    async fn delete_corpus(
        &self,
        _: Request<pb::DeleteCorpusRequest>,
    ) -> Unused<pb::DeleteCorpusResponse> {
        unused()
    }

    async fn list_stored_corpora(
        &self,
        _: Request<pb::ListStoredCorporaRequest>,
    ) -> Unused<pb::ListStoredCorporaResponse> {
        unused()
    }

    async fn recover_corpus(
        &self,
        _: Request<pb::RecoverCorpusRequest>,
    ) -> Unused<pb::RecoverCorpusResponse> {
        unused()
    }

    async fn insert(&self, _: Request<pb::InsertRequest>) -> Unused<pb::InsertResponse> {
        unused()
    }

    async fn remove(&self, _: Request<pb::RemoveRequest>) -> Unused<pb::RemoveResponse> {
        unused()
    }

    async fn find_first(&self, _: Request<pb::FindFirstRequest>) -> Unused<pb::FindFirstResponse> {
        unused()
    }

    async fn find_all(&self, _: Request<pb::FindAllRequest>) -> Unused<pb::FindAllResponse> {
        unused()
    }

    async fn remove_stream(
        &self,
        _: Request<Streaming<pb::RemoveStreamRequest>>,
    ) -> Unused<Self::RemoveStreamStream> {
        unused()
    }

    async fn find_first_stream(
        &self,
        _: Request<Streaming<pb::FindFirstStreamRequest>>,
    ) -> Unused<Self::FindFirstStreamStream> {
        unused()
    }

    async fn find_all_stream(
        &self,
        _: Request<Streaming<pb::FindAllStreamRequest>>,
    ) -> Unused<Self::FindAllStreamStream> {
        unused()
    }

    async fn scan(&self, _: Request<pb::ScanRequest>) -> Unused<Self::ScanStream> {
        unused()
    }

    async fn find_pairs(&self, _: Request<pb::FindPairsRequest>) -> Unused<Self::FindPairsStream> {
        unused()
    }

    async fn find_clusters(
        &self,
        _: Request<pb::FindClustersRequest>,
    ) -> Unused<Self::FindClustersStream> {
        unused()
    }

    async fn fingerprint(
        &self,
        _: Request<pb::FingerprintRequest>,
    ) -> Unused<pb::FingerprintResponse> {
        unused()
    }
}
