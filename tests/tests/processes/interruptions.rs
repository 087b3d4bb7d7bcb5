//! Processes that are killed while a corpus is created or deleted.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use simshard_client::{ClientError, Reason};
use simshard_testkit::{End, ProcessCluster, until, until_some};
use tokio::task::block_in_place;

/// Does it until no node and no router is away.
pub(crate) async fn until_reached<T>(
    work: impl AsyncFn() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    until_some("no node and no router is away", async || {
        match work().await {
            Err(error) if error.reason() == Some(Reason::NodeUnreachable) => None,
            // The connection to a router that was killed.
            Err(ClientError::NoRouter { .. }) => None,
            outcome => Some(outcome),
        }
    })
    .await
}

/// The file that a router locks while it changes the corpora.
pub(crate) struct Lock(pub(crate) PathBuf);

impl Lock {
    pub(crate) fn take(&self) -> File {
        let file = File::options().create(true).append(true).open(&self.0);
        let file = file.unwrap();
        file.lock().unwrap();
        file
    }

    /// Whether another process waits for it.
    fn is_waited_for(&self) -> bool {
        let inode = format!(":{} ", fs::metadata(&self.0).unwrap().ino());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let mut waiting = locks.lines().filter(|lock| lock.contains("-> FLOCK"));
        waiting.any(|lock| lock.contains(&inode))
    }
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// This long after the work began, if it takes as long.
    After(Duration),
    /// Once the router has heard that all nodes answer, and before it has written that the work has begun.
    InTheStore,
}

/// A process that is killed, and can be started again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Victim {
    Node(usize),
    /// The second router.
    Router,
}

impl Victim {
    pub(crate) fn end(self, cluster: &mut ProcessCluster) {
        block_in_place(|| match self {
            Self::Node(node) => cluster.end_node(node, End::Killed),
            Self::Router => cluster.end_router(1, End::Killed),
        });
    }

    pub(crate) fn start(self, cluster: &mut ProcessCluster) {
        block_in_place(|| match self {
            Self::Node(node) => cluster.start_node(node),
            Self::Router => cluster.start_router(1),
        });
    }
}

/// Does work through the second router, and kills a process meanwhile.
pub(crate) async fn interrupted<T: Send + 'static>(
    cluster: &mut ProcessCluster,
    work: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    moment: Moment,
    victim: Victim,
) -> Result<T, ClientError> {
    let lock = Lock(cluster.corpora_lock());
    let held = matches!(moment, Moment::InTheStore).then(|| lock.take());
    let mut work = tokio::spawn(work);
    match moment {
        Moment::After(duration) => {
            if let Ok(outcome) = tokio::time::timeout(duration, &mut work).await {
                victim.end(cluster);
                return outcome.unwrap();
            }
        }
        Moment::InTheStore => {
            until("it waits for the lock", async || lock.is_waited_for()).await;
        }
    }
    victim.end(cluster);
    drop(held);
    work.await.unwrap()
}
