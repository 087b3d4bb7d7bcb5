//! Noticing soon that a node does not answer at all, where another replica may: a process that is frozen, or cut off,
//! keeps its connections.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_topology::NodeId;
use tokio::time::{sleep, timeout};

use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::nodes::{CallError, Load};

/// How long a node has for its work before it is asked for a sign of life, again and again.
const WORKING: Duration = Duration::from_millis(60);

/// How long it has for that.
const ANSWERING: Duration = Duration::from_millis(80);

/// Waits for an answer of a node as long as the node gives signs of life.
pub(super) async fn unless_silent<A>(
    cluster: &ClusterView,
    node: &NodeId,
    answer: impl Future<Output = Result<A, CallError>>,
) -> Result<A, CallError> {
    tokio::select! {
        biased;
        answer = answer => answer,
        Err(silent) = while_it_lives(cluster, node) => Err(silent),
    }
}

/// Fails once the node does not even say at once that it confirms nothing.
async fn while_it_lives(cluster: &ClusterView, node: &NodeId) -> Result<Infallible, CallError> {
    let nothing = pb::Confirm {
        store: vec![0; 16],
        ..pb::Confirm::default()
    };
    loop {
        sleep(WORKING).await;
        let work = || ready(Ok(Work::Confirm(nothing.clone())));
        let deadline = Deadline::within(ANSWERING);
        let sign = cluster.nodes.work(node, deadline, Load::Queries(0), work);
        if !matches!(timeout(ANSWERING, sign).await, Ok(Ok(_))) {
            return Err(CallError::Silent);
        }
    }
}
