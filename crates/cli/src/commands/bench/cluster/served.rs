//! The cases of a cluster that serves: searches and inserts, in streams and one by one.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context, ensure};
use simshard_client::{Client, v1 as pb};
use simshard_simhash::Fingerprint;
use simshard_simhash::synthetic::{Data, queries};

use super::check::{Question, Sample};
use super::figures::Requests;
use super::processes::{Cluster, Stub};
use super::single::Single;
use super::{BARE, BLOCKS, Case, ClusterArgs, DISTANCE, NODES, WITH_IDS, disk};
use super::{requests, streams};

/// Bytes of an id.
const ID_BYTES: usize = 64;

/// Measures the chosen cases, and the insert that all need.
pub(super) async fn measure(
    args: &ClusterArgs,
    is_chosen: impl Fn(Case) -> bool,
) -> anyhow::Result<()> {
    let mut served = Served::start(args)?;
    let insert = served.insert_stream_bare().await?;
    if is_chosen(Case::InsertStreamBare) {
        insert.print(args.json)?;
    }
    served.warm_up().await?;
    if is_chosen(Case::FindAllStream) {
        served.find_all_stream().await?;
    }
    if is_chosen(Case::FindAllUnary) {
        let (count, in_flight) = (args.requests(), args.in_flight.into());
        served
            .find_all_single("find_all_unary", count, in_flight)
            .await?;
    }
    if is_chosen(Case::FindAllAlone) {
        served
            .find_all_single("find_all_alone", args.alone(), 1)
            .await?;
    }
    if is_chosen(Case::InsertAlone) {
        served.insert_alone().await?;
    }
    if is_chosen(Case::Mixed) {
        served.mixed().await?;
    }
    if is_chosen(Case::InsertStreamIds) {
        served.insert_stream_ids().await?;
    }
    served.cluster.stop()
}

/// A cluster, and what its corpus of bare fingerprints holds.
struct Served<'a> {
    args: &'a ClusterArgs,
    cluster: Cluster,
    client: Client,
    connections: Vec<Stub>,
    stored: Vec<Fingerprint>,
    queries: Vec<Fingerprint>,
}

impl<'a> Served<'a> {
    fn start(args: &'a ClusterArgs) -> anyhow::Result<Self> {
        let stored = Data::Random.fingerprints(args.n(), args.seed);
        let count = args.queries().max(args.requests()).max(args.alone());
        let queries = queries(&stored, count, DISTANCE, args.seed ^ 1);
        let cluster = Cluster::start(args.folder(), NODES)?;
        Ok(Self {
            args,
            client: Client::new(cluster.url())?,
            connections: cluster.connections(args.connections.into())?,
            cluster,
            stored,
            queries,
        })
    }

    async fn insert_stream_bare(&self) -> anyhow::Result<Requests> {
        self.insert_stream("insert_stream_bare", BARE, &[]).await
    }

    async fn insert_stream_ids(&self) -> anyhow::Result<()> {
        let numbers = 0..self.stored.len();
        let ids: Vec<String> = numbers.map(|n| format!("{n:0ID_BYTES$}")).collect();
        let figure = self.insert_stream("insert_stream_ids", WITH_IDS, &ids);
        figure.await?.print(self.args.json)
    }

    /// Inserts all fingerprints into a new corpus.
    async fn insert_stream(
        &self,
        case: &'static str,
        corpus: &str,
        ids: &[String],
    ) -> anyhow::Result<Requests> {
        let request = pb::CreateCorpusRequest {
            name: corpus.to_owned(),
            blocks: Some(BLOCKS),
            distance: Some(DISTANCE),
            ..pb::CreateCorpusRequest::default()
        };
        self.client.create_corpus(request).await?;
        let (n, size) = (self.stored.len(), self.args.batch.into());
        let batches = streams::insert_batches(corpus, &self.stored, ids, size);
        let (seconds, inserted) = streams::insert(self.connections.clone(), batches).await?;
        let expected = match ids {
            [] => distinct(&self.stored),
            ids => ids.len(),
        };
        ensure!(
            inserted == expected as u64,
            "{inserted} of {expected} documents were inserted"
        );
        self.check_count(corpus, expected).await?;
        Ok(Requests::new(self.args, case, n, n, seconds).in_batches(size))
    }

    /// Sees that a corpus holds what was inserted.
    async fn check_count(&self, corpus: &str, expected: usize) -> anyhow::Result<()> {
        let described = self.client.get_corpus(corpus).await?;
        let count = described.document_count.context("a node does not serve")?;
        ensure!(
            count == expected as u64,
            "{corpus} holds {count} documents, not {expected}"
        );
        Ok(())
    }

