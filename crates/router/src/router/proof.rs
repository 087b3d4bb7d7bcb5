//! Proving answers. A replica that was cut off may answer by an old record of its shard, and lack what was acknowledged
//! since. So an answer counts only with a proof, begun after the request began, that its record is the current one:
//! other replicas have installed no later one, or the metadata says so.
//!
//! # Invariants
//! - PR1: an answer from a shard with several replicas in sync is proven by a read quorum of them, the one that answered
//!   included, or by a reading of the metadata that began after the request.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::{epochs_from, shards_from, shards_into};
use simshard_topology::replication::{StoreId, read_quorum};
use simshard_topology::{NodeId, ShardSet};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Failures, Router};
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::nodes::{CallError, Load};
use crate::readers::Readers;

/// How long other replicas have before the metadata is asked.
const CONFIRMING: Duration = Duration::from_millis(20);

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
        if !claim.cluster.layout.map().has_copies() {
            return Failures::default();
        }
        let begun = Instant::now();
        let (wanted, open) = claim.wanted();
        let mut confirming = pin!(claim.confirmed(&wanted));
        let refused = timeout(CONFIRMING, &mut confirming).await.ok();
        if open.is_empty() && refused == Some(ShardSet::EMPTY) {
            return Failures::default();
        }
        if let Ok(now) = self.metadata.layout_since(begun).await {
            return claim.changed(&now);
        }
        let refused = match refused {
            Some(refused) => refused,
            None => {
                let late = timeout_at(claim.deadline.instant(), confirming).await;
                late.unwrap_or(claim.shards)
            }
        };
        claim.unproven(open.union(&refused))
    }
}

/// A node to ask, and the store that it is to be.
type Confirmer = (NodeId, StoreId);

impl Claim<'_> {
    /// Which nodes are to confirm which shards, and the shards that have too few nodes for it.
    fn wanted(&self) -> (BTreeMap<Confirmer, ShardSet>, ShardSet) {
        let layout = &self.cluster.layout;
        let mut wanted: BTreeMap<Confirmer, ShardSet> = BTreeMap::new();
        let mut open = ShardSet::EMPTY;
        let Some(records) = layout.records() else {
            return (wanted, open);
        };
        let record = |shard| Some((shard, records.get(&shard)?));
        for (shard, record) in self.shards.iter().filter_map(record) {
            let reader = self.readers.of(shard);
            let mut left = read_quorum(record.in_sync.len());
            if self.readers_confirm {
                left -= 1;
            }
            for (node, entry) in layout.map().replicas(shard).iter().zip(&record.in_sync) {
                let is_counted = self.readers_confirm && node == reader;
                if left > 0 && !is_counted && !self.down.contains(node) {
                    let confirmer = (node.clone(), entry.store);
                    wanted.entry(confirmer).or_default().insert(shard);
                    left -= 1;
                }
            }
            if left > 0 {
                open.insert(shard);
            }
        }
        (wanted, open)
    }

    /// Asks these nodes. Answers the shards that one of them did not confirm.
    async fn confirmed(&self, wanted: &BTreeMap<Confirmer, ShardSet>) -> ShardSet {
        let calls = wanted.iter().map(async |((node, store), shards)| {
            let refused = self.confirmed_by(node, *store, *shards).await;
            refused.unwrap_or(*shards)
        });
        let refused = join_all(calls).await;
        refused.iter().flat_map(ShardSet::iter).collect()
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
