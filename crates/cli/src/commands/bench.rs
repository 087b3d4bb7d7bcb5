//! `simshard bench`: what this machine can do.

mod batch;
mod cluster;
mod data;
mod engine;
mod numbers;

use clap::Subcommand;

use crate::connection::block_on;

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// The in-memory engine: bulk insert, searches, both by turns, and bulk remove
    Engine(engine::EngineArgs),
    /// The batch tools: all pairs, clusters, and recipes over real text
    Batch(batch::BatchArgs),
    /// A cluster of real processes: searches and durable inserts, restart, memory, disk
    Cluster(cluster::ClusterArgs),
}

/// Measures.
///
/// # Errors
/// If the arguments make no corpus, a process fails, or an answer is wrong.
pub fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Engine(args) => simshard_bench::engine::run(&args.settings()),
        BenchCommand::Batch(args) => simshard_bench::batch::run(&args.settings()),
        BenchCommand::Cluster(args) => block_on(simshard_bench::cluster::run(&args.settings())),
    }
}
