//! The `simshard` command: the roles of a cluster, the client commands, and the
//! batch tools, one file a verb in `commands`. The arguments that several share
//! are in `args`; what the commands do is in the other crates.

pub mod args;
mod checkpoint;
pub mod commands;
pub mod completion;
mod confirmation;
mod connection;
pub mod embedded;
pub mod exit;
mod progress;
mod recipe;
mod say;
mod sources;

use clap::{CommandFactory, Parser, Subcommand};

use simshard_runtime::logging::{self, Level, LogFormat};
use simshard_simhash::limit_level;

use commands::{
    backup, bench, cluster, completions, config, corpus, dedup, demo, distance, evaluate, find,
    find_clusters, find_pairs, hash, insert, man_pages, ready, recipes, remove, serve, size,
    storage, text, token,
};
use connection::block_on;
use exit::UsageError;

/// Exact near-duplicate search over 64-bit simhash fingerprints.
///
/// A corpus holds documents: pairs of a fingerprint and an id. Texts become
/// fingerprints by the corpus's recipe, and a search finds every document whose
/// fingerprint differs in at most the corpus's distance of bits - never missing
/// one.
///
/// Start with `simshard demo`, or with `simshard serve` in one terminal and
/// `simshard insert` and `simshard find` in another.
#[derive(Debug, Parser)]
#[command(
    name = "simshard",
    bin_name = "simshard",
    version,
    propagate_version = true
)]
pub struct Cli {
    /// Say nothing on standard error but warnings and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Use the instructions of this level and no later ones: scalar, avx2, avx512bw or avx512vpopcntdq; on ARM scalar or neon
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "SIMSHARD_CPU",
        hide_short_help = true
    )]
    pub cpu: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the near-duplicates among files, on a cluster of three nodes in this process
    Demo(demo::DemoArgs),
    /// Run a router and a node in one process, or one of the two
    Serve(Box<serve::ServeArgs>),
    /// Check settings before a process is started with them
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Tell whether a process that serves is ready
    Ready(ready::ReadyArgs),
    /// Begin a cluster, look at it, move its shards, scrub them, upgrade it, or force it on
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Create, list, show, delete and recover corpora, and look through all of one
    #[command(subcommand)]
    Corpus(corpus::CorpusCommand),
    /// Insert documents into a corpus
    Insert(insert::InsertArgs),
    /// Remove documents from a corpus
    Remove(remove::RemoveArgs),
    /// Find all near-duplicates of documents, one JSON line for each
    Find(find::FindArgs),
    /// Find the nearest near-duplicate of documents, one JSON line for each
    FindFirst(find::FindFirstArgs),
    /// Find all pairs of near-duplicates among documents, without a cluster of nodes
    #[command(visible_alias = "find-all")]
    FindPairs(find_pairs::FindPairsArgs),
    /// Find the groups of near-duplicates among documents, without a cluster of nodes
    FindClusters(find_clusters::FindClustersArgs),
    /// Write documents without their near-duplicates, without a cluster of nodes
    Dedup(dedup::DedupArgs),
    /// Measure how well recipes find the near-duplicates among documents, and suggest one
    Evaluate(evaluate::EvaluateArgs),
    /// Print the fingerprints of documents
    Hash(hash::HashArgs),
    /// Print the texts of documents, as recipes see them
    Text(text::TextArgs),
    /// Print the number of bits in which two fingerprints differ
    Distance(distance::DistanceArgs),
    /// List the recipes that make fingerprints, or explain one
    Recipes(recipes::RecipesArgs),
    /// Estimate what memory, disk and nodes a corpus will take
    Size(size::SizeArgs),
    /// Make tokens by which a router knows its clients
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Make backups of corpora, verify them, and restore them
    #[command(subcommand)]
    Backup(backup::BackupCommand),
    /// Look into the data directory of a node that does not run
    #[command(subcommand)]
    Storage(storage::StorageCommand),
    /// Measure the engine, the batch tools, or a cluster on this machine
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Print a script that completes this command's arguments in a shell
    Completions(completions::CompletionsArgs),
    /// Write a page of the manual for each command
    ManPages(man_pages::ManPagesArgs),
}

impl Cli {
    /// Reads the arguments of this process, and ends it where they are wrong or ask for help.
    #[must_use]
    pub fn from_arguments() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            let mut command = Self::command();
            command.build();
            let again = exit::with_usage_of_help(command).try_get_matches();
            exit::end_with(again.err().unwrap_or(error))
        })
    }

    /// Does it.
    ///
    /// # Errors
    /// If it fails; [`exit::code`] tells how to end the process.
    pub fn run(self) -> anyhow::Result<()> {
        if self.quiet {
            say::be_quiet();
        }
        if let Some(level) = &self.cpu {
            limit_level(level)
                .map_err(|error| UsageError(format!("--cpu (SIMSHARD_CPU) {level:?}: {error}")))?;
        }
        if !matches!(self.command, Command::Serve(_)) {
            logging::init(LogFormat::Human, Level::WARN)?;
        }
        match self.command {
            Command::Demo(args) => demo::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Config(command) => config::run(&command),
            Command::Ready(args) => block_on(ready::run(args)),
            Command::Cluster(command) => block_on(cluster::run(command)),
            Command::Corpus(command) => block_on(corpus::run(command)),
            Command::Insert(args) => block_on(insert::run(&args)),
            Command::Remove(args) => block_on(remove::run(&args)),
            Command::Find(args) => block_on(find::run(&args)),
            Command::FindFirst(args) => block_on(find::run_first(&args)),
            Command::FindPairs(args) => find_pairs::run(&args),
            Command::FindClusters(args) => find_clusters::run(&args),
            Command::Dedup(args) => dedup::run(&args),
            Command::Evaluate(args) => evaluate::run(&args),
            Command::Hash(args) => hash::run(&args),
            Command::Text(args) => text::run(&args),
            Command::Distance(args) => distance::run(args),
            Command::Recipes(args) => recipes::run(args),
            Command::Size(args) => size::run(&args),
            Command::Token(command) => token::run(&command),
            Command::Backup(command) => block_on(backup::run(command)),
            Command::Storage(command) => storage::run(command),
            Command::Bench(command) => bench::run(command),
            Command::Completions(args) => completions::run(args),
            Command::ManPages(args) => man_pages::run(&args, Self::command()),
        }
    }
}
