//! `simshard bench`: what this machine can do.

mod batch;

use clap::Subcommand;
use simshard_bench::{client, cluster, echo, engine};

use crate::connection::block_on;

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// The in-memory engine: bulk insert, searches, both by turns, and bulk remove
    Engine(engine::Settings),
    /// The batch tools: all pairs, clusters, and recipes over real text
    Batch(batch::BatchArgs),
    /// A cluster of real processes: searches and durable inserts, restart, memory, disk
    Cluster(cluster::Settings),
    /// The Rust client against a router that runs: streams of inserts and searches
    Client(client::Settings),
    /// The server of the case echo of a cluster: it answers searches without a search
    #[command(hide = true)]
    Echo,
}

/// Measures.
pub fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Engine(settings) => engine::run(&settings),
        BenchCommand::Batch(args) => simshard_bench::batch::run(&args.settings()),
        BenchCommand::Cluster(settings) => {
            let network = cluster::network(&settings)?;
            block_on(cluster::run(&settings, network))
        }
        BenchCommand::Client(settings) => block_on(client::run(&settings)),
        BenchCommand::Echo => block_on(echo::run()),
    }
}
