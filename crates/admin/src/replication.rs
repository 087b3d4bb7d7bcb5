//! How many replicas shards are to have, and how many of them answer searches.

use std::time::Duration;

use simshard_cluster::{Feature, Targets, require, set_targets, shard_records, wish};
use simshard_topology::replication::{Epoch, ShardRecord, ShardRecords};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use crate::asked::{ANSWER_TIMEOUT, Cluster};
use crate::layout::{Layout, nodes_of};
use crate::placing::Placing;
use crate::shares::unmet;
use crate::{Admin, AdminError};

/// How many replicas are hot, where that is not said.
pub const DEFAULT_HOT: u8 = 2;

/// The most replicas that a shard may have.
pub const MOST_REPLICAS: u8 = 5;

/// Records that change just now are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many nodes hold each shard, and how many of them answer searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replication {
    want: u8,
    hot: u8,
}

impl Replication {
    /// `want` replicas, of which `hot` are hot: if that is not said, [`DEFAULT_HOT`], or all if they are fewer. `None` if a
    /// number is 0, or there are more hot ones than replicas, or more replicas than [`MOST_REPLICAS`].
    #[must_use]
    pub fn new(want: u8, hot: Option<u8>) -> Option<Self> {
        let hot = hot.unwrap_or(DEFAULT_HOT.min(want));
        let is_possible = (1..=MOST_REPLICAS).contains(&want) && (1..=want).contains(&hot);
        is_possible.then_some(Self { want, hot })
    }

    /// How many replicas are hot.
    #[must_use]
    pub const fn hot(self) -> u8 {
        self.hot
    }
}

/// Where shards go with another number of replicas.
#[derive(Clone, Debug)]
pub struct ReplicationPlan {
    /// What is to be known before shards get fewer replicas. `None` if none does.
    pub question: Option<String>,
    /// What was wanted, and cannot be had with the nodes there are.
    pub unmet: Vec<String>,
    wished: Replication,
    targets: Targets,
    /// The shards that are elsewhere.
    unplaced: ShardSet,
}

impl Admin<'_> {
    /// Plans where shards go with another number of replicas. Nothing is written.
    ///
    /// # Errors
    /// If there are fewer nodes, if a node would not take its shards, or while shards are being rebuilt.
    pub async fn plan_replication(
        &self,
        wished: Replication,
    ) -> Result<ReplicationPlan, AdminError> {
        require(self.keys, Feature::Moving).await?;
        // All that may be refused is known before anything is changed.
        refuse_rebuilt(&shard_records(self.keys).await?)?;
        let layout = Layout::read(self).await?;
        let want = wished.want;
        let plan = layout.planned(self, &layout.nodes(None)?, want.into())?;
        let most = layout.records.values().map(|record| record.want).max();
        let more = most.filter(|most| *most > want);
        // Nodes that never held a shard come to a target at once.
        let targets = ShardId::all().map(|shard| (shard, nodes_of(&plan.map, shard)));
        let targets: Targets = targets.collect();
        Ok(ReplicationPlan {
            question: more.map(|most| format!("Shards get {want} replicas, and had {most}.")),
            unmet: unmet(&layout, &plan),
            wished,
            unplaced: layout.unplaced(&targets),
            targets,
        })
    }

    /// Writes down how many replicas shards are to have, and how many of them hot.
    ///
    /// # Errors
    /// If a record keeps changing.
    pub async fn wish_for(&self, plan: &ReplicationPlan) -> Result<(), AdminError> {
        let Replication { want, hot } = plan.wished;
        let started = Instant::now();
        loop {
            let cluster = Cluster::ask(self).await?;
            let is_meant = |_, record: &ShardRecord| {
                !record.is_rebuilt() && (record.want, record.hot) != (want, hot)
            };
            let report = |shard, store| cluster.report(shard, store).unwrap_or(Epoch::NONE);
            let wished = wish(self.keys, (want, hot), is_meant, report).await?;
            let Some((shard, error)) = wished.refused.first() else {
                return Ok(());
            };
            if started.elapsed() > PATIENCE {
                return Err(AdminError::Refused(format!(
                    "shard {shard} cannot change now: {error}; run this command again"
                )));
            }
            sleep(ANSWER_TIMEOUT / 5).await;
        }
    }

    /// Lets the shards go where the plan has them, once [`Admin::wish_for`] has written down how many replicas they are to
    /// have.
    ///
    /// # Errors
    /// If others have changed that since.
    pub async fn place_replicas(&self, plan: ReplicationPlan) -> Result<Placing, AdminError> {
        set_targets(self.keys, &plan.targets, ShardSet::EMPTY).await?;
        let Replication { want, hot } = plan.wished;
        Ok(Placing {
            targets: plan.targets,
            wished: Some((want, hot)),
            unplaced: plan.unplaced,
        })
    }
}

/// Refuses to open shards to searches that are yet to be filled.
fn refuse_rebuilt(records: &ShardRecords) -> Result<(), AdminError> {
    let rebuilt = records.iter().filter(|(_, record)| record.is_rebuilt());
    let rebuilt: ShardSet = rebuilt.map(|(shard, _)| *shard).collect();
    if rebuilt.is_empty() {
        return Ok(());
    }
    Err(AdminError::Refused(format!(
        "shards {rebuilt} are being rebuilt: end that by `simshard cluster force --rebuild` first"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_replicas_are_hot_than_there_are() {
        let hot = |want, hot| Replication::new(want, hot).map(Replication::hot);
        assert_eq!(hot(3, None), Some(2));
        assert_eq!(hot(1, None), Some(1));
        assert_eq!(hot(5, Some(5)), Some(5));
        for (want, of_these) in [(0, None), (6, None), (3, Some(4)), (3, Some(0))] {
            assert_eq!(hot(want, of_these), None, "{want} {of_these:?}");
        }
    }
}
