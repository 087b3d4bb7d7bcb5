//! The cases of a large corpus: copying it to an empty node, and making a cold node hot.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use simshard_simhash::synthetic::queries;
use tokio::time::sleep;

use super::super::process::End;
use super::super::processes::Replicas;
use super::super::rest;
use super::super::settings::{BARE, DISTANCE, Settings, TEN_MILLION};
use super::super::site::Sites;
use super::{Failing, PATIENCE};
use crate::figure;

/// Queries that touch all shards, nearly certainly.
const QUERIES: usize = 2_000;

/// How often they are asked.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time of copying all.
#[derive(Serialize)]
struct FullCopy {
    case: &'static str,
    n: usize,
    /// From the start of the process with an empty directory, until it holds every shard in sync and hot.
    seconds: f64,
}

/// The time of becoming hot.
#[derive(Serialize)]
struct ColdToHot {
    case: &'static str,
    n: usize,
    /// From the record that wishes the replicas hot to the first answer from all of them.
    seconds: f64,
    /// From the start of the same node with all replicas hot to its first such answer.
    restart_seconds: f64,
    /// The first against the second.
    times: f64,
}

/// Measures a copy: each of two nodes has all shards, with tables.
pub(super) async fn full_copy(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(TEN_MILLION);
    let mut failing =
        Failing::start(settings, &Sites::here(2), Replicas { all: 2, hot: 2 }, n).await?;
    let node = &mut failing.session.cluster.nodes[1];
    node.end(End::Kill)?;
    node.lose_data()?;
    // The other one has taken it out of the records by the time that the machine which replaces it is there.
    failing.until_in_sync(1).await?;
    let start = failing.session.cluster.nodes[1].start_again()?;
    failing.until_in_sync(2).await?;
    let seconds = start.elapsed().as_secs_f64();
    let figure = FullCopy {
        case: "full_copy",
        n,
        seconds,
    };
    figure::print(&figure, settings.json, || {
        format!("full_copy          {seconds:8.3} s")
    })?;
    failing.session.cluster.stop()
}

/// Measures how a node whose replicas are all cold becomes hot, and a restart of the same node.
pub(super) async fn cold_to_hot(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(TEN_MILLION);
    let mut failing =
        Failing::start(settings, &Sites::here(2), Replicas { all: 2, hot: 1 }, n).await?;
    // It comes back cold, as the other one has become hot.
    failing.session.cluster.nodes[0].end(End::Kill)?;
    failing.until_in_sync(1).await?;
    failing.session.cluster.nodes[0].start_again()?;
    failing.until_in_sync(2).await?;
    rest::wait(&failing.session.cluster).await?;
    failing.session.cluster.nodes[1].end(End::Kill)?;
    failing.until_in_sync(1).await?;
    let start = Instant::now();
    failing.until_all_answer().await?;
    let seconds = start.elapsed().as_secs_f64();
    rest::wait_for_nodes(&failing.session.cluster.nodes[..1]).await?;
    let start = failing.session.cluster.nodes[0].restart(End::Stop)?;
    failing.until_all_answer().await?;
    let restart_seconds = start.elapsed().as_secs_f64();
    let times = seconds / restart_seconds;
    let figure = ColdToHot {
        case: "cold_to_hot",
        n,
        seconds,
        restart_seconds,
        times,
    };
    figure::print(&figure, settings.json, || {
        format!("cold_to_hot        {seconds:8.3} s, {restart_seconds:.3} s of a restart")
    })?;
    failing.session.cluster.nodes[1].start_again()?;
    failing.session.cluster.stop()
}

impl Failing<'_> {
    /// Waits for complete answers from all shards.
    async fn until_all_answer(&self) -> anyhow::Result<()> {
        let seed = self.session.settings.seed ^ 1;
        let queries = queries(&self.stored, QUERIES, DISTANCE, seed);
        let start = Instant::now();
        while self.session.find_all(BARE, &queries).await.is_err() {
            ensure!(start.elapsed() < PATIENCE, "the node does not answer");
            sleep(INTERVAL).await;
        }
        Ok(())
    }
}
