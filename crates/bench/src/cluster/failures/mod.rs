//! The cases of a cluster with replicas in which something fails while it is asked.

mod etcd;
mod failover;
mod large;
mod load;
mod reshaped;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use simshard_cluster::{KeyValueStore, key_values_at, shard_records};
use simshard_hosts::Network;
use simshard_simhash::Fingerprint;
use simshard_simhash::synthetic::{Data, queries};
use simshard_topology::replication::ShardRecord;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::processes::{Cluster, Replicas};
use super::session::Session;
use super::settings::{Case, DISTANCE, NODES, Settings};
use super::site::Sites;
use crate::figure;
use crate::settings::BadSettings;
use etcd::Etcd;
use load::Load;

/// Documents by default. A node that comes back copies them, so that more make rounds longer and nothing else.
const HUNDRED_THOUSAND: usize = 100_000;

/// How many nodes hold each shard, and how many of them answer searches, unless told otherwise.
const REPLICAS: Replicas = Replicas { all: 3, hot: 2 };

/// How often the records of shards are read.
const INTERVAL: Duration = Duration::from_millis(20);

/// A cluster that has not got well by then will not.
const PATIENCE: Duration = Duration::from_secs(600);

/// Nodes ask each other for signs of life, and know all that they need, by then.
const ACQUAINTED: Duration = Duration::from_secs(2);

/// How long etcd is away, unless told otherwise.
const AWAY: u64 = 60;

/// What clients saw while etcd was away.
#[derive(Serialize)]
struct Away {
    case: &'static str,
    n: usize,
    in_flight: usize,
    seconds: f64,
    per_second_before: f64,
    per_second: f64,
    /// The second against the first.
    times: f64,
    /// Requests that failed at first.
    retried: u64,
    failed: u64,
}

/// Makes the network that cases need which were asked for. Threads that run before are not on it.
pub(super) fn network(settings: &Settings) -> anyhow::Result<Option<Network>> {
    if !failover::needs_network(settings) {
        return Ok(None);
    }
    let network = Network::make();
    network
        .context("a case needs a network of its own, which only root may make")
        .map(Some)
}

/// Measures those cases that were asked for.
pub(super) async fn measure(settings: &Settings, network: Option<Network>) -> anyhow::Result<()> {
    failover::measure(settings, network).await?;
    if settings.asks_for(Case::EtcdAway) {
        etcd_away(settings).await?;
    }
    if settings.asks_for(Case::FullCopy) {
        large::full_copy(settings).await?;
    }
    if settings.asks_for(Case::ColdToHot) {
        large::cold_to_hot(settings).await?;
    }
    if settings.asks_for(Case::NodeDrained) {
        reshaped::drained(settings).await?;
    }
    if settings.asks_for(Case::RollingRestart) {
        reshaped::restarted(settings).await?;
    }
    if settings.asks_for(Case::ShardsMoved) {
        reshaped::moved(settings).await?;
    }
    Ok(())
}

/// A cluster that is asked while something fails. Its processes end before its etcd.
struct Failing<'a> {
    session: Session<'a>,
    records: Arc<dyn KeyValueStore>,
    stored: Vec<Fingerprint>,
    etcd: Option<Etcd>,
}

impl<'a> Failing<'a> {
    /// A cluster that holds documents, with its records in etcd if that is given.
    async fn start(
        settings: &'a Settings,
        sites: &Sites,
        replicas: Replicas,
        n: usize,
    ) -> anyhow::Result<Self> {
        let etcd = match &settings.etcd {
            None => None,
            Some(program) => Some(Etcd::start(program, &sites.etcd, settings.folder()).await?),
        };
        let metadata = etcd.as_ref().map(Etcd::metadata);
        let cluster = Cluster::start_with_records(settings.folder(), sites, replicas, metadata)?;
        let records = key_values_at(&cluster.metadata()).context("the records cannot be read")?;
        let stored = Data::Random.fingerprints(n, settings.seed);
        let session = Session::of(settings, cluster)?;
        session.load(&stored).await?;
        Ok(Self {
            session,
            records,
            stored,
            etcd,
        })
    }

    fn load(&self) -> anyhow::Result<Load> {
        let settings = self.session.settings;
        let queries = queries(
            &self.stored,
            settings.queries.min(100_000),
            DISTANCE,
            settings.seed ^ 1,
        );
        Load::start(
            &self.session.cluster.connections(settings.streams)?,
            queries,
            settings.in_flight,
            settings.seed,
        )
    }

    /// Waits until the records of all shards are so.
    async fn until(&self, are_so: impl Fn(&ShardRecord) -> bool) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let records = shard_records(&*self.records).await;
            if records.is_ok_and(|records| records.values().all(|record| are_so(record))) {
                return Ok(());
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "the records do not become as they must within {PATIENCE:?}"
            );
        }
    }

    async fn until_in_sync(&self, count: usize) -> anyhow::Result<()> {
        self.until(|record| record.in_sync.len() == count).await
    }
}

async fn etcd_away(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(HUNDRED_THOUSAND);
    let replicas = settings.replicas().unwrap_or(REPLICAS);
    let mut failing = Failing::start(settings, &Sites::here(NODES), replicas, n).await?;
    if failing.etcd.is_none() {
        return Err(BadSettings("--etcd is missing: it is to be away".to_owned()).into());
    }
    let load = failing.load()?;
    sleep(ACQUAINTED).await;
    let time = Duration::from_secs(settings.seconds.unwrap_or(AWAY));
    let before = load.done_in(time).await;
    let failures_before = load.failures();
    if let Some(etcd) = &mut failing.etcd {
        etcd.stop()?;
    }
    let during = load.done_in(time).await;
    let failures = load.failures();
    if let Some(etcd) = &mut failing.etcd {
        etcd.start_again().await?;
    }
    failing.until_in_sync(replicas.all.into()).await?;
    load.end().await?;
    let (before, during) = (
        before as f64 / time.as_secs_f64(),
        during as f64 / time.as_secs_f64(),
    );
    let figure = Away {
        case: "etcd_away",
        n,
        in_flight: settings.in_flight,
        seconds: time.as_secs_f64(),
        per_second_before: before,
        per_second: during,
        times: during / before,
        retried: failures.retried - failures_before.retried,
        failed: failures.failed - failures_before.failed,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "etcd_away          {during:.0} requests a second, {before:.0} before; {} sent again, {} failed",
            figure.retried, figure.failed
        )
    })?;
    failing.session.cluster.stop()
}
