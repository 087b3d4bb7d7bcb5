//! `simshard demo`: the main job in one command. Three nodes and a router on
//! loopback, real files in, near-duplicates out.

mod report;
mod search;
mod verify;
mod walk;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueHint};
use simshard_client::{Client, v1};
use simshard_runtime::shutdown;
use simshard_runtime::terminal::counted;
use simshard_simhash::{Clusters, TextRecipe};
use simshard_topology::NodeId;
use tokio_util::sync::CancellationToken;

use crate::args::Blocks;
use crate::commands::serve::threads_or_cores;
use crate::connection::block_on;
use crate::embedded::{EmbeddedCluster, EmbeddedConfig};
use crate::recipe::text_recipe_names;
use crate::say::note;
use walk::Files;

/// The corpus of the demo.
const CORPUS: &str = "demo";

/// Arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Every number is real: the files are fingerprinted, streamed through the router
into the nodes that own their shards, and each is searched for in turn. With
--verify all pairs are computed again by linear scan, and the run ends with
`verified: N pairs, 0 missed, 0 extra`, or exit code 1.")]
pub struct DemoArgs {
    /// Files and folders to search [default: the sources of the Rust crates on this machine, else the current folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Read at most this many MiB of text
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_mib: u32,
    /// How texts become fingerprints
    #[arg(long, value_name = "RECIPE", default_value_t, value_parser = text_recipe_names())]
    pub recipe: TextRecipe,
    /// Blocks that a fingerprint is cut into: `auto`, or 1 to 64
    #[arg(long, value_name = "M", default_value = "auto")]
    pub blocks: Blocks,
    /// Largest distance that is searched
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub distance: u32,
    /// Check every answer against a linear scan
    #[arg(long)]
    pub verify: bool,
    /// Leave the cluster running until Ctrl-C, for a look with other commands
    #[arg(long)]
    pub keep: bool,
    /// Where the router listens; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
}

/// How long the steps took.
#[derive(Clone, Copy, Debug, Default)]
struct Timings {
    read: Duration,
    insert: Duration,
    find: Duration,
}

/// Runs the demo.
pub fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let files = walk::read(&args.paths, args.max_mib, args.recipe)?;
    let read = start.elapsed();
    ensure!(
        files.len() > 1,
        "{} holds {}: give the path of some more",
        files.roots_text(),
        counted(files.len(), "text file")
    );
    block_on(async {
        let shutdown = shutdown::on_signals()?;
        tokio::select! {
            outcome = on_cluster(args, &files, read, &shutdown) => outcome,
            () = shutdown.cancelled(), if !args.keep => anyhow::bail!("interrupted"),
        }
    })
}

async fn on_cluster(
    args: &DemoArgs,
    files: &Files,
    read: Duration,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut cluster = start(args.listen).await?;
    let client = Client::new(&cluster.url())?;
    create_corpus(&client, args, files.len()).await?;
    let mut timings = Timings {
        read,
        ..Timings::default()
    };

    let begin = Instant::now();
    search::insert(&client, CORPUS, files).await?;
    timings.insert = begin.elapsed();

    let begin = Instant::now();
    let answers = search::find(&client, CORPUS, files).await?;
    timings.find = begin.elapsed();

    let mut clusters = Clusters::new(files.len());
    for (file, near) in answers.iter().enumerate() {
        for &(other, _) in near {
            clusters.union(file, other as usize);
        }
    }
    let contents = client.get_corpus(CORPUS).await?;
    let recipe = args.recipe.into();
    report::print(files, &clusters.groups(), recipe, &contents, timings)?;
    let mut outcome = Ok(());
    if args.verify {
        outcome = verify::verify(files, &answers, args.distance);
    }
    let mut kept = Ok(());
    if args.keep {
        kept = keep(&mut cluster, shutdown).await;
    }
    let stopped = cluster.stop().await;
    outcome.and(kept).and(stopped)
}

async fn start(listen: SocketAddr) -> anyhow::Result<EmbeddedCluster> {
    let nodes = ["n1", "n2", "n3"].map(NodeId::new).into_iter();
    let nodes = nodes.collect::<Result<_, _>>()?;
    let config = EmbeddedConfig {
        listen,
        ..EmbeddedConfig::in_memory(nodes, threads_or_cores(None))
    };
    let cluster = EmbeddedCluster::start(config).await;
    cluster.context("cannot start the demo's cluster")
}

async fn create_corpus(client: &Client, args: &DemoArgs, files: usize) -> anyhow::Result<()> {
    let blocks = args.blocks.for_corpus(args.distance, files as f64)?;
    let request = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        blocks: Some(blocks),
        distance: Some(args.distance),
        recipe: args.recipe.to_string(),
    };
    client.create_corpus(request).await?;
    Ok(())
}

async fn keep(cluster: &mut EmbeddedCluster, shutdown: &CancellationToken) -> anyhow::Result<()> {
    let url = cluster.url();
    note("");
    note("The cluster runs until Ctrl-C. In another terminal:");
    note(format!("  simshard corpus show {CORPUS} --router {url}"));
    note(format!(
        "  simshard find --router {url} --corpus {CORPUS} --text 'some text'"
    ));
    cluster.run_until(shutdown).await
}
