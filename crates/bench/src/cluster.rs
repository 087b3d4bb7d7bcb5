//! `simshard bench cluster`: real processes on this machine, asked by a client of their own.

mod alone;
mod check;
mod copies;
mod disk;
mod failures;
mod figures;
mod large;
mod process;
mod processes;
mod requests;
mod rest;
mod served;
mod session;
mod settings;
mod single;
mod streams;

use anyhow::bail;
use simshard_runtime::shutdown;

pub use settings::{Case, Settings};

/// Measures and prints.
pub async fn run(settings: &Settings) -> anyhow::Result<()> {
    disk::check_is_disk(settings.folder())?;
    let shutdown = shutdown::on_signals()?;
    // Dropping these ends their processes and deletes their folder.
    tokio::select! {
        measured = measure(settings) => measured,
        () = shutdown.cancelled() => bail!("stopped before all was measured"),
    }
}

async fn measure(settings: &Settings) -> anyhow::Result<()> {
    if served::CASES
        .into_iter()
        .any(|case| settings.asks_for(case))
    {
        served::measure(settings).await?;
    }
    if settings.asks_for(Case::ServedMemory) {
        alone::memory(settings).await?;
    }
    if settings.asks_for(Case::Restart) {
        large::restart(settings).await?;
    }
    if settings.asks_for(Case::Memory) || settings.asks_for(Case::Disk) {
        large::sizes(settings).await?;
    }
    if settings.asks_for(Case::Copies) {
        copies::measure(settings).await?;
    }
    failures::measure(settings).await
}
