//! `simshard bench`: what this machine can do.

mod engine;

use clap::Subcommand;

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// The in-memory engine: bulk insert, searches and bulk remove
    Engine(engine::EngineArgs),
}

/// Measures.
///
/// # Errors
/// If the arguments make no corpus, or an answer is wrong.
pub fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Engine(args) => engine::run(&args),
    }
}
