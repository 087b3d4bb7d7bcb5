//! The layout of a cluster: its nodes, where they answer, and which shards they own.
//!
//! # Invariants
//! - LA1: there is at least one node, and names and addresses are distinct
//!   (`nodes_that_clash_are_refused`).
//! - LA2: every address is `http://host:port`, or `https://host:port`, and nothing more
//!   (`addresses_are_plain_uris_with_a_port`).
//! - LA3: the map names only listed nodes
//!   (`a_planned_layout_gives_every_shard_to_a_listed_node`).
//! - LA4: `ClusterLayout::planned` depends on the set of names alone, not on their order
//!   (`the_order_of_nodes_does_not_change_the_plan`).
//! - LA5: the records of a layout are those that its map was made of
//!   (`the_epochs_of_a_layout_are_those_of_its_records`).

use std::collections::{BTreeMap, BTreeSet};

use http::Uri;
use simshard_topology::replication::{ShardEpochs, ShardRecords, StoreId};
use simshard_topology::{NodeId, NodeIdError, PlanError, ShardId, ShardMap, ShardSet, plan_evenly};

/// A node and where it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Its gRPC address, `http://host:port`, or with https where it has TLS.
    pub address: String,
}

/// Which nodes there are and who owns which shard. Always consistent in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterLayout {
    nodes: Vec<Node>,
    map: ShardMap,
    /// What the map was made of, if the metadata has a record of each shard (LA5).
    records: Option<ShardRecords>,
    /// The nodes of the stores that have registered.
    stores: BTreeMap<StoreId, Node>,
}

/// Why nodes make no layout.
///
/// Messages are complete: they include the underlying reason, so `source()` is empty.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ClusterLayoutError {
    #[error("no nodes are listed, list at least one with its name and address")]
    NoNodes,
    /// A name is no node name.
    #[error("{0}")]
    BadName(NodeIdError),
    #[error("two nodes are named {node}, give each a name of its own")]
    DuplicateName { node: NodeId },
    #[error(
        "nodes {first} and {second} both have address {address}, give each an address of its own"
    )]
    DuplicateAddress {
        address: String,
        first: NodeId,
        second: NodeId,
    },
    #[error("node {node} has address {address:?}: {reason}; write it as http://host:port")]
    BadAddress {
        node: NodeId,
        address: String,
        reason: String,
    },
    #[error("no shard map for these nodes: {0}")]
    Unplannable(PlanError),
}

impl ClusterLayout {
    /// Plans a fresh map with this many replicas of every shard. The same set of
    /// names gives the same map in every process.
    ///
    /// # Errors
    /// When the nodes break LA1 or LA2, or the planner refuses.
    pub fn planned(nodes: Vec<Node>, replicas: usize) -> Result<Self, ClusterLayoutError> {
        check_nodes(&nodes)?;
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
        let map = plan_evenly(None, &ids, replicas).map_err(ClusterLayoutError::Unplannable)?;
        Ok(Self {
            nodes,
            map,
            records: None,
            stores: BTreeMap::new(),
        })
    }

    /// The layout of a map that was made of records of shards. It must name only these nodes (LA3).
    ///
    /// # Errors
    /// When the nodes break LA1 or LA2.
    pub(crate) fn of_records(
        nodes: Vec<Node>,
        map: ShardMap,
        records: ShardRecords,
        stores: BTreeMap<StoreId, Node>,
    ) -> Result<Self, ClusterLayoutError> {
        check_nodes(&nodes)?;
        let records = Some(records);
        Ok(Self {
            nodes,
            map,
            records,
            stores,
        })
    }

    /// The nodes, in the order they were listed.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The owners of all shards.
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    /// The records of shards that the map was made of. `None` if it was planned from a list of nodes.
    pub const fn records(&self) -> Option<&ShardRecords> {
        self.records.as_ref()
    }

    /// The epochs of the records of these shards. `None` if there are no records.
    pub fn epochs(&self, shards: ShardSet) -> Option<ShardEpochs> {
        let records = self.records.as_ref()?;
        let epoch = |shard| Some((shard, records.get(&shard)?.epoch));
        Some(shards.iter().filter_map(epoch).collect())
    }

