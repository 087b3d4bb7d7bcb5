//! The records of stores and shards as their JSON texts say them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use simshard_topology::replication::{Epoch, InSync, Learner, ShardRecord, StoreId};
use simshard_topology::{CorpusUid, NodeId, ShardId, ShardSet, Version};
use uuid::Uuid;

use crate::corpus::CorpusRecord;
use crate::key_value::Snapshot;
use crate::keys;
use crate::raw_corpus::RawCorpus;
use crate::store::MetadataError;

/// A store, the data directory of a node, and where it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredStore {
    /// Its identity.
    pub id: StoreId,
    /// The name of its node.
    pub node: NodeId,
    /// The node's gRPC address, `http://host:port`.
    pub address: String,
    /// The generation after that of the records of shards that it has installed; 0 if it has none.
    pub next_generation: u32,
    /// The corpora that it held when it registered.
    pub corpora: BTreeSet<CorpusUid>,
    /// The shards that it held in sync when it registered, by the epochs of their records.
    pub in_sync: BTreeMap<Epoch, ShardSet>,
    /// The other stores that these records name in sync, and the shards of each.
    pub partners: BTreeMap<StoreId, ShardSet>,
    /// Whether its node lost the store that it had before, and shards have lacked replicas ever since.
    pub is_replacement: bool,
}

impl RegisteredStore {
    /// One that has no records of shards, and holds no corpora.
    #[must_use]
    pub const fn new(id: StoreId, node: NodeId, address: String) -> Self {
        Self {
            id,
            node,
            address,
            next_generation: 0,
            corpora: BTreeSet::new(),
            in_sync: BTreeMap::new(),
            partners: BTreeMap::new(),
            is_replacement: false,
        }
    }
}

/// Most stores that a shard may have.
const MOST_STORES: usize = 64;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStore {
    node: String,
    address: String,
    #[serde(default, skip_serializing_if = "is_first")]
    next_generation: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    corpora: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    in_sync: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    partners: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replacement: bool,
}

/// Whether it is the generation that earlier versions have.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_first(generation: &u32) -> bool {
    *generation == 0
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawShard {
    epoch: String,
    /// A number of 64 bits, in hexadecimal digits: not all readers of JSON have such numbers.
    nonce: String,
    in_sync: Vec<RawInSync>,
    learners: Vec<RawLearner>,
    previous: Vec<String>,
    want: u8,
    hot: u8,
    min_in_sync: u8,
    /// Earlier versions have none, and know none: the level of the cluster permits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<RawFloor>,
}

