//! The feature level of a cluster: which versions may run in it, and what these may do.
//!
//! It is the schema of the cluster's record. A version knows some levels, and starts in clusters of these alone. It begins
//! to do what an earlier one does not understand once the level permits that. So versions run beside each other, and a
//! process goes back to the earlier one, until an operator raises the level.
//!
//! # Invariants
//! - UP2: no process starts in a cluster whose level it does not know. The error says what to install
//!   (`a_level_that_is_not_known_is_refused_by_its_number`).
//! - UP3: what needs a level is refused below it (`what_needs_a_level_is_refused_below_it`).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::key_value::{KeyValue, KeyValueStore, Snapshot};
use crate::keys;
use crate::records::object_in;
use crate::store::MetadataError;

/// The oldest level that this version knows.
pub(crate) const OLDEST_LEVEL: u32 = 1;

/// The newest one. What came with it is a [`Feature`].
pub(crate) const NEWEST_LEVEL: u32 = 2;

/// This version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The value of the key of the cluster.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RawCluster {
    /// The level.
    pub(crate) schema: u32,
    id: String,
    /// The version that gave it a level other than the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl RawCluster {
    /// That of a new cluster.
    pub(crate) fn new(level: u32) -> Self {
        let first = Self {
            schema: OLDEST_LEVEL,
            id: Uuid::new_v4().to_string(),
            version: None,
        };
        if level == OLDEST_LEVEL {
            first
        } else {
            first.raised(level)
        }
    }

    /// The same at another level.
    pub(crate) fn raised(self, level: u32) -> Self {
        Self {
            schema: level,
            version: Some(VERSION.to_owned()),
            ..self
        }
    }

    /// The record with this text. Refuses one of a level that this version does not know (UP2).
    pub(crate) fn of_text(text: &str) -> Result<Self, MetadataError> {
        let raw: Self = object_in(keys::CLUSTER, text)?;
        if (OLDEST_LEVEL..=NEWEST_LEVEL).contains(&raw.schema) {
            return Ok(raw);
        }
        let version = raw.version.as_deref();
        Err(MetadataError::UnknownLevel {
            level: raw.schema,
            install: install(raw.schema, version),
        })
    }
}

/// What to do about a cluster of a level that this version does not know.
fn install(level: u32, version: Option<&str>) -> String {
    match version {
        _ if level < OLDEST_LEVEL => {
            "run an earlier Simshard everywhere, and raise the level with that first".to_owned()
        }
        Some(version) => format!("install Simshard {version}, or a later one"),
        None => "install a later Simshard".to_owned(),
    }
}

/// The record of the cluster, as it is among these keys.
pub(crate) fn cluster_pair(snapshot: &Snapshot) -> Option<&KeyValue> {
    snapshot.pairs.iter().find(|pair| pair.key == keys::CLUSTER)
}

/// The level of the cluster.
///
/// # Errors
/// [`MetadataError::NoCluster`] if there is none, [`MetadataError::UnknownLevel`] if this version does not know it. Else
/// when the keys cannot be read.
pub(crate) async fn cluster_level(keys: &dyn KeyValueStore) -> Result<u32, MetadataError> {
    let snapshot = keys.read(keys::CLUSTER).await?;
    let pair = cluster_pair(&snapshot).ok_or(MetadataError::NoCluster)?;
    Ok(RawCluster::of_text(&pair.value)?.schema)
}

/// What nodes do in a cluster of a high enough level only, as nodes of an earlier version do not understand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// To move shards to where an operator wants them, and to know what is set for nodes.
    Moving,
    /// To begin no moves while an operator has paused them.
    Pausing,
    /// To answer no searches of a shard while it is being rebuilt.
    Rebuilding,
    /// To take no changes below the floor of a shard, and to drop settled tombstones.
    Floors,
    /// To let a replica answer searches in the place of one that has more to search.
    SharedSearches,
}

impl Feature {
    /// The level from which on nodes know it.
    const fn level(self) -> u32 {
        match self {
            Self::Moving
            | Self::Pausing
            | Self::Rebuilding
            | Self::Floors
            | Self::SharedSearches => 2,
        }
    }

    /// What is refused below that level.
    const fn what(self) -> &'static str {
        match self {
            Self::Moving => "to say where shards are to be",
            Self::Pausing => "`simshard cluster rebalance pause`",
            Self::Rebuilding => "`simshard cluster force --rebuild`",
            Self::SharedSearches => "to share searches among replicas",
            Self::Floors => "to drop tombstones by `simshard cluster scrub`",
        }
    }
}

/// Refuses a feature in a cluster whose nodes may not know it (UP3).
///
/// # Errors
/// [`MetadataError::LevelTooLow`] then. Else as those of [`cluster_level`].
pub async fn require(keys: &dyn KeyValueStore, feature: Feature) -> Result<(), MetadataError> {
    let (level, needed) = (cluster_level(keys).await?, feature.level());
    if level >= needed {
        return Ok(());
    }
    Err(MetadataError::LevelTooLow {
        what: feature.what().to_owned(),
        needed,
        level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::{MemoryKeyValues, Outcome, Transaction};

    async fn cluster(text: &str) -> MemoryKeyValues {
        let keys = MemoryKeyValues::new();
        let put = Transaction::new().put(keys::CLUSTER, text);
        assert!(matches!(
            keys.commit(&put).await.unwrap(),
            Outcome::Committed(_)
        ));
        keys
    }

    /// UP2.
    #[tokio::test]
    async fn a_level_that_is_not_known_is_refused_by_its_number() {
        let earlier = cluster(r#"{"schema":1,"id":"x"}"#).await;
        assert_eq!(cluster_level(&earlier).await.unwrap(), 1);
        // A later version may know more of a cluster.
        let with_more = cluster(r#"{"schema":2,"id":"x","more":7}"#).await;
        assert_eq!(cluster_level(&with_more).await.unwrap(), 2);
        for (text, told) in [
            (
                r#"{"schema":3,"id":"x","version":"9.1.0"}"#,
                "level 3, and this version (0.1.0) knows levels 1 to 2: install Simshard 9.1.0",
            ),
            (
                r#"{"schema":3,"id":"x"}"#,
                "level 3, and this version (0.1.0) knows levels 1 to 2: install a later Simshard",
            ),
            (r#"{"schema":0,"id":"x"}"#, "run an earlier Simshard"),
        ] {
            let refused = cluster_level(&cluster(text).await).await;
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains(&told.replace("0.1.0", VERSION)),
                "{refused}"
            );
        }
    }

    /// UP3.
    #[tokio::test]
    async fn what_needs_a_level_is_refused_below_it() {
        let keys = cluster(r#"{"schema":1,"id":"x"}"#).await;
        let refused = require(&keys, Feature::Pausing).await.unwrap_err();
        let told = "`simshard cluster rebalance pause` needs level 2, and the cluster is at level 1: run `simshard cluster \
                    upgrade status`, then `simshard cluster upgrade finalize`";
        assert_eq!(refused.to_string(), told);
        let keys = cluster(r#"{"schema":2,"id":"x"}"#).await;
        require(&keys, Feature::Pausing).await.unwrap();
    }

    #[test]
    fn the_first_level_is_written_as_the_earlier_version_does() {
        let text = serde_json::to_string(&RawCluster::new(1)).unwrap();
        assert!(
            text.starts_with(r#"{"schema":1,"id":""#) && !text.contains("version"),
            "{text}"
        );
    }
}
