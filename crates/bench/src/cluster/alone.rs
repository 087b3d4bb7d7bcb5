//! The memory of one process that keeps documents with ids in memory.

use anyhow::{Context, ensure};
use serde::Serialize;
use simshard_client::{Access, Client, Stub, v1 as pb};
use simshard_runtime::system::anonymous_memory_of;
use simshard_simhash::synthetic::Data;

use super::process::{End, Process};
use super::settings::{BLOCKS, DISTANCE, MILLION, Settings, WITH_IDS};
use super::site::Site;
use super::{rest, streams};
use crate::figure;

/// A router and a node in one process, which keeps its documents in memory.
struct Alone(Process);

impl Alone {
    fn start() -> anyhow::Result<Self> {
        let site = Site::default();
        let mut command = site.own_program()?;
        command.args(["serve", "--listen", &site.any_port()]);
        let process = Process::start(command).context("`simshard serve` does not start")?;
        Ok(Self(process))
    }

    /// Where it listens.
    fn url(&self) -> &str {
        &self.0.url
    }

    /// New connections to it.
    fn connections(&self, count: usize) -> anyhow::Result<Vec<Stub>> {
        self.0.connections(count, &Access::default())
    }

    /// Its process.
    fn id(&self) -> u32 {
        self.0.child.id()
    }

    fn stop(mut self) -> anyhow::Result<()> {
        self.0.end(End::Stop)
    }
}

/// What it takes.
#[derive(Serialize)]
struct Memory {
    case: &'static str,
    n: usize,
    id_bytes: usize,
    blocks: u32,
    distance: u32,
    seed: u64,
    bytes: u64,
    bytes_per_document: f64,
}

/// Ids of 29 bytes.
fn id(number: usize) -> String {
    format!("https://example.org/{number:09}")
}

/// Measures it when all is inserted, and the process is at rest.
pub(super) async fn memory(settings: &Settings) -> anyhow::Result<()> {
    let fingerprints = Data::Random.fingerprints(settings.n.unwrap_or(MILLION), settings.seed);
    let ids: Vec<String> = (0..fingerprints.len()).map(id).collect();
    let process = Alone::start()?;
    let request = pb::CreateCorpusRequest {
        name: WITH_IDS.to_owned(),
        blocks: Some(BLOCKS),
        distance: Some(DISTANCE),
        ..pb::CreateCorpusRequest::default()
    };
    Client::new(process.url())?.create_corpus(request).await?;
    let batches = streams::insert_batches(WITH_IDS, &fingerprints, &ids, settings.batch);
    let connections = process.connections(settings.streams)?;
    let (_, inserted) = streams::insert(connections, batches).await?;
    let n = fingerprints.len();
    ensure!(
        inserted == n as u64,
        "{inserted} of {n} documents were inserted"
    );
    rest::wait_for_process(process.id()).await?;
    let bytes = anonymous_memory_of(process.id());
    let bytes = bytes.context("this system does not say what memory a process has")?;
    let figure = Memory {
        case: "served_memory",
        n,
        id_bytes: id(0).len(),
        blocks: BLOCKS,
        distance: DISTANCE,
        seed: settings.seed,
        bytes,
        bytes_per_document: bytes as f64 / n as f64,
    };
    figure::print(&figure, settings.json, || {
        let each = figure.bytes_per_document;
        format!("served_memory      {each:8.1} bytes a document")
    })?;
    process.stop()
}
