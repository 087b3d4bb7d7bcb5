//! The cases in which an operator reshapes the cluster: shards move, a node is drained, and all restart in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use simshard_cluster::{
    NodeSettings, Targets, change_node_settings, registered_stores, set_targets, shard_records,
};
use simshard_topology::replication::StoreId;
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet, plan_evenly};
use tokio::time::sleep;

use super::super::process::End;
use super::super::processes::Replicas;
use super::super::requests::Latencies;
use super::super::settings::{DISTANCE, NODES, Settings, TEN_MILLION};
use super::super::site::Sites;
use super::load::{Gaps, Load};
use super::{ACQUAINTED, Failing, HUNDRED_THOUSAND, INTERVAL, PATIENCE, REPLICAS};
use crate::figure;

/// Megabytes a second that no machine copies.
const UNLIMITED: u32 = 100_000;

/// How often the records of all shards are read while they move. More often it would cost the requests beside it.
const LOOKED_AFTER: Duration = Duration::from_millis(100);

/// How long latencies are measured before shards move.
const BEFORE: Duration = Duration::from_secs(5);

/// What clients saw while an operator worked.
#[derive(Serialize)]
struct Worked {
    case: &'static str,
    n: usize,
    in_flight: usize,
    rounds: usize,
    /// The longest times without a successful search, and without a successful insert.
    reads_longest_ms: f64,
    writes_longest_ms: f64,
    requests: u64,
    /// Requests that failed at first.
    retried: u64,
    failed: u64,
}

/// How shards of a large corpus move.
#[derive(Serialize)]
struct Moved {
    case: &'static str,
    n: usize,
    /// Half of all shards move to another node while nothing is asked, and how many entries their tables have.
    seconds: f64,
    entries: u64,
    entries_per_second: f64,
    /// The times of 99 of 100 requests while nothing moves.
    calm_reads_p99_ms: f64,
    calm_writes_p99_ms: f64,
    /// They move on while requests are in flight, as fast as they can: the times of 99 of 100 of them, against those
    /// before.
    loaded_seconds: f64,
    reads_p99_times: f64,
    writes_p99_times: f64,
    /// And on again, at the rate that nodes have without a limit.
    eased_seconds: f64,
    eased_reads_p99_times: f64,
    eased_writes_p99_times: f64,
    retried: u64,
    failed: u64,
}

/// Measures how nodes are drained, one after the other.
pub(super) async fn drained(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(HUNDRED_THOUSAND);
    let replicas = Replicas { all: 2, hot: 2 };
    let failing = Failing::start(settings, &Sites::here(NODES), replicas, n).await?;
    let all = failing.map().await?;
    let load = failing.load()?;
    sleep(ACQUAINTED).await;
    load.take_gaps();
    for round in 0..settings.rounds {
        let drained = &all.nodes()[round % NODES];
        let others = all.nodes().iter().filter(|node| *node != drained);
        let others: Vec<NodeId> = others.cloned().collect();
        failing.place(&plan_evenly(Some(&all), &others, 2)?).await?;
        failing.place(&all).await?;
    }
    finish(failing, load, "node_drained", settings.rounds).await
}

/// Measures a restart of each node in turn, as for an upgrade.
pub(super) async fn restarted(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(HUNDRED_THOUSAND);
    let mut failing = Failing::start(settings, &Sites::here(NODES), REPLICAS, n).await?;
    let load = failing.load()?;
    sleep(ACQUAINTED).await;
    load.take_gaps();
    for round in 0..settings.rounds {
        let node = &mut failing.session.cluster.nodes[round % NODES];
        node.restart(End::Stop)?;
        let start = Instant::now();
        while !node.is_ready().await {
            ensure!(start.elapsed() < PATIENCE, "the node does not get ready");
            sleep(INTERVAL).await;
        }
    }
    finish(failing, load, "rolling_restart", settings.rounds).await
}

async fn finish(
    failing: Failing<'_>,
    load: Load,
    case: &'static str,
    rounds: usize,
) -> anyhow::Result<()> {
    let Gaps { reads, writes } = load.take_gaps();
    let ended = load.end().await?;
    let settings = failing.session.settings;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let figure = Worked {
        case,
        n: failing.stored.len(),
        in_flight: settings.in_flight,
        rounds,
        reads_longest_ms: millis(reads),
        writes_longest_ms: millis(writes),
        requests: ended.done + ended.failed,
        retried: ended.retried,
        failed: ended.failed,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "{case:18} longest gaps: searches {:.0} ms, inserts {:.0} ms; {} requests, {} sent again, {} failed",
            figure.reads_longest_ms,
            figure.writes_longest_ms,
            figure.requests,
            figure.retried,
            figure.failed
        )
    })?;
    failing.session.cluster.stop()
}

