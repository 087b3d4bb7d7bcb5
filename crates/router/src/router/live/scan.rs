//! Scanning: the documents of each run of shards after those of the run before, which is the order of fingerprints.

use simshard_proto::{shard::v1 as pb, shards_from, v1};

use super::Live;
use crate::error::RouterError;
use crate::live::Sink;
use crate::nodes::Client;

impl Live {
    /// Sends all documents, by fingerprint, then id.
    pub(crate) async fn scan(self, sink: Sink<v1::ScanResponse>) -> Result<(), RouterError> {
        for (node, shards) in self.runs() {
            let request = pb::ScanRequest {
                corpus_uid: self.uid(),
                shards: shards_from(shards),
            };
            let scan = async |mut client: Client, request| client.scan(request).await;
            let mut pages = self.ask(node, shards, request, scan).await?;
            while let Some(page) = self.next(&mut pages).await? {
                let pb::ScanResponse { fingerprints, ids } = page;
                if !fingerprints.is_empty() {
                    sink.send(v1::ScanResponse { fingerprints, ids }).await?;
                }
            }
        }
        Ok(())
    }
}
