//! What operators set for nodes, beside what each registers of itself.
//!
//! # Invariants
//! - NS1: settings that cannot be understood keep nodes from nothing (`settings_that_are_damaged_are_left_out`): shards that
//!   lack replicas are worse than a drained node that takes some. Others replace them only once an operator has them
//!   forgotten, and operators choose no nodes for shards meanwhile.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use simshard_topology::NodeId;
use tokio::sync::watch;

use crate::followed_each::{each, follow_each};
use crate::key_value::{KeyValue, KeyValueStore, Outcome, Revision, Snapshot, Transaction};
use crate::keys;
use crate::levels::{Feature, require};
use crate::records::{bad, object_in, text_of};
use crate::registered::{if_still, registered_stores};
use crate::store::MetadataError;

/// What is set for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSettings {
    /// Whether it is to take no shards: an operator has emptied it, or is about to.
    #[serde(
        default,
        rename = "drained",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_drained: bool,
    /// What it shares with nodes that fail together with it, such as a rack: replicas of a shard go to different ones
    /// where there are enough. It is named like a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its share of the documents, in proportion to the shares of other nodes. One without has 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<NonZeroU32>,
    /// How many megabytes (10^6 bytes) of copies of shards it may receive in a second, and how many it may send. One
    /// without gives way to requests, and else copies as fast as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_rate: Option<NonZeroU32>,
}

impl NodeSettings {
    /// What a plan depends on: the zone and the capacity.
    #[must_use]
    pub fn for_plans(&self) -> Self {
        Self {
            zone: self.zone.clone(),
            capacity: self.capacity,
            ..Self::default()
        }
    }
}

/// What is set for each node. One without an entry has the default.
pub type SettingsOfNodes = BTreeMap<NodeId, NodeSettings>;

/// What is set for all nodes. Settings that cannot be understood count as none; `on_bad` is told of them.
///
/// # Errors
/// When the keys cannot be read.
pub async fn node_settings(
    keys: &dyn KeyValueStore,
    on_bad: impl FnMut(&MetadataError),
) -> Result<SettingsOfNodes, MetadataError> {
    Ok(each(&keys.read(keys::NODES).await?, settings_in, on_bad))
}

/// Refuses settings that cannot be understood: a plan must know which nodes are drained.
///
/// # Errors
/// [`MetadataError::BadRecord`] if there are some. Else when the keys cannot be read.
pub async fn check_node_settings(keys: &dyn KeyValueStore) -> Result<(), MetadataError> {
    let snapshot = keys.read(keys::NODES).await?;
    let mut pairs = snapshot.pairs.iter();
    pairs.try_for_each(|pair| settings_in(pair).map(drop))
}

/// Changes what is set for a node. Answers the revision of the change.
///
/// # Errors
/// [`MetadataError::NotRegistered`] if there is no such node. [`MetadataError::BadRecord`] if its settings cannot be
/// understood. [`MetadataError::LevelTooLow`] while nodes may not know settings. Else when the keys cannot be read or written.
pub async fn change_node_settings(
    keys: &dyn KeyValueStore,
    node: &NodeId,
    change: impl Fn(&mut NodeSettings),
) -> Result<Revision, MetadataError> {
    require(keys, Feature::Moving).await?;
    let stores = registered_stores(keys).await?;
    if !stores.iter().any(|store| store.node == *node) {
        let missing = node.to_string();
        return Err(MetadataError::NotRegistered { missing });
    }
    let key = keys::node(node);
    loop {
        let found = keys.read(&key).await?;
        // Without an answer it may or may not be done: the operator repeats it.
        let changed = change_found(keys, &key, pair_of(&found, &key), &change);
        if let Outcome::Committed(revision) = changed.await? {
            return Ok(revision);
        }
    }
}

/// Changes what is set for a node, unless others have changed it since a revision. Answers whether that was so.
///
/// # Errors
/// As [`change_node_settings`].
pub async fn change_node_settings_since(
    keys: &dyn KeyValueStore,
    node: &NodeId,
    since: Revision,
    change: impl Fn(&mut NodeSettings),
) -> Result<bool, MetadataError> {
    let key = keys::node(node);
    let found = keys.read(&key).await?;
    match pair_of(&found, &key) {
        Some(pair) if pair.revision == since => {
            let changed = change_found(keys, &key, Some(pair), change).await?;
            Ok(matches!(changed, Outcome::Committed(_)))
        }
        Some(_) | None => Ok(false),
    }
}

/// Changes settings that were found, if they are still so.
async fn change_found(
    keys: &dyn KeyValueStore,
    key: &str,
    found: Option<&KeyValue>,
    change: impl Fn(&mut NodeSettings),
) -> Result<Outcome, MetadataError> {
    let before = found.map(settings_in).transpose()?;
    let mut settings = before.map(|(_, settings)| settings).unwrap_or_default();
    change(&mut settings);
    let write = if_still(Transaction::new(), key, found.map(|pair| pair.revision));
    let write = if settings == NodeSettings::default() {
        write.delete(key)
    } else {
        write.put(key, text_of(key, &settings)?)
    };
    Ok(keys.commit(&write).await?)
}

