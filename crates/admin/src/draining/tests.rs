//! Nodes that are to hold nothing, while others do something too.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use async_trait::async_trait;
use simshard_cluster::{
    Changes, KeyValueError, KeyValueStore, LeaseId, MemoryKeyValues, Outcome, Snapshot,
    Transaction, node_settings,
};
use simshard_node::Dialer;

use super::*;
use crate::scene::{cluster, join, put};

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn drain(name: &str) -> Departure {
    Departure::Drain(BTreeSet::from([node(name)]))
}

async fn is_drained(keys: &dyn KeyValueStore, name: &str) -> bool {
    let settings = node_settings(keys, |_| {}).await.unwrap();
    settings
        .get(&node(name))
        .is_some_and(|settings| settings.is_drained)
}

async fn depart(keys: &dyn KeyValueStore, departure: &Departure) -> Result<bool, AdminError> {
    let admin = Admin::new(keys, &Dialer::PLAIN, &|_| {});
    let departed = admin.depart(departure).await;
    departed.map(|(planned, _)| planned.is_empty())
}

/// Metadata that takes note whether a node was drained when the records of shards were read.
#[derive(Debug)]
struct Watched {
    keys: MemoryKeyValues,
    /// The node.
    name: &'static str,
    drained_reads: AtomicUsize,
    other_reads: AtomicUsize,
    /// How many commits there may be: then the metadata is away.
    commits_left: AtomicUsize,
    /// Whether another operator drains the node, too, once it is drained.
    is_drained_by_others: AtomicBool,
}

impl Watched {
    fn new(keys: MemoryKeyValues, name: &'static str) -> Self {
        Self {
            keys,
            name,
            drained_reads: AtomicUsize::new(0),
            other_reads: AtomicUsize::new(0),
            commits_left: AtomicUsize::new(usize::MAX),
            is_drained_by_others: AtomicBool::new(false),
        }
    }

    /// How often the records were read while the node was drained, and while it was not.
    fn reads(&self) -> (usize, usize) {
        let reads = [&self.drained_reads, &self.other_reads];
        let [drained, other] = reads.map(|reads| reads.load(Ordering::Relaxed));
        (drained, other)
    }
}

#[async_trait]
impl KeyValueStore for Watched {
    async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
        if prefix == "shards/" {
            let reads = if is_drained(&self.keys, self.name).await {
                if self.is_drained_by_others.load(Ordering::Relaxed) {
                    let key = format!("nodes/{}", self.name);
                    put(&self.keys, &key, r#"{"drained":true}"#).await;
                }
                &self.drained_reads
            } else {
                &self.other_reads
            };
            reads.fetch_add(1, Ordering::Relaxed);
        }
        self.keys.read(prefix).await
    }

    fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
        self.keys.changes(prefix)
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
        let left = self.commits_left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(KeyValueError::NoLease);
        }
        self.commits_left.store(left - 1, Ordering::Relaxed);
        self.keys.commit(transaction).await
    }

    async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
        self.keys.grant(time_to_live).await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.keys.keep_alive(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.keys.revoke(lease).await
    }
}

/// What a node takes after the plan was read is in no target: it would stay there.
#[tokio::test(start_paused = true)]
async fn a_node_takes_no_shards_any_more_when_its_own_are_read() {
    let keys = cluster(2).await;
    join(&keys, 3).await;
    let keys = Watched::new(keys, "n3");
    assert!(depart(&keys, &drain("n3")).await.unwrap());
    assert!(is_drained(&keys, "n3").await);
    let (drained, other) = keys.reads();
    assert!(drained > 0 && other == 0, "{drained} {other}");
}

/// None of the nodes answers, so nothing can be copied.
#[tokio::test(start_paused = true)]
async fn a_drain_that_is_refused_leaves_nodes_as_they_were() {
    let keys = cluster(2).await;
    let refused = depart(&keys, &drain("n1")).await.unwrap_err();
    let told = refused.to_string();
    assert!(told.starts_with("no node that answers holds"), "{told}");
    assert!(!is_drained(&keys, "n1").await);
    // Another operator has drained it.
    put(&keys, "nodes/n1", r#"{"drained":true}"#).await;
    depart(&keys, &drain("n1")).await.unwrap_err();
    assert!(is_drained(&keys, "n1").await);
    let (node, by) = (node("n2"), node("n2"));
    let itself = Departure::Replace { node, by };
    let refused = depart(&keys, &itself).await.unwrap_err();
    assert!(matches!(refused, AdminError::Impossible(_)));
    let unknown = depart(&keys, &drain("n9")).await.unwrap_err();
    assert!(matches!(unknown, AdminError::UnknownNode(_)));
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_refused_leaves_nodes_drained_that_others_drain_meanwhile() {
    let keys = Watched::new(cluster(2).await, "n1");
    keys.is_drained_by_others.store(true, Ordering::Relaxed);
    depart(&keys, &drain("n1")).await.unwrap_err();
    assert!(is_drained(&keys, "n1").await);
}

/// A node may take shards before it knows that it is drained.
#[tokio::test(start_paused = true)]
async fn what_a_node_holds_after_it_was_drained_is_told() {
    let keys = cluster(2).await;
    join(&keys, 3).await;
    let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
    for name in ["n1", "n3"] {
        put(&keys, &format!("nodes/{name}"), r#"{"drained":true}"#).await;
    }
    let both = Departure::Drain(BTreeSet::from(["n1", "n3"].map(node)));
    let held = admin.held_still(&both).await.unwrap();
    assert_eq!(held, BTreeMap::from([(node("n1"), ShardSet::ALL)]));
    put(&keys, "targets/07", r#"{"nodes":["n2","n3"]}"#).await;
    let held = admin.held_still(&drain("n3")).await.unwrap();
    assert_eq!(held, BTreeMap::from([(node("n3"), "07".parse().unwrap())]));
}

/// The one would be told that the node takes nothing.
#[tokio::test(start_paused = true)]
async fn an_operator_is_told_that_another_one_lets_the_node_take_shards_again() {
    let keys = cluster(2).await;
    join(&keys, 3).await;
    assert!(depart(&keys, &drain("n3")).await.unwrap());
    let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
    assert!(admin.held_still(&drain("n3")).await.unwrap().is_empty());
    assert!(admin.undrain(&node("n3")).await.unwrap());
    assert!(!admin.undrain(&node("n3")).await.unwrap());
    let refused = admin.held_still(&drain("n3")).await.unwrap_err();
    let told = refused.to_string();
    assert!(told.starts_with("n3 is not drained any more"), "{told}");
}

/// It would look like a drain that does nothing.
#[tokio::test(start_paused = true)]
async fn a_drain_that_is_cut_off_says_that_the_node_is_drained() {
    let keys = Watched::new(cluster(2).await, "n1");
    keys.commits_left.store(1, Ordering::Relaxed);
    let failed = depart(&keys, &drain("n1")).await.unwrap_err();
    assert!(matches!(failed, AdminError::Unfinished { .. }), "{failed}");
    let told = failed.to_string();
    let expected = "; n1 is drained, and not all shards are told to move: run this command again, or `simshard cluster \
                    undrain n1`";
    assert!(told.ends_with(expected), "{told}");
    assert!(is_drained(&keys, "n1").await);
}
