//! The cases of a large corpus: its memory and disk, and the time of a node's restart.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use simshard_client::Fingerprint;
use simshard_cluster::{FileStore, MetadataStore};
use simshard_runtime::system::anonymous_memory_of;
use simshard_simhash::synthetic::{Data, queries};

use super::figures::HeldCorpus;
use super::process::End;
use super::processes::Replicas;
use super::session::{Session, distinct};
use super::settings::{BARE, Case, DISTANCE, NODES, Settings, TEN_MILLION};
use super::{disk, rest};
use crate::figure;

/// Queries whose answers are checked after a start.
const QUERIES: usize = 50;

/// The memory or disk of all nodes together.
#[derive(Serialize)]
struct Size {
    #[serde(flatten)]
    corpus: HeldCorpus,
    /// After the inserts, with the nodes at rest.
    bytes: u64,
    /// After a restart, with the nodes at rest.
    bytes_after_restart: u64,
    /// The larger of both.
    bytes_per_document: f64,
}

/// The time of a node's start.
#[derive(Serialize)]
struct Restart {
    #[serde(flatten)]
    corpus: HeldCorpus,
    /// From the start of the process to its first answer, after a clean stop.
    seconds_after_stop: f64,
    /// The same, after the process was killed.
    seconds_after_kill: f64,
    /// The longer of both.
    seconds: f64,
}

/// Measures memory and disk of a cluster, before and after a restart of all its nodes.
pub(super) async fn sizes(settings: &Settings) -> anyhow::Result<()> {
    let mut large = Large::start(settings, NODES, settings.replicas()).await?;
    let loaded = large.sizes()?;
    for place in 0..NODES {
        large.session.cluster.nodes[place].restart(End::Stop)?;
    }
    large.check().await?;
    rest::wait(&large.session.cluster).await?;
    let restarted = large.sizes()?;
    let cases = [(Case::Memory, "memory"), (Case::Disk, "disk")];
    for (place, (case, name)) in cases.into_iter().enumerate() {
        if settings.asks_for(case) {
            large.print_size(name, loaded[place], restarted[place])?;
        }
    }
    large.session.cluster.stop()
}

/// Measures the start of the only node of a cluster.
pub(super) async fn restart(settings: &Settings) -> anyhow::Result<()> {
    let mut large = Large::start(settings, 1, None).await?;
    let after_stop = large.restart(End::Stop).await?.as_secs_f64();
    let after_kill = large.restart(End::Kill).await?.as_secs_f64();
    let figure = Restart {
        corpus: HeldCorpus::new(settings, "restart", large.stored.len(), 1),
        seconds_after_stop: after_stop,
        seconds_after_kill: after_kill,
        seconds: after_stop.max(after_kill),
    };
    figure::print(&figure, settings.json, || {
        format!(
            "restart            {after_stop:8.3} s after a stop, {after_kill:.3} s after a kill"
        )
    })?;
    large.session.cluster.stop()
}

/// A cluster at rest that holds a large corpus.
struct Large<'a> {
    session: Session<'a>,
    stored: Vec<Fingerprint>,
}

impl<'a> Large<'a> {
    async fn start(
        settings: &'a Settings,
        nodes: usize,
        replicas: Option<Replicas>,
    ) -> anyhow::Result<Self> {
        let stored = Data::Random.fingerprints(settings.n.unwrap_or(TEN_MILLION), settings.seed);
        let session = Session::start(settings, nodes, replicas)?;
        session.load(&stored).await?;
        Ok(Self { session, stored })
    }

    /// Checks the number of documents, and the answers to some queries.
    async fn check(&self) -> anyhow::Result<()> {
        let count = distinct(&self.stored);
        self.session.check_count(BARE, count).await?;
        let queries = queries(
            &self.stored,
            QUERIES,
            DISTANCE,
            self.session.settings.seed ^ 1,
        );
        let found = self.session.find_all(BARE, &queries).await?;
        let question = self.session.question(&queries, &self.stored, &[]);
        question.check(found.answers)
    }

    /// The memory and disk of all nodes.
    fn sizes(&self) -> anyhow::Result<[u64; 2]> {
        let [mut memory, mut bytes] = [0, 0];
        for node in &self.session.cluster.nodes {
            let anonymous = anonymous_memory_of(node.id());
            memory += anonymous.context("this system does not say what memory a process has")?;
            bytes += disk::bytes_below(node.data())?;
        }
        Ok([memory, bytes])
    }

    fn print_size(&self, case: &'static str, bytes: u64, after: u64) -> anyhow::Result<()> {
        let settings = self.session.settings;
        let n = self.stored.len();
        let figure = Size {
            corpus: HeldCorpus::new(settings, case, n, NODES),
            bytes,
            bytes_after_restart: after,
            bytes_per_document: bytes.max(after) as f64 / n as f64,
        };
        figure::print(&figure, settings.json, || {
            let [before, after] = [bytes, after].map(|bytes| bytes as f64 / n as f64);
            format!("{case:18} {before:8.1} bytes a document, {after:.1} after a restart")
        })
    }

    /// Ends the only node and starts it again. Returns the time from its start to its first answer.
    async fn restart(&mut self, end: End) -> anyhow::Result<Duration> {
        let layout = FileStore::open(self.session.cluster.layout_file()).await?;
        let map = layout.layout().await?.map().digest();
        let node = &mut self.session.cluster.nodes[0];
        let start: Instant = node.restart(end)?;
        node.answers(map).await?;
        let taken = start.elapsed();
        self.check().await?;
        Ok(taken)
    }
}
