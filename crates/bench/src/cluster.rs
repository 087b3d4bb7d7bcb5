//! `simshard bench cluster`: real processes on this machine, asked by a client of their own.

mod alone;
mod check;
mod commands;
mod compared;
mod copies;
mod disk;
mod echoed;
mod failures;
mod figures;
mod grown;
mod large;
mod place;
mod process;
mod processes;
mod rebuilt;
mod requests;
mod rest;
mod secrets;
mod served;
mod session;
mod settings;
mod single;
mod site;
mod streams;

use anyhow::bail;
use simshard_hosts::Network;
use simshard_runtime::shutdown;

pub use settings::{Case, Settings};

/// Makes the network that the cases need, if one does. The threads that are to measure must begin afterwards.
///
/// # Errors
/// If this process may not make a network.
pub fn network(settings: &Settings) -> anyhow::Result<Option<Network>> {
    failures::network(settings)
}

/// Measures and prints, on that network.
pub async fn run(settings: &Settings, network: Option<Network>) -> anyhow::Result<()> {
    disk::check_is_disk(settings.folder())?;
    let shutdown = shutdown::on_signals()?;
    // Dropping these ends their processes and deletes their folder.
    tokio::select! {
        measured = measure(settings, network) => measured,
        () = shutdown.cancelled() => bail!("stopped before all was measured"),
    }
}

async fn measure(settings: &Settings, network: Option<Network>) -> anyhow::Result<()> {
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
    if settings.asks_for(Case::Grown) {
        grown::measure(settings).await?;
    }
    if settings.asks_for(Case::Copies) {
        copies::measure(settings).await?;
    }
    if settings.asks_for(Case::ReplicasCompared) {
        compared::measure(settings).await?;
    }
    if settings.asks_for(Case::ShardRebuilt) {
        rebuilt::measure(settings).await?;
    }
    failures::measure(settings, network).await
}
