//! Proving answers. A replica that was cut off may answer by an old record of its shard, and lack what was acknowledged
//! since. So an answer counts only with a proof, begun after the request began, that its record is the current one.
//! Other replicas say that they have installed no later one, or the metadata says so.
//!
//! # Invariants
//! - PR1: an answer from a shard with several replicas in sync is proven by a read quorum of them, the one that
//!   answered included. A reading of the metadata that began after the request proves it, too.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::{epochs_from, shards_from, shards_into};
use simshard_topology::replication::{Read, StoreId};
use simshard_topology::{CorpusUid, NodeId, ShardId, ShardSet};
use simshard_transport::WorkKind;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Failures, Router};
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::nodes::CallError;
use crate::readers::Readers;

/// How long other replicas have before the metadata is asked.
const CONFIRM_TIMEOUT: Duration = Duration::from_millis(20);

/// What is to be proven: that the records of these shards are the current ones.
pub(super) struct Claim<'a> {
    pub(super) cluster: &'a ClusterView,
    pub(super) readers: &'a Readers,
    /// The corpus that is read. Who has dropped it confirms nothing.
    pub(super) corpus: CorpusUid,
    /// The shards that are read.
    pub(super) shards: ShardSet,
    /// Nodes that are not asked.
    pub(super) down: &'a BTreeSet<NodeId>,
    /// Whether an answer of a reader is a confirmation as well.
    pub(super) readers_confirm: bool,
    pub(super) deadline: Deadline,
}

impl Router {
    /// Proves a claim. Answers the shards that have another record now, as stale, and those that cannot be proven.
    pub(super) async fn prove(&self, claim: Claim<'_>) -> Failures {
        if !claim.cluster.layout.map().is_replicated() {
            return Failures::default();
        }
        let begun = Instant::now();
        let (open, confirmers) = claim.reads();
        let calls = confirmers
            .iter()
            .map(|((store, node), shards)| claim.answer_of(node, *store, *shards));
        let asked = confirmers.iter();
        let asked = asked
            .map(|((store, _), shards)| (*store, *shards))
            .collect();
        let confirmed = open.proven(asked, calls.collect());
        let proof = first_proof(confirmed, self.metadata.layout_since(begun));
        match timeout_at(claim.deadline.instant(), proof).await {
            Ok(Proof::Confirmed) => Failures::default(),
            Ok(Proof::Read(now)) => {
                self.cluster.take_read(&now);
                claim.changed(&now)
            }
            Ok(Proof::None(open)) => claim.unproven(open),
            Err(_elapsed) => claim.unproven(claim.shards),
        }
    }
}

/// What proves an answer.
#[derive(Debug, PartialEq, Eq)]
enum Proof<T> {
    /// A read quorum.
    Confirmed,
    /// A reading of the metadata.
    Read(T),
    /// Nothing, for these shards.
    None(ShardSet),
}

/// The first proof that there is. The metadata is read after [`CONFIRM_TIMEOUT`], or once it is clear that there is no
/// quorum. Meanwhile replicas may still confirm.
async fn first_proof<T, E>(
    confirmed: impl Future<Output = Result<(), ShardSet>>,
    read: impl Future<Output = Result<T, E>>,
) -> Proof<T> {
    let mut confirmed = pin!(confirmed);
    let open = match timeout(CONFIRM_TIMEOUT, &mut confirmed).await {
        Ok(Ok(())) => return Proof::Confirmed,
        Ok(Err(open)) => Some(open),
        Err(_elapsed) => None,
    };
    let mut read = pin!(read);
    if let Some(open) = open {
        return read.await.map_or(Proof::None(open), Proof::Read);
    }
    tokio::select! {
        confirmed = &mut confirmed => match confirmed {
            Ok(()) => Proof::Confirmed,
            Err(open) => read.await.map_or(Proof::None(open), Proof::Read),
        },
        read = &mut read => match read {
            Ok(read) => Proof::Read(read),
            Err(_) => confirmed.await.map_or_else(Proof::None, |()| Proof::Confirmed),
        },
    }
}

/// A store to ask, and its node.
type Confirmer = (StoreId, NodeId);

/// The reads of shards that are not proven yet.
#[derive(Debug, Default)]
struct OpenReads(BTreeMap<ShardId, Read>);

impl OpenReads {
    /// Adds what is read of a shard, if it lacks a proof.
    fn add(&mut self, shard: ShardId, read: Read) {
        if !read.is_proven() {
            self.0.insert(shard, read);
        }
    }

    /// Another store confirms the records of these shards.
    fn confirm(&mut self, store: StoreId, shards: ShardSet) {
        for shard in shards.iter() {
            if let Some(read) = self.0.get_mut(&shard) {
                read.confirmed(store, read.epoch());
                if read.is_proven() {
                    self.0.remove(&shard);
                }
            }
        }
    }

