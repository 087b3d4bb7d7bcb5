//! A node whose disk hangs: each write to it waits, and none fails. The disk is a file system of its own in a file, which
//! `fsfreeze` stops. Only root may do that.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use simshard_testkit::{End, ProcessCluster, Shape, did_nothing};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::moves::operate;
use crate::readiness::until_ready;
use crate::records::until_short;

const NODE: usize = 1;

/// A node takes its disk for hung after five seconds.
const LONGEST_GAP: Duration = Duration::from_secs(15);

/// What a node with such a disk would give to a scrub does not come before it goes on.
const LONGEST_SCRUB: Duration = Duration::from_secs(45);

/// If the test cannot end the hanging, this does. What waits for a disk that hangs cannot even be killed.
const LONGEST_HANG_SECONDS: &str = "60";

/// A disk that can hang.
struct Disk {
    folder: tempfile::TempDir,
    /// Ends the hanging when its input ends.
    hanging: Option<Child>,
}

impl Disk {
    fn mount() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let disk = Self {
            folder,
            hanging: None,
        };
        let (image, root) = (disk.folder.path().join("image"), disk.root());
        fs::File::create(&image)?.set_len(256 << 20)?;
        fs::create_dir(&root)?;
        let (image, root) = (text(&image), text(&root));
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0", image])?;
        run("mount", &["-o", "loop", image, root])?;
        Ok(disk)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Moves a directory to the disk.
    fn take(&self, data: &Path) {
        let place = self.root().join("data");
        run("cp", &["-a", text(data), text(&place)]).unwrap();
        fs::remove_dir_all(data).unwrap();
        symlink(place, data).unwrap();
    }

    fn hang(&mut self) {
        run("fsfreeze", &["--freeze", text(&self.root())]).unwrap();
        let script = r#"read -t "$0" _ < /dev/stdin; fsfreeze --unfreeze "$1""#;
        let watch = Command::new("bash")
            .args(["-c", script, LONGEST_HANG_SECONDS, text(&self.root())])
            .stdin(Stdio::piped())
            .spawn();
        self.hanging = Some(watch.unwrap());
    }

    fn go_on(&mut self) {
        if let Some(mut hanging) = self.hanging.take() {
            drop(hanging.stdin.take());
            hanging.wait().unwrap();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.go_on();
        // It goes once the last process has left it.
        let _ = run("umount", &["--lazy", text(&self.root())]);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(program: &str, args: &[&str]) -> io::Result<()> {
    let output = Command::new(program).args(args).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{program}: {said}")))
}

/// PE7. A scrub goes on without it, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_disk_hangs_leaves_its_shards_and_comes_back() {
    let mut disk = match Disk::mount() {
        Ok(disk) => disk,
        Err(error) => return did_nothing(&format!("no disk can be made: {error}")),
    };
    // The cluster goes first, and then the disk.
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    create(&cluster.client()).await;
    block_in_place(|| {
        cluster.end_node(NODE, End::Stopped);
        disk.take(&cluster.data(NODE));
        cluster.start_node(NODE);
    });
    until_ready(&cluster, NODE).await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    load.gaps();
    block_in_place(|| disk.hang());
    // What changes meanwhile is compared, too, and given to the node whose disk hangs.
    let started = Instant::now();
    let arguments = "scrub --repair --only replicas --shards 00-03 --settled-seconds 0";
    operate(&cluster, &Vec::from_iter(arguments.split(' ')));
    let scrubbed = started.elapsed();
    assert!(scrubbed < LONGEST_SCRUB, "a scrub took {scrubbed:?}");
    until_short(&cluster, 3).await;
    load.until_more(10).await;
    let gap = load.gaps().changes;
    assert!(gap < LONGEST_GAP, "no change was done for {gap:?}");
    block_in_place(|| disk.go_on());
    until_ready(&cluster, NODE).await;
    load.end(&cluster.client()).await;
    drop(cluster);
}
