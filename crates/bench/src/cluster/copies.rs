//! The case of copies: a node with replicas of a large corpus comes back, after a minute and with an empty directory.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use simshard_client::{Fingerprint, v1 as pb};
use simshard_simhash::synthetic::Data;

use super::figures::HeldCorpus;
use super::process::End;
use super::processes::{Node, Replicas};
use super::requests::refused;
use super::rest;
use super::session::{Session, distinct};
use super::settings::{BARE, NODES, Settings, TEN_MILLION};
use crate::figure;

/// Every node holds all shards, with their tables.
const REPLICAS: Replicas = Replicas { all: 3, hot: 3 };

/// Documents that are inserted, and later removed, while a node is away.
const CHANGED: usize = 100_000;

/// How long it is away.
const AWAY: Duration = Duration::from_secs(60);

/// A node that is not ready by then never gets ready.
const PATIENCE: Duration = Duration::from_secs(120);

const INTERVAL: Duration = Duration::from_millis(10);

/// The line by which a node says that it has copied shards.
const COPIED: &str = "this node has copied shards";

/// What a node takes to come back, and what it receives and sends for that.
#[derive(Clone, Copy)]
struct Return {
    seconds: f64,
    bytes: u64,
}

/// What copies take.
#[derive(Serialize)]
struct Copies {
    #[serde(flatten)]
    corpus: HeldCorpus,
    /// Documents that were changed while a node was away.
    changed: usize,
    /// From the start of the process until it holds all shards in sync, after inserts.
    seconds_after_inserts: f64,
    bytes_after_inserts: u64,
    /// The same after removes.
    seconds_after_removes: f64,
    bytes_after_removes: u64,
    /// The same with an empty directory.
    seconds_of_all: f64,
    bytes_of_all: u64,
}

/// Measures how a node comes back.
pub(super) async fn measure(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(TEN_MILLION);
    let changed = CHANGED.min(n);
    let all = Data::Random.fingerprints(n + changed, settings.seed);
    let (stored, more) = all.split_at(n);
    let mut session = Session::start(settings, NODES, Some(REPLICAS))?;
    session.load(stored).await?;
    let since = session.end_last(End::Kill)?;
    session.insert(BARE, more, &[]).await?;
    let inserts = session.come_back(since).await?;
    session.check_count(BARE, distinct(&all)).await?;
    let since = session.end_last(End::Kill)?;
    session.remove(&stored[..changed]).await?;
    let removes = session.come_back(since).await?;
    let left = distinct(&all) - distinct(&stored[..changed]);
    session.check_count(BARE, left).await?;
    session.end_last(End::Kill)?;
    let node = session.last();
    fs::remove_dir_all(node.data()).context("cannot delete the directory of a node")?;
    let whole = session.come_back(Instant::now() - AWAY).await?;
    session.check_count(BARE, left).await?;
    let figure = Copies {
        corpus: HeldCorpus::new(settings, "copies", n, NODES),
        changed,
        seconds_after_inserts: inserts.seconds,
        bytes_after_inserts: inserts.bytes,
        seconds_after_removes: removes.seconds,
        bytes_after_removes: removes.bytes,
        seconds_of_all: whole.seconds,
        bytes_of_all: whole.bytes,
    };
    figure::print(&figure, settings.json, || {
        let line = |name, Return { seconds, bytes }: Return| {
            let part = 100.0 * bytes as f64 / whole.bytes as f64;
            let megabytes = bytes as f64 / 1e6;
            format!("{name:18} {seconds:8.3} s {megabytes:8.1} MB, {part:.1} % of all")
        };
        let lines = [
            line("copy after inserts", inserts),
            line("copy after removes", removes),
            line("copy of all", whole),
        ];
        lines.join("\n")
    })?;
    session.cluster.stop()
}

impl Session<'_> {
    fn last(&mut self) -> &mut Node {
        &mut self.cluster.nodes[NODES - 1]
    }

    fn end_last(&mut self, end: End) -> anyhow::Result<Instant> {
        self.last().end(end)?;
        Ok(Instant::now())
    }

    async fn remove(&self, fingerprints: &[Fingerprint]) -> anyhow::Result<()> {
        let mut stub = self.connections[0].clone();
        for part in fingerprints.chunks(self.settings.batch) {
            let request = pb::RemoveRequest {
                corpus: BARE.to_owned(),
                fingerprints: part.iter().map(|one| one.0).collect(),
                ..pb::RemoveRequest::default()
            };
            stub.remove(request).await.map_err(refused)?;
        }
        Ok(())
    }

    /// Starts the last node once it was away for long enough, and waits until it is ready.
    async fn come_back(&mut self, since: Instant) -> anyhow::Result<Return> {
        tokio::time::sleep(AWAY.saturating_sub(since.elapsed())).await;
        let log = self.cluster.folder().join("log");
        let node = self.last();
        let start = node.start_with_log(&log)?;
        // A new store is ready before it is named for a shard.
        while !fs::read_to_string(&log)?.contains(COPIED) || !node.is_ready().await {
            ensure!(start.elapsed() < PATIENCE, "a node does not get ready");
            tokio::time::sleep(INTERVAL).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        let log = fs::read_to_string(&log)?;
        let copied = log.lines().filter(|line| line.contains(COPIED));
        let bytes = copied.map(|line| number(line, "bytes="));
        let bytes = bytes.collect::<anyhow::Result<Vec<u64>>>()?;
        rest::wait(&self.cluster).await?;
        Ok(Return {
            seconds,
            bytes: bytes.into_iter().sum(),
        })
    }
}

/// The number behind a name in a line of the log.
fn number(line: &str, name: &str) -> anyhow::Result<u64> {
    let digits = line.split_once(name).map(|(_, rest)| rest);
    let digits = digits.with_context(|| format!("no {name} in {line}"))?;
    let end = digits.find(|c: char| !c.is_ascii_digit());
    Ok(digits[..end.unwrap_or(digits.len())].parse()?)
}
