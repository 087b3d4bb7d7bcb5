//! A plan of where all shards are to be: it is drawn first, and carried out when an operator says so.

use std::collections::BTreeMap;

use simshard_cluster::{
    Feature, MetadataError, PlanState, PlannedMove, Revision, StagedPlan, carry_on,
    remove_bad_plan, remove_plan, require, shard_records, stage_plan, staged_plan, targets,
    targets_of, unreached,
};
use simshard_runtime::terminal::counted;
use simshard_topology::{ShardId, ShardMap, ShardSet};

use crate::layout::{Layout, nodes_of};
use crate::pauses::now;
use crate::placing::Placing;
use crate::placing::nodes_of_stores;
use crate::shown::{self, ShownMove};
use crate::{Admin, AdminError, Estimate, Outlook, Repeats};

/// A plan that was drawn, and is yet to be staged.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// What becomes of the nodes.
    pub outlook: Outlook,
    /// How much is to be copied.
    pub estimate: Estimate,
    /// The shards that operators have sent elsewhere, and that are not there yet. The plan counts them as if they were.
    pub on_their_way: ShardSet,
    plan: StagedPlan,
    /// The plan that gives way to it, and whether that was never applied.
    before: Option<(Revision, bool)>,
}

impl Drawn {
    /// Whether no shard is to move.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plan.moves.is_empty()
    }

    /// Whether another plan goes once this one is staged, which was not applied.
    #[must_use]
    pub const fn discards_another(&self) -> bool {
        matches!(self.before, Some((_, true)))
    }

    /// Differs from that of each other plan.
    #[must_use]
    pub fn id(&self) -> String {
        self.plan.id.to_string()
    }
}

/// The staged plan, and how far it is.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Differs from that of each other plan.
    pub id: String,
    /// How far the plan is.
    pub state: PlanState,
    /// When it was drawn, in seconds since the beginning of 1970.
    pub drawn_at: u64,
    /// The shards that move.
    pub moves: Vec<ShownMove>,
}

/// A plan that may be applied, or goes on.
#[derive(Clone, Debug)]
pub struct Applicable {
    /// What applying it does. `None` if that was begun before.
    pub question: Option<String>,
    plan: StagedPlan,
    revision: Revision,
}

impl Applicable {
    /// Differs from that of each other plan.
    #[must_use]
    pub fn id(&self) -> String {
        self.plan.id.to_string()
    }
}

/// A plan that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborted {
    /// There was none.
    None,
    /// It could not be understood. Targets that it has set stay.
    Damaged,
    /// Nothing had moved by it.
    Unmoved,
    /// Some of its shards had arrived, and stay.
    Moved {
        /// The shards of the plan.
        all: usize,
        /// Those that had arrived.
        arrived: usize,
    },
}

