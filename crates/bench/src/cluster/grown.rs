//! The case of a corpus that grows. At each of some sizes it measures what an insert, a query and a restarted document
//! cost.

use std::thread;
use std::time::Instant;

use serde::Serialize;
use simshard_simhash::Fingerprint;
use simshard_simhash::synthetic::{Data, queries};

use super::figures::HeldCorpus;
use super::process::End;
use super::processes::Node;
use super::rest;
use super::session::{Session, distinct};
use super::settings::{BARE, DISTANCE, MILLION, NODES, Settings};
use crate::figure;
use crate::settings::BadSettings;

/// Documents in the end, unless told otherwise.
const FIFTY_MILLION: usize = 50 * MILLION;

/// The sizes at which it is measured, as parts of the last one. As many documents are inserted on the way to the last as
/// on the way to the second.
const SIZES: [usize; 6] = [1, 3, 10, 30, 48, 50];
const LAST: usize = 50;

/// What things cost at one size.
#[derive(Serialize)]
struct Grown {
    #[serde(flatten)]
    corpus: HeldCorpus,
    /// Documents before those that were inserted in a row, up to this size.
    before: usize,
    insert_seconds: f64,
    insert_ns: f64,
    find_ns: f64,
    /// From the start of all nodes, which were killed, until all of them serve.
    restart_seconds: f64,
    /// The same, by document.
    restart_ns: f64,
}

/// Measures at all sizes.
pub(super) async fn measure(settings: &Settings) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(FIFTY_MILLION);
    if n < LAST {
        return Err(BadSettings(format!("grown: give --n of {LAST} or more")).into());
    }
    let stored = Data::Random.fingerprints(n, settings.seed);
    let mut session = Session::start(settings, NODES, settings.replicas())?;
    session.create(BARE).await?;
    let mut before = 0;
    for size in SIZES.map(|size| n * size / LAST) {
        grow(&mut session, &stored[..size], before).await?;
        before = size;
    }
    session.cluster.stop()
}

/// Inserts the documents from the place `before` on, searches among all, and restarts all nodes.
async fn grow(
    session: &mut Session<'_>,
    stored: &[Fingerprint],
    before: usize,
) -> anyhow::Result<()> {
    let (settings, n) = (session.settings, stored.len());
    let (insert_seconds, _) = session.insert(BARE, &stored[before..], &[]).await?;
    rest::wait(&session.cluster).await?;
    let find_seconds = find(session, stored).await?;
    let restart_seconds = restart(session, distinct(stored)).await?;
    let ns = |seconds: f64, items: usize| seconds * 1e9 / items as f64;
    let figure = Grown {
        corpus: HeldCorpus::new(settings, "grown", n, NODES),
        before,
        insert_seconds,
        insert_ns: ns(insert_seconds, n - before),
        find_ns: ns(find_seconds, settings.queries),
        restart_seconds,
        restart_ns: ns(restart_seconds, n),
    };
    figure::print(&figure, settings.json, || {
        let Grown {
            insert_ns,
            find_ns,
            restart_ns,
            ..
        } = figure;
        format!(
            "grown to {n:>9}  {insert_ns:8.0} ns an insert, {find_ns:.0} ns a query, \
             {restart_ns:.0} ns a restarted document"
        )
    })
}

/// The seconds of a search by streams, which a few queries precede.
async fn find(session: &Session<'_>, stored: &[Fingerprint]) -> anyhow::Result<f64> {
    let settings = session.settings;
    let queries = queries(stored, settings.queries, DISTANCE, settings.seed ^ 1);
    let some = settings.warm_up().min(queries.len());
    session.find_all(BARE, &queries[..some]).await?;
    let found = session.find_all(BARE, &queries).await?;
    session
        .question(&queries, stored, &[])
        .check(found.answers)?;
    Ok(found.seconds)
}

/// Kills all nodes, then starts all at once. Returns the seconds until they serve this number of documents.
async fn restart(session: &mut Session<'_>, documents: usize) -> anyhow::Result<f64> {
    let nodes = &mut session.cluster.nodes;
    for node in &mut *nodes {
        node.end(End::Kill)?;
    }
    let start = Instant::now();
    tokio::task::block_in_place(|| start_again(nodes))?;
    session.check_count(BARE, documents).await?;
    Ok(start.elapsed().as_secs_f64())
}

/// Starts nodes side by side, and waits until all listen.
fn start_again(nodes: &mut [Node]) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let start = |node| scope.spawn(move || Node::start_again(node).map(drop));
        let starts: Vec<_> = nodes.iter_mut().map(start).collect();
        let mut done = starts.into_iter().map(thread::ScopedJoinHandle::join);
        done.try_for_each(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
