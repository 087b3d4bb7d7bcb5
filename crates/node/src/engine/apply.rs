//! Applying what the storage has committed: to the stored sets, then to the tables that searches read.
//!
//! One thread does this, batch by batch in the order of the log. It gives the shards of a large batch to the
//! engine's threads for changes. So each shard sees its changes in one order, which a restart repeats.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;
use simshard_storage::{Change, Effects, Failure, Operation, Refusal, SharedChange, Sink, Store};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::sync::{oneshot, watch};

use super::heat::{Heat, Warmer};
use super::tables::{Missed, change_tables};
use super::{Threads, group_by_shard};
use crate::corpora::{NodeCorpora, NodeCorpus};
use crate::error::NodeError;
use crate::shard::home;

/// Documents of a batch, counted once for each shard, up to which its own thread applies it: about 0.3 ms, if no segment
/// has to be read. To wake other threads would take as long on a busy machine.
const APPLIED_INLINE: usize = 1024;

/// The effect of a change on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeOutcome {
    /// Places of the documents that changed in their home shard, if that was meant; in no order.
    pub(crate) changed: Vec<u32>,
    /// Places of the documents that did not change in a shard because they have a newer version there, and that version.
    /// In no order; a place is listed once for each such shard.
    pub(crate) newer: Vec<(u32, Version)>,
    /// The shards in which nothing was done, as the node has other records of them than the router.
    pub(crate) refused: ShardSet,
}

/// Where an operation's outcome goes.
pub(super) type Ticket = oneshot::Sender<Result<ChangeOutcome, NodeError>>;

/// Takes what the storage has committed.
#[derive(Debug)]
pub(super) struct Applier {
    pub(super) store: Arc<Store>,
    pub(super) corpora: Arc<NodeCorpora>,
    pub(super) threads: Arc<Threads>,
    pub(super) heat: Arc<Heat>,
    pub(super) warmer: Warmer,
    /// Told once the storage has failed for good.
    pub(super) failed: watch::Sender<Option<Failure>>,
    /// Told when records of shards are applied.
    pub(super) installed: watch::Sender<()>,
}

impl Sink<Ticket> for Applier {
    fn committed(&self, batch: Vec<(Operation, Ticket)>) {
        let mut changes = Vec::new();
        for (operation, ticket) in batch {
            match operation {
                Operation::Change(change) => changes.push((change, ticket)),
                Operation::CreateCorpus { .. }
                | Operation::DropCorpus { .. }
                | Operation::Install(_)
                | Operation::Copied(_) => {
                    self.change(std::mem::take(&mut changes));
                    let _ = ticket.send(self.catalog(&operation));
                }
            }
        }
        self.change(changes);
    }

    fn installed(&self, others: ShardSet) {
        self.warmer.follow(others);
        self.installed.send_replace(());
    }

    fn refused(&self, tickets: Vec<Ticket>, refusal: Refusal) {
        for ticket in tickets {
            let _ = ticket.send(Err(refusal.into()));
        }
    }

    fn failed(&self, tickets: Vec<Ticket>, failure: Failure) {
        for ticket in tickets {
            let _ = ticket.send(Err(NodeError::StorageFailed(failure.clone())));
        }
        self.failed.send_replace(Some(failure));
    }
}

/// Part of a change: its place in the batch, its corpus, and the places of its documents in one shard.
type Work = (usize, Arc<NodeCorpus>, Vec<u32>);

impl Applier {
    fn catalog(&self, operation: &Operation) -> Result<ChangeOutcome, NodeError> {
        match *operation {
            // A uid that was dropped stays so.
            Operation::CreateCorpus { uid, .. } if !self.store.holds(uid) => {
                return Err(NodeError::CorpusNotLoaded(uid));
            }
            Operation::CreateCorpus { uid, layout } => {
                let corpus = NodeCorpus::new(layout, self.store.shards());
                self.corpora.insert(uid, corpus)?;
            }
            // Freeing it takes long: no lock is held meanwhile.
            Operation::DropCorpus { uid } => drop(self.corpora.remove(uid)),
            Operation::Change(_) | Operation::Install(_) | Operation::Copied(_) => {}
        }
        Ok(ChangeOutcome::default())
    }

    /// Applies changes shard by shard, then answers each.
    fn change(&self, changes: Vec<(Change, Ticket)>) {
        let outcomes = self.outcomes(&changes);
        for ((_, ticket), outcome) in changes.into_iter().zip(outcomes) {
            let _ = ticket.send(outcome);
        }
    }

