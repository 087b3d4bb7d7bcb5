//! `simshard size`: what memory, disk and nodes a corpus will take.

mod estimate;

use clap::Args;
use serde_json::json;
use simshard_runtime::terminal::counted;
use simshard_simhash::Layout;

use crate::args::{Blocks, JsonArgs, document_count};
use crate::exit::UsageError;
use crate::say;
use estimate::{Estimate, Wanted};
use simshard_runtime::amounts::{bytes, time};

/// Bytes of a GiB.
const GIB: f64 = (1_u64 << 30) as f64;

/// Arguments of `size`.
#[derive(Args, Debug)]
#[command(after_help = "\
Estimates for documents that are spread evenly over nodes, by what was measured
on two cores of a machine. Memory is that of the nodes at rest, with the usual
memtables and caches: tables take most of it, and only hot replicas have them.
Disk is after compaction; have as much again free for merges. Ids take disk, and
memory only where there is no data directory. A restart reads files that the
system has in memory; add the time that the disk takes where it has not.

Examples:
  simshard size --documents 1e8 --id-bytes 40
  simshard size --documents 1e9 --id-bytes 40 --replicas 1 --node-gib 64")]
pub struct SizeArgs {
    /// How many documents there will be, such as 1e8
    #[arg(long, value_name = "N", value_parser = document_count)]
    pub documents: f64,
    /// How long their ids are in bytes, on average
    #[arg(long, value_name = "B", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub id_bytes: u32,
    /// Blocks that a fingerprint is cut into: `auto`, or 1 to 64
    #[arg(long, value_name = "M", default_value = "auto")]
    pub blocks: Blocks,
    /// Largest distance that is searched, less than the blocks
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub distance: u32,
    /// How many nodes hold each shard
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub replicas: u8,
    /// How many of them answer searches [default: 2, or all replicas if they are fewer]
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub hot: Option<u8>,
    /// How much memory a node may take, in GiB
    #[arg(long, value_name = "GIB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub node_gib: u32,
    /// How it is printed.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// Prints the estimate.
pub fn run(args: &SizeArgs) -> anyhow::Result<()> {
    let wanted = args.wanted()?;
    let estimate = Estimate::of(wanted)?;
    if args.output.json {
        let mut all = serde_json::to_value(estimate)?;
        all["documents"] = json!(wanted.documents as u64);
        all["id_bytes"] = json!(wanted.id_bytes);
        all["blocks"] = json!(wanted.layout.blocks());
        all["distance"] = json!(wanted.layout.distance());
        all["replicas"] = json!(wanted.replicas);
        all["hot"] = json!(wanted.hot);
        return say::print_json(&all);
    }
    say::print(table(wanted, &estimate).trim_end())
}

impl SizeArgs {
    fn wanted(&self) -> Result<Wanted, UsageError> {
        let layout = match self.blocks.fixed() {
            Some(blocks) => Layout::new(blocks, self.distance),
            None => Layout::for_documents(self.documents, self.distance),
        };
        let hot = self.hot.unwrap_or(self.replicas.min(2));
        if hot > self.replicas {
            let (hot, replicas) = (hot, self.replicas);
            let problem = format!("--hot {hot} is more than --replicas {replicas}");
            return Err(UsageError(problem));
        }
        Ok(Wanted {
            documents: self.documents,
            id_bytes: self.id_bytes,
            layout: layout.map_err(|error| UsageError(error.to_string()))?,
            replicas: self.replicas,
            hot,
            node_memory: f64::from(self.node_gib) * GIB,
        })
    }
}

/// The estimate, for people.
fn table(wanted: Wanted, estimate: &Estimate) -> String {
    let Wanted {
        layout,
        replicas,
        hot,
        ..
    } = wanted;
    let (blocks, tables) = (layout.blocks(), estimate.tables);
    let rows = [
        (
            "layout",
            format!(
                "{}, distance {}, {}: a document is in {:.1} shards",
                counted(blocks, "block"),
                layout.distance(),
                counted(tables, "table"),
                estimate.shards_per_document,
            ),
        ),
        (
            "nodes",
            format!(
                "{}, {replicas} for each shard, {hot} of them hot",
                estimate.nodes
            ),
        ),
        (
            "memory",
            in_all(estimate.memory_bytes, estimate.memory_bytes_per_node),
        ),
        (
            "disk",
            in_all(estimate.disk_bytes, estimate.disk_bytes_per_node),
        ),
        (
            "restart",
            format!("{} for a node", time(estimate.restart_seconds)),
        ),
        (
            "in memory",
            format!(
                "{} in one process without --data, which keeps nothing",
                bytes(estimate.memory_bytes_without_data)
            ),
        ),
    ];
    let lines = rows.map(|(name, value)| format!("{name:<11}{value}\n"));
    lines.concat()
}

fn in_all(all: f64, of_node: f64) -> String {
    format!("{} in all, {} a node", bytes(all), bytes(of_node))
}
