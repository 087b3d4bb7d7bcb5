//! Streams about whole corpora. They have no deadline: drop one to end it.

use futures_util::{Stream, StreamExt};
use simshard_proto::{Documents, MalformedColumns, v1 as pb};
use simshard_simhash::Fingerprint;
use tonic::{Status, Streaming};

use crate::client::Client;
use crate::error::ClientError;

/// A document of a corpus.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Document {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Its id; empty for a bare fingerprint.
    pub id: String,
}

impl Client {
    /// Yields the documents of a corpus in batches, each once, by fingerprint, then id. Those that are inserted
    /// or removed meanwhile may be among them or not.
    ///
    /// # Errors
    /// If the router refuses the stream; each batch can fail, which ends it, and then not all were yielded.
    pub async fn scan(
        &self,
        corpus: &str,
    ) -> Result<impl Stream<Item = Result<Vec<Document>, ClientError>> + use<>, ClientError> {
        let request = pb::ScanRequest {
            corpus: corpus.to_owned(),
            recipe: String::new(),
        };
        let answers = self.stub.clone().scan(request).await;
        self.decoded(answers, documents)
    }

    /// The answers of a stream that the router has accepted.
    fn decoded<A, T>(
        &self,
        answers: Result<tonic::Response<Streaming<A>>, Status>,
        decode: fn(A) -> Result<T, MalformedColumns>,
    ) -> Result<impl Stream<Item = Result<T, ClientError>> + use<A, T>, ClientError> {
        let answers = answers.map_err(|status| self.error(status))?.into_inner();
        let url = self.url.clone();
        Ok(answers.map(move |answer| match answer {
            Ok(answer) => Ok(decode(answer)?),
            Err(status) => Err(ClientError::from_status(status, &url)),
        }))
    }
}

fn documents(answer: pb::ScanResponse) -> Result<Vec<Document>, MalformedColumns> {
    let mut documents = Documents::of_columns(answer.fingerprints, answer.ids)?;
    documents
        .ids
        .resize(documents.fingerprints.len(), String::new());
    let pairs = documents.fingerprints.into_iter().zip(documents.ids);
    let document = |(fingerprint, id)| Document { fingerprint, id };
    Ok(pairs.map(document).collect())
}
