//! The requests of the demo: stream the files in, then ask for each.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use futures_util::{StreamExt, stream};
use simshard_client::{Client, Documents, FindAnswer, Queries, SearchSpec};

use super::walk::Files;
use crate::progress;

/// Documents of one inserted batch.
const INSERT_BATCH: usize = 4096;

/// Queries of one batch: where many files are equal, each answer lists them all.
const FIND_BATCH: usize = 64;

/// Batches of queries in flight at once.
const IN_FLIGHT: usize = 4;

/// For each file, the files near it with their distances, ascending. A file is near itself.
pub(super) type NearFiles = Vec<Vec<(u32, u32)>>;

/// Streams all files into the corpus.
pub(super) async fn insert(client: &Client, corpus: &str, files: &Files) -> anyhow::Result<()> {
    let bar = progress::bar("inserting", Some(files.len() as u64));
    let batches: Vec<Documents> = files
        .fingerprints
        .chunks(INSERT_BATCH)
        .zip(files.paths.chunks(INSERT_BATCH))
        .map(|(fingerprints, paths)| Documents {
            keys: Queries::Fingerprints(fingerprints.to_vec()),
            ids: paths.to_vec(),
        })
        .collect();
    let mut answers = std::pin::pin!(client.insert_stream(corpus, stream::iter(batches)));
    let mut inserted = 0;
    while let Some(batch) = answers.next().await {
        let batch = batch?;
        inserted += batch.changed_count;
        bar.inc(batch.document_count);
    }
    bar.finish_and_clear();
    let files = files.len() as u64;
    ensure!(
        inserted == files,
        "{inserted} of {files} documents were inserted"
    );
    Ok(())
}

/// Asks for the near-duplicates of every file.
pub(super) async fn find(
    client: &Client,
    corpus: &str,
    files: &Files,
) -> anyhow::Result<NearFiles> {
    let bar = progress::bar("searching", Some(files.len() as u64));
    let numbers: HashMap<&str, u32> = files.paths.iter().map(String::as_str).zip(0..).collect();
    let requests = files.fingerprints.chunks(FIND_BATCH).map(|batch| {
        let queries = Queries::Fingerprints(batch.to_vec());
        client.find_all(corpus, queries, SearchSpec::default())
    });
    let mut found = stream::iter(requests).buffered(IN_FLIGHT);
    let mut answers = NearFiles::with_capacity(files.len());
    while let Some(found) = found.next().await {
        let found = found?;
        bar.inc(found.queries.len() as u64);
        answers.extend(near_files(&numbers, found)?);
    }
    bar.finish_and_clear();
    Ok(answers)
}

fn near_files(numbers: &HashMap<&str, u32>, found: FindAnswer) -> anyhow::Result<NearFiles> {
    let mut answers = NearFiles::with_capacity(found.queries.len());
    for query in found.queries {
        let mut near = Vec::new();
        for found in query.matches {
            for id in &found.ids {
                let number = numbers.get(id.as_str());
                let number =
                    number.with_context(|| format!("the answer names {id}, an unknown file"))?;
                near.push((*number, found.distance));
            }
        }
        near.sort_unstable();
        answers.push(near);
    }
    Ok(answers)
}
