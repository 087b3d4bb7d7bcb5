//! What a node shows of its shards, its disk and its work. Each is read anew whenever it is asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use simshard_runtime::observed::{Metrics, Observed};
use simshard_storage::Room;
use simshard_topology::replication::Role;
use simshard_topology::{NodeId, ShardSet};

use crate::engine::Engine;

/// The nodes of an instance, as long as they run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes(Arc<Mutex<Vec<Shown>>>);

#[derive(Debug)]
struct Shown {
    node: NodeId,
    engine: Weak<Engine>,
}

/// Labels beside the name of the node, and a value.
type Sample = (Vec<(&'static str, String)>, f64);

impl Metrics for Nodes {
    const PREFIX: &'static str = "simshard_node";

    fn register(registry: &mut Registry) -> Self {
        let nodes = Self::default();
        registry.register_collector(Box::new(nodes.clone()));
        nodes
    }
}

impl Nodes {
    /// Shows a node as long as it runs.
    pub(crate) fn show(observed: &Observed, node: NodeId, engine: &Arc<Engine>) {
        let nodes: Self = observed.metrics();
        let engine = Arc::downgrade(engine);
        nodes.0.lock().push(Shown { node, engine });
    }

    fn running(&self) -> Vec<(NodeId, Arc<Engine>)> {
        let nodes = self.0.lock();
        let running = nodes
            .iter()
            .filter_map(|shown| Some((shown.node.clone(), shown.engine.upgrade()?)));
        running.collect()
    }
}

impl Collector for Nodes {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page {
            nodes: self.running(),
            encoder,
        };
        page.shards()?;
        page.disk()?;
        page.work()
    }
}

/// What is shown of some nodes at once: a family of metrics comes in one piece.
struct Page<'a> {
    nodes: Vec<(NodeId, Arc<Engine>)>,
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    fn shards(&mut self) -> fmt::Result {
        let help = "Shards by what the node does for them: in_sync answers, and of these hot has tables; copying is on its \
                    way; without_tables is yet to make them; damaged has a segment that does not read";
        self.gauges("shards", help, |engine| {
            let counts = shards_by_state(engine).into_iter();
            let counts = counts
                .map(|(state, shards)| (vec![("state", state.to_owned())], shards.len() as f64));
            counts.collect()
        })?;
        let help = "Bytes of the segments of a shard, and of what memory has beside them";
        self.gauges("shard_stored_bytes", help, |engine| {
            let stored = engine.store().stored_bytes().into_iter();
            let stored =
                stored.map(|(shard, bytes)| (vec![("shard", shard.to_string())], bytes as f64));
            stored.collect()
        })
    }

    fn disk(&mut self) -> fmt::Result {
        let help = "Room on the disk: 3 for copies too, 2 for documents, 1 for few more, 0 refuses inserts";
        self.gauges("disk_room", help, |engine| {
            let room = match engine.room() {
                Room::None => 0.0,
                Room::Little => 1.0,
                Room::Enough => 2.0,
                Room::Ample => 3.0,
            };
            vec![(Vec::new(), room)]
        })?;
        let help = "Bytes of copies of shards that the disk has room for";
        self.gauges("disk_copies_bytes", help, |engine| {
            let bytes = engine.store().bytes_for_copies().into_iter();
            bytes.map(|bytes| (Vec::new(), bytes as f64)).collect()
        })?;
        let help = "How long the disk took for the slower of the last two batches of changes";
        self.gauges("log_batch_seconds", help, |engine| {
            let delay = engine.log_delay().into_iter();
            delay
                .map(|delay| (Vec::new(), delay.as_secs_f64()))
                .collect()
        })
    }

    fn work(&mut self) -> fmt::Result {
        let help = "Batches of the log that are on disk: each has all changes that came while the one before was written";
        self.counters("log_batches", help, |engine| engine.log_batches().pieces)?;
        let help = "How long the disk took for all batches of the log";
        self.counters("log_batches_seconds", help, |engine| {
            engine.log_batches().took.as_secs_f64()
        })?;
        let help = "Segments, the files that hold documents";
        self.gauges("segments", help, |engine| {
            vec![(Vec::new(), engine.store().segments() as f64)]
        })?;
        let help = "Merges of segments since the node started";
        self.counters("merges", help, |engine| engine.store().merges().merges)?;
        let help = "Bytes of the segments that were merged";
        self.counters("merged_bytes", help, |engine| engine.store().merges().bytes)?;
        let help = "Records of the log that are on disk and applied, since the directory was made";
        self.counters("log_records", help, Engine::synced)?;
        let help = "Pieces of work that requests gave: searches, batches of changes, pages of documents or pairs";
        self.counters("work", help, Engine::work_given)
    }

    /// A gauge of each node, or some, by labels beside the name of the node.
    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        values: impl Fn(&Engine) -> Vec<Sample>,
    ) -> fmt::Result {
        let metric_type = ConstGauge::new(0.0).metric_type();
        let mut encoder = self
            .encoder
            .encode_descriptor(name, help, None, metric_type)?;
        for (node, engine) in &self.nodes {
            for (mut labels, value) in values(engine) {
                labels.insert(0, ("node", node.to_string()));
                ConstGauge::new(value).encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// A counter of each node.
    fn counters<N: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        value: impl Fn(&Engine) -> N,
    ) -> fmt::Result {
        let metric_type = ConstCounter::new(0_u64).metric_type();
        let mut encoder = self
            .encoder
            .encode_descriptor(name, help, None, metric_type)?;
        for (node, engine) in &self.nodes {
            let labels = [("node", node.to_string())];
            ConstCounter::new(value(engine)).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The shards of a node by what it does for them. One may be among several.
fn shards_by_state(engine: &Engine) -> BTreeMap<&'static str, ShardSet> {
    let roles = engine.roles().into_iter();
    let copying =
        roles.filter(|(_, _, role)| matches!(role, Role::Copying { .. } | Role::Copied { .. }));
    let in_sync = engine.store().answered();
    BTreeMap::from([
        ("copying", copying.map(|(shard, ..)| shard).collect()),
        ("damaged", engine.damaged()),
        ("hot", engine.store().hot().intersection(&in_sync)),
        ("in_sync", in_sync),
        ("without_tables", engine.unbuilt()),
    ])
}
