//! A cluster, connected to, and the corpora in it.

use std::time::{Duration, Instant};

use anyhow::ensure;
use simshard_client::{Client, Stub, v1 as pb};
use simshard_simhash::Fingerprint;

use super::check::{Question, Sample};
use super::figures::Requests;
use super::processes::{Cluster, Replicas};
use super::secrets::Secrets;
use super::settings::{BARE, BLOCKS, DISTANCE, Settings};
use super::{rest, streams};

/// Nodes that serve have found each other by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often they are asked.
const INTERVAL: Duration = Duration::from_millis(50);

/// A cluster that can be asked.
pub(super) struct Session<'a> {
    pub(super) settings: &'a Settings,
    pub(super) cluster: Cluster,
    /// A connection for each stream.
    pub(super) connections: Vec<Stub>,
    client: Client,
}

impl<'a> Session<'a> {
    pub(super) fn start(
        settings: &'a Settings,
        nodes: usize,
        replicas: Option<Replicas>,
    ) -> anyhow::Result<Self> {
        let secrets = settings.secrets.as_deref().map(Secrets::of_folder);
        let cluster = Cluster::start(settings.folder(), nodes, replicas, secrets)?;
        Self::of(settings, cluster)
    }

    pub(super) fn of(settings: &'a Settings, cluster: Cluster) -> anyhow::Result<Self> {
        Ok(Self {
            settings,
            client: Client::with_access(cluster.url(), &cluster.access()?)?,
            connections: cluster.connections(settings.streams)?,
            cluster,
        })
    }

    /// Makes a corpus.
    pub(super) async fn create(&self, corpus: &str) -> anyhow::Result<()> {
        let request = pb::CreateCorpusRequest {
            name: corpus.to_owned(),
            blocks: Some(BLOCKS),
            distance: Some(DISTANCE),
            ..pb::CreateCorpusRequest::default()
        };
        self.client.create_corpus(request).await?;
        Ok(())
    }

    /// Makes a corpus and inserts these documents, bare ones unless there are ids, by streams.
    pub(super) async fn fill(
        &self,
        case: &'static str,
        corpus: &str,
        fingerprints: &[Fingerprint],
        ids: &[String],
    ) -> anyhow::Result<Requests> {
        self.create(corpus).await?;
        let n = fingerprints.len();
        let (seconds, inserted) = self.insert(corpus, fingerprints, ids).await?;
        let expected = match ids {
            [] => distinct(fingerprints),
            ids => ids.len(),
        };
        ensure!(
            inserted == expected as u64,
            "{inserted} of {expected} documents were inserted"
        );
        self.check_count(corpus, expected).await?;
        Ok(Requests::new(self.settings, case, n, n, seconds).in_batches(self.settings))
    }

    /// Makes the corpus of bare documents, inserts these, and waits until the nodes are at rest.
    pub(super) async fn load(&self, fingerprints: &[Fingerprint]) -> anyhow::Result<()> {
        self.fill("load", BARE, fingerprints, &[]).await?;
        rest::wait(&self.cluster).await
    }

    /// Inserts documents by streams, bare ones unless there are ids. Returns the seconds that it took, and how many
    /// documents were new.
    pub(super) async fn insert(
        &self,
        corpus: &str,
        fingerprints: &[Fingerprint],
        ids: &[String],
    ) -> anyhow::Result<(f64, u64)> {
        let batches = streams::insert_batches(corpus, fingerprints, ids, self.settings.batch);
        streams::insert(self.connections.clone(), batches).await
    }

    /// Waits until all nodes serve, and checks that the corpus holds the expected number of documents.
    pub(super) async fn check_count(&self, corpus: &str, expected: usize) -> anyhow::Result<()> {
        let start = Instant::now();
        let count = loop {
            if let Some(count) = self.client.get_corpus(corpus).await?.document_count {
                break count;
            }
            ensure!(start.elapsed() < PATIENCE, "not all nodes serve {corpus}");
            tokio::time::sleep(INTERVAL).await;
        };
        ensure!(
            count == expected as u64,
            "{corpus} holds {count} documents, not {expected}"
        );
        Ok(())
    }

    /// Searches by streams, and keeps the answers of a sample.
    pub(super) async fn find_all(
        &self,
        corpus: &str,
        queries: &[Fingerprint],
    ) -> anyhow::Result<streams::TimedSearch> {
        let (size, sample) = (self.settings.batch, self.sample(queries));
        streams::find_all(self.connections.clone(), corpus, queries, size, sample).await
    }

    /// The queries whose answers are checked.
    pub(super) fn sample(&self, queries: &[Fingerprint]) -> Sample {
        Sample::of(queries.len(), self.settings.check)
    }

    /// A question to a corpus of bare documents that holds `set`, while `coming` are inserted.
    pub(super) fn question<'b>(
        &self,
        queries: &'b [Fingerprint],
        set: &'b [Fingerprint],
        coming: &'b [Fingerprint],
    ) -> Question<'b> {
        Question {
            queries,
            sample: self.sample(queries),
            set,
            coming,
        }
    }
}

/// How many different fingerprints there are: each is one bare document.
pub(super) fn distinct(fingerprints: &[Fingerprint]) -> usize {
    let mut sorted = fingerprints.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}