/// Versions as nonces are.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFloor {
    version: String,
    frozen: bool,
    settled: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInSync {
    store: String,
    since: String,
    hot: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLearner {
    store: String,
    added: String,
}

/// The text of a record.
pub(crate) fn text_of(key: &str, record: &impl Serialize) -> Result<String, MetadataError> {
    serde_json::to_string(record).map_err(|error| bad(key, error.to_string()))
}

/// The text of the record of a corpus.
pub(crate) fn corpus_text(record: &CorpusRecord) -> Result<String, MetadataError> {
    text_of(&keys::corpus(&record.name), &RawCorpus::from(record))
}

/// The text of a store's record.
pub(crate) fn store_text(key: &str, store: &RegisteredStore) -> Result<String, MetadataError> {
    let in_sync = store.in_sync.iter();
    let in_sync = in_sync.map(|(epoch, shards)| (epoch.to_string(), shards.to_string()));
    let partners = store.partners.iter();
    let partners = partners.map(|(partner, shards)| (partner.to_string(), shards.to_string()));
    let raw = RawStore {
        node: store.node.to_string(),
        address: store.address.clone(),
        next_generation: store.next_generation,
        corpora: store.corpora.iter().map(ToString::to_string).collect(),
        in_sync: in_sync.collect(),
        partners: partners.collect(),
        replacement: store.is_replacement,
    };
    text_of(key, &raw)
}

/// The store whose record is under this key, which ends with its id.
pub(crate) fn store_of(key: &str, text: &str) -> Result<RegisteredStore, MetadataError> {
    let raw: RawStore = object_in(key, text)?;
    let corpora = raw.corpora.iter().map(|uid| {
        let uid = uid.parse::<CorpusUid>();
        uid.map_err(|error| bad(key, error.to_string()))
    });
    let shards_of = |text: &str| {
        let shards = text.parse::<ShardSet>();
        shards.map_err(|error| bad(key, error.to_string()))
    };
    let in_sync = raw.in_sync.iter().map(|(epoch, shards)| {
        let bad_epoch = || bad(key, format!("{epoch:?} is no epoch"));
        Ok((epoch_of(epoch).ok_or_else(bad_epoch)?, shards_of(shards)?))
    });
    let partners = raw.partners.iter().map(|(partner, shards)| {
        let partner = id_of(partner).map_err(|reason| bad(key, reason))?;
        Ok((partner, shards_of(shards)?))
    });
    Ok(RegisteredStore {
        id: id_under(keys::STORES, key)?,
        node: NodeId::new(&raw.node).map_err(|error| bad(key, error.to_string()))?,
        address: raw.address,
        next_generation: raw.next_generation,
        corpora: corpora.collect::<Result<_, _>>()?,
        in_sync: in_sync.collect::<Result<_, MetadataError>>()?,
        partners: partners.collect::<Result<_, MetadataError>>()?,
        is_replacement: raw.replacement,
    })
}

/// The text of a shard's record.
pub(crate) fn shard_text(key: &str, record: &ShardRecord) -> Result<String, MetadataError> {
    let in_sync = record.in_sync.iter().map(|entry| RawInSync {
        store: entry.store.to_string(),
        since: entry.since.to_string(),
        hot: entry.hot,
    });
    let learners = record.learners.iter().map(|entry| RawLearner {
        store: entry.store.to_string(),
        added: entry.added.to_string(),
    });
    let raw = RawShard {
        epoch: record.epoch.to_string(),
        nonce: nonce_text(record.nonce),
        in_sync: in_sync.collect(),
        learners: learners.collect(),
        previous: record.previous.iter().map(ToString::to_string).collect(),
        want: record.want,
        hot: record.hot,
        min_in_sync: record.min_in_sync,
        floor: (record.floor > Version::NONE).then(|| RawFloor {
            version: nonce_text(record.floor.0),
            frozen: record.is_frozen,
            settled: nonce_text(record.settled.0),
        }),
    };
    text_of(key, &raw)
}

/// The record of each shard, if it can be understood.
pub(crate) fn shards_in(
    snapshot: &Snapshot,
) -> impl Iterator<Item = (ShardId, Result<Arc<ShardRecord>, MetadataError>)> {
    let pairs = snapshot.pairs.iter();
    let pairs = pairs.map(|pair| (&*pair.key, &*pair.value));
    let texts: BTreeMap<&str, &str> = pairs.collect();
    ShardId::all().map(move |shard| {
        let key = keys::shard(shard);
        let text = texts.get(&*key).ok_or_else(|| missing(&key));
        let record = text.and_then(|text| shard_of(&key, text));
        (shard, record.map(Arc::new))
    })
}

/// The record of a shard that has this text.
pub(crate) fn shard_of(key: &str, text: &str) -> Result<ShardRecord, MetadataError> {
    let raw: RawShard = object_in(key, text)?;
    let id = |text: &String| id_of(text).map_err(|reason| bad(key, reason));
    let epoch =
        |text: &str| epoch_of(text).ok_or_else(|| bad(key, format!("{text:?} is no epoch")));
    let in_sync = raw.in_sync.iter().map(|entry| {
        Ok(InSync {
            store: id(&entry.store)?,
            since: epoch(&entry.since)?,
            hot: entry.hot,
        })
    });
    let learners = raw.learners.iter().map(|entry| {
        Ok(Learner {
            store: id(&entry.store)?,
            added: epoch(&entry.added)?,
        })
    });
    let (floor, is_frozen, settled) = match &raw.floor {
        Some(floor) => floor_of(key, floor)?,
        None => (Version::NONE, false, Version::NONE),
    };
    let record = ShardRecord {
        epoch: epoch(&raw.epoch)?,
        nonce: nonce_of(key, &raw.nonce)?,
        in_sync: in_sync.collect::<Result<_, MetadataError>>()?,
        learners: learners.collect::<Result<_, MetadataError>>()?,
        previous: raw.previous.iter().map(id).collect::<Result<_, _>>()?,
        want: raw.want,
        hot: raw.hot,
        min_in_sync: raw.min_in_sync,
        floor,
        is_frozen,
        settled,
    };
    match problem(&record) {
        Some(problem) => Err(bad(key, problem)),
        None => Ok(record),
    }
}

/// What no record of a shard may have.
fn problem(record: &ShardRecord) -> Option<String> {
    if record.in_sync.is_empty() {
        return Some("no store is in sync".to_owned());
    }
    if record.want == 0 || record.min_in_sync == 0 {
        return Some("it asks for no replica".to_owned());
    }
    let stores: Vec<StoreId> = record.write_set().collect();
    let named = stores.len().max(record.previous.len());
    if named > MOST_STORES {
        return Some(format!("it names {named} stores"));
    }
    let is_repeated = |(before, store): (usize, &StoreId)| stores[..before].contains(store);
    let is_repeated = stores.iter().enumerate().any(is_repeated);
    is_repeated.then(|| "it names a store twice".to_owned())
}

/// A floor, whether it is frozen, and what is settled.
fn floor_of(key: &str, raw: &RawFloor) -> Result<(Version, bool, Version), MetadataError> {
    let version = |text: &str| nonce_of(key, text).map(Version);
    let (floor, settled) = (version(&raw.version)?, version(&raw.settled)?);
    if floor == Version::NONE || settled > floor {
        return Err(bad(key, "it is settled above its floor".to_owned()));
    }
    Ok((floor, raw.frozen, settled))
}

/// An epoch as it shows: `GENERATION.NUMBER`.
fn epoch_of(text: &str) -> Option<Epoch> {
    let (generation, number) = text.split_once('.')?;
    Some(Epoch {
        generation: generation.parse().ok()?,
        number: number.parse().ok()?,
    })
}

/// The store whose id ends a key.
pub(crate) fn id_under(prefix: &str, key: &str) -> Result<StoreId, MetadataError> {
    let id = key.strip_prefix(prefix).unwrap_or(key);
    id_of(id).map_err(|reason| bad(key, reason))
}

/// Whether a text is the id of a store.
#[must_use]
pub fn is_store_id(text: &str) -> bool {
    id_of(text).is_ok()
}

fn id_of(text: &str) -> Result<StoreId, String> {
    let id = Uuid::try_parse(text).map_err(|error| error.to_string())?;
    Ok(StoreId(id.into_bytes()))
}

/// Why a record cannot be understood that must be there and is not.
pub(crate) const MISSING: &str = "it is missing";

/// A record that must be there is not.
pub(crate) fn missing(key: &str) -> MetadataError {
    bad(key, MISSING.to_owned())
}

/// A nonce as records have it: in hexadecimal.
pub(crate) fn nonce_text(nonce: u64) -> String {
    format!("{nonce:016x}")
}

/// The nonce that a record has under this key.
pub(crate) fn nonce_of(key: &str, text: &str) -> Result<u64, MetadataError> {
    u64::from_str_radix(text, 16).map_err(|error| bad(key, error.to_string()))
}

/// The record of a key, whose value is a JSON object. An array in its place would do for the parser, and is damage.
pub(crate) fn object_in<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, MetadataError> {
    if !text.trim_start().starts_with('{') {
        return Err(bad(key, "it is no JSON object".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| bad(key, error.to_string()))
}

pub(crate) fn bad(key: &str, reason: String) -> MetadataError {
    MetadataError::BadRecord {
        key: key.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use simshard_topology::ShardId;

    use super::*;

    const KEY: &str = "shards/4b";

    fn epoch(number: u64) -> Epoch {
        Epoch {
            generation: 2,
            number,
        }
    }

    #[test]
    fn a_record_of_a_shard_comes_back_exactly() {
        let store = |byte| StoreId([byte; 16]);
        let in_sync = |byte, number, hot| InSync {
            store: store(byte),
            since: epoch(number),
            hot,
        };
        let record = ShardRecord {
            epoch: epoch(u64::MAX),
            nonce: u64::MAX,
            in_sync: vec![in_sync(1, 7, true), in_sync(2, 8, false)],
            learners: vec![Learner {
                store: store(3),
                added: epoch(9),
            }],
            previous: vec![store(1), store(4)],
            want: 3,
            hot: 2,
            min_in_sync: 2,
            floor: Version(9),
            is_frozen: true,
            settled: Version(8),
        };
        let text = shard_text(KEY, &record).unwrap();
        assert_eq!(shard_of(KEY, &text).unwrap(), record);
        let first = ShardRecord::first(0, &[store(1)], 5);
        let text = shard_text(KEY, &first).unwrap();
        assert_eq!(
            text,
            "{\"epoch\":\"0.1\",\"nonce\":\"0000000000000005\",\"in_sync\":[{\"store\":\
             \"01010101-0101-0101-0101-010101010101\",\"since\":\"0.1\",\"hot\":true}],\"learners\":[],\
             \"previous\":[],\"want\":1,\"hot\":1,\"min_in_sync\":1}"
        );
        assert_eq!(shard_of(KEY, &text).unwrap(), first);
    }

    #[test]
    fn a_record_of_a_store_comes_back_exactly() {
        let key = "stores/01010101-0101-0101-0101-010101010101";
        let store = RegisteredStore {
            id: StoreId([1; 16]),
            node: NodeId::new("n1").unwrap(),
            address: "http://h:1".to_owned(),
            next_generation: 3,
            corpora: BTreeSet::from([crate::corpus::random_corpus_uid()]),
            in_sync: BTreeMap::from([
                (epoch(7), ShardSet::from_iter([ShardId(0x4b)])),
                (epoch(8), ShardSet::ALL),
            ]),
            partners: BTreeMap::from([(StoreId([2; 16]), ShardSet::ALL)]),
            is_replacement: true,
        };
        let text = store_text(key, &store).unwrap();
        assert_eq!(store_of(key, &text).unwrap(), store);
        for (good, bad) in [("2.7", "27"), ("4b", "4")] {
            let error = store_of(key, &text.replace(good, bad)).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
        // An earlier version has none of them.
        let text = "{\"node\":\"n1\",\"address\":\"http://h:1\"}";
        let earlier = store_of(key, text).unwrap();
        assert_eq!(earlier.in_sync, BTreeMap::new());
        assert!(!earlier.is_replacement);
    }

    #[test]
    fn texts_that_are_no_records_are_refused_by_their_key() {
        let good = shard_text(KEY, &ShardRecord::first(0, &[StoreId([1; 16])], 5)).unwrap();
        let without_stores =
            good.split_once("[{").unwrap().0.to_owned() + "[]" + good.split_once("}]").unwrap().1;
        let mut above = ShardRecord::first(0, &[StoreId([1; 16])], 5);
        (above.floor, above.settled) = (Version(1), Version(2));
        let settled_above = shard_text(KEY, &above).unwrap();
        let cases = [
            String::new(),
            good.replace("0.1", "1"),
            good.replace("000005", "x"),
            good.replace("want", "later"),
            without_stores,
            settled_above,
        ];
        for text in cases {
            let error = shard_of(KEY, &text).unwrap_err().to_string();
            assert!(error.contains(KEY), "{error}");
        }
        let store = "{\"node\":\"n1\",\"address\":\"http://h:1\"}";
        for (key, text) in [
            ("stores/x", store),
            ("stores/01010101-0101-0101-0101-010101010101", "{}"),
        ] {
            let error = store_of(key, text).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
