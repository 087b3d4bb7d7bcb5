//! Which requests the engine refuses: those that mean another map, other records of shards, another layout of the corpus,
//! or shards without tables.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::CorpusUid;
use simshard_topology::{MapDigest, ShardId, ShardSet};
use tokio::time::timeout;

use super::Engine;
use crate::corpora::NodeCorpus;
use crate::error::NodeError;
use crate::target::{PlannedBy, Target};

/// How long a request waits for a record of a shard that the node lacks.
const CATCH_UP: Duration = Duration::from_millis(50);

impl Engine {
    /// The corpus of a request that reads these shards, if the node and the router know the same of both (N1). If the
    /// node lacks it, this makes it on demand.
    pub(super) async fn open(
        &self,
        target: &Target,
        shards: ShardSet,
    ) -> Result<Arc<NodeCorpus>, NodeError> {
        let corpus = self.open_to_change(target, shards).await?;
        self.check_records_and_tables(target)?;
        Ok(corpus)
    }

    /// The same for a request that changes these shards: the gate checks their records.
    pub(super) async fn open_to_change(
        &self,
        target: &Target,
        shards: ShardSet,
    ) -> Result<Arc<NodeCorpus>, NodeError> {
        self.catch_up(target).await;
        match self.corpus_if_held(target, shards) {
            Err(NodeError::CorpusNotLoaded(_)) => {
                self.make_on_demand(target).await?;
                self.corpus_if_held(target, shards)
            }
            opened => opened,
        }
    }

    /// Waits a little for records of shards that the router has and the node has not.
    async fn catch_up(&self, target: &Target) {
        let PlannedBy::Records(epochs) = &target.planned_by else {
            return;
        };
        if self.store.is_behind(epochs) {
            let mut installs = self.installs.clone();
            let has_changed = installs.wait_for(|()| !self.store.is_behind(epochs));
            // Otherwise the shards are refused.
            let _in_time = timeout(CATCH_UP, has_changed).await;
        }
    }

    /// Refuses to answer for shards of which the router has another record, or that have no tables.
    pub(super) fn check_records_and_tables(&self, target: &Target) -> Result<(), NodeError> {
        let PlannedBy::Records(epochs) = &target.planned_by else {
            return Ok(());
        };
        let wrong = self.store.unanswered(epochs);
        if !wrong.is_empty() {
            return Err(NodeError::WrongEpoch(wrong));
        }
        let asked: ShardSet = epochs.iter().map(|(shard, _)| *shard).collect();
        self.check_tables(asked)
    }

    /// Refuses to search shards without tables.
    pub(super) fn check_tables(&self, shards: ShardSet) -> Result<(), NodeError> {
        let cold = shards.difference(&self.heat.built());
        if cold.is_empty() {
            Ok(())
        } else {
            Err(NodeError::Cold(cold))
        }
    }

    /// What is read of the tables of a shard, if they held what is stored all the time (HC1).
    pub(super) fn while_built<T>(
        &self,
        shard: ShardId,
        read: impl FnOnce() -> T,
    ) -> Result<T, NodeError> {
        let thrown = self.heat.thrown(shard);
        self.check_tables(ShardSet::from_iter([shard]))?;
        let read = read();
        if self.heat.thrown(shard) == thrown {
            Ok(read)
        } else {
            Err(NodeError::Cold(ShardSet::from_iter([shard])))
        }
    }

    /// The corpus, only if the node holds it.
    pub(super) fn corpus_if_held(
        &self,
        target: &Target,
        shards: ShardSet,
    ) -> Result<Arc<NodeCorpus>, NodeError> {
        if let PlannedBy::Map(map) = target.planned_by {
            self.check_map(map)?;
            // By a map that was right once, others may hold them now.
            if self.follows_records() && !shards.is_empty() {
                return Err(NodeError::WrongEpoch(shards));
            }
        }
        let foreign = shards.difference(&self.store.shards());
        if !foreign.is_empty() {
            return Err(match target.planned_by {
                PlannedBy::Map(_) => NodeError::NotOwner(foreign),
                PlannedBy::Records(_) => NodeError::WrongEpoch(foreign),
            });
        }
        let corpus = self.corpora.get(target.corpus)?;
        let held = corpus.layout();
        let &Target {
            blocks, distance, ..
        } = target;
        if (held.blocks(), held.distance()) != (blocks, distance) {
            return Err(NodeError::CorpusDiffers {
                uid: target.corpus,
                held,
                blocks,
                distance,
            });
        }
        Ok(corpus)
    }

    /// Refuses to answer what was searched by a target that does not hold any more.
    pub(super) fn check_still_answers(&self, target: &Target) -> Result<(), NodeError> {
        self.check_not_dropped(target.corpus)?;
        self.check_records_and_tables(target)
    }

    /// Refuses to go on with a stream whose shards may have begun anew since it began: what was stored then is not all
    /// there. Other records do not matter.
    pub(super) fn check_not_begun_anew(&self, target: &Target) -> Result<(), NodeError> {
        self.check_not_dropped(target.corpus)?;
        let PlannedBy::Records(epochs) = &target.planned_by else {
            return Ok(());
        };
        let left = self.store.left_since(epochs);
        if left.is_empty() {
            Ok(())
        } else {
            Err(NodeError::WrongEpoch(left))
        }
    }

    /// Refuses to answer from a corpus that was dropped meanwhile: what was read of it is not all.
    pub(super) fn check_not_dropped(&self, corpus: CorpusUid) -> Result<(), NodeError> {
        if self.store.holds(corpus) {
            Ok(())
        } else {
            Err(NodeError::CorpusNotLoaded(corpus))
        }
    }

    /// Whether records of shards say what the node holds. One that has registered itself holds nothing before it has
    /// installed the first.
    pub(super) fn follows_records(&self) -> bool {
        self.corpus_records.is_some() || self.store.has_records()
    }

    /// Refuses what was planned by another map. Where there are records of shards, maps change with them.
    pub(super) fn check_map(&self, router: MapDigest) -> Result<(), NodeError> {
        if router == self.map || self.follows_records() {
            Ok(())
        } else {
            Err(NodeError::OtherMap {
                router,
                node: self.map,
            })
        }
    }
}
