//! Scanning: the documents of each run of shards after those of the run before, which is the order of fingerprints.

use std::pin::Pin;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use simshard_proto::{shard::v1 as pb, shards_from, v1};

use super::CorpusStream;
use crate::error::RouterError;
use crate::nodes::Client;
use crate::streams::Sink;

/// Documents, page by page.
type Pages<'a> = Pin<Box<dyn Stream<Item = Result<pb::ScanResponse, RouterError>> + Send + 'a>>;

impl CorpusStream {
    /// Sends all documents, by fingerprint, then id.
    pub(crate) async fn scan(self, sink: Sink<v1::ScanResponse>) -> Result<(), RouterError> {
        let mut pages = self.pages();
        while let Some(page) = pages.try_next().await? {
            let pb::ScanResponse { fingerprints, ids } = page;
            if !fingerprints.is_empty() {
                sink.send(v1::ScanResponse { fingerprints, ids }).await?;
            }
        }
        Ok(())
    }

    /// All documents, by fingerprint, then id.
    pub(super) fn pages(&self) -> Pages<'_> {
        let runs = stream::iter(self.runs());
        let pages = runs.then(async |(node, shards)| {
            let request = pb::ScanRequest {
                target: Some(self.target(shards)),
                shards: shards_from(shards),
            };
            let scan = async |mut client: Client, request| client.scan(request).await;
            let from = self.ask(node, shards, request, scan).await?;
            Ok::<_, RouterError>(self.answers(from))
        });
        Box::pin(pages.try_flatten())
    }
}
