//! `simshard corpus scan`: every document of a corpus.

use clap::Args;
use simshard_batch::{Member, Rows, Sink};
use simshard_client::{Client, Document};

use super::streaming::{StreamArgs, writable};

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
    let scan = async |client: &Client, name: &str| client.scan(name).await;
    let write = |batch: Vec<Document>, format, sink: &mut dyn Sink| {
        for document in &batch {
            sink.document(&Member {
                id: Some(writable(&document.id, format)?),
                fingerprint: document.fingerprint,
            })?;
        }
        Ok(batch.len() as u64)
    };
    args.stream
        .write(Rows::Documents, "scanning", scan, write)
        .await
}
