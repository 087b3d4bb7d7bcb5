//! Which nodes are to hold which shards, where an operator has chosen some. It is a wish: the nodes move the shards step
//! by step, each doing its part, and another wish ends a move. No process drives it.
//!
//! # Invariants
//! - TG1: when it is set, a target names as many nodes as the shard is to have replicas. Each has registered, and is not
//!   drained (`targets_that_cannot_be_met_are_refused`).
//! - TG2: a target that cannot be understood keeps nodes and operators from nothing else
//!   (`a_target_that_is_damaged_is_left_out`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::sync::watch;

use crate::followed_each::{each, follow_each};
use crate::key_value::{KeyValue, KeyValueStore, MAX_OPERATIONS, Outcome, Transaction};
use crate::keys;
use crate::membership::shard_records;
use crate::node_settings::node_settings;
use crate::records::{bad, text_of};
use crate::registered::registered_stores;
use crate::store::MetadataError;

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
    on_bad: impl Fn(&MetadataError),
) -> Result<Targets, MetadataError> {
    Ok(each(&keys.read(keys::TARGETS).await?, target_in, on_bad))
}

/// Sets these targets, and removes those of the shards in `free`. Others stay.
///
/// # Errors
/// [`MetadataError::BadTarget`] if a node has not registered, or their number is not that of the replicas. Else when the
/// keys cannot be read or written; some may be set then.
pub async fn set_targets(
    keys: &dyn KeyValueStore,
    targets: &Targets,
    free: ShardSet,
) -> Result<(), MetadataError> {
    check(keys, targets).await?;
    let set = targets.iter().map(|(shard, nodes)| {
        let key = keys::target(*shard);
        let nodes = nodes.iter().map(ToString::to_string).collect();
        let text = text_of(&key, &RawTarget { nodes })?;
        Ok((key, Some(text)))
    });
    let freed = free.iter().map(|shard| Ok((keys::target(shard), None)));
    let changes: Vec<(String, Option<String>)> =
        set.chain(freed).collect::<Result<_, MetadataError>>()?;
    for some in changes.chunks(MAX_OPERATIONS) {
        let mut change = Transaction::new();
        for (key, text) in some {
            change = match text {
                Some(text) => change.put(&**key, &**text),
                None => change.delete(&**key),
            };
        }
        match keys.commit(&change).await? {
            Outcome::Committed(_) => {}
            // It has no condition.
            Outcome::Conflict => return Err(MetadataError::Raced),
        }
    }
    Ok(())
}

/// TG1.
async fn check(keys: &dyn KeyValueStore, targets: &Targets) -> Result<(), MetadataError> {
    let records = shard_records(keys).await?;
    let stores = registered_stores(keys).await?;
    let known: BTreeSet<&NodeId> = stores.iter().map(|store| &store.node).collect();
    let settings = node_settings(keys, |_| {}).await?;
    let is_drained = |node: &&NodeId| settings.get(node).is_some_and(|node| node.is_drained);
    for (&shard, nodes) in targets {
        let refuse = |reason| Err(MetadataError::BadTarget { shard, reason });
        if let Some(unknown) = nodes.iter().find(|node| !known.contains(node)) {
            return refuse(format!("no node {unknown} has registered"));
        }
        if let Some(drained) = nodes.iter().find(is_drained) {
            return refuse(format!("node {drained} is drained"));
        }
        let want = usize::from(records[&shard].want);
        if nodes.len() != want {
            let count = nodes.len();
            return refuse(format!(
                "it is to have {want} replicas, and {count} nodes are named"
            ));
        }
    }
    Ok(())
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
    let raw: RawTarget =
        serde_json::from_str(&pair.value).map_err(|error| bad(error.to_string()))?;
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
    use crate::node_settings::{NodeSettings, change_node_settings};
    use crate::steps::tests::cluster;

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
            (&["n1"], "it is to have 3 replicas, and 1 nodes are named"),
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
        let told = watch::Sender::default();
        let mut heard = told.subscribe();
        tokio::select! {
            () = follow_targets(keys, &told, |_| {}) => unreachable!("it does not end"),
            changed = heard.changed() => changed.unwrap(),
        }
        assert_eq!(heard.borrow().as_deref(), Some(&set));
    }
}
