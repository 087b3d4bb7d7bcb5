//! Streams of batches: every connection carries one, and they share the batches.

use std::time::Instant;

use anyhow::ensure;
use futures_util::stream;
use simshard_client::{Stub, v1 as pb};
use simshard_simhash::Fingerprint;
use tokio::task::JoinSet;

use super::check::{Answer, Sample};
use super::requests::refused;

/// Documents as the batches of an InsertStream. Without ids they are bare fingerprints.
pub(super) fn insert_batches(
    corpus: &str,
    fingerprints: &[Fingerprint],
    ids: &[String],
    size: usize,
) -> Vec<pb::InsertStreamRequest> {
    let mut ids = ids.chunks(size);
    let batch = |(sequence, fingerprints): (usize, &[Fingerprint])| pb::InsertStreamRequest {
        sequence: sequence as u64,
        batch: Some(pb::InsertRequest {
            corpus: corpus.to_owned(),
            fingerprints: fingerprints.iter().map(|one| one.0).collect(),
            ids: ids.next().unwrap_or_default().to_vec(),
            ..pb::InsertRequest::default()
        }),
    };
    fingerprints.chunks(size).enumerate().map(batch).collect()
}

/// Inserts batches; tells how many seconds that took, and how many documents were new.
pub(super) async fn insert(
    connections: Vec<Stub>,
    batches: Vec<pb::InsertStreamRequest>,
) -> anyhow::Result<(f64, u64)> {
    let parts = deal(batches, connections.len());
    let mut streams = JoinSet::new();
    let start = Instant::now();
    for (mut stub, part) in connections.into_iter().zip(parts) {
        streams.spawn(async move {
            let answers = stub.insert_stream(stream::iter(part)).await;
            let mut answers = answers.map_err(refused)?.into_inner();
            let mut inserted = 0;
            while let Some(answer) = answers.message().await.map_err(refused)? {
                inserted += answer.result.unwrap_or_default().inserted_count;
            }
            anyhow::Ok(inserted)
        });
    }
    let mut inserted = 0;
    while let Some(stream) = streams.join_next().await {
        inserted += stream??;
    }
    Ok((start.elapsed().as_secs_f64(), inserted))
}

/// The time of a search by streams, and the answers that were kept.
pub(super) struct TimedSearch {
    pub(super) seconds: f64,
    pub(super) matches: usize,
    pub(super) answers: Vec<Answer>,
}

/// Finds all matches of all queries; keeps the answers that the sample asks for.
pub(super) async fn find_all(
    connections: Vec<Stub>,
    corpus: &str,
    queries: &[Fingerprint],
    size: usize,
    sample: Sample,
) -> anyhow::Result<TimedSearch> {
    let batch = |(sequence, queries): (usize, &[Fingerprint])| pb::FindAllStreamRequest {
        sequence: sequence as u64,
        batch: Some(find_request(corpus, queries)),
    };
    let batches: Vec<_> = queries.chunks(size).enumerate().map(batch).collect();
    let count = batches.len();
    let parts = deal(batches, connections.len());
    let mut streams = JoinSet::new();
    let start = Instant::now();
    for (mut stub, part) in connections.into_iter().zip(parts) {
        streams.spawn(async move {
            let answers = stub.find_all_stream(stream::iter(part)).await;
            let mut answers = answers.map_err(refused)?.into_inner();
            let (mut answered, mut matches, mut kept) = (0, 0, Vec::new());
            while let Some(answer) = answers.message().await.map_err(refused)? {
                let first = usize::try_from(answer.sequence)? * size;
                let response = answer.result.unwrap_or_default();
                answered += 1;
                matches += found(&response);
                if sample.touches(first..first + response.queries.len()) {
                    kept.push(Answer { first, response });
                }
            }
            anyhow::Ok((answered, matches, kept))
        });
    }
    let (mut answered, mut matches, mut answers) = (0, 0, Vec::new());
    while let Some(stream) = streams.join_next().await {
        let (some, found, kept) = stream??;
        answered += some;
        matches += found;
        answers.extend(kept);
    }
    ensure!(answered == count, "{answered} of {count} batches answered");
    Ok(TimedSearch {
        seconds: start.elapsed().as_secs_f64(),
        matches,
        answers,
    })
}

/// A search for all matches of some queries.
pub(super) fn find_request(corpus: &str, queries: &[Fingerprint]) -> pb::FindAllRequest {
    pb::FindAllRequest {
        corpus: corpus.to_owned(),
        fingerprints: queries.iter().map(|query| query.0).collect(),
        ..pb::FindAllRequest::default()
    }
}

fn found(response: &pb::FindAllResponse) -> usize {
    let matches = response.matches.as_ref();
    matches.map_or(0, |matches| matches.fingerprints.len())
}

/// Deals things out by turns.
fn deal<T>(things: Vec<T>, parts: usize) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..parts).map(|_| Vec::new()).collect();
    for (place, thing) in things.into_iter().enumerate() {
        dealt[place % parts].push(thing);
    }
    dealt
}
