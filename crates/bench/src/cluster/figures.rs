//! The figures that each case prints.

use serde::Serialize;

use super::requests::Latencies;
use super::settings::{BLOCKS, DISTANCE, Settings};
use crate::figure;

/// The corpus of a case, and the number of nodes that hold it.
#[derive(Serialize)]
pub(super) struct HeldCorpus {
    case: &'static str,
    n: usize,
    nodes: usize,
    blocks: u32,
    distance: u32,
    seed: u64,
}

impl HeldCorpus {
    pub(super) fn new(settings: &Settings, case: &'static str, n: usize, nodes: usize) -> Self {
        Self {
            case,
            n,
            nodes,
            blocks: BLOCKS,
            distance: DISTANCE,
            seed: settings.seed,
        }
    }
}

/// A measurement of requests.
#[derive(Default, Serialize)]
pub(super) struct Requests {
    case: &'static str,
    /// Documents of the corpus, before an insert or by it.
    n: usize,
    blocks: u32,
    distance: u32,
    seed: u64,
    /// Documents and queries that were sent.
    items: usize,
    seconds: f64,
    per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<usize>,
    /// Documents or queries in a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<usize>,
    /// Matches that a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) matches: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ms: Option<f64>,
    /// The time of a sync on this disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sync_p50_ms: Option<f64>,
}

impl Requests {
    /// The figures of a case that took `seconds` for `items` documents or queries.
    pub(super) fn new(
        settings: &Settings,
        case: &'static str,
        n: usize,
        items: usize,
        seconds: f64,
    ) -> Self {
        Self {
            case,
            n,
            blocks: BLOCKS,
            distance: DISTANCE,
            seed: settings.seed,
            items,
            seconds,
            per_second: items as f64 / seconds,
            ..Self::default()
        }
    }

    pub(super) fn in_batches(self, settings: &Settings) -> Self {
        Self {
            streams: Some(settings.streams),
            batch: Some(settings.batch),
            ..self
        }
    }

    pub(super) fn with_latencies(self, in_flight: usize, latencies: &Latencies) -> Self {
        Self {
            in_flight: Some(in_flight),
            p50_ms: Some(latencies.percentile(50)),
            p99_ms: Some(latencies.percentile(99)),
            ..self
        }
    }

    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        figure::print(self, json, || {
            let Self {
                case,
                per_second,
                seconds,
                ..
            } = self;
            let mut line = format!("{case:18} {per_second:>10.0}/s {seconds:8.3} s");
            if let (Some(p50), Some(p99)) = (self.p50_ms, self.p99_ms) {
                line += &format!("  p50 {p50:.3} ms, p99 {p99:.3} ms");
            }
            if let Some(sync) = self.sync_p50_ms {
                line += &format!(", p50 of a sync alone {sync:.3} ms");
            }
            line
        })
    }
}
