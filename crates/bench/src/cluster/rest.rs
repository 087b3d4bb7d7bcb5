//! Waiting until a cluster has nothing to do any more: all is written, merged and compacted.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use simshard_runtime::system::{anonymous_memory_of, processor_ticks_of};

use super::disk;
use super::processes::{Cluster, Node};

/// The nodes are looked at this often.
const INTERVAL: Duration = Duration::from_millis(250);

/// The nodes must be at rest over this many intervals.
const INTERVALS_AT_REST: usize = 6;

/// Ticks of the clock that a node at rest may work in all of these intervals together: a tenth of a core. Nodes with
/// replicas check each other's liveness, which takes up to half of this in a debug build. One interval tells little, as
/// a tick is 10 ms. A merge works all the time.
const TICKS: u64 = 15;

/// A cluster that works for this long without being asked anything never ends.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits until no node works, and no data directory changes its size.
pub(super) async fn wait(cluster: &Cluster) -> anyhow::Result<()> {
    wait_for_nodes(&cluster.nodes).await
}

/// The same of these nodes.
pub(super) async fn wait_for_nodes(nodes: &[Node]) -> anyhow::Result<()> {
    let look = |node: &Node| Ok((ticks_of(node.id())?, disk::bytes_below(node.data())?));
    wait_for(|| nodes.iter().map(look).collect()).await
}

/// Waits until a process without data does not work, and gives no more memory back.
pub(super) async fn wait_for_process(id: u32) -> anyhow::Result<()> {
    let look = || {
        let memory = anonymous_memory_of(id);
        let memory = memory.context("this system does not say what memory a process has")?;
        Ok(vec![(ticks_of(id)?, memory)])
    };
    wait_for(look).await
}

async fn wait_for(look: impl Fn() -> anyhow::Result<Vec<Activity>>) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut looks = VecDeque::from([look()?]);
    while !are_at_rest(&looks) {
        ensure!(
            start.elapsed() < PATIENCE,
            "the nodes are still busy after {PATIENCE:?} without a request"
        );
        tokio::time::sleep(INTERVAL).await;
        if looks.len() > INTERVALS_AT_REST {
            looks.pop_front();
        }
        looks.push_back(look()?);
    }
    Ok(())
}

/// The ticks that a process has worked, and the bytes of its data or memory.
type Activity = (u64, u64);

fn ticks_of(process: u32) -> anyhow::Result<u64> {
    let ticks = processor_ticks_of(process);
    ticks.context("this system does not say how much a process works")
}

/// Whether no process worked or wrote from the first look to the last.
fn are_at_rest(looks: &VecDeque<Vec<Activity>>) -> bool {
    let (Some(first), Some(last)) = (looks.front(), looks.back()) else {
        return false;
    };
    let works = first
        .iter()
        .zip(last)
        .any(|((before, _), (now, _))| now.saturating_sub(*before) > TICKS);
    let bytes = |look: &Vec<Activity>| look.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>();
    let writes = looks.iter().any(|look| bytes(look) != bytes(first));
    looks.len() > INTERVALS_AT_REST && !works && !writes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at two processes: the first one works and writes as told, the second one does nothing.
    fn looks(first: [Activity; INTERVALS_AT_REST + 1]) -> VecDeque<Vec<Activity>> {
        first.into_iter().map(|one| vec![one, (70, 5)]).collect()
    }

    #[test]
    fn a_node_that_works_or_writes_is_not_at_rest() {
        let mut idle = looks([10, 12, 15, 17, 20, 22, 25].map(|ticks| (ticks, 99)));
        assert!(are_at_rest(&idle));
        idle.pop_back();
        assert!(!are_at_rest(&idle), "looked at for too short");
        let mut merging = looks([10, 10, 10, 10, 10, 10, 26].map(|ticks| (ticks, 99)));
        assert!(!are_at_rest(&merging));
        merging.iter_mut().for_each(|look| look.reverse());
        assert!(!are_at_rest(&merging), "the second process works");
        let writing = looks([99, 99, 98, 99, 99, 99, 99].map(|bytes| (10, bytes)));
        assert!(!are_at_rest(&writing));
    }
}
