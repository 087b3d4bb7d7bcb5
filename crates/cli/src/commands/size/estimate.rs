//! What a corpus takes, by what benchmarks measured.
//!
//! All of it is proportional: to the documents, to the tables, to the shards that a document is in, to the replicas.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use serde::{Serialize, Serializer};
use simshard_simhash::{Fingerprint, Layout, Tables};
use simshard_topology::{ShardId, ShardSet};

/// The medians of rows of the benchmarks page, by name. `cargo xtask bench` writes both.
const MEASURED: &str = include_str!("measured.json");

/// What the rows measured. Rows without ids: 10 million bare documents on three nodes, or on one that started. Rows
/// with ids: a million of 29 bytes, in one process without a data directory.
const DOCUMENTS: f64 = 10_000_000.0;
const NODES: f64 = 3.0;
const BLOCKS: u32 = 5;
const DISTANCE: u32 = 3;
const SERVED_ID_BYTES: f64 = 29.0;

/// Bytes of a segment that say where an id ends.
const END_BYTES: f64 = 2.0;

/// Bytes of memory of a document without a data directory in each shard: a pointer to what all shards share, some of its
/// bits, and room.
const PLACE_BYTES: f64 = 11.0;

/// Fingerprints of which the shards are counted.
const SAMPLE: u64 = 4096;

/// Most nodes of a cluster: each has a shard of the 256.
const MOST_NODES: f64 = 256.0;

/// What is to be stored, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) documents: f64,
    pub(super) id_bytes: u32,
    pub(super) layout: Layout,
    pub(super) replicas: u8,
    pub(super) hot: u8,
    /// The memory that a node may take, in bytes.
    pub(super) node_memory: f64,
}

/// What it takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Estimate {
    /// Tables of the layout.
    pub(super) tables: usize,
    /// Shards that a document is in, on average.
    pub(super) shards_per_document: f64,
    pub(super) nodes: u32,
    #[serde(serialize_with = "whole")]
    pub(super) memory_bytes: f64,
    #[serde(serialize_with = "whole")]
    pub(super) memory_bytes_per_node: f64,
    #[serde(serialize_with = "whole")]
    pub(super) disk_bytes: f64,
    #[serde(serialize_with = "whole")]
    pub(super) disk_bytes_per_node: f64,
    /// From the start of a node to its first answer, on two cores, with its files in the memory of the system.
    pub(super) restart_seconds: f64,
    /// Of one process without a data directory and without replicas.
    #[serde(serialize_with = "whole")]
    pub(super) memory_bytes_without_data: f64,
}

/// Writes a number of bytes as a whole one.
fn whole<S: Serializer>(bytes: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(bytes.round() as u64)
}

/// What the parts of a corpus take, each for itself.
struct Costs {
    /// Bytes of memory of a fingerprint in a table.
    table: f64,
    /// Bytes of memory of a node, before it has any tables.
    node: f64,
    /// Bytes on disk of a document in a shard, beside its id.
    element: f64,
    /// Seconds until a fingerprint is in a table.
    load: f64,
    /// Bytes of memory of a document without a data directory, beside its tables, its shards and the bytes of its id.
    served: f64,
}

impl Costs {
    fn measured() -> anyhow::Result<Self> {
        let rows: BTreeMap<String, f64> =
            serde_json::from_str(MEASURED).context("measured.json is no table of rows")?;
        let row = |name: &str| {
            let value = rows.get(name).copied();
            value.with_context(|| format!("measured.json has no row {name}"))
        };
        let layout = Layout::new(BLOCKS, DISTANCE)?;
        let tables = layout.table_count() as f64;
        let memory = row("memory")?;
        Ok(Self {
            table: memory / tables,
            node: (row("cluster-memory")? - memory).max(0.0) * DOCUMENTS / NODES,
            element: row("cluster-disk")? / shards_per_document(layout),
            load: row("cluster-restart")? / DOCUMENTS / tables,
            served: row("served-memory")?
                - memory
                - SERVED_ID_BYTES
                - PLACE_BYTES * shards_per_document(layout),
        })
    }
}

