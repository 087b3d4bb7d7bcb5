//! Finding pairs: a node joins the entries of each shard, which it copies under the shard's lock. The join of a request
//! waits for its reader, so it has a thread of its own. The threads of the engine never wait for a reader.
//!
//! # Invariants
//! - PF1: each pair of fingerprints is reported by one shard, once, from one copy of the shard's entries: whatever
//!   changes meanwhile, none is reported twice.
//! - PF2: while a join waits for its reader, it holds no lock, and no thread of the engine waits for it.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::{Stream, stream};
use parking_lot::RwLock;
use simshard_simhash::{Lead, Pair, PairsWanted, Tables};
use simshard_topology::ShardSet;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Engine;
use crate::corpora::NodeCorpus;
use crate::error::NodeError;
use crate::shard::Shard;
use crate::target::Target;

/// Joins that a node runs at a time, each with a thread and a copy of a part of a shard.
pub(super) const MOST_JOINS: usize = 16;

/// Pairs that are sent together.
const BATCH: usize = 1 << 14;

/// A join in shards of a node.
#[derive(Clone, Debug)]
pub(crate) struct PairQuery {
    pub(crate) target: Target,
    /// The shards meant.
    pub(crate) shards: ShardSet,
    pub(crate) max_distance: u32,
    pub(crate) wanted: PairsWanted,
}

impl Engine {
    /// The pairs of fingerprints that the shards meant report, and as pairs with themselves the fingerprints at home
    /// there that several documents have.
    pub(crate) async fn pairs(
        self: &Arc<Self>,
        query: PairQuery,
    ) -> Result<impl Stream<Item = Result<Vec<Pair>, NodeError>> + use<>, NodeError> {
        let corpus = self.open(&query.target, query.shards).await?;
        if query.max_distance > corpus.layout().distance() {
            return Err(NodeError::OutsideLayout);
        }
        // Not kept for a corpus that is empty.
        let tables = Tables::shared(corpus.layout());
        let leads = Lead::all(&tables).ok_or(NodeError::PairsSpanShards)?;
        let permit = Arc::clone(&self.joins).try_acquire_owned();
        let permit = permit.map_err(|_| NodeError::TooManyJoins { most: MOST_JOINS })?;
        let (sender, receiver) = mpsc::channel(1);
        let engine = Arc::clone(self);
        let join = tokio::task::spawn_blocking(move || {
            let mut outbox = Outbox {
                sender,
                pairs: Vec::new(),
            };
            let outcome = engine.join(&corpus, &leads, &query, &mut outbox);
            drop(permit);
            outcome
        });
        let next = |(mut receiver, join, engine): (mpsc::Receiver<_>, JoinHandle<_>, Arc<Self>)| async {
            engine.threads.note_work();
            match receiver.recv().await {
                Some(pairs) => Ok(Some((pairs, (receiver, join, engine)))),
                // The task fails only where the process is going down.
                None => join
                    .await
                    .unwrap_or(Err(NodeError::Stopping))
                    .map(|()| None),
            }
        };
        Ok(stream::try_unfold((receiver, join, Arc::clone(self)), next))
    }

    /// Joins shard after shard, until the reader has gone.
    fn join(
        &self,
        corpus: &NodeCorpus,
        leads: &[Lead],
        query: &PairQuery,
        outbox: &mut Outbox,
    ) -> Result<(), NodeError> {
        for id in query.shards.iter() {
            let Some(shard) = corpus.shard(id)? else {
                continue;
            };
            let joined = self.while_built(id, || join_shard(shard, leads, query, outbox))?;
            if joined.is_break() {
                break;
            }
        }
        self.check_not_begun_anew(&query.target)
    }
}

/// Breaks when the reader has gone. Changes of the shard wait only while a table of it is copied.
fn join_shard(
    shard: &RwLock<Shard>,
    leads: &[Lead],
    query: &PairQuery,
    outbox: &mut Outbox,
) -> ControlFlow<()> {
    let repeated = shard.read().repeated();
    let with_itself = |fingerprint| Pair {
        a: fingerprint,
        b: fingerprint,
    };
    let repeated: Vec<Pair> = repeated.into_iter().map(with_itself).collect();
    outbox.take(&repeated)?;
    for lead in leads {
        let entries = shard.read().entries(lead.table());
        let mut take = |pairs: &[Pair]| outbox.take(pairs);
        lead.pairs_here(&entries, query.max_distance, query.wanted, &mut take)?;
    }
    outbox.send()
}

/// Gathers pairs and sends them on; breaks when the reader has gone.
struct Outbox {
    sender: mpsc::Sender<Vec<Pair>>,
    pairs: Vec<Pair>,
}

impl Outbox {
    fn take(&mut self, pairs: &[Pair]) -> ControlFlow<()> {
        for part in pairs.chunks(BATCH) {
            self.pairs.extend_from_slice(part);
            if self.pairs.len() >= BATCH {
                self.send()?;
            }
        }
        if self.sender.is_closed() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn send(&mut self) -> ControlFlow<()> {
        let pairs = std::mem::take(&mut self.pairs);
        if pairs.is_empty() {
            return ControlFlow::Continue(());
        }
        match self.sender.blocking_send(pairs) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