    /// Whether a record is newer than that of another layout, by its epoch. Where a record could not be understood for a
    /// while, each of two layouts may be newer than the other.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let (Some(records), Some(others)) = (&self.records, &other.records) else {
            return false;
        };
        records.iter().any(|(shard, record)| {
            let other = others.get(shard);
            other.is_none_or(|other| record.epoch > other.epoch)
        })
    }

    /// The stores that hold a shard, in sync or as learners, and their nodes. None if there are no records.
    pub fn replicas(&self, shard: ShardId) -> impl Iterator<Item = (StoreId, &NodeId)> {
        let record = self.records.as_ref().and_then(|all| all.get(&shard));
        let stores = record.into_iter().flat_map(|record| record.write_set());
        stores.zip(self.map.replicas(shard))
    }

    /// Which replicas of a shard answer reads, by their places among [`replicas`](ShardMap::replicas): those in sync that
    /// are hot.
    pub fn hot(&self, shard: ShardId) -> Vec<usize> {
        let records = self.records.as_ref();
        match records.and_then(|records| records.get(&shard)) {
            Some(record) => {
                let entries = record.in_sync.iter().enumerate();
                let hot = entries.filter(|(_, entry)| entry.hot);
                hot.map(|(place, _)| place).collect()
            }
            None => (0..self.map.replicas(shard).len()).collect(),
        }
    }

    /// The node of a store, whether it holds shards or not. None if the store has not registered.
    pub fn node_of(&self, store: StoreId) -> Option<&Node> {
        self.stores.get(&store)
    }

    /// The stores that have registered, and the node of each.
    pub fn stores(&self) -> impl Iterator<Item = (StoreId, &Node)> {
        self.stores.iter().map(|(store, node)| (*store, node))
    }

    /// The stores of a node that have registered.
    pub fn stores_of(&self, id: &NodeId) -> impl Iterator<Item = StoreId> {
        let stores = self.stores.iter();
        let stores = stores.filter(move |(_, node)| node.id == *id);
        stores.map(|(store, _)| *store)
    }

    /// The node of this name, if it is listed.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == *id)
    }
}

pub(crate) fn check_nodes(nodes: &[Node]) -> Result<(), ClusterLayoutError> {
    if nodes.is_empty() {
        return Err(ClusterLayoutError::NoNodes);
    }
    let mut names = BTreeSet::new();
    let mut places: BTreeMap<(String, u16), &NodeId> = BTreeMap::new();
    for node in nodes {
        if !names.insert(&node.id) {
            return Err(ClusterLayoutError::DuplicateName {
                node: node.id.clone(),
            });
        }
        let place =
            parse_address(&node.address).map_err(|reason| ClusterLayoutError::BadAddress {
                node: node.id.clone(),
                address: node.address.clone(),
                reason,
            })?;
        if let Some(first) = places.insert(place, &node.id) {
            return Err(ClusterLayoutError::DuplicateAddress {
                address: node.address.clone(),
                first: first.clone(),
                second: node.id.clone(),
            });
        }
    }
    Ok(())
}

