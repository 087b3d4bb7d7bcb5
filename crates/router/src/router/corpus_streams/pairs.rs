//! Finding pairs: those of fingerprints from the shards, the documents behind them from their homes.
//!
//! Where the prefixes of a layout are shorter than a byte, near fingerprints can be in different shards. Then the
//! router joins all fingerprints by itself.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use simshard_proto::{MalformedColumns, pair_messages, shard::v1 as pb, shards_from, v1};
use simshard_simhash::{Fingerprint, Lead, Pair, PairSearch, PairsWanted};
use simshard_topology::NodeId;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinHandle;

use super::CorpusStream;
use crate::error::RouterError;
use crate::nodes::Client;
use crate::streams::Sink;

/// Pairs whose documents are looked up together.
const PAIRS_A_LOOKUP: usize = 4096;

/// Bytes of documents that are held together, if there is more than one pair.
pub(super) const ROOM: usize = 8 << 20;

/// Pairs of fingerprints, in batches. One with itself is one that several documents have.
pub(super) type Pairs<'a> = Pin<Box<dyn Stream<Item = Result<Vec<Pair>, RouterError>> + Send + 'a>>;

impl CorpusStream {
    /// Sends all pairs within a distance.
    pub(crate) async fn find_pairs(
        self,
        distance: u32,
        sink: Sink<v1::FindPairsResponse>,
    ) -> Result<(), RouterError> {
        let mut pairs = self.pairs(distance, PairsWanted::All).await?;
        while let Some(batch) = pairs.try_next().await? {
            for together in batch.chunks(PAIRS_A_LOOKUP) {
                self.send_pairs(together, &sink).await?;
            }
        }
        Ok(())
    }

    /// Sends the pairs of documents behind pairs of fingerprints: by halves, where the documents of all are too many
    /// to be held.
    async fn send_pairs(
        &self,
        pairs: &[Pair],
        sink: &Sink<v1::FindPairsResponse>,
    ) -> Result<(), RouterError> {
        let mut waiting = vec![pairs];
        while let Some(pairs) = waiting.pop() {
            let room = if pairs.len() > 1 { ROOM } else { usize::MAX };
            let both = pairs.iter().flat_map(|pair| [pair.a, pair.b]);
            let Some(documents) = self.documents(&distinct(both), room).await? else {
                let (first, second) = pairs.split_at(pairs.len() / 2);
                waiting.extend([second, first]);
                continue;
            };
            for message in pair_messages(pairs, &documents) {
                sink.send(message).await?;
            }
        }
        Ok(())
    }

    /// The pairs of fingerprints within a distance.
    pub(super) async fn pairs(
        &self,
        distance: u32,
        wanted: PairsWanted,
    ) -> Result<Pairs<'_>, RouterError> {
        match Lead::all(self.corpus.tables()) {
            Some(_) => self.pairs_of_shards(distance, wanted).await,
            None => self.pairs_of_all(distance, wanted).await,
        }
    }

    /// Those that the shards of all nodes report, which are different ones.
    async fn pairs_of_shards(
        &self,
        distance: u32,
        wanted: PairsWanted,
    ) -> Result<Pairs<'_>, RouterError> {
        let mut streams = Vec::new();
        for node in self.cluster.layout.nodes() {
            let shards = self.readers.shards_of(&node.id);
            if shards.is_empty() {
                continue;
            }
            let request = pb::FindPairsRequest {
                target: Some(self.target(shards)),
                shards: shards_from(shards),
                max_distance: distance,
                links_only: wanted == PairsWanted::Links,
            };
            let find = async |mut client: Client, request| client.find_pairs(request).await;
            let from = self.ask(node.id.clone(), shards, request, find).await?;
            let pairs = move |answer| async move { pairs_into(&node.id, answer) };
            streams.push(Box::pin(self.answers(from).and_then(pairs)));
        }
        Ok(Box::pin(stream::select_all(streams)))
    }

    /// Those that a join of all fingerprints finds, which are in memory for it.
    async fn pairs_of_all(
        &self,
        distance: u32,
        wanted: PairsWanted,
    ) -> Result<Pairs<'_>, RouterError> {
        let (fingerprints, repeated) = self.fingerprints().await?;
        let found = join(distance, wanted, fingerprints, Arc::clone(&self.permit));
        Ok(Box::pin(stream::iter([Ok(repeated)]).chain(found)))
    }

    /// All fingerprints, ascending, and those that several documents have, as pairs with themselves.
    async fn fingerprints(&self) -> Result<(Vec<Fingerprint>, Vec<Pair>), RouterError> {
        let mut fingerprints: Vec<Fingerprint> = Vec::new();
        let mut repeated: Vec<Pair> = Vec::new();
        let mut pages = self.pages();
        while let Some(page) = pages.try_next().await? {
            for fingerprint in page.fingerprints.into_iter().map(Fingerprint) {
                let with_itself = Pair {
                    a: fingerprint,
                    b: fingerprint,
                };
                if fingerprints.last() != Some(&fingerprint) {
                    fingerprints.push(fingerprint);
                } else if repeated.last() != Some(&with_itself) {
                    repeated.push(with_itself);
                }
            }
        }
        Ok((fingerprints, repeated))
    }
}

