//! `simshard corpus scan`: every document of a corpus.

use std::pin::pin;

use clap::Args;
use futures_util::TryStreamExt;
use simshard_batch::{Member, Output, OutputError, OutputFormat};

use super::streaming::{Plan, StreamArgs, writable};
use crate::progress;

/// Arguments of `corpus scan`.
#[derive(Args, Debug)]
#[command(after_help = "\
Writes TSV under the header `id<TAB>hash` unless told otherwise: the documents
by fingerprint, then id. Every document that was inserted before the command
started, and is not removed meanwhile, is there once.

`insert` and the batch commands read what it writes: a .tsv as it is, .jsonl and
.parquet with --fingerprint-field fingerprint.

It takes as long as it takes: --timeout-seconds is how long the router may take
to say that the corpus is there. All nodes have to be there until the end.

Examples:
  simshard corpus scan articles -o articles.tsv
  simshard corpus scan articles --output-format jsonl | head
  simshard corpus scan articles | simshard insert --corpus copy --format tsv")]
pub struct ScanArgs {
    /// What to scan.
    #[command(flatten)]
    pub stream: StreamArgs,
}

/// Writes the documents.
pub(super) async fn run(args: &ScanArgs) -> anyhow::Result<()> {
    let plan = args.stream.plan(OutputFormat::Tsv).await?;
    let Plan {
        client,
        format,
        output,
        documents,
    } = plan;
    let failed = OutputError::failed(output.name().to_owned());
    let mut sink = format.documents(output).map_err(&failed)?;
    let bar = progress::bar("scanning", documents);
    let mut batches = pin!(client.scan(&args.stream.name).await?);
    while let Some(batch) = batches.try_next().await? {
        for document in &batch {
            let member = Member {
                id: Some(writable(&document.id, format)?),
                fingerprint: document.fingerprint,
            };
            sink.document(&member).map_err(&failed)?;
        }
        bar.inc(batch.len() as u64);
    }
    let output = sink.finish().and_then(Output::complete);
    output.map_err(&failed)?.commit()?;
    bar.finish_and_clear();
    Ok(())
}