/// Measures how half of all shards move, each time to a node that has none of their documents yet.
pub(super) async fn moved(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(TEN_MILLION);
    let replicas = Replicas { all: 1, hot: 1 };
    let mut failing = Failing::start(settings, &Sites::here(2), replicas, n).await?;
    let seconds = failing.move_half(None).await?;
    // Each document is in as many shards as its tables have blocks to lead, but for those that agree.
    let entries = n as u64 * u64::from(DISTANCE + 1) / 2;
    let load = failing.load()?;
    sleep(ACQUAINTED).await;
    load.take_latencies();
    sleep(BEFORE).await;
    let calm = load.take_latencies().map(Latencies::new);
    let mut moves = Vec::new();
    for rate in [NonZeroU32::new(UNLIMITED), None] {
        let seconds = failing.move_half(rate).await?;
        moves.push((seconds, load.take_latencies().map(Latencies::new)));
        sleep(ACQUAINTED).await;
        load.take_latencies();
    }
    let ended = load.end().await?;
    let p99 = |latencies: &[Latencies; 2], kind: usize| latencies[kind].percentile(99);
    let times = |place: usize, kind| p99(&moves[place].1, kind) / p99(&calm, kind);
    let figure = Moved {
        case: "shards_moved",
        n,
        seconds,
        entries,
        entries_per_second: entries as f64 / seconds,
        calm_reads_p99_ms: p99(&calm, 0),
        calm_writes_p99_ms: p99(&calm, 1),
        loaded_seconds: moves[0].0,
        reads_p99_times: times(0, 0),
        writes_p99_times: times(0, 1),
        eased_seconds: moves[1].0,
        eased_reads_p99_times: times(1, 0),
        eased_writes_p99_times: times(1, 1),
        retried: ended.retried,
        failed: ended.failed,
    };
    figure::print(&figure, settings.json, || figure.to_string())?;
    failing.session.cluster.stop()
}

impl fmt::Display for Moved {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "shards_moved       {:8.3} s, {:.0} entries a second; p99 of searches {:.2} ms, of inserts {:.2} ms; under load \
             in {:.1} s {:.2} x, {:.2} x; eased in {:.1} s {:.2} x, {:.2} x",
            self.seconds,
            self.entries_per_second,
            self.calm_reads_p99_ms,
            self.calm_writes_p99_ms,
            self.loaded_seconds,
            self.reads_p99_times,
            self.writes_p99_times,
            self.eased_seconds,
            self.eased_reads_p99_times,
            self.eased_writes_p99_times
        )
    }
}

impl Failing<'_> {
    /// The node of each store.
    async fn nodes(&self) -> anyhow::Result<BTreeMap<StoreId, NodeId>> {
        let stores = registered_stores(&*self.records).await?.into_iter();
        Ok(stores.map(|store| (store.id, store.node)).collect())
    }

    /// Which nodes hold which shards.
    async fn map(&self) -> anyhow::Result<ShardMap> {
        let nodes = self.nodes().await?;
        let records = shard_records(&*self.records).await?;
        let entries = records.values().map(|record| {
            let stores = record.in_sync.iter();
            stores.map(|entry| nodes[&entry.store].clone()).collect()
        });
        Ok(ShardMap::new(1, &entries.collect::<Vec<Vec<NodeId>>>())?)
    }

    /// Moves all shards of the node that holds the first one to a new node, at a rate. Answers how many seconds that takes.
    async fn move_half(&mut self, rate: Option<NonZeroU32>) -> anyhow::Result<f64> {
        let added = NodeId::new(self.session.cluster.add_node()?)?;
        self.limit(rate).await?;
        let now = self.map().await?;
        let mover = now.replicas(ShardId(0)).to_vec();
        let entries = ShardId::all().map(|shard| {
            let holders = now.replicas(shard).iter();
            let nodes = holders.map(|node| if mover.contains(node) { &added } else { node });
            nodes.cloned().collect()
        });
        let map = ShardMap::new(now.version() + 1, &entries.collect::<Vec<Vec<NodeId>>>())?;
        let start = Instant::now();
        self.place(&map).await?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Sets how many megabytes a second each node copies.
    async fn limit(&self, rate: Option<NonZeroU32>) -> anyhow::Result<()> {
        for store in registered_stores(&*self.records).await? {
            let change = |settings: &mut NodeSettings| settings.copy_rate = rate;
            change_node_settings(&*self.records, &store.node, change).await?;
        }
        Ok(())
    }

    /// Lets the nodes of a map hold its shards, and waits until they do.
    async fn place(&self, map: &ShardMap) -> anyhow::Result<()> {
        let held = |shard| map.replicas(shard).iter().cloned().collect::<BTreeSet<_>>();
        let targets: Targets = ShardId::all().map(|shard| (shard, held(shard))).collect();
        set_targets(&*self.records, &targets, ShardSet::EMPTY).await?;
        let start = Instant::now();
        loop {
            let now = self.map().await?;
            if ShardId::all().all(|shard| {
                let nodes = now.replicas(shard).iter().cloned();
                nodes.collect::<BTreeSet<_>>() == targets[&shard]
            }) {
                return Ok(());
            }
            ensure!(start.elapsed() < PATIENCE, "the shards do not move");
            sleep(LOOKED_AFTER).await;
        }
    }
}