/// Forgets what is set for a node, if that cannot be understood. Answers whether that was so.
///
/// # Errors
/// [`MetadataError::Raced`] if it changes meanwhile. Else as [`change_node_settings`], but for damage: a later version may
/// have written what this one cannot understand.
pub async fn forget_bad_settings(
    keys: &dyn KeyValueStore,
    node: &NodeId,
) -> Result<bool, MetadataError> {
    require(keys, Feature::Moving).await?;
    let key = keys::node(node);
    let found = keys.read(&key).await?;
    let bad = pair_of(&found, &key).filter(|pair| settings_in(pair).is_err());
    let Some(pair) = bad else {
        return Ok(false);
    };
    let forget = Transaction::new()
        .if_unchanged(&*key, pair.revision)
        .delete(&*key);
    match keys.commit(&forget).await? {
        Outcome::Committed(_) => Ok(true),
        Outcome::Conflict => Err(MetadataError::Raced),
    }
}

/// Follows what is set for nodes, and tells of each change, as long as it is polled. `on_bad` is told of settings that
/// cannot be understood.
pub async fn follow_node_settings(
    keys: Arc<dyn KeyValueStore>,
    told: &watch::Sender<Option<Arc<SettingsOfNodes>>>,
    on_bad: impl Fn(&MetadataError),
) {
    follow_each(keys, keys::NODES, told, settings_in, on_bad).await;
}

/// The pair of a key, among those that have it as a prefix.
fn pair_of<'a>(snapshot: &'a Snapshot, key: &str) -> Option<&'a KeyValue> {
    snapshot.pairs.iter().find(|pair| pair.key == key)
}

pub(crate) fn settings_in(pair: &KeyValue) -> Result<(NodeId, NodeSettings), MetadataError> {
    let bad = |reason: String| bad(&pair.key, reason);
    let name = pair.key.strip_prefix(keys::NODES).unwrap_or_default();
    let node = NodeId::new(name).map_err(|error| bad(error.to_string()))?;
    let settings: NodeSettings = object_in(&pair.key, &pair.value)?;
    if let Some(zone) = &settings.zone {
        NodeId::new(zone).map_err(|error| bad(format!("zone: {error}")))?;
    }
    Ok((node, settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::tests::cluster;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn drain(settings: &mut NodeSettings) {
        settings.is_drained = true;
    }

    #[tokio::test]
    async fn settings_stay_until_they_are_changed() {
        let keys = cluster().await;
        change_node_settings(&keys, &node("n1"), drain)
            .await
            .unwrap();
        let of_all = || node_settings(&keys, |_| unreachable!("all can be understood"));
        let drained = NodeSettings {
            is_drained: true,
            ..NodeSettings::default()
        };
        let expected = SettingsOfNodes::from([(node("n1"), drained)]);
        assert_eq!(of_all().await.unwrap(), expected);
        let back = |settings: &mut NodeSettings| settings.is_drained = false;
        change_node_settings(&keys, &node("n1"), back)
            .await
            .unwrap();
        assert!(of_all().await.unwrap().is_empty());
        let unknown = change_node_settings(&keys, &node("n9"), drain).await;
        assert!(
            matches!(unknown, Err(MetadataError::NotRegistered { missing }) if missing == "n9")
        );
    }

    /// NS1. Another version may have written them.
    #[tokio::test]
    async fn settings_that_are_damaged_are_left_out() {
        let keys = cluster().await;
        change_node_settings(&keys, &node("n2"), drain)
            .await
            .unwrap();
        for value in [
            r#"{"zone":7}"#,
            r#"{"zone":"r 1"}"#,
            r#"{"capacity":0}"#,
            "[]",
            "[true]",
            "{",
        ] {
            let damage = Transaction::new().put("nodes/n1", value);
            let damaged = keys.commit(&damage).await.unwrap();
            assert!(matches!(damaged, Outcome::Committed(_)));
            let all = node_settings(&keys, |_| {}).await.unwrap();
            assert_eq!(Vec::from_iter(all.into_keys()), [node("n2")]);
            let checked = check_node_settings(&keys).await;
            assert!(checked.unwrap_err().to_string().contains("nodes/n1"));
            let refused = change_node_settings(&keys, &node("n1"), drain).await;
            assert!(refused.unwrap_err().to_string().contains("nodes/n1"));
            assert!(forget_bad_settings(&keys, &node("n1")).await.unwrap());
            check_node_settings(&keys).await.unwrap();
        }
        // Others stay.
        assert!(!forget_bad_settings(&keys, &node("n2")).await.unwrap());
        assert_eq!(node_settings(&keys, |_| {}).await.unwrap().len(), 1);
    }

    /// A later version may have written what this one cannot understand.
    #[tokio::test]
    async fn settings_of_a_later_level_are_not_forgotten() {
        let keys = cluster().await;
        let later = Transaction::new()
            .put("nodes/n1", r#"{"shelf":7}"#)
            .put("cluster", r#"{"schema":99,"id":"x"}"#);
        let written = keys.commit(&later).await.unwrap();
        assert!(matches!(written, Outcome::Committed(_)));
        let refused = forget_bad_settings(&keys, &node("n1")).await;
        assert!(matches!(refused, Err(MetadataError::UnknownLevel { .. })));
        assert_eq!(keys.read("nodes/").await.unwrap().pairs.len(), 1);
    }
}
