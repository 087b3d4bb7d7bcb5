//! The plan that an operator has staged: which shards are to move where, and how far that is. It is a record of its own, so
//! any process goes on with what another one began.
//!
//! # Invariants
//! - SP1: of several plans that are staged at once, one is (`of_two_plans_one_is_staged`).
//! - SP2: a plan sets targets only while it begins. One that is taken back meanwhile leaves none
//!   (`a_plan_that_is_taken_back_sets_no_target`).
//! - SP3: a plan leaves alone the shards for which an operator has chosen other nodes since it was drawn
//!   (`shards_with_other_targets_are_left_alone`, `targets_that_are_chosen_meanwhile_are_left_alone`). Taken back, it
//!   leaves each target that it has replaced as it was, if that is still possible
//!   (`each_target_that_a_plan_replaced_comes_back_if_it_can`).
//! - SP4: what one process began, each other one ends (`any_process_goes_on_with_a_plan`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use simshard_topology::replication::StoreId;
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::sync::watch;
use uuid::Uuid;

use crate::followed_each::follow_each;
use crate::key_value::{KeyValue, KeyValueStore, MAX_OPERATIONS, Outcome, Revision, Transaction};
use crate::keys;
use crate::membership::{commit, shard_records};
use crate::node_settings::{NodeSettings, SettingsOfNodes};
use crate::records::{bad, object_in, text_of};
use crate::registered::{if_still, registered_stores, revision_in};
use crate::store::MetadataError;
use crate::targets::{Targets, is_placed, set_targets_as_read, settable, targets_in};

/// How far a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanState {
    /// Nothing has moved by it.
    Staged,
    /// Its targets are being set.
    Beginning,
    /// They are set, and the nodes move the shards.
    Moving,
    /// It is being taken back: shards that have not arrived may stay where they are.
    Ending,
}

/// Where a shard goes by a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMove {
    /// The nodes that held it, or were to, when the plan was drawn.
    pub from: BTreeSet<NodeId>,
    /// The nodes that are to hold it.
    pub to: BTreeSet<NodeId>,
    /// Whether the former were its target.
    pub had_target: bool,
}

/// A plan that is staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedPlan {
    /// Differs from that of each other plan.
    pub id: Uuid,
    /// How far it is.
    pub state: PlanState,
    /// When it was drawn, in seconds since the beginning of 1970.
    pub drawn_at: u64,
    /// The shards that move.
    pub moves: BTreeMap<ShardId, PlannedMove>,
    /// The zones and capacities that it was drawn for. It is kept only while nothing has moved.
    pub drawn_for: SettingsOfNodes,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    id: String,
    state: PlanState,
    drawn_at: u64,
    moves: Vec<RawMove>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    drawn_for: BTreeMap<String, NodeSettings>,
}

/// The shards that have the same nodes, before and after.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMove {
    shards: String,
    from: BTreeSet<String>,
    to: BTreeSet<String>,
    had_target: bool,
}

impl StagedPlan {
    /// A plan that is yet to be staged.
    #[must_use]
    pub fn new(
        drawn_at: u64,
        moves: BTreeMap<ShardId, PlannedMove>,
        drawn_for: SettingsOfNodes,
    ) -> Self {
        Self {
            id: Uuid::new_v4(),
            state: PlanState::Staged,
            drawn_at,
            moves,
            drawn_for,
        }
    }

    /// The same once it is carried out, or taken back.
    #[must_use]
    pub fn turned(&self, state: PlanState) -> Self {
        Self {
            state,
            drawn_for: SettingsOfNodes::new(),
            ..self.clone()
        }
    }

    /// The targets that it sets.
    #[must_use]
    pub fn targets(&self) -> Targets {
        let targets = self.moves.iter();
        targets
            .map(|(shard, planned)| (*shard, planned.to.clone()))
            .collect()
    }
}

/// The plan that is staged, if there is one, and the revision that a change of it compares.
///
/// # Errors
/// [`MetadataError::BadRecord`] if it cannot be understood. Else when the keys cannot be read.
pub async fn staged_plan(
    keys: &dyn KeyValueStore,
) -> Result<Option<(StagedPlan, Revision)>, MetadataError> {
    let snapshot = keys.read(keys::STAGED_PLAN).await?;
    let pair = snapshot.pairs.first();
    pair.map(|pair| Ok((plan_in(pair)?, pair.revision)))
        .transpose()
}

