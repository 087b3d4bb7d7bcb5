//! What a move may leave behind: learners, targets, and files of shards that their nodes do not hold.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simshard_cluster::targets;
use simshard_storage::inspect;
use simshard_testkit::{End, until_within};
use simshard_topology::ShardId;
use simshard_topology::replication::ShardRecords;
use tokio::task::block_in_place;

use super::{MOVED, NODES, Nodes, World, name, names};
use crate::readiness::is_ready;
use crate::records::records;

/// A node that was away copies, and then others delete what they had, on a busy machine too.
const SETTLED: Duration = Duration::from_secs(90);

/// The files of segments in a data directory. One may go meanwhile.
fn segment_files(data: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(data.join("segments")).unwrap();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// The shard of a file of a segment, finished or not.
fn shard_of(path: &Path) -> ShardId {
    let name = path.file_name().unwrap().to_str().unwrap();
    let (shard, _) = name.split_once('-').unwrap();
    ShardId(u8::from_str_radix(shard, 16).unwrap())
}

impl World {
    /// Whether a node has files of a shard.
    pub(super) fn has_files(&self, node: usize, shard: ShardId) -> bool {
        let files = segment_files(&self.cluster.data(node));
        files.iter().any(|path| shard_of(path) == shard)
    }

    /// Waits until the shards that are moved are at one of these places, and nothing else is left.
    pub(super) async fn until_clean(&self, placed: &[Nodes]) {
        let mut told = String::new();
        until_within(SETTLED, "nothing is left behind", async || {
            let flaw = self.flaw(placed).await;
            let Some(flaw) = flaw else {
                return true;
            };
            if flaw != told {
                println!("{flaw}");
                told = flaw;
            }
            false
        })
        .await;
    }

    /// What is not yet as it is to be.
    async fn flaw(&self, placed: &[Nodes]) -> Option<String> {
        let set = targets(&self.keys(), |_| {}).await.unwrap();
        if set != self.targets {
            return Some(format!("targets: {set:?}"));
        }
        let records = records(&self.cluster).await;
        for (shard, record) in &records {
            if record.in_sync.len() != self.replicas || !record.learners.is_empty() {
                return Some(format!("{shard}: {record:?}"));
            }
            let holders = self.holders(record);
            if MOVED.contains(shard) && !placed.contains(&holders) {
                return Some(format!("{shard} is at {}", names(&holders)));
            }
        }
        for node in 0..NODES {
            if let Some(left) = self.left_behind(node, &records) {
                return Some(format!("{} has {}", name(node), left.display()));
            }
            let address = format!("http://{}", self.cluster.node_addresses()[node]);
            if !is_ready(&address).await {
                return Some(format!("{} is not ready", name(node)));
            }
        }
        None
    }

    /// A file of a shard that its node does not hold.
    fn left_behind(&self, node: usize, records: &ShardRecords) -> Option<PathBuf> {
        let files = segment_files(&self.cluster.data(node)).into_iter();
        let is_held = |path: &PathBuf| records[&shard_of(path)].names(self.stores[node]);
        files.filter(|path| !is_held(path)).min()
    }

    /// Stops all nodes. Each directory has the files that the next start reads, and nothing that was set aside.
    pub(super) fn check_directories(&mut self) {
        for node in 0..NODES {
            block_in_place(|| self.cluster.end_node(node, End::Stopped));
            let data = self.cluster.data(node);
            let inspection = inspect(&data).unwrap();
            let aside = inspection.segments.iter().find(|file| file.is_set_aside);
            assert!(aside.is_none(), "{}: {aside:?}", name(node));
            let named = inspection.segments.iter().map(|file| file.path.clone());
            assert_eq!(segment_files(&data), named.collect(), "{}", name(node));
        }
    }
}
