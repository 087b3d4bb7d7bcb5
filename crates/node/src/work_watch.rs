//! How long the work takes that routers ask of this node.

use prometheus_client::registry::Registry;
use simshard_runtime::observed::{Metrics, Observed};
use simshard_topology::NodeId;
use simshard_transport::{WorkTimes, WorkWatch};

/// The work of all nodes of an instance.
#[derive(Clone, Debug)]
struct AllNodes(WorkTimes);

impl Metrics for AllNodes {
    const PREFIX: &'static str = "simshard_node";

    fn register(registry: &mut Registry) -> Self {
        let help = "How long the node took for a piece of work: from its arrival until it was done or given up";
        Self(WorkTimes::register(registry, help))
    }
}

/// What watches the work of a node.
pub(crate) fn watch(observed: &Observed, node: &NodeId) -> WorkWatch {
    let AllNodes(times) = observed.metrics();
    let says = "this node took long for what a router asked";
    WorkWatch::new(&times, node.as_str(), observed.slow(), says)
}