/// Writes a plan, in the place of the one that was read, or of none (SP1). Answers its revision.
///
/// # Errors
/// [`MetadataError::Raced`] if that is not so any more. Else when the keys cannot be read or written.
pub async fn stage_plan(
    keys: &dyn KeyValueStore,
    plan: &StagedPlan,
    read: Option<Revision>,
) -> Result<Revision, MetadataError> {
    let text = text_of(keys::STAGED_PLAN, &RawPlan::from(plan))?;
    let change = if_still(Transaction::new(), keys::STAGED_PLAN, read);
    let change = change.put(keys::STAGED_PLAN, &*text);
    let staged = commit(keys, &change, keys::STAGED_PLAN, &text).await?;
    staged.ok_or(MetadataError::Raced)
}

/// Removes the plan that was read.
///
/// # Errors
/// [`MetadataError::Raced`] if it has changed since. Else when the keys cannot be written.
pub async fn remove_plan(keys: &dyn KeyValueStore, read: Revision) -> Result<(), MetadataError> {
    let change = Transaction::new().if_unchanged(keys::STAGED_PLAN, read);
    expect_committed(keys.commit(&change.delete(keys::STAGED_PLAN)).await?)
}

/// Removes the plan if it cannot be understood. The targets that it has set stay. Answers whether there was such a one.
///
/// # Errors
/// [`MetadataError::Raced`] if it has changed meanwhile. Else when the keys cannot be read or written.
pub async fn remove_bad_plan(keys: &dyn KeyValueStore) -> Result<bool, MetadataError> {
    let snapshot = keys.read(keys::STAGED_PLAN).await?;
    let bad = snapshot.pairs.iter().find(|pair| plan_in(pair).is_err());
    let Some(bad) = bad else {
        return Ok(false);
    };
    remove_plan(keys, bad.revision).await?;
    Ok(true)
}

/// Attempts after others changed the plan, or what it was decided by.
const MOST_ATTEMPTS: usize = 4;

/// Ends what was begun with the staged plan: sets its targets if it begins, and removes those that are not reached, and
/// the plan, if it ends. A plan whose nodes may not hold its shards any more ends. Where another process does the same, or
/// an operator changes targets, it looks again.
///
/// # Errors
/// [`MetadataError::BadTarget`] if it has ended for that. [`MetadataError::Raced`] if others change the same all the time.
/// Else when the keys cannot be read or written: another attempt goes on.
pub async fn carry_on(keys: &dyn KeyValueStore) -> Result<(), MetadataError> {
    for _ in 1..MOST_ATTEMPTS {
        match attempt(keys).await {
            Err(MetadataError::Raced) => {}
            done => return done,
        }
    }
    attempt(keys).await
}

async fn attempt(keys: &dyn KeyValueStore) -> Result<(), MetadataError> {
    let Some((plan, revision)) = staged_plan(keys).await? else {
        return Ok(());
    };
    match plan.state {
        PlanState::Staged | PlanState::Moving => Ok(()),
        PlanState::Ending => end(keys, &plan, revision).await,
        PlanState::Beginning => match begin(keys, &plan, revision).await {
            Err(refused @ MetadataError::BadTarget { .. }) => {
                let ending = plan.turned(PlanState::Ending);
                let revision = stage_plan(keys, &ending, Some(revision)).await?;
                end(keys, &plan, revision).await?;
                Err(refused)
            }
            begun => begun,
        },
    }
}

/// Sets the targets, but for those of shards for which an operator has chosen others (SP3).
async fn begin(
    keys: &dyn KeyValueStore,
    plan: &StagedPlan,
    revision: Revision,
) -> Result<(), MetadataError> {
    let read = keys.read(keys::TARGETS).await?;
    let set = targets_in(&read, |_| {});
    let mut wanted = plan.targets();
    wanted.retain(|shard, _| {
        let chosen = set.get(shard);
        chosen.is_none_or(|nodes| *nodes == plan.moves[shard].from)
    });
    let condition = Transaction::new().if_unchanged(keys::STAGED_PLAN, revision);
    set_targets_as_read(keys, &wanted, &condition, &read).await?;
    let moving = plan.turned(PlanState::Moving);
    stage_plan(keys, &moving, Some(revision)).await?;
    Ok(())
}

/// Takes back the targets that the plan has set and that are not reached, and then the plan.
async fn end(
    keys: &dyn KeyValueStore,
    plan: &StagedPlan,
    revision: Revision,
) -> Result<(), MetadataError> {
    let snapshot = keys.read(keys::TARGETS).await?;
    let set = targets_in(&snapshot, |_| {});
    let unreached = unreached(keys, plan).await?;
    let is_open = |shard: &ShardId| set.get(shard) == Some(&plan.moves[shard].to);
    let open: ShardSet = unreached.iter().filter(is_open).collect();
    let replaced = open.iter().filter(|shard| plan.moves[shard].had_target);
    let before = replaced.map(|shard| (shard, plan.moves[&shard].from.clone()));
    // Some may name nodes that were drained since, say.
    let back = settable(keys, before.collect()).await?;
    let condition = || Transaction::new().if_unchanged(keys::STAGED_PLAN, revision);
    match set_targets_as_read(keys, &back, &condition(), &snapshot).await {
        Err(MetadataError::BadTarget { .. }) => return Err(MetadataError::Raced),
        set => set?,
    }
    let removed = open.iter().filter(|shard| !back.contains_key(shard));
    let removed: Vec<String> = removed.map(keys::target).collect();
    for some in removed.chunks(MAX_OPERATIONS - 1) {
        let change = some.iter().fold(condition(), |change, key| {
            if_still(change, key, revision_in(&snapshot, key)).delete(key)
        });
        expect_committed(keys.commit(&change).await?)?;
    }
    remove_plan(keys, revision).await
}

