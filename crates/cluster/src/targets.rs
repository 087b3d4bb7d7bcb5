//! Which nodes are to hold which shards, where an operator has chosen some. It is a wish: the nodes move the shards step
//! by step, each doing its part, and another wish ends a move. No process drives it.
//!
//! # Invariants
//! - TG1: when it is set, a target names as many nodes as the shard is to have replicas. Each has registered, and is known
//!   not to be drained (`targets_that_cannot_be_met_are_refused`, `targets_are_checked_as_they_are_set`).
//! - TG2: a target that cannot be understood keeps nodes and operators from nothing else
//!   (`a_target_that_is_damaged_is_left_out`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use simshard_runtime::terminal::counted;
use simshard_topology::replication::{ShardRecord, ShardRecords, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::sync::watch;
use uuid::Uuid;

use crate::followed_each::{each, follow_each};
use crate::key_value::{KeyValue, KeyValueStore, MAX_OPERATIONS, Outcome, Snapshot, Transaction};
use crate::keys;
use crate::levels::{Feature, require};
use crate::membership::commit;
use crate::node_settings::settings_in;
use crate::records::{bad, object_in, shards_in, text_of};
use crate::registered::{REGISTRATION_OPERATIONS, Registered, if_still, revision_in};
use crate::store::MetadataError;

/// Attempts after others changed meanwhile what targets are checked against.
const MOST_ATTEMPTS: usize = 8;

/// The nodes that are to hold each shard. A shard without an entry may be anywhere.
pub type Targets = BTreeMap<ShardId, BTreeSet<NodeId>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTarget {
    nodes: Vec<String>,
}

/// The targets that are set. One that cannot be understood counts as none; `on_bad` is told of it.
///
/// # Errors
/// When the keys cannot be read.
pub async fn targets(
    keys: &dyn KeyValueStore,
    on_bad: impl FnMut(&MetadataError),
) -> Result<Targets, MetadataError> {
    Ok(targets_in(&keys.read(keys::TARGETS).await?, on_bad))
}

/// The targets of some shards. Others may be damaged.
///
/// # Errors
/// [`MetadataError::BadRecord`] if one cannot be understood. Else when the keys cannot be read.
pub async fn targets_of(
    keys: &dyn KeyValueStore,
    shards: ShardSet,
) -> Result<Targets, MetadataError> {
    let snapshot = keys.read(keys::TARGETS).await?;
    let is_meant = |pair: &&KeyValue| {
        let shard = keys::shard_of_target(&pair.key);
        shard.is_some_and(|shard| shards.contains(shard))
    };
    let meant = snapshot.pairs.iter().filter(is_meant);
    meant.map(target_in).collect()
}

/// The same of one reading.
pub(crate) fn targets_in(snapshot: &Snapshot, on_bad: impl FnMut(&MetadataError)) -> Targets {
    each(snapshot, target_in, on_bad)
}

/// Sets these targets, and removes those of the shards in `free`. Others stay.
///
/// # Errors
/// [`MetadataError::BadTarget`] if a node has not registered or is drained, or their number is not that of the replicas.
/// [`MetadataError::LevelTooLow`] while nodes may not know targets. [`MetadataError::Raced`] if that changes all the time. Else when the keys cannot be read or written. Some may be set
/// then, but for those that are refused from the beginning.
pub async fn set_targets(
    keys: &dyn KeyValueStore,
    targets: &Targets,
    free: ShardSet,
) -> Result<(), MetadataError> {
    set_all(keys, targets, |_, change| change, &Transaction::new()).await?;
    let free: Vec<ShardId> = free.iter().collect();
    for some in free.chunks(MAX_OPERATIONS) {
        let all = some.iter();
        let change = all.fold(Transaction::new(), |change, shard| {
            change.delete(keys::target(*shard))
        });
        match keys.commit(&change).await? {
            Outcome::Committed(_) => {}
            // It has no condition.
            Outcome::Conflict => return Err(MetadataError::Raced),
        }
    }
    Ok(())
}

/// Refuses targets that cannot be set now (TG1). Nothing is written.
///
/// # Errors
/// As [`set_targets`].
pub async fn check_targets(
    keys: &dyn KeyValueStore,
    targets: &Targets,
) -> Result<(), MetadataError> {
    require(keys, Feature::Moving).await?;
    let targets: Vec<Target> = targets.iter().collect();
    Checked::against(keys, &targets).await.map(drop)
}

/// Those of some targets that can be set now (TG1). Nothing is written.
///
/// # Errors
/// [`MetadataError::NoCluster`] if there is none. Else when the keys cannot be read or understood.
pub(crate) async fn settable(
    keys: &dyn KeyValueStore,
    mut targets: Targets,
) -> Result<Targets, MetadataError> {
    let all: Vec<Target> = targets.iter().collect();
    let problems = Checked::read(keys).await?.problems(&all)?;
    targets.retain(|shard, _| !problems.contains_key(shard));
    Ok(targets)
}

/// Sets these targets, if a condition holds, and their keys are as they were read. The condition may be one of a single key.
///
/// # Errors
/// As [`set_targets`]. [`MetadataError::Raced`] too if that is not so.
pub(crate) async fn set_targets_as_read(
    keys: &dyn KeyValueStore,
    targets: &Targets,
    condition: &Transaction,
    read: &Snapshot,
) -> Result<(), MetadataError> {
    set_all(
        keys,
        targets,
        |shard, change| {
            let key = keys::target(shard);
            if_still(change, &key, revision_in(read, &key))
        },
        condition,
    )
    .await
}

/// Sets these targets. `if_as_read` demands of the target of a shard what it must be until then.
async fn set_all(
    keys: &dyn KeyValueStore,
    targets: &Targets,
    if_as_read: impl Fn(ShardId, Transaction) -> Transaction,
    condition: &Transaction,
) -> Result<(), MetadataError> {
    require(keys, Feature::Moving).await?;
    let targets: Vec<Target> = targets.iter().collect();
    Checked::against(keys, &targets).await?;
    for some in parts(&targets) {
        let shards = some.iter().map(|(shard, _)| **shard);
        let conditions = shards.fold(condition.clone(), |change, shard| if_as_read(shard, change));
        set(keys, some, &conditions).await?;
    }
    Ok(())
}

/// Whether the nodes of a target hold a shard, no other does, and none is on its way.
pub fn is_placed<'a>(
    record: &ShardRecord,
    target: &BTreeSet<NodeId>,
    node_of: impl Fn(StoreId) -> Option<&'a NodeId>,
) -> bool {
    let holders = record.in_sync.iter().map(|entry| node_of(entry.store));
    let holders: BTreeSet<Option<&NodeId>> = holders.collect();
    record.learners.is_empty() && holders == target.iter().map(Some).collect()
}