impl Estimate {
    /// What it takes; an error if no cluster is large enough.
    pub(super) fn of(wanted: Wanted) -> anyhow::Result<Self> {
        let costs = Costs::measured()?;
        let Wanted {
            documents,
            layout,
            node_memory,
            ..
        } = wanted;
        let tables = layout.table_count();
        let shards = shards_per_document(layout);
        let of_tables = documents * tables as f64 * costs.table;
        let of_hot = of_tables * f64::from(wanted.hot);
        let room = node_memory - costs.node;
        let nodes = (of_hot / room).ceil().max(f64::from(wanted.replicas));
        anyhow::ensure!(
            room > 0.0 && nodes <= MOST_NODES,
            crate::exit::UsageError(format!(
                "a cluster has at most {MOST_NODES} nodes, which is too few: give more --node-gib"
            ))
        );
        let id_bytes = f64::from(wanted.id_bytes);
        let end_bytes = if wanted.id_bytes == 0 { 0.0 } else { END_BYTES };
        let element = costs.element + id_bytes + end_bytes;
        let disk = documents * f64::from(wanted.replicas) * shards * element;
        Ok(Self {
            tables,
            shards_per_document: shards,
            nodes: nodes as u32,
            memory_bytes: of_hot + nodes * costs.node,
            memory_bytes_per_node: of_hot / nodes + costs.node,
            disk_bytes: disk,
            disk_bytes_per_node: disk / nodes,
            restart_seconds: of_hot / costs.table * costs.load / nodes,
            memory_bytes_without_data: of_tables
                + documents * (costs.served + id_bytes + PLACE_BYTES * shards),
        })
    }
}

/// How many shards a document is in, on average.
fn shards_per_document(layout: Layout) -> f64 {
    let tables: Arc<Tables> = Tables::shared(layout);
    let shards = (1..=SAMPLE).map(|number| {
        let fingerprint = Fingerprint(fastrand::Rng::with_seed(number).u64(..));
        let shards: ShardSet = tables.document_shards(fingerprint).map(ShardId).collect();
        shards.len()
    });
    shards.sum::<usize>() as f64 / SAMPLE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(blocks: u32, distance: u32) -> Wanted {
        Wanted {
            documents: DOCUMENTS,
            id_bytes: 0,
            layout: Layout::new(blocks, distance).unwrap(),
            replicas: 1,
            hot: 1,
            node_memory: 16e9,
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.01
    }

    #[test]
    fn what_was_measured_is_estimated() {
        let rows: BTreeMap<String, f64> = serde_json::from_str(MEASURED).unwrap();
        let found = Estimate::of(wanted(BLOCKS, DISTANCE)).unwrap();
        assert_eq!((found.nodes, found.tables), (1, 10));
        assert!(near(found.disk_bytes, rows["cluster-disk"] * DOCUMENTS));
        assert!(near(found.restart_seconds, rows["cluster-restart"]));
        let three = Wanted {
            node_memory: found.memory_bytes / 3.0 + 50e6,
            ..wanted(BLOCKS, DISTANCE)
        };
        let found = Estimate::of(three).unwrap();
        assert_eq!(found.nodes, 3);
        assert!(near(found.memory_bytes, rows["cluster-memory"] * DOCUMENTS));
        let served = Wanted {
            id_bytes: 29,
            ..wanted(BLOCKS, DISTANCE)
        };
        let served = Estimate::of(served).unwrap().memory_bytes_without_data;
        assert!(near(served, rows["served-memory"] * DOCUMENTS));
    }

    #[test]
    fn replicas_multiply_disk_and_hot_ones_memory() {
        let one = Estimate::of(wanted(5, 3)).unwrap();
        let three = Wanted {
            replicas: 3,
            hot: 2,
            ..wanted(5, 3)
        };
        let three = Estimate::of(three).unwrap();
        assert_eq!(three.nodes, 3);
        assert!(near(three.disk_bytes, 3.0 * one.disk_bytes));
        assert!(near(three.restart_seconds, 2.0 / 3.0 * one.restart_seconds));
        assert!(three.memory_bytes > 1.9 * one.memory_bytes - 62e6);
    }

    #[test]
    fn a_document_is_in_as_many_shards_as_it_has_leading_bytes() {
        let shards = |blocks, distance| shards_per_document(Layout::new(blocks, distance).unwrap());
        assert!((3.9..=4.0).contains(&shards(5, 3)));
        assert!((1.0..=1.0).contains(&shards(4, 0)));
    }

    #[test]
    fn more_than_a_cluster_can_hold_is_an_error() {
        let huge = Wanted {
            documents: 1e12,
            ..wanted(5, 3)
        };
        assert!(
            Estimate::of(huge)
                .unwrap_err()
                .to_string()
                .contains("--node-gib")
        );
    }
}
