//! Finding clusters: links from the shards, which are few though pairs be many, put together here; then the documents
//! of each cluster from their homes.

use futures_util::TryStreamExt;
use simshard_proto::v1;
use simshard_simhash::{Fingerprint, PairsWanted};

use super::CorpusStream;
use super::pairs::ROOM;
use crate::error::RouterError;
use crate::links::{Links, Member};
use crate::offload::offload;
use crate::streams::Sink;

/// Fingerprints whose documents are looked up together.
const FINGERPRINTS_A_LOOKUP: usize = 4096;

/// An answer is sent once it has about this many bytes.
const ANSWER_BYTES: usize = 1 << 20;

/// Bytes of a document in an answer beside its id, about.
const SENT_BYTES: usize = 20;

impl CorpusStream {
    /// Sends the documents of all clusters within a distance.
    pub(crate) async fn find_clusters(
        self,
        distance: u32,
        sink: Sink<v1::FindClustersResponse>,
    ) -> Result<(), RouterError> {
        let mut outbox = Outbox::new(sink);
        for together in self.members(distance).await?.chunks(FINGERPRINTS_A_LOOKUP) {
            self.send_members(together, &mut outbox).await?;
        }
        outbox.finish().await
    }

    /// The fingerprints of all clusters, in order.
    async fn members(&self, distance: u32) -> Result<Vec<Member>, RouterError> {
        let mut links = Links::new();
        let mut pairs = self.pairs(distance, PairsWanted::Links).await?;
        while let Some(batch) = pairs.try_next().await? {
            let count = batch.len();
            let add = move || {
                batch.iter().for_each(|&pair| links.add(pair));
                links
            };
            links = offload(count, add).await?;
        }
        offload(links.len(), move || links.into_members()).await
    }

    /// Sends the documents behind fingerprints: by halves, where they are too many to be held.
    async fn send_members(
        &self,
        members: &[Member],
        outbox: &mut Outbox,
    ) -> Result<(), RouterError> {
        let mut waiting = vec![members];
        while let Some(members) = waiting.pop() {
            let room = if members.len() > 1 { ROOM } else { usize::MAX };
            let mut fingerprints: Vec<Fingerprint> =
                members.iter().map(|member| member.fingerprint).collect();
            fingerprints.sort_unstable();
            let Some(mut documents) = self.documents(&fingerprints, room).await? else {
                let (first, second) = members.split_at(members.len() / 2);
                waiting.extend([second, first]);
                continue;
            };
            for member in members {
                let ids = documents.remove(&member.fingerprint);
                for id in ids.into_iter().flatten() {
                    outbox.take(*member, id).await?;
                }
            }
        }
        Ok(())
    }
}

/// Gathers documents, cluster by cluster, and sends them on.
struct Outbox {
    sink: Sink<v1::FindClustersResponse>,
    answer: v1::FindClustersResponse,
    bytes: usize,
    /// The first document of a cluster, until there is another: with it alone, as the others were removed meanwhile,
    /// it is none.
    first: Option<(Member, String)>,
    cluster: Option<Fingerprint>,
}

impl Outbox {
    fn new(sink: Sink<v1::FindClustersResponse>) -> Self {
        Self {
            sink,
            answer: v1::FindClustersResponse::default(),
            bytes: 0,
            first: None,
            cluster: None,
        }
    }

    async fn take(&mut self, member: Member, id: String) -> Result<(), RouterError> {
        if self.cluster != Some(member.cluster) {
            self.cluster = Some(member.cluster);
            self.first = Some((member, id));
            return Ok(());
        }
        if let Some((first, id)) = self.first.take() {
            self.add(first, id);
        }
        self.add(member, id);
        if self.bytes < ANSWER_BYTES {
            Ok(())
        } else {
            self.send().await
        }
    }

    fn add(&mut self, member: Member, id: String) {
        self.bytes += SENT_BYTES + id.len();
        self.answer.clusters.push(member.cluster.0);
        self.answer.fingerprints.push(member.fingerprint.0);
        self.answer.ids.push(id);
    }

    async fn send(&mut self) -> Result<(), RouterError> {
        self.bytes = 0;
        let answer = std::mem::take(&mut self.answer);
        self.sink.send(answer).await
    }

    async fn finish(mut self) -> Result<(), RouterError> {
        if self.answer.clusters.is_empty() {
            Ok(())
        } else {
            self.send().await
        }
    }
}
