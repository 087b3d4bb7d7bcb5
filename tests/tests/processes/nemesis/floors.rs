//! Tombstones go while a cluster is disturbed. A test says how many went, and fails if none did. Where nodes lose their
//! disks, they go in long runs only: a short one has all that it can do.

use std::path::PathBuf;
use std::time::Duration;

use simshard_client::Fingerprint;
use simshard_cluster::{key_values_at, shard_records};
use simshard_testkit::{Running, binary, is_long, until, until_within};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{ShardId, Version};

use crate::scrubs::shards;
use crate::scrubs::stores::elements;

/// The command that drops tombstones.
pub(super) const DROP: &str = "scrub --repair --drop-tombstones --settled-seconds 1";

/// How often an operator tries to drop tombstones once nothing is disturbed any more.
const MOST_ATTEMPTS: usize = 20;

/// How long each of these may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// An operator who drops tombstones again and again, whatever happens to the cluster; in long runs only.
pub(super) struct Dropping {
    metadata: String,
    running: Option<Running>,
    succeeded: usize,
}

impl Dropping {
    pub(super) fn begin(metadata: &str) -> Self {
        let mut begun = Self {
            metadata: metadata.to_owned(),
            running: None,
            succeeded: 0,
        };
        begun.go_on();
        begun
    }

    /// Begins again, if the command has ended.
    pub(super) fn go_on(&mut self) {
        if !is_long() {
            return;
        }
        if let Some(mut running) = self.running.take() {
            if !running.has_ended() {
                self.running = Some(running);
                return;
            }
            self.succeeded += usize::from(running.output().status.success());
        }
        let args = ["cluster"].into_iter().chain(DROP.split(' '));
        let args = args.chain(["--metadata", &self.metadata]);
        self.running = Some(Running::start(binary(), args));
    }

    /// Waits until the command succeeds, which nothing disturbs any more.
    pub(super) async fn end(mut self) {
        println!("tombstones were dropped {} times meanwhile", self.succeeded);
        let before = self.succeeded;
        for _ in 0..MOST_ATTEMPTS {
            let Some(running) = &mut self.running else {
                return;
            };
            until_within(PATIENCE, "tombstones are dropped", async || {
                running.has_ended()
            })
            .await;
            self.go_on();
            // The first one may have begun while something was disturbed.
            if self.succeeded > before + 1 {
                return;
            }
        }
        panic!("tombstones are never dropped");
    }
}

/// Waits until what a command that was killed has left frozen is thawed.
pub(super) async fn until_thawed(metadata: &str) {
    let keys = key_values_at(metadata).unwrap();
    until("no record is frozen", async || {
        let records = shard_records(&*keys).await.unwrap();
        records.values().all(|record| !record.is_frozen)
    })
    .await;
}

/// Says how many shards are settled, of which one must be.
pub(super) async fn check_settled(metadata: &str) -> ShardRecords {
    let keys = key_values_at(metadata).unwrap();
    let records = shard_records(&*keys).await.unwrap();
    let settled = records
        .values()
        .filter(|record| record.settled > Version::NONE);
    let settled = settled.count();
    println!("{settled} of {} shards are settled", records.len());
    assert!(settled > 0, "no shard is settled");
    records
}

/// Says how many tombstones went from the directories of all nodes, which do not run: more than none. These documents were
/// removed last, so each has left one in each replica of its shards.
pub(super) async fn check_dropped(
    metadata: &str,
    directories: impl Iterator<Item = PathBuf>,
    removed: &[Fingerprint],
) {
    let records = check_settled(metadata).await;
    let replicas = |shard: ShardId| records[&shard].in_sync.len() as u64;
    let of_document =
        |fingerprint: &Fingerprint| shards(*fingerprint).into_iter().map(replicas).sum::<u64>();
    let left: u64 = removed.iter().map(of_document).sum();
    // Some of these are of other documents.
    let there: u64 = directories
        .map(|directory| elements(&directory, &records)[1])
        .sum();
    println!("{there} tombstones are there, of {left} or more that were");
    assert!(there < left, "no tombstone was dropped");
}
