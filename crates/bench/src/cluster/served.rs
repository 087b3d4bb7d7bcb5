//! The cases of a cluster that serves: searches and inserts, in streams and one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use simshard_simhash::Fingerprint;
use simshard_simhash::synthetic::{Data, queries};

use super::figures::Requests;
use super::requests::{Latencies, make};
use super::session::{Session, distinct};
use super::settings::{BARE, Case, DISTANCE, MILLION, NODES, Settings, WITH_IDS};
use super::single::Single;
use super::{disk, echoed, rest};

/// The cases here.
pub(super) const CASES: [Case; 8] = [
    Case::InsertStreamBare,
    Case::FindAllStream,
    Case::FindAllUnary,
    Case::FindAllAlone,
    Case::Echo,
    Case::InsertAlone,
    Case::Mixed,
    Case::InsertStreamIds,
];

const ID_BYTES: usize = 64;

/// Measures those cases that were asked for, and the insert that all need.
pub(super) async fn measure(settings: &Settings) -> anyhow::Result<()> {
    let mut served = Served::start(settings)?;
    let insert = served.insert_stream_bare().await?;
    if settings.asks_for(Case::InsertStreamBare) {
        insert.print(settings.json)?;
    }
    served.warm_up().await?;
    if settings.asks_for(Case::FindAllStream) {
        served.find_all_stream().await?;
    }
    if settings.asks_for(Case::FindAllUnary) {
        let (count, in_flight) = (settings.requests, settings.in_flight);
        let case = "find_all_unary";
        served.find_all_single(case, count, in_flight).await?;
    }
    if settings.asks_for(Case::FindAllAlone) {
        let case = "find_all_alone";
        served.find_all_single(case, settings.alone, 1).await?;
    }
    if settings.asks_for(Case::Echo) {
        echoed::measure(settings, &served.session, &served.queries).await?;
    }
    if settings.asks_for(Case::InsertAlone) {
        served.insert_alone().await?;
    }
    if settings.asks_for(Case::Mixed) {
        served.mixed().await?;
    }
    if settings.asks_for(Case::InsertStreamIds) {
        served.insert_stream_ids().await?;
    }
    served.session.cluster.stop()
}

/// A cluster, and what its corpus of bare documents holds.
struct Served<'a> {
    settings: &'a Settings,
    session: Session<'a>,
    stored: Vec<Fingerprint>,
    queries: Vec<Fingerprint>,
}

impl<'a> Served<'a> {
    fn start(settings: &'a Settings) -> anyhow::Result<Self> {
        let stored = Data::Random.fingerprints(settings.n.unwrap_or(MILLION), settings.seed);
        let count = settings.queries.max(settings.requests).max(settings.alone);
        Ok(Self {
            settings,
            session: Session::start(settings, NODES, settings.replicas())?,
            queries: queries(&stored, count, DISTANCE, settings.seed ^ 1),
            stored,
        })
    }

    async fn insert_stream_bare(&self) -> anyhow::Result<Requests> {
        let case = "insert_stream_bare";
        self.session.fill(case, BARE, &self.stored, &[]).await
    }

    async fn insert_stream_ids(&self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let (case, numbers) = ("insert_stream_ids", 0..self.stored.len());
        let ids: Vec<String> = numbers.map(|n| format!("{n:0ID_BYTES$}")).collect();
        let filled = self.session.fill(case, WITH_IDS, &self.stored, &ids);
        filled.await?.print(self.settings.json)
    }

    /// Lets the nodes finish what the insert left them to do, and searches on every connection.
    async fn warm_up(&self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let some = self.settings.warm_up().min(self.queries.len());
        let some = &self.queries[..some];
        self.session.find_all(BARE, some).await.map(|_| ())
    }

    async fn find_all_stream(&self) -> anyhow::Result<()> {
        let (n, queries) = (self.stored.len(), &self.queries[..self.settings.queries]);
        let found = self.session.find_all(BARE, queries).await?;
        self.session
            .question(queries, &self.stored, &[])
            .check(found.answers)?;
        let (case, count) = ("find_all_stream", queries.len());
        let mut figures = Requests::new(self.settings, case, n, count, found.seconds);
        figures.matches = Some(found.matches);
        figures.in_batches(self.settings).print(self.settings.json)
    }

    /// Searches for one query a request.
    async fn find_all_single(
        &self,
        case: &'static str,
        count: usize,
        in_flight: usize,
    ) -> anyhow::Result<()> {
        let single = self.single(count, Vec::new());
        let taken = make(count, in_flight, &single, Single::find).await?;
        self.session
            .question(&single.queries, &self.stored, &[])
            .check(taken.answers)?;
        Requests::new(self.settings, case, self.stored.len(), count, taken.seconds)
            .with_latencies(in_flight, &taken.latencies)
            .print(self.settings.json)
    }

    /// Inserts one new document after the other. Between two of them the disk syncs for itself, under the same
    /// conditions.
    async fn insert_alone(&mut self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let count = self.settings.alone;
        let new = Data::Random.fingerprints(count, self.settings.seed ^ 2);
        let single = self.single(0, new);
        let mut synced = disk::Synced::create(self.session.cluster.folder())?;
        let (mut inserts, mut syncs) = (Vec::new(), Vec::new());
        for number in 0..count {
            let start = Instant::now();
            Arc::clone(&single).insert(number).await?;
            inserts.push(start.elapsed());
            syncs.push(synced.sync()?);
        }
        let n = self.stored.len();
        self.take(&single.new).await?;
        let seconds = inserts.iter().sum::<Duration>().as_secs_f64();
        let mut figures = Requests::new(self.settings, "insert_alone", n, count, seconds);
        figures.sync_p50_ms = Some(Latencies::new(syncs).percentile(50));
        figures
            .with_latencies(1, &Latencies::new(inserts))
            .print(self.settings.json)
    }

    /// Inserts a document and searches for a query by turns.
    async fn mixed(&mut self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let (count, in_flight) = (self.settings.requests, self.settings.in_flight);
        let finds = count / 2;
        let new = Data::Random.fingerprints(count - finds, self.settings.seed ^ 3);
        let single = self.single(finds, new);
        let taken = make(count, in_flight, &single, Single::either).await?;
        self.session
            .question(&single.queries, &self.stored, &single.new)
            .check(taken.answers)?;
        let n = self.stored.len();
        self.take(&single.new).await?;
        Requests::new(self.settings, "mixed", n, count, taken.seconds)
            .with_latencies(in_flight, &taken.latencies)
            .print(self.settings.json)
    }

    /// Requests that search for the first `finds` queries and insert the `new` documents.
    fn single(&self, finds: usize, new: Vec<Fingerprint>) -> Arc<Single> {
        let queries = self.queries[..finds].to_vec();
        Arc::new(Single {
            connection: self.session.connections[0].clone(),
            sample: self.session.sample(&queries),
            queries,
            new,
        })
    }

    /// Takes note of documents that were inserted, once they are seen to be there.
    async fn take(&mut self, new: &[Fingerprint]) -> anyhow::Result<()> {
        self.stored.extend(new);
        let count = distinct(&self.stored);
        self.session.check_count(BARE, count).await
    }
}
