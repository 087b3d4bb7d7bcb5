//! Streams of batches: the next ones are in flight while one is answered.

use futures_util::{Stream, StreamExt, TryFutureExt};
use simshard_proto::v1 as pb;
use tonic::{Response, Status, Streaming};

use crate::batch::{Documents, Queries, insert_request, remove_request};
use crate::client::Client;
use crate::error::ClientError;
use crate::find::FindAnswer;
use crate::resend::{Acknowledged, Answer, BatchAnswers, Batches, resending};
use simshard_proto::SearchSpec;

impl Client {
    /// Inserts a stream of batches; yields what became of each, in their order, as it becomes
    /// durable.
    ///
    /// Up to 8 batches are in flight at once, and are kept until they are answered. Batches without an answer are sent
    /// again, in their order. This happens where the stream breaks or fails in a way that may pass, or where none is
    /// answered within the client's timeout. The client pauses longer each time, and gives up when for 30 seconds (see
    /// [`with_patience`](Self::with_patience)) nothing more has been answered. Inserting again changes nothing,
    /// but what the first time inserted counts as there already.
    ///
    /// An error is the last item. The batches that were not answered may be inserted or not: insert
    /// them again. A stream that is dropped is cancelled, but not at once: a batch in flight may
    /// take effect after what this client does next.
    pub fn insert_stream<B>(
        &self,
        corpus: &str,
        batches: B,
    ) -> impl Stream<Item = Result<Acknowledged, ClientError>> + use<B>
    where
        B: Stream<Item = Documents>,
    {
        let (client, corpus) = (self.clone(), corpus.to_owned());
        let open = move |batches: Batches| {
            let (mut stub, corpus) = (client.stub.clone(), corpus.clone());
            let recipe = client.recipe.clone();
            let requests = batches.map(move |batch| pb::InsertStreamRequest {
                sequence: batch.sequence,
                batch: Some(insert_request(&corpus, &recipe, batch.documents.clone())),
            });
            let answers = async move { stub.insert_stream(requests).await };
            client.answers(answers, |answer| Answer {
                sequence: answer.sequence,
                changed_count: answer.result.unwrap_or_default().inserted_count,
            })
        };
        resending(self, batches, open)
    }

    /// Removes a stream of batches, with the rules of [`insert_stream`](Self::insert_stream).
    pub fn remove_stream<B>(
        &self,
        corpus: &str,
        batches: B,
    ) -> impl Stream<Item = Result<Acknowledged, ClientError>> + use<B>
    where
        B: Stream<Item = Documents>,
    {
        let (client, corpus) = (self.clone(), corpus.to_owned());
        let open = move |batches: Batches| {
            let (mut stub, corpus) = (client.stub.clone(), corpus.clone());
            let (recipe, beyond_clock) = (client.recipe.clone(), client.beyond_clock);
            let requests = batches.map(move |batch| {
                let documents = batch.documents.clone();
                let request = remove_request(&corpus, &recipe, documents, beyond_clock);
                pb::RemoveStreamRequest {
                    sequence: batch.sequence,
                    batch: Some(request),
                }
            });
            let answers = async move { stub.remove_stream(requests).await };
            client.answers(answers, |answer| Answer {
                sequence: answer.sequence,
                changed_count: answer.result.unwrap_or_default().removed_count,
            })
        };
        resending(self, batches, open)
    }

    /// The answers of a stream of changes, from the moment on that it is opened.
    fn answers<A: Send + 'static>(
        &self,
        opened: impl Future<Output = Result<Response<Streaming<A>>, Status>> + Send + 'static,
        answer: impl Fn(A) -> Answer + Send + 'static,
    ) -> BatchAnswers {
        let url = self.url.clone();
        let answers = opened.map_ok(Response::into_inner).try_flatten_stream();
        let answers = answers.map(move |message| match message {
            Ok(message) => Ok(answer(message)),
            Err(status) => Err(ClientError::from_status(status, &url)),
        });
        answers.boxed()
    }

    /// Finds all matches of a stream of batches; yields the answer to each, in
    /// their order. Several batches are in flight at once.
    ///
    /// # Errors
    /// If the router refuses the stream; each batch can fail, which ends it.
    pub async fn find_all_stream<B>(
        &self,
        corpus: &str,
        batches: B,
        spec: SearchSpec,
    ) -> Result<impl Stream<Item = Result<FindAnswer, ClientError>> + use<B>, ClientError>
    where
        B: Stream<Item = Queries> + Send + 'static,
    {
        let (client, corpus) = (self.clone(), corpus.to_owned());
        let requests = batches.enumerate().map(move |(sequence, queries)| {
            let batch = Some(client.find_all_request(&corpus, queries, spec));
            pb::FindAllStreamRequest {
                sequence: sequence as u64,
                batch,
            }
        });
        let url = self.url.clone();
        let answers = self.stub.clone().find_all_stream(requests).await;
        let answers = answers.map_err(|status| self.error(status))?.into_inner();
        Ok(answers.map(move |answer| {
            let answer = answer.map_err(|status| ClientError::from_status(status, &url))?;
            let answer = answer.result.unwrap_or_default();
            let matches = answer.matches.unwrap_or_default();
            Ok(FindAnswer::new(
                &answer.queries,
                matches,
                answer.completeness,
            )?)
        }))
    }
}
