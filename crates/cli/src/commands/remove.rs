//! `simshard remove`.

use clap::Args;

use super::checking;
use super::documents::{self, DocumentsArgs, Rest, count};
use crate::connection::block_on;
use crate::input::Position;
use crate::say::note;

/// Arguments of `remove`.
#[derive(Args, Debug)]
#[command(after_help = "\
To remove documents, give the same input that inserted them. Removing what is
not there changes nothing: an interrupted command can simply be run again.

Examples:
  simshard remove pages.jsonl --text-field body
  printf 'a\\t17\\nb\\t18\\n' | simshard remove --format tsv")]
pub struct RemoveArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: DocumentsArgs,
}

/// Removes the documents.
///
/// # Errors
/// If the input is bad or the router fails.
pub fn run(args: &RemoveArgs) -> anyhow::Result<()> {
    block_on(remove(&args.documents))
}

async fn remove(args: &DocumentsArgs) -> anyhow::Result<()> {
    let client = args.client()?;
    // Before any input is read, and even if there is none.
    client.recipe(&args.corpus.corpus).await?;
    let input = checking::open(&args.input)?;
    let rest = Rest {
        document_count: input.document_count(),
        documents: input.documents(),
        from: Position::default(),
    };
    let stream = |batches| client.remove_stream(&args.corpus.corpus, batches);
    let done = documents::send("removing", rest, stream, |_| Ok(())).await?;
    note(format!(
        "removed {}, {} not there",
        count(done.changed),
        done.unchanged
    ));
    if !done.skipped.is_empty() {
        note(done.skipped);
    }
    Ok(())
}