    /// Searches on every connection before anything is timed.
    async fn warm_up(&self) -> anyhow::Result<()> {
        let some = 4 * usize::from(self.args.batch) * self.connections.len();
        let some = some.min(self.queries.len());
        self.find_in_streams(&self.queries[..some]).await?;
        Ok(())
    }

    async fn find_all_stream(&self) -> anyhow::Result<()> {
        let queries = &self.queries[..self.args.queries()];
        let found = self.find_in_streams(queries).await?;
        self.question(queries, &[]).check(found.answers)?;
        let n = self.stored.len();
        Requests::new(
            self.args,
            "find_all_stream",
            n,
            queries.len(),
            found.seconds,
        )
        .in_batches(self.args.batch.into())
        .with_matches(found.matches)
        .print(self.args.json)
    }

    async fn find_in_streams(&self, queries: &[Fingerprint]) -> anyhow::Result<streams::Found> {
        let size = self.args.batch.into();
        let connections = self.connections.clone();
        streams::find_all(connections, BARE, queries, size, self.sample(queries)).await
    }

    /// Searches for one query a request.
    async fn find_all_single(
        &self,
        case: &'static str,
        count: usize,
        in_flight: usize,
    ) -> anyhow::Result<()> {
        let single = self.single(count, Vec::new());
        let taken = requests::make(count, in_flight, &single, Single::find).await?;
        self.question(&single.queries, &[]).check(taken.answers)?;
        Requests::new(self.args, case, self.stored.len(), count, taken.seconds)
            .with_latencies(in_flight, &taken.latencies)
            .print(self.args.json)
    }

    /// Inserts one new document after the other, and sets against that what a sync alone takes.
    async fn insert_alone(&mut self) -> anyhow::Result<()> {
        let count = self.args.alone();
        let new = Data::Random.fingerprints(count, self.args.seed ^ 2);
        let single = self.single(0, new);
        // Half of the syncs before and half after, as other work on the machine may change meanwhile.
        let half = count.div_ceil(2);
        let mut syncs = disk::sync_times(self.cluster.folder(), half)?;
        let taken = requests::make(count, 1, &single, Single::insert).await?;
        syncs.extend(disk::sync_times(self.cluster.folder(), half)?);
        let n = self.stored.len();
        self.stored.extend(&single.new);
        self.check_count(BARE, distinct(&self.stored)).await?;
        Requests::new(self.args, "insert_alone", n, count, taken.seconds)
            .with_latencies(1, &taken.latencies)
            .with_syncs(&requests::Latencies::new(syncs))
            .print(self.args.json)
    }

    /// Inserts a document and searches for a query by turns.
    async fn mixed(&mut self) -> anyhow::Result<()> {
        let (count, in_flight) = (self.args.requests(), self.args.in_flight.into());
        let finds = count / 2;
        let new = Data::Random.fingerprints(count - finds, self.args.seed ^ 3);
        let single = self.single(finds, new);
        let taken = requests::make(count, in_flight, &single, Single::either).await?;
        self.question(&single.queries, &single.new)
            .check(taken.answers)?;
        let n = self.stored.len();
        self.stored.extend(&single.new);
        self.check_count(BARE, distinct(&self.stored)).await?;
        Requests::new(self.args, "mixed", n, count, taken.seconds)
            .with_latencies(in_flight, &taken.latencies)
            .print(self.args.json)
    }

    /// Requests for so many of the queries, and with these documents.
    fn single(&self, finds: usize, new: Vec<Fingerprint>) -> Arc<Single> {
        let queries = self.queries[..finds].to_vec();
        Arc::new(Single {
            connections: self.connections.clone(),
            sample: self.sample(&queries),
            queries,
            new,
        })
    }

    fn sample(&self, queries: &[Fingerprint]) -> Sample {
        Sample::of(queries.len(), self.args.check)
    }

    fn question<'b>(
        &'b self,
        queries: &'b [Fingerprint],
        coming: &'b [Fingerprint],
    ) -> Question<'b> {
        Question {
            queries,
            sample: self.sample(queries),
            set: &self.stored,
            coming,
        }
    }
}

/// How many different fingerprints there are: each is one bare document.
fn distinct(fingerprints: &[Fingerprint]) -> usize {
    fingerprints.iter().collect::<HashSet<_>>().len()
}