/// Conditions of a change of targets, beside those about nodes and shards.
const CONDITIONS: usize = REGISTRATION_OPERATIONS + 1;

/// Conditions about each shard: its record, and its target.
const CONDITIONS_OF_A_SHARD: usize = 2;

type Target<'a> = (&'a ShardId, &'a BTreeSet<NodeId>);

/// Parts that fit into a transaction each, with what they are checked against.
fn parts<'a>(mut targets: &'a [Target<'a>]) -> Vec<&'a [Target<'a>]> {
    let mut parts = Vec::new();
    while !targets.is_empty() {
        let mut nodes = BTreeSet::new();
        let fits = |&(place, (_, named)): &(usize, &Target<'a>)| {
            nodes.extend(named.iter());
            let of_shards = CONDITIONS_OF_A_SHARD * (place + 1);
            place == 0 || CONDITIONS + of_shards + nodes.len() <= MAX_OPERATIONS
        };
        let count = targets.iter().enumerate().take_while(fits).count();
        let (part, rest) = targets.split_at(count);
        parts.push(part);
        targets = rest;
    }
    parts
}

/// Sets targets together. What they are checked against must be the same then (TG1).
async fn set(
    keys: &dyn KeyValueStore,
    targets: &[Target<'_>],
    conditions: &Transaction,
) -> Result<(), MetadataError> {
    for _ in 0..MOST_ATTEMPTS {
        let checked = Checked::against(keys, targets).await?;
        let mut change = checked.if_still(targets, conditions.clone());
        for (shard, nodes) in targets {
            let key = keys::target(**shard);
            let nodes = nodes.iter().map(ToString::to_string).collect();
            let text = text_of(&key, &RawTarget { nodes })?;
            change = change.put(key, text);
        }
        // A node that is about to be taken out stays, as this is a change of registrations.
        let mark = Uuid::new_v4().to_string();
        change = change.put(keys::REGISTRATIONS, &*mark);
        if commit(keys, &change, keys::REGISTRATIONS, &mark)
            .await?
            .is_some()
        {
            return Ok(());
        }
    }
    Err(MetadataError::Raced)
}

/// What targets were checked against, as it was read.
struct Checked {
    registered: Registered,
    settings: Snapshot,
    shards: Snapshot,
}

impl Checked {
    /// Reads what targets are checked against, and checks these.
    async fn against(
        keys: &dyn KeyValueStore,
        targets: &[Target<'_>],
    ) -> Result<Self, MetadataError> {
        let read = Self::read(keys).await?;
        match read.problems(targets)?.pop_first() {
            Some((shard, reason)) => Err(MetadataError::BadTarget { shard, reason }),
            None => Ok(read),
        }
    }

    async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        let read = Self {
            // First, as what it reads is compared by one revision.
            registered: Registered::read(keys).await?,
            settings: keys.read(keys::NODES).await?,
            shards: keys.read(keys::SHARDS).await?,
        };
        match read.registered.cluster {
            Some(_) => Ok(read),
            None => Err(MetadataError::NoCluster),
        }
    }

    /// Why some of these targets cannot be set (TG1).
    fn problems(&self, targets: &[Target<'_>]) -> Result<BTreeMap<ShardId, String>, MetadataError> {
        // A damaged record of another shard is in the way of none.
        let mut records = ShardRecords::new();
        for (shard, record) in shards_in(&self.shards) {
            if targets.iter().any(|(meant, _)| **meant == shard) {
                records.insert(shard, record?);
            }
        }
        let stores = self.registered.stores.iter();
        let known: BTreeSet<&NodeId> = stores.map(|store| &store.node).collect();
        let problem = |shard: ShardId, nodes: &BTreeSet<NodeId>| {
            if let Some(unknown) = nodes.iter().find(|node| !known.contains(node)) {
                return Some(format!("no node {unknown} has registered"));
            }
            if let Some(problem) = nodes.iter().find_map(|node| self.keeps_shards_off(node)) {
                return Some(problem);
            }
            let (want, count) = (usize::from(records[&shard].want), nodes.len());
            let are = if count == 1 { "is" } else { "are" };
            (count != want).then(|| {
                format!(
                    "it is to have {}, and {} {are} named",
                    counted(want, "replica"),
                    counted(count, "node")
                )
            })
        };
        let problems = targets.iter();
        let problems =
            problems.filter_map(|&(&shard, nodes)| Some((shard, problem(shard, nodes)?)));
        Ok(problems.collect())
    }

    /// Why a node may take no shards, by what is set for it.
    fn keeps_shards_off(&self, node: &NodeId) -> Option<String> {
        let key = keys::node(node);
        let set = self.settings.pairs.iter().find(|pair| pair.key == key)?;
        match settings_in(set) {
            Ok((_, settings)) => settings
                .is_drained
                .then(|| format!("node {node} is drained")),
            Err(error) => Some(format!(
                "whether node {node} is drained is not known: {error}"
            )),
        }
    }

    /// Demands that what these targets were checked against has not changed.
    fn if_still(&self, targets: &[Target<'_>], conditions: Transaction) -> Transaction {
        let mut change = self.registered.if_unchanged(conditions);
        let nodes = targets.iter().flat_map(|(_, nodes)| nodes.iter());
        for node in BTreeSet::from_iter(nodes) {
            let key = keys::node(node);
            change = if_still(change, &key, revision_in(&self.settings, &key));
        }
        for (shard, _) in targets {
            let key = keys::shard(**shard);
            change = if_still(change, &key, revision_in(&self.shards, &key));
        }
        change
    }
}

/// Follows the targets, and tells of each change, as long as it is polled. One that cannot be understood counts as none.
/// `on_bad` is told of it.
pub async fn follow_targets(
    keys: Arc<dyn KeyValueStore>,
    told: &watch::Sender<Option<Arc<Targets>>>,
    on_bad: impl Fn(&MetadataError),
) {
    follow_each(keys, keys::TARGETS, told, target_in, on_bad).await;
}

fn target_in(pair: &KeyValue) -> Result<(ShardId, BTreeSet<NodeId>), MetadataError> {
    let bad = |reason: String| bad(&pair.key, reason);
    let shard = keys::shard_of_target(&pair.key);
    let shard = shard.ok_or_else(|| bad("it names no shard".to_owned()))?;
    let raw: RawTarget = object_in(&pair.key, &pair.value)?;
    let nodes = raw.nodes.iter();
    let nodes = nodes.map(|name| NodeId::new(name).map_err(|error| bad(error.to_string())));
    let nodes = nodes.collect::<Result<BTreeSet<_>, _>>()?;
    if nodes.is_empty() {
        return Err(bad("it names no node".to_owned()));
    }
    Ok((shard, nodes))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::disturbed::{Before, Disturbed};
    use crate::membership::register;
    use crate::node_settings::{NodeSettings, change_node_settings};
    use crate::registered::unregister;
    use crate::steps::tests::{cluster, registered};

    fn nodes(names: &[&str]) -> BTreeSet<NodeId> {
        let names = names.iter();
        names.map(|name| NodeId::new(name).unwrap()).collect()
    }

    #[tokio::test]
    async fn targets_stay_until_they_are_replaced_or_removed() {
        let keys = cluster().await;
        let all = nodes(&["n1", "n2", "n3"]);
        let set: Targets = ShardId::all().map(|shard| (shard, all.clone())).collect();
        set_targets(&keys, &set, ShardSet::EMPTY).await.unwrap();
        assert_eq!(targets(&keys, |_| {}).await.unwrap(), set);
        let free = ShardId::all().filter(|shard| shard.0 != 7).collect();
        set_targets(&keys, &Targets::new(), free).await.unwrap();
        let left = targets(&keys, |_| {}).await.unwrap();
        assert_eq!(left, Targets::from([(ShardId(7), all)]));
    }

    /// TG1.
    #[tokio::test]
    async fn targets_that_cannot_be_met_are_refused() {
        let keys = cluster().await;
        let drain = |settings: &mut NodeSettings| settings.is_drained = true;
        let node = NodeId::new("n3").unwrap();
        change_node_settings(&keys, &node, drain).await.unwrap();
        for (names, reason) in [
            (&["n1", "n2", "n9"][..], "no node n9 has registered"),
            (&["n1", "n2", "n3"], "node n3 is drained"),
            (&["n1"], "it is to have 3 replicas, and 1 node is named"),
        ] {
            let set = Targets::from([(ShardId(7), nodes(names))]);
            let refused = set_targets(&keys, &set, ShardSet::EMPTY).await.unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!("shard 07 cannot be there: {reason}")
            );
            assert!(targets(&keys, |_| {}).await.unwrap().is_empty());
        }
    }

    /// TG1.
    #[tokio::test]
    async fn targets_are_checked_as_they_are_set() {
        let shard = ShardId(7);
        let spare = registered(StoreId([4; 16]));
        let record = cluster().await.read("shards/07").await.unwrap().pairs;
        let fewer = record[0].value.replace(r#""want":3"#, r#""want":2"#);
        for (others_do, reason) in [
            (
                Transaction::new()
                    .put(keys::REGISTRATIONS, "others")
                    .delete(keys::store(spare.id)),
                "no node n4 has registered",
            ),
            (
                Transaction::new().put("nodes/n4", r#"{"drained":true}"#),
                "node n4 is drained",
            ),
            (
                Transaction::new().put("nodes/n4", r#"{"drained":7}"#),
                "if no node has that name, delete the key",
            ),
            (
                Transaction::new().put("shards/07", fewer),
                "it is to have 2 replicas, and 3 nodes are named",
            ),
        ] {
            let keys = cluster().await;
            register(&keys, &spare).await.unwrap();
            let keys = Disturbed::commits(keys, [Before::Change(others_do)]);
            let set = Targets::from([(shard, nodes(&["n1", "n2", "n4"]))]);
            let refused = set_targets(&keys, &set, ShardSet::EMPTY).await.unwrap_err();
            assert!(refused.to_string().ends_with(reason), "{refused}");
            assert!(targets(&keys, |_| {}).await.unwrap().is_empty());
        }
        // What is no hindrance is met in the second attempt.
        let keys = cluster().await;
        let settings = Transaction::new().put("nodes/n3", r#"{"capacity":2}"#);
        let keys = Disturbed::commits(keys, [Before::Change(settings)]);
        let set = Targets::from([(shard, nodes(&["n1", "n2", "n3"]))]);
        set_targets(&keys, &set, ShardSet::EMPTY).await.unwrap();
        assert_eq!(keys.committed(), (2, 1));
        assert_eq!(targets(&keys, |_| {}).await.unwrap(), set);
    }

    /// TG1: of two that happen at once, one sees the other.
    #[tokio::test]
    async fn a_node_is_not_taken_out_while_a_target_is_set() {
        let (keys, spare) = (cluster().await, registered(StoreId([4; 16])));
        register(&keys, &spare).await.unwrap();
        let set = Targets::from([(ShardId(7), nodes(&["n1", "n2", "n4"]))]);
        // What is set between the readings of one who takes the node out and its commit.
        let other = Registered::read(&keys).await.unwrap();
        set_targets(&keys, &set, ShardSet::EMPTY).await.unwrap();
        let out = other.if_unchanged(Transaction::new());
        let out = out.delete(keys::store(spare.id));
        assert_eq!(keys.commit(&out).await.unwrap(), Outcome::Conflict);
        let refused = unregister(&keys, &spare.node, None).await;
        assert!(matches!(refused, Err(MetadataError::StillHolds { .. })));
    }

    /// TG2.
    #[tokio::test]
    async fn a_target_that_is_damaged_is_left_out() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(cluster().await);
        let all = nodes(&["n1", "n2", "n3"]);
        let set = Targets::from([(ShardId(7), all)]);
        set_targets(&*keys, &set, ShardSet::EMPTY).await.unwrap();
        let damaged = [
            ("targets/08", "{"),
            ("targets/09", r#"{"nodes":[]}"#),
            ("targets/zz", r#"{"nodes":["n1"]}"#),
        ];
        for (key, value) in damaged {
            let change = Transaction::new().put(key, value);
            let outcome = keys.commit(&change).await.unwrap();
            assert!(matches!(outcome, Outcome::Committed(_)));
        }
        let bad = AtomicUsize::new(0);
        let count = |_: &MetadataError| {
            bad.fetch_add(1, Ordering::Relaxed);
        };
        assert_eq!(targets(&*keys, count).await.unwrap(), set);
        assert_eq!(bad.into_inner(), 3);
        let of = |shard| targets_of(&*keys, [ShardId(shard)].into_iter().collect());
        assert_eq!(of(7).await.unwrap(), set);
        let refused = of(8).await.unwrap_err().to_string();
        assert!(refused.contains("targets/08"), "{refused}");
        let told = watch::Sender::default();
        let mut heard = told.subscribe();
        tokio::select! {
            () = follow_targets(keys, &told, |_| {}) => unreachable!("it does not end"),
            changed = heard.changed() => changed.unwrap(),
        }
        assert_eq!(heard.borrow().as_deref(), Some(&set));
    }
}