impl Admin<'_> {
    /// Draws a plan that shares the documents evenly. Nothing is written.
    ///
    /// # Errors
    /// If another plan is being carried out, none can be drawn for the nodes there are, or settings of one are damaged.
    pub async fn draw_plan(&self) -> Result<Drawn, AdminError> {
        require(self.keys, Feature::Moving).await?;
        let before = self.replaceable().await?;
        let layout = Layout::read(self).await?;
        let plan = layout.evenly(self, &layout.nodes()?, layout.replicas()?)?;
        let moves = moves(&layout, &plan.map);
        Ok(Drawn {
            outlook: Outlook::of_plan(&layout, &plan),
            estimate: Estimate::of(&layout, &moves),
            on_their_way: layout.on_their_way(),
            plan: StagedPlan::new(now(), moves, layout.cluster.settings_for_plans()),
            before,
        })
    }

    /// Stages a plan, in the place of the one before. One that moves nothing only removes that.
    ///
    /// # Errors
    /// [`AdminError::OtherOperator`] if another plan was staged since it was drawn.
    pub async fn stage(&self, drawn: &Drawn) -> Result<(), AdminError> {
        let before = drawn.before.map(|(revision, _)| revision);
        if !drawn.is_empty() {
            let staged = stage_plan(self.keys, &drawn.plan, before).await;
            return staged.map(drop).map_err(AdminError::of_plan);
        }
        match before {
            Some(before) => {
                let removed = remove_plan(self.keys, before).await;
                removed.map_err(AdminError::of_plan)
            }
            None => Ok(()),
        }
    }

    /// The staged plan, and how far it is.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn plan(&self) -> Result<Option<Plan>, AdminError> {
        let Some((plan, _)) = staged_plan(self.keys).await? else {
            return Ok(None);
        };
        let read = shown::Read {
            records: shard_records(self.keys).await?,
            targets: targets(self.keys, |error| self.warn_of_bad(error)).await?,
            nodes: nodes_of_stores(self.keys).await?,
        };
        Ok(Some(Plan {
            id: plan.id.to_string(),
            state: plan.state,
            drawn_at: plan.drawn_at,
            moves: shown::moves(&plan, &read),
        }))
    }

    /// Looks whether the staged plan can be applied. One that is being taken back is taken back.
    ///
    /// # Errors
    /// If there is none, or if it is stale, or is being taken back.
    pub async fn applicable(&self) -> Result<Applicable, AdminError> {
        let Some((plan, revision)) = staged_plan(self.keys).await? else {
            let problem = "no plan is staged: `simshard cluster rebalance plan` draws one";
            return Err(AdminError::Refused(problem.to_owned()));
        };
        let question = match plan.state {
            PlanState::Staged => {
                let layout = Layout::read(self).await?;
                layout.check_staged(&plan)?;
                let estimate = Estimate::of(&layout, &plan.moves);
                let moves = plan.moves.len();
                let verb = if moves == 1 { "moves" } else { "move" };
                Some(format!("{} {verb}, {estimate}.", counted(moves, "shard")))
            }
            PlanState::Beginning | PlanState::Moving => None,
            PlanState::Ending => {
                carry_on(self.keys).await.map_err(AdminError::of_plan)?;
                let told = "the plan was being taken back: draw another one";
                return Err(AdminError::Refused(told.to_owned()));
            }
        };
        Ok(Applicable {
            question,
            plan,
            revision,
        })
    }

    /// Carries out a plan.
    ///
    /// # Errors
    /// [`AdminError::OtherOperator`] if it has changed since [`Admin::applicable`]. [`AdminError::Refused`] if it was taken
    /// back, or operators have said something else for all its shards.
    pub async fn apply(&self, applicable: &Applicable) -> Result<Placing, AdminError> {
        let Applicable { plan, revision, .. } = applicable;
        match plan.state {
            PlanState::Staged => {
                let beginning = plan.turned(PlanState::Beginning);
                let begun = stage_plan(self.keys, &beginning, Some(*revision)).await;
                begun.map_err(AdminError::of_plan)?;
                carry_on(self.keys).await.map_err(AdminError::of_plan)?;
            }
            PlanState::Beginning => carry_on(self.keys).await.map_err(AdminError::of_plan)?,
            PlanState::Moving | PlanState::Ending => {}
        }
        let open = unreached(self.keys, plan).await?;
        // What an operator has sent elsewhere is no longer the plan's.
        let mut planned = plan.targets();
        let all: ShardSet = planned.keys().copied().collect();
        let now = targets_of(self.keys, all).await?;
        planned.retain(|shard, nodes| now.get(shard) == Some(nodes));
        let its_own = planned.keys().copied().collect();
        let given_up = all.difference(&its_own);
        if !given_up.is_empty() {
            self.check_goes_on(plan).await?;
        }
        if planned.is_empty() {
            self.forget(applicable).await?;
            let told = "nothing is left of the plan: operators have said something else for all its shards since";
            return Err(AdminError::Refused(told.to_owned()));
        }
        Ok(Placing {
            targets: planned,
            given_up,
            unplaced: open.intersection(&its_own),
            ..Placing::default()
        })
    }

    /// Refuses a plan that was taken back, or is being taken back.
    async fn check_goes_on(&self, plan: &StagedPlan) -> Result<(), AdminError> {
        let now = staged_plan(self.keys).await?;
        let goes_on =
            now.is_some_and(|(now, _)| now.id == plan.id && now.state != PlanState::Ending);
        if goes_on {
            return Ok(());
        }
        let told = "another operator has taken the plan back: shards that had arrived stay";
        Err(AdminError::Refused(told.to_owned()))
    }

    /// Removes a plan by which nothing moves any more. Another operator may have done that, or be taking it back.
    ///
    /// # Errors
    /// If the metadata cannot be read or written.
    pub async fn forget(&self, carried_out: &Applicable) -> Result<(), AdminError> {
        let now = staged_plan(self.keys).await?;
        let is_over =
            |now: &StagedPlan| now.id == carried_out.plan.id && now.state == PlanState::Moving;
        let Some((_, revision)) = now.filter(|(now, _)| is_over(now)) else {
            return Ok(());
        };
        match remove_plan(self.keys, revision).await {
            Ok(()) | Err(MetadataError::Raced) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the staged plan back.
    ///
    /// # Errors
    /// [`AdminError::Refused`] if another plan takes its place meanwhile.
    pub async fn abort(&self) -> Result<Aborted, AdminError> {
        let (mut first, mut repeats) = (None, Repeats::default());
        loop {
            match self.abort_now(&mut first).await {
                // Nodes go on with a plan that begins.
                Err(AdminError::OtherOperator) if repeats.wait().await => {}
                done => return done,
            }
        }
    }

    /// Takes the staged plan back, if it is still the `first` that was read.
    async fn abort_now(&self, first: &mut Option<String>) -> Result<Aborted, AdminError> {
        let read = staged_plan(self.keys).await;
        let is_bad = matches!(read, Err(MetadataError::BadRecord { .. }));
        if is_bad
            && remove_bad_plan(self.keys)
                .await
                .map_err(AdminError::of_plan)?
        {
            return Ok(Aborted::Damaged);
        }
        let Some((plan, revision)) = read? else {
            return Ok(Aborted::None);
        };
        let id = plan.id.to_string();
        if *first.get_or_insert_with(|| id.clone()) != id {
            let told =
                "another plan was staged meanwhile: `simshard cluster rebalance show` shows it";
            return Err(AdminError::Refused(told.to_owned()));
        }
        if plan.state == PlanState::Staged {
            let removed = remove_plan(self.keys, revision).await;
            return removed
                .map(|()| Aborted::Unmoved)
                .map_err(AdminError::of_plan);
        }
        let unreached = unreached(self.keys, &plan).await?;
        let ending = plan.turned(PlanState::Ending);
        let ended = stage_plan(self.keys, &ending, Some(revision)).await;
        ended.map_err(AdminError::of_plan)?;
        carry_on(self.keys).await.map_err(AdminError::of_plan)?;
        let all = plan.moves.len();
        let arrived = all - unreached.len();
        Ok(Aborted::Moved { all, arrived })
    }

    /// The revision of a plan that may give way to another one, and whether it was never applied. Refuses one by which
    /// shards are moving.
    async fn replaceable(&self) -> Result<Option<(Revision, bool)>, AdminError> {
        let Some((plan, revision)) = staged_plan(self.keys).await? else {
            return Ok(None);
        };
        if plan.state == PlanState::Staged {
            return Ok(Some((revision, true)));
        }
        if plan.state == PlanState::Ending {
            let told =
                "another plan is being taken back: `simshard cluster rebalance abort` ends that";
            return Err(AdminError::Refused(told.to_owned()));
        }
        let open = self.open(&plan).await?;
        let is_over = plan.state == PlanState::Moving && open.is_empty();
        if is_over {
            return Ok(Some((revision, false)));
        }
        Err(AdminError::Refused(format!(
            "another plan is being carried out: shards {open} are on their way. Wait for it by `simshard cluster \
             rebalance apply`, or take it back by `simshard cluster rebalance abort`"
        )))
    }

    /// The shards that are still to move by a plan. One that an operator has sent elsewhere since is none of them.
    async fn open(&self, plan: &StagedPlan) -> Result<ShardSet, MetadataError> {
        let unreached = unreached(self.keys, plan).await?;
        let targets = targets(self.keys, |_| {}).await?;
        let is_meant = |shard| targets.get(&shard) == Some(&plan.moves[&shard].to);
        let has_begun = plan.state != PlanState::Beginning;
        Ok(unreached
            .iter()
            .filter(|shard| !has_begun || is_meant(*shard))
            .collect())
    }
}

/// The shards that a map has elsewhere than they are, or are on their way to.
pub(crate) fn moves(layout: &Layout, after: &ShardMap) -> BTreeMap<ShardId, PlannedMove> {
    let targets = layout.targets(after).into_iter();
    let moves = targets.map(|(shard, to)| {
        let planned = PlannedMove {
            from: nodes_of(&layout.map, shard),
            to,
            had_target: layout.has_target(shard),
        };
        (shard, planned)
    });
    // What is on its way already is no part of the plan.
    moves
        .filter(|(_, planned)| planned.from != planned.to)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::num::NonZeroU32;

    use simshard_cluster::{SettingsOfNodes, check_node_settings};
    use simshard_topology::NodeId;

    use simshard_node::Dialer;

    use super::*;
    use crate::Replication;
    use crate::placing::Progress;
    use crate::scene::{cluster, join, put};

    /// A plan evens out what it was drawn for, and nothing else. How fast nodes copy is no part of that.
    #[tokio::test(start_paused = true)]
    async fn a_plan_for_other_zones_or_capacities_is_stale() {
        let keys = cluster(2).await;
        let warn = |_: &str| {};
        let admin = Admin::new(&keys, &Dialer::PLAIN, &warn);
        let node = NodeId::new("n2").unwrap();
        let two = NonZeroU32::new(2).unwrap();
        admin.set_capacity(&node, two).await.unwrap();
        let layout = Layout::read(&admin).await.unwrap();
        let drawn_for = layout.cluster.settings_for_plans();
        let plan = StagedPlan::new(now(), BTreeMap::new(), drawn_for);
        stage_plan(&keys, &plan, None).await.unwrap();
        admin.set_copy_rate(&node, Some(two)).await.unwrap();
        admin.applicable().await.unwrap();
        admin.set_capacity(&node, NonZeroU32::MIN).await.unwrap();
        let told = admin.applicable().await.unwrap_err().to_string();
        assert!(told.contains("another zone or capacity of n2"), "{told}");
        admin.set_capacity(&node, two).await.unwrap();
        admin.applicable().await.unwrap();
        admin.set_zone(&node, Some(&node)).await.unwrap();
        let told = admin.applicable().await.unwrap_err().to_string();
        assert!(told.contains("another zone or capacity of n2"), "{told}");
    }

    /// It would be refused only once it has begun.
    #[tokio::test(start_paused = true)]
    async fn a_plan_that_gives_a_drained_node_shards_is_stale() {
        let keys = cluster(1).await;
        let warn = |_: &str| {};
        let admin = Admin::new(&keys, &Dialer::PLAIN, &warn);
        join(&keys, 2).await;
        let [n1, n2] = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
        let planned = PlannedMove {
            from: BTreeSet::from([n1]),
            to: BTreeSet::from([n2]),
            had_target: false,
        };
        let layout = Layout::read(&admin).await.unwrap();
        let moves = BTreeMap::from([(ShardId(7), planned)]);
        let plan = StagedPlan::new(now(), moves, layout.cluster.settings_for_plans());
        stage_plan(&keys, &plan, None).await.unwrap();
        put(&keys, "nodes/n2", r#"{"drained":true}"#).await;
        let told = admin.applicable().await.unwrap_err().to_string();
        assert!(
            told.contains("since it was drawn, n2 was drained"),
            "{told}"
        );
    }

    /// What another operator took back stays where it is, and what was sent elsewhere is no longer waited for.
    #[tokio::test(start_paused = true)]
    async fn a_plan_waits_for_the_shards_that_are_still_its_own() {
        let keys = cluster(2).await;
        let warn = |_: &str| {};
        let admin = Admin::new(&keys, &Dialer::PLAIN, &warn);
        let [n1, n2] = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
        let both = BTreeSet::from([n1, n2]);
        let planned = PlannedMove {
            from: both.clone(),
            to: both,
            had_target: false,
        };
        let moves = [1, 2].map(|shard| (ShardId(shard), planned.clone()));
        let plan = StagedPlan::new(now(), BTreeMap::from(moves), SettingsOfNodes::new());
        stage_plan(&keys, &plan.turned(PlanState::Beginning), None)
            .await
            .unwrap();
        let applicable = admin.applicable().await.unwrap();
        let placing = admin.apply(&applicable).await.unwrap();
        assert_eq!(placing.targets.len(), 2);
        assert!(placing.given_up.is_empty());
        admin
            .free_shards(ShardSet::from_iter([ShardId(1)]))
            .await
            .unwrap();
        let progress = placing.progress(&keys).await.unwrap();
        let freed = ShardSet::from_iter([ShardId(1)]);
        assert!(matches!(progress, Progress::Freed(shards) if shards == freed));
        let applicable = admin.applicable().await.unwrap();
        let again = admin.apply(&applicable).await.unwrap();
        assert_eq!(again.targets.keys().collect::<Vec<_>>(), [&ShardId(2)]);
        assert_eq!(again.given_up, freed);
        let (moving, revision) = staged_plan(&keys).await.unwrap().unwrap();
        let ending = moving.turned(PlanState::Ending);
        stage_plan(&keys, &ending, Some(revision)).await.unwrap();
        let refused = admin.apply(&applicable).await.unwrap_err();
        assert!(
            refused.to_string().contains("taken the plan back"),
            "{refused}"
        );
        // What takes it back goes on with that.
        admin.forget(&applicable).await.unwrap();
        assert!(staged_plan(&keys).await.unwrap().is_some());
        let other = &mut Some("that of another plan".to_owned());
        let refused = admin.abort_now(other).await.unwrap_err();
        assert!(refused.to_string().contains("another plan"), "{refused}");
        let (ending, revision) = staged_plan(&keys).await.unwrap().unwrap();
        let moving = ending.turned(PlanState::Moving);
        stage_plan(&keys, &moving, Some(revision)).await.unwrap();
        admin
            .free_shards(ShardSet::from_iter([ShardId(2)]))
            .await
            .unwrap();
        let refused = admin.apply(&applicable).await.unwrap_err();
        assert!(refused.to_string().contains("nothing is left"), "{refused}");
        assert!(staged_plan(&keys).await.unwrap().is_none());
    }

    /// Each names the key.
    #[tokio::test(start_paused = true)]
    async fn no_nodes_are_chosen_beside_damaged_settings_and_a_damaged_plan_is_told() {
        let keys = cluster(2).await;
        let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
        put(&keys, "nodes/n2", "{").await;
        put(&keys, "staged-plan", "{").await;
        let findings = admin.status().await.unwrap();
        let told = findings.iter().find(|found| found.part == "metadata");
        let told = &told.unwrap().details;
        assert!(told.contains("the key staged-plan "), "{told}");
        assert!(told.contains("the key nodes/n2 "), "{told}");
        remove_bad_plan(&keys).await.unwrap();
        let refused = admin.draw_plan().await.unwrap_err();
        assert!(refused.to_string().contains("nodes/n2"), "{refused}");
        // It would write the number, and then find out.
        let wished = Replication::new(1, None).unwrap();
        let refused = admin.plan_replication(wished).await.err().unwrap();
        assert!(refused.to_string().contains("nodes/n2"), "{refused}");
        let damaged = NodeId::new("n2").unwrap();
        assert!(admin.undrain(&damaged).await.unwrap());
        check_node_settings(&keys).await.unwrap();
    }
}