/// Joins fingerprints in a thread of its own. The thread keeps the permit as long as the fingerprints, as it works on
/// for a moment after the reader has gone.
fn join(
    distance: u32,
    wanted: PairsWanted,
    fingerprints: Vec<Fingerprint>,
    permit: Arc<OwnedSemaphorePermit>,
) -> impl Stream<Item = Result<Vec<Pair>, RouterError>> {
    let (sender, receiver) = mpsc::channel(1);
    let join = tokio::task::spawn_blocking(move || {
        send_joined(distance, wanted, fingerprints, &sender);
        drop(permit);
    });
    let next = |(mut receiver, join): (mpsc::Receiver<_>, JoinHandle<()>)| async {
        match receiver.recv().await {
            Some(pairs) => Ok(Some((pairs, (receiver, join)))),
            None => join.await.map(|()| None).map_err(RouterError::from),
        }
    };
    stream::try_unfold((receiver, join), next)
}

/// Joins fingerprints, which are gone when it returns.
#[expect(
    clippy::needless_pass_by_value,
    reason = "they are dropped when it returns"
)]
fn send_joined(
    distance: u32,
    wanted: PairsWanted,
    fingerprints: Vec<Fingerprint>,
    sender: &mpsc::Sender<Vec<Pair>>,
) {
    // A corpus has no larger distance than there are layouts for.
    let Ok(search) = PairSearch::new(distance, None, fingerprints.len()) else {
        return;
    };
    let mut send = |pairs: &[Pair]| {
        let gone = if pairs.is_empty() {
            sender.is_closed()
        } else {
            sender.blocking_send(pairs.to_vec()).is_err()
        };
        if gone {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    // A join breaks only after its reader has gone, so its result is not needed.
    let _: ControlFlow<()> = search.pairs_here(&fingerprints, wanted, &mut send);
}

/// The fingerprints, ascending, each once.
pub(super) fn distinct(fingerprints: impl Iterator<Item = Fingerprint>) -> Vec<Fingerprint> {
    let mut distinct: Vec<Fingerprint> = fingerprints.collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// The pairs that a node has sent.
fn pairs_into(node: &NodeId, answer: pb::FindPairsResponse) -> Result<Vec<Pair>, RouterError> {
    let (found, expected) = (answer.larger.len(), answer.smaller.len());
    if found != expected {
        return Err(RouterError::Malformed {
            node: node.clone(),
            problem: MalformedColumns {
                column: "larger",
                found,
                expected,
            },
        });
    }
    let both = answer.smaller.into_iter().zip(answer.larger);
    let pair = |(a, b)| Pair {
        a: Fingerprint(a),
        b: Fingerprint(b),
    };
    Ok(both.map(pair).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as blocking;

    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn a_join_without_a_reader_keeps_its_permit_until_its_thread_has_ended() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build();
        runtime.unwrap().block_on(async {
            // The only thread is busy, so the join is still to come when its reader goes.
            let (free, busy) = blocking::channel::<()>();
            let other = tokio::task::spawn_blocking(move || busy.recv());
            let permits = Arc::new(Semaphore::new(1));
            let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
            let fingerprints = vec![Fingerprint(4), Fingerprint(5)];
            drop(join(8, PairsWanted::All, fingerprints, Arc::new(permit)));
            assert_eq!(permits.available_permits(), 0);
            free.send(()).unwrap();
            other.await.unwrap().unwrap();
            drop(permits.acquire().await.unwrap());
        });
    }
}