    fn shards(&self) -> ShardSet {
        self.0.keys().copied().collect()
    }

    /// Whether a shard is not proven even if all stores confirm that have not answered yet.
    fn are_hopeless(&self, waiting: &BTreeMap<StoreId, ShardSet>) -> bool {
        self.0.iter().any(|(shard, read)| {
            let mut confirmed = read.clone();
            for (store, shards) in waiting {
                if shards.contains(*shard) {
                    confirmed.confirmed(*store, read.epoch());
                }
            }
            !confirmed.is_proven()
        })
    }

    /// Waits until all reads are proven, or one cannot be any more. Each call is of another store, which was asked about
    /// these shards; it answers which of them it does not confirm. Fails with the shards that lack a proof.
    async fn proven(
        mut self,
        mut asked: BTreeMap<StoreId, ShardSet>,
        mut calls: FuturesUnordered<impl Future<Output = (StoreId, ShardSet)>>,
    ) -> Result<(), ShardSet> {
        while !self.0.is_empty() {
            if self.are_hopeless(&asked) {
                return Err(self.shards());
            }
            let Some((store, refused)) = calls.next().await else {
                return Err(self.shards());
            };
            let shards = asked.remove(&store).unwrap_or_default();
            self.confirm(store, shards.difference(&refused));
        }
        Ok(())
    }
}

