//! How many replicas shards are to have, and how many of them answer searches.

use std::time::Duration;

use simshard_cluster::{Feature, MetadataError, Targets, require, set_targets, wish};
use simshard_runtime::terminal::counted;
use simshard_topology::replication::{Epoch, ShardRecord};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use crate::asked::{ANSWER_TIMEOUT, Cluster};
use crate::layout::{Layout, nodes_of};
use crate::placing::Placing;
use crate::{Admin, AdminError, Outlook};

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
    /// What is to be known before shards get fewer replicas, or nodes that do not answer lose them. `None` if neither
    /// happens.
    pub question: Option<String>,
    /// What becomes of the nodes.
    pub outlook: Outlook,
    wished: Replication,
    targets: Targets,
    /// The shards that are elsewhere.
    unplaced: ShardSet,
}

impl Admin<'_> {
    /// Plans where shards go with another number of replicas: to nodes that answer. Nothing is written.
    ///
    /// # Errors
    /// If fewer nodes answer, if one would not take its shards, if no node that answers holds some of them, or while shards
    /// are being rebuilt.
    pub async fn plan_replication(
        &self,
        wished: Replication,
    ) -> Result<ReplicationPlan, AdminError> {
        require(self.keys, Feature::Moving).await?;
        // All that may be refused is known before anything is changed.
        let layout = Layout::read(self).await?;
        layout.check_filled(ShardSet::ALL)?;
        let want = wished.want;
        layout.check_movable(ShardSet::ALL)?;
        let plan = layout.evenly(self, &layout.takers(), want.into())?;
        // Nodes that never held a shard come to a target at once.
        let targets = ShardId::all().map(|shard| (shard, nodes_of(&plan.map, shard)));
        let targets: Targets = targets.collect();
        Ok(ReplicationPlan {
            question: question(&layout, want),
            outlook: Outlook::of_plan(&layout, &plan),
            wished,
            unplaced: Placing {
                targets: targets.clone(),
                ..Placing::default()
            }
            .not_done(&layout.records, &layout.nodes_of_stores()),
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
        match set_targets(self.keys, &plan.targets, ShardSet::EMPTY).await {
            Err(error @ MetadataError::BadTarget { .. }) => {
                return Err(AdminError::Refused(format!(
                    "another operator has chosen another number of replicas, or drained a node, meanwhile: {error}; agree, \
                     and run this command again"
                )));
            }
            set => set?,
        }
        let Replication { want, hot } = plan.wished;
        Ok(Placing {
            targets: plan.targets,
            wished: Some((want, hot)),
            unplaced: plan.unplaced,
            ..Placing::default()
        })
    }
}

/// What an operator is to know before that: shards that get fewer replicas, and nodes that lose theirs as they do not
/// answer.
fn question(layout: &Layout, want: u8) -> Option<String> {
    let most = layout.records.values().map(|record| record.want).max();
    let fewer = most.filter(|most| *most > want);
    let fewer = fewer.map(|most| {
        let replicas = counted(want, "replica");
        format!("Shards get {replicas}, and had {most}.")
    });
    let silent = layout.silent().into_iter();
    let silent = silent.filter(|node| !layout.is_drained(node));
    let losing = silent.filter_map(|node| {
        let held = layout.map.shards_of(&node);
        let loses = format!(
            "{node} does not answer, and loses shards {held}: start it first if it is to keep them."
        );
        (!held.is_empty()).then_some(loses)
    });
    let sentences: Vec<String> = fewer.into_iter().chain(losing).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use simshard_cluster::MemoryKeyValues;
    use simshard_topology::NodeId;

    use simshard_node::Dialer;

    use super::*;
    use crate::leaving::tests::Scene;
    use crate::scene;

    /// Of three replicas, the one on a dead node goes, though shards have it as a target.
    #[test]
    fn fewer_replicas_are_those_that_answer_and_who_loses_shards_is_told() {
        let scene = Scene {
            nodes: 4,
            dead: vec![2, 4],
            drained: vec![4],
            want: 3,
        };
        let layout = scene.layout(|_| (vec![1, 3], Some(vec![1, 2, 3])));
        let keys = MemoryKeyValues::new();
        let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
        let plan = layout.evenly(&admin, &layout.takers(), 2).unwrap();
        let dead = NodeId::new("n2").unwrap();
        assert!(plan.map.shards_of(&dead).is_empty());
        assert_eq!(plan.map.nodes().len(), 2);
        assert_eq!(
            question(&layout, 2).unwrap(),
            "Shards get 2 replicas, and had 3. n2 does not answer, and loses shards 00-ff: start it first if it is to keep \
             them."
        );
        assert!(
            question(&layout, 3)
                .unwrap()
                .starts_with("n2 does not answer")
        );
        let refused = layout.evenly(&admin, &layout.takers(), 3).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains("3 are needed, and there are 2")
                && refused.contains("start n2, or add 1 node"),
            "{refused}"
        );
        let well = Scene {
            dead: vec![],
            ..scene
        };
        let well = well.layout(|_| (vec![1, 2, 3], None));
        assert_eq!(question(&well, 3), None);
    }

    /// The one who is second to say where shards are to be named no nodes.
    #[tokio::test(start_paused = true)]
    async fn of_two_operators_who_change_the_number_of_replicas_one_is_told_of_the_other() {
        let keys = scene::cluster(3).await;
        let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
        let scene = Scene {
            nodes: 3,
            dead: vec![],
            drained: vec![],
            want: 3,
        };
        let layout = scene.layout(|_| (vec![1, 2, 3], None));
        let plan = layout.evenly(&admin, &layout.takers(), 2).unwrap();
        let targets = ShardId::all().map(|shard| (shard, nodes_of(&plan.map, shard)));
        let plan = ReplicationPlan {
            question: None,
            outlook: Outlook::of_plan(&layout, &plan),
            wished: Replication::new(2, None).unwrap(),
            targets: targets.collect(),
            unplaced: ShardSet::EMPTY,
        };
        // The records say 3, as the other operator wants.
        let refused = admin.place_replicas(plan).await.err().unwrap();
        assert!(matches!(refused, AdminError::Refused(_)));
        let told = refused.to_string();
        assert!(told.starts_with("another operator has chosen"), "{told}");
    }

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
