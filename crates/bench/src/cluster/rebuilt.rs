//! The case of a shard that is lost: another node fills it with what the other shards have of it.

use std::time::Instant;

use anyhow::Context;
use serde::Serialize;
use simshard_cluster::{key_values_at, registered_stores, shard_records};
use simshard_simhash::synthetic::{Data, queries};
use simshard_topology::ShardSet;

use super::figures::HeldCorpus;
use super::process::End;
use super::processes::Replicas;
use super::session::{Session, distinct};
use super::settings::{BARE, DISTANCE, NODES, Settings, TEN_MILLION};
use crate::figure;

const REPLICAS: Replicas = Replicas { all: 1, hot: 1 };

/// Queries whose answers are checked afterwards.
const QUERIES: usize = 50;

/// How long a shard takes.
#[derive(Serialize)]
struct Rebuilt {
    #[serde(flatten)]
    corpus: HeldCorpus,
    /// From the start of the command until the shard is searched.
    seconds: f64,
}

/// Measures how long the only shard of a node takes that is lost.
pub(super) async fn measure(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(TEN_MILLION);
    let stored = Data::Random.fingerprints(n, settings.seed);
    let mut session = Session::start(settings, NODES, Some(REPLICAS))?;
    session.load(&stored).await?;
    let others = all_but_one(&session.cluster.metadata(), "n3").await?;
    let others = others.to_string();
    session
        .cluster
        .ask(&["move", "--shards", &others, "--to", "n2"])?;
    let lost = session.cluster.nodes.pop();
    lost.context("there are nodes")?.end(End::Kill)?;
    let start = Instant::now();
    let rebuild = ["force", "--rebuild", "--from", "n1", "--stopped", "n3"];
    let rebuild = [&rebuild[..], &["--old-writes-seconds", "0"]].concat();
    session.cluster.ask(&rebuild)?;
    let figure = Rebuilt {
        corpus: HeldCorpus::new(settings, "shard_rebuilt", n, NODES),
        seconds: start.elapsed().as_secs_f64(),
    };
    session.check_count(BARE, distinct(&stored)).await?;
    let queries = queries(&stored, QUERIES, DISTANCE, settings.seed ^ 1);
    let found = session.find_all(BARE, &queries).await?;
    session
        .question(&queries, &stored, &[])
        .check(found.answers)?;
    figure::print(&figure, settings.json, || {
        format!("shard rebuilt      {:8.3} s", figure.seconds)
    })?;
    session.cluster.stop()
}

/// The shards of a node, without the first one.
async fn all_but_one(metadata: &str, node: &str) -> anyhow::Result<ShardSet> {
    let keys = key_values_at(metadata)?;
    let stores = registered_stores(&*keys).await?;
    let store = stores.iter().find(|store| store.node.as_str() == node);
    let store = store.context("the node is not registered")?.id;
    let records = shard_records(&*keys).await?;
    let own = records.iter().filter(|(_, record)| record.names(store));
    Ok(own.map(|(shard, _)| *shard).skip(1).collect())
}
