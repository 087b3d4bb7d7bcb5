//! How long nodes take for the work that this router asks of them.

use prometheus_client::registry::Registry;
use simshard_runtime::observed::{Metrics, Observed};
use simshard_topology::NodeId;
use simshard_transport::{WorkTimes, WorkWatch};

/// The work of all nodes.
#[derive(Clone, Debug)]
struct AllNodes(WorkTimes);

impl Metrics for AllNodes {
    const PREFIX: &'static str = "simshard_router";

    fn register(registry: &mut Registry) -> Self {
        let help = "How long the router waited for a piece of work of a node, until it came or was given up";
        Self(WorkTimes::register(registry, help))
    }
}

/// What watches the work of a node.
pub(crate) fn watch(observed: &Observed, node: &NodeId) -> WorkWatch {
    let AllNodes(times) = observed.metrics();
    let says = "this router waited long for a node";
    WorkWatch::new(&times, node.as_str(), observed.slow(), says)
}
