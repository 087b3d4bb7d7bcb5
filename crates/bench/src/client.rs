//! The Rust client: streams of inserts and searches against a router that runs already.
//!
//! Other clients measure the same, with the same data, against the same router.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueHint};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, SearchSpec, v1};

use crate::figure;

/// What is measured.
#[derive(Args, Debug)]
pub struct Settings {
    /// Where the router is. It gets two corpora, bench-bare and bench-ids, which are deleted at the end
    #[arg(long, value_name = "URL")]
    pub router: String,
    /// A folder that `simshard bench engine --save` wrote: its fingerprints are inserted, and its queries asked
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: PathBuf,
    /// Documents or queries of a batch
    #[arg(long, value_name = "N", default_value = "4096")]
    pub batch: NonZeroUsize,
    /// Print a JSON object instead of a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Measured {
    case: &'static str,
    documents: usize,
    queries: usize,
    bare_seconds: f64,
    ids_seconds: f64,
    find_seconds: f64,
    matches: usize,
}

/// Measures the client.
///
/// # Errors
/// If the data cannot be read, or a request fails.
pub async fn run(settings: &Settings) -> anyhow::Result<()> {
    let read = |name: &str| fingerprints(&settings.data.join(name));
    let (documents, queries) = (read("fingerprints.u64le")?, read("queries.u64le")?);
    let client = Client::new(&settings.router)?;
    let ids = (0..documents.len()).map(|place| format!("page-{place:08}"));
    let ids: Vec<String> = ids.collect();
    let batch = settings.batch.get();
    let bare_seconds = insert(&client, "bench-bare", batches(&documents, &[], batch)).await?;
    let ids_seconds = insert(&client, "bench-ids", batches(&documents, &ids, batch)).await?;
    let parts = queries.chunks(batch);
    let parts = parts.map(|part| Queries::Fingerprints(part.to_vec()));
    let (find_seconds, matches) = find(&client, "bench-bare", parts.collect()).await?;
    for corpus in ["bench-bare", "bench-ids"] {
        client.delete_corpus(corpus).await?;
    }
    let measured = Measured {
        case: "client",
        documents: documents.len(),
        queries: queries.len(),
        bare_seconds: bare_seconds.as_secs_f64(),
        ids_seconds: ids_seconds.as_secs_f64(),
        find_seconds: find_seconds.as_secs_f64(),
        matches,
    };
    figure::print(&measured, settings.json, || {
        format!(
            "{} documents inserted in {:.2} s, with ids in {:.2} s; {} queries in {:.2} s, {} matches",
            measured.documents,
            measured.bare_seconds,
            measured.ids_seconds,
            measured.queries,
            measured.find_seconds,
            measured.matches
        )
    })
}

fn fingerprints(path: &Path) -> anyhow::Result<Vec<Fingerprint>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    ensure!(rest.is_empty(), "{} is damaged", path.display());
    let numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
    Ok(numbers.map(Fingerprint).collect())
}

fn batches(documents: &[Fingerprint], ids: &[String], batch: usize) -> Vec<Documents> {
    let mut ids = ids.chunks(batch);
    let parts = documents.chunks(batch).map(|part| Documents {
        keys: Queries::Fingerprints(part.to_vec()),
        ids: ids.next().unwrap_or_default().to_vec(),
    });
    parts.collect()
}

/// Inserts documents into a new corpus. Tells how long that takes.
async fn insert(
    client: &Client,
    corpus: &str,
    documents: Vec<Documents>,
) -> anyhow::Result<Duration> {
    let create = v1::CreateCorpusRequest {
        name: corpus.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await?;
    let count: usize = documents.iter().map(|batch| batch.keys.len()).sum();
    let begun = Instant::now();
    let mut answers = pin!(client.insert_stream(corpus, stream::iter(documents)));
    let mut inserted = 0;
    while let Some(answer) = answers.next().await {
        inserted += answer?.document_count as usize;
    }
    let took = begun.elapsed();
    ensure!(inserted == count, "{inserted} of {count} were answered");
    Ok(took)
}

/// Asks all queries. Tells how long that takes, and how many matches there are.
async fn find(
    client: &Client,
    corpus: &str,
    queries: Vec<Queries>,
) -> Result<(Duration, usize), ClientError> {
    let begun = Instant::now();
    let (batches, spec) = (stream::iter(queries), SearchSpec::default());
    let mut answers = pin!(client.find_all_stream(corpus, batches, spec).await?);
    let mut matches = 0;
    while let Some(answer) = answers.next().await {
        let found = answer?.queries;
        matches += found.iter().map(|one| one.matches.len()).sum::<usize>();
    }
    Ok((begun.elapsed(), matches))
}