    fn outcomes(&self, changes: &[(Change, Ticket)]) -> Vec<Result<ChangeOutcome, NodeError>> {
        let mut outcomes = Vec::with_capacity(changes.len());
        let mut by_shard: BTreeMap<ShardId, Vec<Work>> = BTreeMap::new();
        for (number, (change, _)) in changes.iter().enumerate() {
            let corpus = self.corpora.get(change.corpus);
            if let Ok(corpus) = &corpus {
                for (shard, places) in parts(change, corpus) {
                    let work = (number, Arc::clone(corpus), places);
                    by_shard.entry(shard).or_default().push(work);
                }
            }
            outcomes.push(corpus.map(|_| ChangeOutcome::default()));
        }
        let shared: Vec<SharedChange<'_>> = changes
            .iter()
            .map(|(change, _)| SharedChange::new(change))
            .collect();
        if !changes.is_empty() {
            self.threads.note_work();
        }
        let apply_shard = |(shard, works): (ShardId, Vec<Work>)| {
            let apply_part = |(number, corpus, places): Work| {
                let change = &shared[number];
                (number, self.apply(shard, &corpus, change, &places))
            };
            works.into_iter().map(apply_part).collect()
        };
        let works = by_shard.values().flatten();
        let parts: Vec<Vec<_>> =
            if works.map(|(_, _, places)| places.len()).sum::<usize>() < APPLIED_INLINE {
                by_shard.into_iter().map(apply_shard).collect()
            } else {
                let by_shard = by_shard.into_par_iter();
                self.threads.install(|| by_shard.map(apply_shard).collect())
            };
        for (number, part) in parts.into_iter().flatten() {
            add(&mut outcomes[number], part);
        }
        outcomes
    }

    /// Applies part of a change to one shard. The store changes first, so a search that finds a fingerprint
    /// also finds its documents.
    fn apply(
        &self,
        id: ShardId,
        corpus: &NodeCorpus,
        shared: &SharedChange<'_>,
        places: &[u32],
    ) -> Result<ChangeOutcome, NodeError> {
        let mut turn = self.heat.turn(id);
        if !self.heat.is_built(id) {
            return self.apply_without_tables(id, shared, places, turn.as_mut());
        }
        let change = shared.change();
        let fingerprints = places
            .iter()
            .map(|place| change.documents.fingerprints[*place as usize]);
        let known = match corpus.read(id)?.as_ref() {
            Some(shard) => shard.known(fingerprints),
            None => HashSet::new(),
        };
        let is_stored = |fingerprint| known.contains(&fingerprint);
        let Effects {
            mut changed,
            newer,
            error,
        } = self.store.apply(id, shared, places, is_stored);
        // Where nothing changed, no shard is made.
        if !changed.is_empty() {
            let document = |place: &u32| {
                let (documents, place) = (&change.documents, *place as usize);
                (documents.fingerprints[place], documents.id(place))
            };
            let documents = changed.iter().map(document);
            change_tables(corpus, id, change.kind, documents, &known)?;
            changed.retain(|place| home(document(place).0) == id);
        }
        match error {
            None => Ok(ChangeOutcome {
                changed,
                newer,
                refused: ShardSet::EMPTY,
            }),
            Some(error) => Err(error.into()),
        }
    }
}

impl Applier {
    /// The same for a shard without tables. If it is to have some, or is yet to be filled, no other store may count what
    /// changed, so each document is looked up. Tables that are being made miss what changed. Otherwise a hot store counts,
    /// and only newer documents matter.
    fn apply_without_tables(
        &self,
        id: ShardId,
        shared: &SharedChange<'_>,
        places: &[u32],
        missed: Option<&mut Missed>,
    ) -> Result<ChangeOutcome, NodeError> {
        let counts = self.heat.is_warming(id) || self.store.is_rebuilt(id);
        let Effects {
            mut changed,
            newer,
            error,
        } = self.store.apply(id, shared, places, |_| counts);
        if counts && let Some(missed) = missed {
            missed.note(shared.change(), &changed);
        }
        let fingerprints = &shared.change().documents.fingerprints;
        changed.retain(|place| counts && home(fingerprints[*place as usize]) == id);
        match error {
            None => Ok(ChangeOutcome {
                changed,
                newer,
                refused: ShardSet::EMPTY,
            }),
            Some(error) => Err(error.into()),
        }
    }
}

/// Adds what happened in one shard to what happened in others; the first error stays.
fn add(outcome: &mut Result<ChangeOutcome, NodeError>, part: Result<ChangeOutcome, NodeError>) {
    match (outcome.as_mut(), part) {
        (Ok(sum), Ok(part)) => {
            sum.changed.extend(part.changed);
            sum.newer.extend(part.newer);
        }
        (Ok(_), Err(error)) => *outcome = Err(error),
        (Err(_), _) => {}
    }
}

fn parts(change: &Change, corpus: &NodeCorpus) -> Vec<(ShardId, Vec<u32>)> {
    group_by_shard(
        change.shards,
        &change.documents.fingerprints,
        |fingerprint| corpus.tables_for_change().document_shards(fingerprint),
    )
}

#[cfg(test)]
mod tests;