impl Claim<'_> {
    /// The reads to prove, and which stores may confirm which shards: all that are in sync, as any may be slow or lost.
    fn reads(&self) -> (OpenReads, BTreeMap<Confirmer, ShardSet>) {
        let layout = &self.cluster.layout;
        let mut open = OpenReads::default();
        let mut confirmers: BTreeMap<Confirmer, ShardSet> = BTreeMap::new();
        let Some(records) = layout.records() else {
            return (open, confirmers);
        };
        let record = |shard| Some((shard, records.get(&shard)?));
        for (shard, record) in self.shards.iter().filter_map(record) {
            let reader = self.readers.of(shard);
            let mut read = Read::new(Arc::clone(record));
            for (node, entry) in layout.map().replicas(shard).iter().zip(&record.in_sync) {
                let is_reader = node == reader;
                // A shard has one reader.
                let is_reader = is_reader && read.answered(entry.store);
                if is_reader && self.readers_confirm {
                    read.confirmed(entry.store, read.epoch());
                } else if !self.down.contains(node) {
                    let confirmer = (entry.store, node.clone());
                    confirmers.entry(confirmer).or_default().insert(shard);
                }
            }
            open.add(shard, read);
        }
        let needed = open.shards();
        confirmers.retain(|_, shards| {
            *shards = shards.intersection(&needed);
            !shards.is_empty()
        });
        (open, confirmers)
    }

    /// A store that is asked about shards, and those of them that it does not confirm.
    async fn answer_of(
        &self,
        node: &NodeId,
        store: StoreId,
        shards: ShardSet,
    ) -> (StoreId, ShardSet) {
        let refused = self.refused_by(node, store, shards).await;
        (store, refused.unwrap_or(shards))
    }

    async fn refused_by(
        &self,
        node: &NodeId,
        store: StoreId,
        shards: ShardSet,
    ) -> Result<ShardSet, CallError> {
        let epochs = self.cluster.layout.epochs(shards).unwrap_or_default();
        let (epoch_numbers, epoch_generations) = epochs_from(&epochs);
        let confirm = pb::Confirm {
            store: store.0.to_vec(),
            shards: shards_from(shards),
            epoch_numbers,
            epoch_generations,
            corpus_uid: self.corpus.0.to_vec(),
        };
        let work = || std::future::ready(Ok(Work::Confirm(confirm.clone())));
        let nodes = &self.cluster.nodes;
        let answer = nodes
            .work(node, self.deadline, WorkKind::Confirm(shards.len()), work)
            .await?;
        match answer.outcome {
            Outcome::Confirmed(confirmed) => {
                shards_into(&confirmed.refused_shards).map_err(|_| CallError::nonsense())
            }
            Outcome::Changed(_) | Outcome::Matches(_) | Outcome::Status(_) => {
                Err(CallError::nonsense())
            }
        }
    }

    /// The shards whose record is another one now.
    fn changed(&self, now: &ClusterLayout) -> Failures {
        let mut failures = Failures::default();
        for shard in self.shards.iter() {
            let shards = ShardSet::from_iter([shard]);
            if now.epochs(shards) != self.cluster.layout.epochs(shards) {
                failures.refused(self.readers.of(shard).clone(), shards);
            }
        }
        failures
    }

    /// The replicas of shards that are not proven, but for the readers that have answered.
    fn unproven(&self, shards: ShardSet) -> Failures {
        let mut failures = Failures::default();
        for shard in shards.iter() {
            let replicas = self.cluster.layout.map().replicas(shard).iter();
            let has_answered =
                |node: &NodeId| self.readers_confirm && node == self.readers.of(shard);
            for node in replicas.filter(|node| !has_answered(node)) {
                let of_node = failures.nodes.entry(node.clone()).or_default();
                of_node.insert(shard);
            }
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{pending, ready};

    use simshard_topology::replication::ShardRecord;

    use super::*;

    fn shards(shards: &[u8]) -> ShardSet {
        shards.iter().copied().map(ShardId).collect()
    }

    /// What a node does that is asked.
    #[derive(Clone, Copy)]
    enum Does {
        Confirms,
        Refuses(&'static [u8]),
        Nothing,
    }

    fn store(number: usize) -> StoreId {
        StoreId([number as u8; 16])
    }

    /// Asks stores that have these shards in sync. Another one has answered, and confirms what it is asked about `itself`.
    async fn confirmed(itself: &[u8], of: &[u8], stores: &[Does]) -> Result<(), ShardSet> {
        let of = shards(of);
        let reader = store(stores.len());
        let in_sync: Vec<StoreId> = (0..=stores.len()).map(store).collect();
        let record = Arc::new(ShardRecord::first(0, &in_sync, 1));
        let mut open = OpenReads::default();
        for shard in of.iter() {
            let mut read = Read::new(Arc::clone(&record));
            assert!(read.answered(reader));
            open.add(shard, read);
        }
        open.confirm(reader, shards(itself));
        let calls = stores.iter().enumerate();
        let calls = calls.map(async |(number, does)| match does {
            Does::Confirms => (store(number), ShardSet::EMPTY),
            Does::Refuses(refused) => (store(number), shards(refused)),
            Does::Nothing => pending().await,
        });
        let asked = (0..stores.len()).map(|number| (store(number), of));
        open.proven(asked.collect(), calls.collect()).await
    }

    /// PR1.
    #[tokio::test(start_paused = true)]
    async fn any_quorum_proves_though_others_refuse_or_say_nothing() {
        use Does::{Confirms, Nothing, Refuses};
        for other in [Confirms, Refuses(&[1, 2]), Nothing] {
            for stores in [[other, Confirms], [Confirms, other]] {
                assert_eq!(confirmed(&[1, 2], &[1, 2], &stores).await, Ok(()));
            }
        }
        // Each shard by another one.
        let stores = [Refuses(&[1]), Refuses(&[2])];
        assert_eq!(confirmed(&[1, 2], &[1, 2], &stores).await, Ok(()));
    }

    /// PR1.
    #[tokio::test(start_paused = true)]
    async fn too_few_confirmations_prove_nothing_and_are_not_waited_for() {
        use Does::{Confirms, Nothing, Refuses};
        let refuse = [Refuses(&[2]), Refuses(&[2])];
        assert_eq!(
            confirmed(&[1, 2], &[1, 2], &refuse).await,
            Err(shards(&[2]))
        );
        let stores = [Refuses(&[1]), Refuses(&[1]), Refuses(&[1]), Nothing];
        assert_eq!(confirmed(&[1], &[1], &stores).await, Err(shards(&[1])));
        // The store that answered must confirm, too.
        let stores = [Confirms, Confirms];
        assert_eq!(confirmed(&[], &[1], &stores).await, Err(shards(&[1])));
    }

    /// PR1: a store that is alone in sync proves its answer itself.
    #[tokio::test(start_paused = true)]
    async fn a_shard_with_one_store_in_sync_needs_no_other() {
        assert_eq!(confirmed(&[1], &[1], &[]).await, Ok(()));
        assert_eq!(confirmed(&[], &[1], &[]).await, Err(shards(&[1])));
    }

    type Reading = Result<u32, Infallible>;

    #[tokio::test(start_paused = true)]
    async fn replicas_and_the_metadata_are_waited_for_together() {
        let begun = Instant::now();
        let after = |millis, confirmed: Result<(), ShardSet>| async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            confirmed
        };
        let open = shards(&[1]);
        // While the metadata does not answer.
        let slow = first_proof(after(500, Ok(())), pending::<Reading>());
        assert_eq!(slow.await, Proof::Confirmed);
        // While replicas do not.
        let unconfirmed = first_proof(pending(), ready(Ok::<_, Infallible>(7)));
        assert_eq!(unconfirmed.await, Proof::Read(7));
        assert!(begun.elapsed() < Duration::from_millis(600));
        let failed = ready(Err::<u32, ()>(()));
        let failed = first_proof(after(500, Ok(())), failed);
        assert_eq!(failed.await, Proof::Confirmed);
        let refused = first_proof(ready(Err(open)), ready(Ok::<_, Infallible>(7)));
        assert_eq!(refused.await, Proof::Read(7));
        for late in [0, 500] {
            let neither = first_proof(after(late, Err(open)), ready(Err::<u32, ()>(())));
            assert_eq!(neither.await, Proof::None(open));
        }
    }
}
