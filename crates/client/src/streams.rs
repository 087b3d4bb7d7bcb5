//! Streams of batches: the next ones are under way while one is answered.

use futures_util::{Stream, StreamExt};
use simshard_proto::v1 as pb;

use crate::batch::{Documents, Queries};
use crate::client::Client;
use crate::error::ClientError;
use crate::find::{FindOptions, Found};

impl Client {
    /// Inserts a stream of batches; yields how many documents of each were new,
    /// in their order. Several batches are under way at once.
    ///
    /// # Errors
    /// If the router refuses the stream; each batch can fail, which ends it.
    pub async fn insert_stream<B>(
        &self,
        corpus: &str,
        batches: B,
    ) -> Result<impl Stream<Item = Result<u64, ClientError>> + use<B>, ClientError>
    where
        B: Stream<Item = Documents> + Send + 'static,
    {
        let (client, corpus) = (self.clone(), corpus.to_owned());
        let requests = batches.enumerate().map(move |(sequence, documents)| {
            let batch = Some(client.insert_request(&corpus, documents));
            pb::InsertStreamRequest {
                sequence: sequence as u64,
                batch,
            }
        });
        let url = self.url.clone();
        let answers = self.stub.clone().insert_stream(requests).await;
        let answers = answers.map_err(|status| self.error(status))?.into_inner();
        Ok(answers.map(move |answer| match answer {
            Ok(answer) => Ok(answer.result.unwrap_or_default().inserted_count),
            Err(status) => Err(ClientError::from_status(status, &url)),
        }))
    }

    /// Finds all matches of a stream of batches; yields the answer to each, in
    /// their order. Several batches are under way at once.
    ///
    /// # Errors
    /// If the router refuses the stream; each batch can fail, which ends it.
    pub async fn find_all_stream<B>(
        &self,
        corpus: &str,
        batches: B,
        options: FindOptions,
    ) -> Result<impl Stream<Item = Result<Found, ClientError>> + use<B>, ClientError>
    where
        B: Stream<Item = Queries> + Send + 'static,
    {
        let (client, corpus) = (self.clone(), corpus.to_owned());
        let requests = batches.enumerate().map(move |(sequence, queries)| {
            let batch = Some(client.find_all_request(&corpus, queries, options));
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
            Ok(Found::new(&answer.queries, matches, answer.completeness)?)
        }))
    }
}
