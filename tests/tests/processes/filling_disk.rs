//! A node with replicas whose disk is nearly full: a small tmpfs in a mount namespace of its own (`unshare` of util-linux,
//! as root or with user namespaces).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use simshard_testkit::{End, Process, ProcessCluster, Shape, binary};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::full_disk::namespace;
use crate::load::{Load, create};
use crate::readiness::until_ready;
use crate::records::until_short;

const NODE: usize = 1;

const DISK_BYTES: u64 = 512 << 20;

/// How full the disk gets, in thousandths. Inserts are refused from 920 on: the load does not get there within five seconds.
const FULL_PER_MILLE: u64 = 902;

/// A store that starts again has left its shards. No other step of this kind follows for 30 seconds.
const SECONDS_SINCE_START: u32 = 31;

/// A node that runs on a disk of its own.
struct Node {
    _process: Process,
    /// Its disk, as seen from outside.
    disk: PathBuf,
}

impl Node {
    /// Starts a node of a cluster that has ended.
    fn start(cluster: &ProcessCluster, disk: &Path) -> Self {
        let script = format!(
            "mount -t tmpfs -o size={DISK_BYTES} tmpfs \"$0\" && cp -a \"$1\" \"$0/data\" && \
             mount --bind \"$0/data\" \"$1\" && shift && exec \"$@\""
        );
        let data = cluster.data(NODE);
        let [disk_text, data] = [disk, &data].map(|path| path.to_str().unwrap().to_owned());
        let shell = [
            namespace(),
            "sh",
            "-c",
            &script,
            &disk_text,
            &data,
            binary(),
        ];
        let args = shell.map(str::to_owned).into_iter();
        let process = Process::serve("unshare", args.chain(cluster.node_args(NODE)));
        let disk = format!("/proc/{}/root{disk_text}", process.id());
        Self {
            _process: process,
            disk: disk.into(),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.disk.join("ballast")
    }

    /// Fills its disk, but for a little.
    fn fill(&self) {
        let space = rustix::fs::statvfs(&self.disk).unwrap();
        let used = (space.f_blocks - space.f_bavail) * space.f_frsize;
        let ballast = DISK_BYTES * FULL_PER_MILLE / 1000 - used;
        let file = File::create(self.ballast()).unwrap();
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(file, flags, 0, ballast).unwrap();
    }
}

/// PE15: no request fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_disk_fills_leaves_before_it_refuses_inserts_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    create(&cluster.client()).await;
    let node = block_in_place(|| {
        cluster.end_node(NODE, End::Stopped);
        Node::start(&cluster, folder.path())
    });
    until_ready(&cluster, NODE).await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    for _ in 0..SECONDS_SINCE_START {
        get_acquainted(&load).await;
    }
    node.fill();
    until_short(&cluster, 3).await;
    load.until_more(20).await;
    fs::remove_file(node.ballast()).unwrap();
    until_ready(&cluster, NODE).await;
    load.end(&cluster.client()).await;
}
