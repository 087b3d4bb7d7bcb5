//! The case of comparisons: the replicas of a large corpus, and its shards, that agree.

use std::time::Instant;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;
use simshard_simhash::synthetic::Data;

use super::figures::HeldCorpus;
use super::processes::{Cluster, Replicas};
use super::session::Session;
use super::settings::{NODES, Settings, TEN_MILLION};
use crate::figure;

const REPLICAS: Replicas = Replicas { all: 3, hot: 2 };

/// Bytes of a bare element, at least: a fingerprint and a version.
const ELEMENT_BYTES: u64 = 16;

/// What comparisons take.
#[derive(Serialize)]
struct Compared {
    #[serde(flatten)]
    corpus: HeldCorpus,
    /// Elements of one replica of all shards.
    elements: u64,
    /// How long all replicas take.
    seconds: f64,
    /// Bytes of the messages for that, against those of the elements.
    sent: f64,
    /// How long all shards take, which are compared with each other.
    seconds_of_shards: f64,
}

/// What a comparison printed, and how long it took.
struct Comparison {
    seconds: f64,
    rows: Vec<Value>,
}

/// Measures what it takes to find nothing different.
pub(super) async fn measure(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(TEN_MILLION);
    let session = Session::start(settings, NODES, Some(REPLICAS))?;
    session
        .load(&Data::Random.fingerprints(n, settings.seed))
        .await?;
    let replicas = scrub(&session.cluster, "replicas")?;
    let shards = scrub(&session.cluster, "shards")?;
    let elements = replicas.sum("compared")?;
    ensure!(elements >= n as u64, "{elements} elements were compared");
    let bytes = replicas.sum("message_bytes")?;
    let figure = Compared {
        corpus: HeldCorpus::new(settings, "replicas_compared", n, NODES),
        elements,
        seconds: replicas.seconds,
        sent: bytes as f64 / (elements * ELEMENT_BYTES) as f64,
        seconds_of_shards: shards.seconds,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "replicas compared {:8.3} s, {bytes} bytes sent, {:.3} % of {elements} elements\nshards compared   {:8.3} s",
            figure.seconds,
            100.0 * figure.sent,
            figure.seconds_of_shards,
        )
    })?;
    session.cluster.stop()
}

/// Compares replicas, or shards, which must agree.
fn scrub(cluster: &Cluster, what: &str) -> anyhow::Result<Comparison> {
    let start = Instant::now();
    let printed = cluster.ask(&["scrub", "--json", "--settled-seconds", "0", "--only", what])?;
    let seconds = start.elapsed().as_secs_f64();
    let rows = printed.lines().map(serde_json::from_str);
    let rows = rows.collect::<Result<Vec<Value>, _>>()?;
    let agree = rows.iter().all(|row| row["state"] == "agrees");
    ensure!(agree && !rows.is_empty(), "{what} do not agree: {printed}");
    Ok(Comparison { seconds, rows })
}

impl Comparison {
    /// The sum of a field of all rows.
    fn sum(&self, field: &str) -> anyhow::Result<u64> {
        let values = self.rows.iter().map(|row| row[field].as_u64());
        let values: Option<Vec<u64>> = values.collect();
        Ok(values
            .with_context(|| format!("a row has no {field}"))?
            .into_iter()
            .sum())
    }
}