fn expect_committed(outcome: Outcome) -> Result<(), MetadataError> {
    match outcome {
        Outcome::Committed(_) => Ok(()),
        Outcome::Conflict => Err(MetadataError::Raced),
    }
}

/// The shards of a plan that are not where it has them.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn unreached(
    keys: &dyn KeyValueStore,
    plan: &StagedPlan,
) -> Result<ShardSet, MetadataError> {
    let records = shard_records(keys).await?;
    let stores = registered_stores(keys).await?.into_iter();
    let nodes: BTreeMap<StoreId, NodeId> = stores.map(|store| (store.id, store.node)).collect();
    let node_of = |store| nodes.get(&store);
    let is_open = |shard: &&ShardId| !is_placed(&records[*shard], &plan.moves[*shard].to, node_of);
    Ok(plan.moves.keys().filter(is_open).copied().collect())
}

/// Follows the staged plan, and tells of each change, as long as it is polled: of one at most. `on_bad` is told of one that
/// cannot be understood.
pub async fn follow_staged_plan(
    keys: Arc<dyn KeyValueStore>,
    told: &watch::Sender<Option<Arc<Vec<StagedPlan>>>>,
    on_bad: impl Fn(&MetadataError),
) {
    follow_each(keys, keys::STAGED_PLAN, told, plan_in, on_bad).await;
}

impl From<&StagedPlan> for RawPlan {
    fn from(plan: &StagedPlan) -> Self {
        let mut groups = BTreeMap::<_, ShardSet>::new();
        let names = |nodes: &BTreeSet<NodeId>| -> BTreeSet<String> {
            nodes.iter().map(ToString::to_string).collect()
        };
        for (shard, planned) in &plan.moves {
            let group = (names(&planned.from), names(&planned.to), planned.had_target);
            groups.entry(group).or_default().insert(*shard);
        }
        let moves = groups
            .into_iter()
            .map(|((from, to, had_target), shards)| RawMove {
                shards: shards.to_string(),
                from,
                to,
                had_target,
            });
        Self {
            id: plan.id.to_string(),
            state: plan.state,
            drawn_at: plan.drawn_at,
            moves: moves.collect(),
            drawn_for: plan
                .drawn_for
                .iter()
                .map(|(node, settings)| (node.to_string(), settings.clone()))
                .collect(),
        }
    }
}

fn plan_in(pair: &KeyValue) -> Result<StagedPlan, MetadataError> {
    let bad = |reason: String| bad(&pair.key, reason);
    let raw: RawPlan = object_in(&pair.key, &pair.value)?;
    let nodes = |names: &BTreeSet<String>| {
        let nodes = names.iter();
        let nodes = nodes.map(|name| NodeId::new(name).map_err(|error| bad(error.to_string())));
        nodes.collect::<Result<BTreeSet<_>, _>>()
    };
    let mut moves = BTreeMap::new();
    for group in &raw.moves {
        let planned = PlannedMove {
            from: nodes(&group.from)?,
            to: nodes(&group.to)?,
            had_target: group.had_target,
        };
        let shards: ShardSet = group
            .shards
            .parse()
            .map_err(|error| bad(format!("{error}")))?;
        if planned.to.is_empty() || moves.keys().any(|shard| shards.contains(*shard)) {
            return Err(bad(format!("shards {shards} go to no node, or twice")));
        }
        moves.extend(shards.iter().map(|shard| (shard, planned.clone())));
    }
    let mut drawn_for = SettingsOfNodes::new();
    for (name, settings) in raw.drawn_for {
        let node = NodeId::new(&name).map_err(|error| bad(error.to_string()))?;
        drawn_for.insert(node, settings);
    }
    Ok(StagedPlan {
        id: raw
            .id
            .parse()
            .map_err(|error| bad(format!("id: {error}")))?,
        state: raw.state,
        drawn_at: raw.drawn_at,
        moves,
        drawn_for,
    })
}

#[cfg(test)]
mod tests;
