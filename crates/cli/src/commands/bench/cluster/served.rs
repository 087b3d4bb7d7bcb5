//! The cases of a cluster that serves: searches and inserts, in streams and one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use simshard_simhash::Fingerprint;
use simshard_simhash::synthetic::{Data, queries};

use super::figures::Requests;
use super::requests::{Latencies, make};
use super::session::{Session, distinct};
use super::single::Single;
use super::{BARE, Case, ClusterArgs, DISTANCE, MILLION, NODES, WITH_IDS, disk, rest};

/// The cases here.
pub(super) const CASES: [Case; 7] = [
    Case::InsertStreamBare,
    Case::FindAllStream,
    Case::FindAllUnary,
    Case::FindAllAlone,
    Case::InsertAlone,
    Case::Mixed,
    Case::InsertStreamIds,
];

/// Bytes of an id.
const ID_BYTES: usize = 64;

/// Measures those cases that were asked for, and the insert that all need.
pub(super) async fn measure(args: &ClusterArgs) -> anyhow::Result<()> {
    let mut served = Served::start(args)?;
    let insert = served.insert_stream_bare().await?;
    if args.asks_for(Case::InsertStreamBare) {
        insert.print(args.json)?;
    }
    served.warm_up().await?;
    if args.asks_for(Case::FindAllStream) {
        served.find_all_stream().await?;
    }
    if args.asks_for(Case::FindAllUnary) {
        let (count, in_flight) = (args.requests(), args.in_flight.into());
        let case = "find_all_unary";
        served.find_all_single(case, count, in_flight).await?;
    }
    if args.asks_for(Case::FindAllAlone) {
        let case = "find_all_alone";
        served.find_all_single(case, args.alone(), 1).await?;
    }
    if args.asks_for(Case::InsertAlone) {
        served.insert_alone().await?;
    }
    if args.asks_for(Case::Mixed) {
        served.mixed().await?;
    }
    if args.asks_for(Case::InsertStreamIds) {
        served.insert_stream_ids().await?;
    }
    served.session.cluster.stop()
}

/// A cluster, and what its corpus of bare documents holds.
struct Served<'a> {
    args: &'a ClusterArgs,
    session: Session<'a>,
    stored: Vec<Fingerprint>,
    queries: Vec<Fingerprint>,
}

impl<'a> Served<'a> {
    fn start(args: &'a ClusterArgs) -> anyhow::Result<Self> {
        let stored = Data::Random.fingerprints(args.n_or(MILLION), args.seed);
        let count = args.queries().max(args.requests()).max(args.alone());
        Ok(Self {
            args,
            session: Session::start(args, NODES)?,
            queries: queries(&stored, count, DISTANCE, args.seed ^ 1),
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
        filled.await?.print(self.args.json)
    }

    /// Lets the nodes finish what the insert left them to do, and searches on every connection.
    async fn warm_up(&self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let some = 4 * self.args.batch() * usize::from(self.args.streams);
        let some = &self.queries[..some.min(self.queries.len())];
        self.session.find_all(BARE, some).await.map(|_| ())
    }

    async fn find_all_stream(&self) -> anyhow::Result<()> {
        let (n, queries) = (self.stored.len(), &self.queries[..self.args.queries()]);
        let found = self.session.find_all(BARE, queries).await?;
        self.session
            .question(queries, &self.stored, &[])
            .check(found.answers)?;
        let (case, count) = ("find_all_stream", queries.len());
        Requests::new(self.args, case, n, count, found.seconds)
            .in_batches(self.args)
            .with_matches(found.matches)
            .print(self.args.json)
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
        Requests::new(self.args, case, self.stored.len(), count, taken.seconds)
            .with_latencies(in_flight, &taken.latencies)
            .print(self.args.json)
    }

    /// Inserts one new document after the other. Between two of them the disk syncs for itself, under the same
    /// conditions.
    async fn insert_alone(&mut self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let count = self.args.alone();
        let new = Data::Random.fingerprints(count, self.args.seed ^ 2);
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
        Requests::new(self.args, "insert_alone", n, count, seconds)
            .with_latencies(1, &Latencies::new(inserts))
            .with_syncs(&Latencies::new(syncs))
            .print(self.args.json)
    }

    /// Inserts a document and searches for a query by turns.
    async fn mixed(&mut self) -> anyhow::Result<()> {
        rest::wait(&self.session.cluster).await?;
        let (count, in_flight) = (self.args.requests(), self.args.in_flight.into());
        let finds = count / 2;
        let new = Data::Random.fingerprints(count - finds, self.args.seed ^ 3);
        let single = self.single(finds, new);
        let taken = make(count, in_flight, &single, Single::either).await?;
        self.session
            .question(&single.queries, &self.stored, &single.new)
            .check(taken.answers)?;
        let n = self.stored.len();
        self.take(&single.new).await?;
        Requests::new(self.args, "mixed", n, count, taken.seconds)
            .with_latencies(in_flight, &taken.latencies)
            .print(self.args.json)
    }

    /// Requests for so many of the queries, and with these documents.
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