/// Host in lower case and port of an address, or what is wrong with it.
fn parse_address(address: &str) -> Result<(String, u16), String> {
    let uri: Uri = address.parse().map_err(|error| format!("{error}"))?;
    let Some(scheme @ ("http" | "https")) = uri.scheme_str() else {
        return Err("it does not start with http:// or https://".to_owned());
    };
    let Some(authority) = uri.authority() else {
        return Err("it has no host".to_owned());
    };
    if authority.host().is_empty() || authority.as_str().contains('@') {
        return Err("it needs a host, and no user name".to_owned());
    }
    let Some(port) = authority.port_u16().filter(|&port| port != 0) else {
        return Err("it has no port from 1 to 65535".to_owned());
    };
    // A parsed URI without a path shows the path "/", so look at the text itself.
    let beyond_port = address.len() > scheme.len() + "://".len() + authority.as_str().len();
    if beyond_port {
        return Err("something follows the port".to_owned());
    }
    Ok((authority.host().to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_topology::replication::{ShardRecord, StoreId};

    use super::*;

    fn node(name: &str, address: &str) -> Node {
        Node {
            id: NodeId::new(name).unwrap(),
            address: address.to_owned(),
        }
    }

    fn three_nodes() -> Vec<Node> {
        vec![
            node("n1", "http://127.0.0.1:7470"),
            node("n2", "http://127.0.0.1:7472"),
            node("n3", "http://127.0.0.1:7474"),
        ]
    }

    /// LA3.
    #[test]
    fn a_planned_layout_gives_every_shard_to_a_listed_node() {
        let layout = ClusterLayout::planned(three_nodes(), 1).unwrap();
        assert_eq!(layout.nodes(), three_nodes());
        for shard in ShardId::all() {
            let replicas = layout.map().replicas(shard);
            assert_eq!(replicas.len(), 1);
            assert!(layout.node(&replicas[0]).is_some());
        }
        assert_eq!(layout.node(&NodeId::new("n4").unwrap()), None);
    }

    /// LA4.
    #[test]
    fn the_order_of_nodes_does_not_change_the_plan() {
        let forwards = ClusterLayout::planned(three_nodes(), 1).unwrap();
        let mut nodes = three_nodes();
        nodes.reverse();
        let backwards = ClusterLayout::planned(nodes, 1).unwrap();
        assert_eq!(forwards.map(), backwards.map());
    }

    /// LA1.
    #[test]
    fn nodes_that_clash_are_refused() {
        let message = |nodes| ClusterLayout::planned(nodes, 1).unwrap_err().to_string();
        assert_eq!(
            message(vec![]),
            "no nodes are listed, list at least one with its name and address"
        );
        assert_eq!(
            message(vec![node("a", "http://h:1"), node("a", "http://h:2")]),
            "two nodes are named a, give each a name of its own"
        );
        assert_eq!(
            message(vec![node("a", "http://host:1"), node("b", "http://HOST:1")]),
            "nodes a and b both have address http://HOST:1, give each an address of its own"
        );
    }

    /// LA2.
    #[test]
    fn addresses_are_plain_uris_with_a_port() {
        for address in [
            "http://127.0.0.1:7470",
            "http://[::1]:7470",
            "http://n1.lan:1",
            "https://n1.lan:1",
        ] {
            assert!(parse_address(address).is_ok(), "{address}");
        }
        let bad = [
            "",
            "127.0.0.1:7470",
            "n1",
            "http://",
            "http://:7470",
            "http://h",
            "http://h:0",
            "http://h:65536",
            "http://h:x",
            "http://h:1/",
            "http://h:1/path",
            "http://h:1?query",
            "http://user@h:1",
            "https://h",
            "https://h:1/path",
            "ftp://h:1",
            "HTTP://h:1 ",
            "http://a b:1",
        ];
        for address in bad {
            let error = ClusterLayout::planned(vec![node("a", address)], 1).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("node a"), "{message}");
            assert!(message.contains(&format!("{address:?}")), "{message}");
            assert!(
                message.ends_with("write it as http://host:port"),
                "{message}"
            );
        }
    }

    /// LA5.
    #[test]
    fn the_epochs_of_a_layout_are_those_of_its_records() {
        let planned = ClusterLayout::planned(three_nodes(), 1).unwrap();
        assert_eq!(planned.epochs(ShardSet::ALL), None);
        let record = |shard: ShardId| {
            let mut record = ShardRecord::first(1, &[StoreId([1; 16])], 5);
            record.epoch.number = 1 + u64::from(shard.0);
            (shard, Arc::new(record))
        };
        let records: ShardRecords = ShardId::all().map(record).collect();
        let map = planned.map().clone();
        let layout =
            ClusterLayout::of_records(three_nodes(), map, records.clone(), BTreeMap::new())
                .unwrap();
        assert_eq!(layout.records(), Some(&records));
        let meant = [3, 200].map(ShardId);
        let epochs = meant.map(|shard| (shard, records[&shard].epoch));
        let found = layout.epochs(meant.into_iter().collect());
        assert_eq!(found, Some(epochs.to_vec()));
        assert_eq!(layout.epochs(ShardSet::EMPTY), Some(Vec::new()));
    }

    #[test]
    fn a_layout_is_newer_by_one_epoch() {
        let planned = ClusterLayout::planned(three_nodes(), 1).unwrap();
        let of_epoch = |shard, generation, number| {
            let first = |shard| {
                (
                    shard,
                    Arc::new(ShardRecord::first(0, &[StoreId([1; 16])], 5)),
                )
            };
            let mut records: ShardRecords = ShardId::all().map(first).collect();
            let record = Arc::make_mut(records.get_mut(&ShardId(shard)).unwrap());
            (record.epoch.generation, record.epoch.number) = (generation, number);
            let map = planned.map().clone();
            ClusterLayout::of_records(three_nodes(), map, records, BTreeMap::new()).unwrap()
        };
        let layouts = [of_epoch(0, 0, 1), of_epoch(7, 0, 2), of_epoch(7, 1, 1)];
        for (older, layout) in layouts.iter().enumerate() {
            for (newer, other) in layouts.iter().enumerate() {
                assert_eq!(other.is_newer_than(layout), newer > older);
            }
            assert!(!planned.is_newer_than(layout) && !layout.is_newer_than(&planned));
        }
    }

    #[test]
    fn more_replicas_than_nodes_are_refused() {
        let error = ClusterLayout::planned(three_nodes(), 4).unwrap_err();
        assert!(
            matches!(error, ClusterLayoutError::Unplannable(_)),
            "{error}"
        );
    }
}
