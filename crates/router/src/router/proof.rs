//! Proving answers. A replica that was cut off may answer by an old record of its shard, and lack what was acknowledged
//! since. So an answer counts only with a proof, begun after the request began, that its record is the current one.
//! Other replicas say that they have installed no later one, or the metadata says so.
//!
//! # Invariants
//! - PR1: an answer from a shard with several replicas in sync is proven by a read quorum of them, the one that
//!   answered included. A reading of the metadata that began after the request proves it, too.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::{epochs_from, shards_from, shards_into};
use simshard_topology::replication::{StoreId, read_quorum};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Failures, Router};
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::nodes::{CallError, Load};
use crate::readers::Readers;

/// How long other replicas have before the metadata is asked.
const CONFIRM_TIMEOUT: Duration = Duration::from_millis(20);

/// What is to be proven: that the records of these shards are the current ones.
pub(super) struct Claim<'a> {
    pub(super) cluster: &'a ClusterView,
    pub(super) readers: &'a Readers,
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
        let (quorums, confirmers) = claim.wanted();
        let calls = confirmers
            .iter()
            .map(|((node, store), shards)| claim.answer_of(node, *store, *shards));
        let confirmed = quorums.confirmed(calls.collect(), confirmers.values());
        let proof = first_proof(confirmed, self.metadata.layout_since(begun));
        match timeout_at(claim.deadline.instant(), proof).await {
            Ok(Proof::Confirmed) => Failures::default(),
            Ok(Proof::Read(now)) => claim.changed(&now),
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

/// A node to ask, and the store that it is to be.
type Confirmer = (NodeId, StoreId);

/// How many confirmations shards still lack.
#[derive(Debug, Default)]
struct Quorums {
    lacking: BTreeMap<ShardId, usize>,
}

impl Quorums {
    /// A shard needs this number of confirmations.
    fn need(&mut self, shard: ShardId, confirmations: usize) {
        if confirmations > 0 {
            self.lacking.insert(shard, confirmations);
        }
    }

    /// Another replica confirms these shards.
    fn confirm(&mut self, shards: ShardSet) {
        for shard in shards.iter() {
            if let Some(lacking) = self.lacking.get_mut(&shard) {
                *lacking -= 1;
                if *lacking == 0 {
                    self.lacking.remove(&shard);
                }
            }
        }
    }

    /// The shards that have no quorum yet.
    fn open(&self) -> ShardSet {
        self.lacking.keys().copied().collect()
    }

    /// Whether a shard lacks more confirmations than there are answers to come that may confirm it.
    fn are_hopeless(&self, waiting: &[ShardSet]) -> bool {
        self.lacking.iter().any(|(shard, lacking)| {
            let waiting = waiting.iter();
            waiting.filter(|shards| shards.contains(*shard)).count() < *lacking
        })
    }

    /// Waits until each shard has its quorum, or one cannot have it any more. Each call is of another replica, answers
    /// the shards that it was asked about, and those that it does not confirm. Fails with the shards without a quorum.
    async fn confirmed(
        mut self,
        mut calls: FuturesUnordered<impl Future<Output = (ShardSet, ShardSet)>>,
        asked: impl Iterator<Item = &ShardSet>,
    ) -> Result<(), ShardSet> {
        let mut waiting: Vec<ShardSet> = asked.copied().collect();
        while !self.lacking.is_empty() {
            if self.are_hopeless(&waiting) {
                return Err(self.open());
            }
            let Some((asked, refused)) = calls.next().await else {
                return Err(self.open());
            };
            if let Some(place) = waiting.iter().position(|shards| *shards == asked) {
                waiting.swap_remove(place);
            }
            self.confirm(asked.difference(&refused));
        }
        Ok(())
    }
}

impl Claim<'_> {
    /// How many confirmations the shards need, and which nodes may confirm which shards: all that are in sync, as any
    /// of them may be slow or lost.
    fn wanted(&self) -> (Quorums, BTreeMap<Confirmer, ShardSet>) {
        let layout = &self.cluster.layout;
        let mut quorums = Quorums::default();
        let mut confirmers: BTreeMap<Confirmer, ShardSet> = BTreeMap::new();
        let Some(records) = layout.records() else {
            return (quorums, confirmers);
        };
        let record = |shard| Some((shard, records.get(&shard)?));
        for (shard, record) in self.shards.iter().filter_map(record) {
            let reader = self.readers.of(shard);
            // The answer of the reader counts as one.
            let quorum = read_quorum(record.in_sync.len());
            let needed = quorum - usize::from(self.readers_confirm);
            quorums.need(shard, needed);
            if needed == 0 {
                continue;
            }
            for (node, entry) in layout.map().replicas(shard).iter().zip(&record.in_sync) {
                let is_counted = self.readers_confirm && node == reader;
                if !is_counted && !self.down.contains(node) {
                    let confirmer = (node.clone(), entry.store);
                    confirmers.entry(confirmer).or_default().insert(shard);
                }
            }
        }
        (quorums, confirmers)
    }

    /// The shards that a node was asked to confirm, and those that it does not.
    async fn answer_of(
        &self,
        node: &NodeId,
        store: StoreId,
        shards: ShardSet,
    ) -> (ShardSet, ShardSet) {
        let refused = self.confirmed_by(node, store, shards).await;
        (shards, refused.unwrap_or(shards))
    }

    /// The shards that a node does not confirm.
    async fn confirmed_by(
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
        };
        let work = || std::future::ready(Ok(Work::Confirm(confirm.clone())));
        let nodes = &self.cluster.nodes;
        let answer = nodes
            .work(node, self.deadline, Load::Queries(1), work)
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

    /// The replicas of shards that are not proven, but for the readers.
    fn unproven(&self, shards: ShardSet) -> Failures {
        let mut failures = Failures::default();
        for shard in shards.iter() {
            let replicas = self.cluster.layout.map().replicas(shard).iter();
            for node in replicas.filter(|node| *node != self.readers.of(shard)) {
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

    /// Asks nodes about shards that all of them hold, and that need this number of confirmations each.
    async fn confirmed(needed: usize, of: &[u8], nodes: &[Does]) -> Result<(), ShardSet> {
        let of = shards(of);
        let mut quorums = Quorums::default();
        for shard in of.iter() {
            quorums.need(shard, needed);
        }
        let calls = nodes.iter().map(async |does| match does {
            Does::Confirms => (of, ShardSet::EMPTY),
            Does::Refuses(refused) => (of, shards(refused)),
            Does::Nothing => pending().await,
        });
        let asked = vec![of; nodes.len()];
        quorums.confirmed(calls.collect(), asked.iter()).await
    }

    /// PR1.
    #[tokio::test(start_paused = true)]
    async fn any_quorum_proves_though_others_refuse_or_say_nothing() {
        use Does::{Confirms, Nothing, Refuses};
        for other in [Confirms, Refuses(&[1, 2]), Nothing] {
            for nodes in [[other, Confirms], [Confirms, other]] {
                assert_eq!(confirmed(1, &[1, 2], &nodes).await, Ok(()));
            }
        }
        // Each shard by another one.
        let nodes = [Refuses(&[1]), Nothing, Refuses(&[2])];
        assert_eq!(confirmed(1, &[1, 2], &nodes).await, Ok(()));
        assert_eq!(confirmed(0, &[1, 2], &[Nothing]).await, Ok(()));
    }

    /// PR1.
    #[tokio::test(start_paused = true)]
    async fn too_few_confirmations_prove_nothing_and_are_not_waited_for() {
        use Does::{Confirms, Nothing, Refuses};
        assert_eq!(confirmed(1, &[1, 2], &[]).await, Err(shards(&[1, 2])));
        let nodes = [Refuses(&[2]), Refuses(&[2])];
        assert_eq!(confirmed(1, &[1, 2], &nodes).await, Err(shards(&[2])));
        // Two are needed, and one cannot count twice.
        let nodes = [Confirms, Refuses(&[1])];
        assert_eq!(confirmed(2, &[1], &nodes).await, Err(shards(&[1])));
        let nodes = [Refuses(&[1]), Nothing];
        assert_eq!(confirmed(2, &[1], &nodes).await, Err(shards(&[1])));
    }

    type Read = Result<u32, Infallible>;

    #[tokio::test(start_paused = true)]
    async fn replicas_and_the_metadata_are_waited_for_together() {
        let begun = Instant::now();
        let after = |millis, confirmed: Result<(), ShardSet>| async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            confirmed
        };
        let open = shards(&[1]);
        // While the metadata does not answer.
        let slow = first_proof(after(500, Ok(())), pending::<Read>());
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
