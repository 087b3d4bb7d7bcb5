//! Waiting until a cluster has nothing to do any more: all is written, merged and compacted.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use simshard_runtime::system::{anonymous_memory_of, processor_ticks_of};

use super::disk;
use super::processes::{Cluster, Node};

/// The nodes are looked at this often.
const INTERVAL: Duration = Duration::from_millis(250);

/// Looks in a row that must find them at rest.
const LOOKS_AT_REST: u32 = 6;

/// Ticks of the clock that a node at rest may work between two looks.
const TICKS: u64 = 1;

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
    let mut before = look()?;
    let mut at_rest = 0;
    while at_rest < LOOKS_AT_REST {
        ensure!(
            start.elapsed() < PATIENCE,
            "the nodes are still busy after {PATIENCE:?} without a request"
        );
        tokio::time::sleep(INTERVAL).await;
        let now = look()?;
        at_rest = if is_at_rest(&before, &now) {
            at_rest + 1
        } else {
            0
        };
        before = now;
    }
    Ok(())
}

/// The ticks that a process has worked, and the bytes of its data or memory.
type Activity = (u64, u64);

fn ticks_of(process: u32) -> anyhow::Result<u64> {
    let ticks = processor_ticks_of(process);
    ticks.context("this system does not say how much a process works")
}

fn is_at_rest(before: &[Activity], now: &[Activity]) -> bool {
    before
        .iter()
        .zip(now)
        .all(|((ticks, bytes), (ticks_now, bytes_now))| {
            ticks_now.saturating_sub(*ticks) <= TICKS && bytes == bytes_now
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_works_or_writes_is_not_at_rest() {
        assert!(is_at_rest(&[(10, 99), (20, 5)], &[(10, 99), (21, 5)]));
        assert!(!is_at_rest(&[(10, 99), (20, 5)], &[(12, 99), (20, 5)]));
        assert!(!is_at_rest(&[(10, 99), (20, 5)], &[(10, 99), (20, 4)]));
    }
}
