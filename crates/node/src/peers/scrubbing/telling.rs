//! What is said of documents that differ: in the log, and to who asked.

use simshard_proto::shard::v1 as pb;
use simshard_topology::ShardId;
use simshard_topology::replication::StoreId;
use tokio::sync::mpsc;
use tonic::Status;
use tracing::warn;

use super::differences::Difference;

/// Documents of one message.
const MESSAGE_DIFFERENCES: usize = 256;

/// Of the documents of a scrub that differ, as many are logged one by one.
const LOGGED_DIFFERENCES: u64 = 1000;

/// What was compared: a shard in a store.
pub(super) type Place = (ShardId, StoreId);

/// What comes of a scrub, as it comes.
pub(super) struct Telling {
    messages: mpsc::Sender<Result<pb::ScrubShardResponse, Status>>,
    summary: pb::ScrubSummary,
    /// How many documents are logged one by one.
    logged: u64,
}

impl Telling {
    pub(super) fn new(messages: mpsc::Sender<Result<pb::ScrubShardResponse, Status>>) -> Self {
        Self {
            messages,
            summary: pb::ScrubSummary::default(),
            logged: LOGGED_DIFFERENCES,
        }
    }

    /// Logs no single document from now on: a shard is filled, so that it lacks them is no news.
    pub(super) const fn log_none(&mut self) {
        self.logged = 0;
    }

    /// What all comes to, so far.
    pub(super) const fn summary(&mut self) -> &mut pb::ScrubSummary {
        &mut self.summary
    }

    /// Logs the documents that differ in some places, counts and streams them. `left` are those that still do.
    pub(super) async fn tell(
        &mut self,
        places: &[Place],
        differences: &[Difference],
        left: &[Difference],
    ) -> Result<(), Status> {
        let before = self.summary.difference_count;
        self.summary.difference_count += differences.len() as u64;
        self.summary.repaired_count += (differences.len() - left.len()) as u64;
        for (number, some) in (before..)
            .step_by(MESSAGE_DIFFERENCES)
            .zip(differences.chunks(MESSAGE_DIFFERENCES))
        {
            let mut message = pb::ScrubShardResponse::default();
            for (number, difference) in (number..).zip(some) {
                let repaired = left.binary_search(difference).is_err();
                if number < self.logged {
                    log(places, difference, repaired);
                }
                message
                    .differences
                    .push(difference_of(places, difference, repaired));
            }
            self.send(message).await?;
        }
        Ok(())
    }

    /// Sends what all came to.
    pub(super) async fn end(self) -> Result<(), Status> {
        let message = pb::ScrubShardResponse {
            differences: Vec::new(),
            summary: Some(self.summary.clone()),
        };
        self.send(message).await
    }

    async fn send(&self, message: pb::ScrubShardResponse) -> Result<(), Status> {
        let sent = self.messages.send(Ok(message)).await;
        sent.map_err(|_| Status::cancelled("the answers are not read any more"))
    }
}

fn log(places: &[Place], difference: &Difference, repaired: bool) {
    let key = &difference.key;
    let shard = places[0].0;
    match places.last() {
        Some((other, _)) if *other != shard => warn!(
            %shard, %other, corpus = %key.corpus, fingerprint = key.fingerprint.0, id = ?key.id,
            states = %difference, repaired, "shards differ in a document"
        ),
        _ => warn!(
            %shard, corpus = %key.corpus, fingerprint = key.fingerprint.0, id = ?key.id,
            states = %difference, repaired, "replicas differ in a document"
        ),
    }
}

fn difference_of(places: &[Place], difference: &Difference, repaired: bool) -> pb::ScrubDifference {
    let states = places.iter().zip(&difference.states);
    let states = states.map(|((shard, store), state)| pb::ScrubState {
        store: store.0.to_vec(),
        version: state.version.0,
        live: state.live,
        shard: shard.0.into(),
    });
    pb::ScrubDifference {
        corpus_uid: difference.key.corpus.0.to_vec(),
        fingerprint: difference.key.fingerprint.0,
        id: difference.key.id.clone(),
        states: states.collect(),
        repaired,
    }
}
