//! `simshard remove`.

use clap::Args;
use simshard_input::Position;

use super::checking;
use super::documents::{self, DocumentsArgs, Unsent, count, hashable};
use crate::say::{left_out, note};

/// Arguments of `remove`.
#[derive(Args, Debug)]
#[command(after_help = "\
To remove documents, give the same input that inserted them. Removing what is
not there changes nothing: an interrupted command can simply be run again.

Examples:
  simshard remove pages.jsonl --text-field body
  printf 'a\\t17\\nb\\t18\\n' | simshard remove --format tsv

Removing a document that was inserted while a clock was over a minute ahead
fails with CLOCK_AHEAD, until a minute before the time of that clock. To remove
it at once, set the clocks of all machines right, and give --beyond-clock.")]
pub struct RemoveArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: DocumentsArgs,

    /// Also remove documents that were inserted while a clock was over a minute ahead
    ///
    /// They cannot be inserted again until a minute before the time of that clock.
    #[arg(long, help_heading = "Cluster")]
    pub beyond_clock: bool,
}

/// Removes the documents.
pub async fn run(args: &RemoveArgs) -> anyhow::Result<()> {
    let RemoveArgs {
        documents: args,
        beyond_clock,
    } = args;
    let mut client = args.client()?;
    if *beyond_clock {
        client = client.removing_beyond_clock();
    }
    // Before any input is read, and even if there is none.
    let recipe = args.corpus.awaited_recipe(&client).await?;
    let input = checking::open(&args.input.options())?;
    let rest = Unsent {
        document_count: input.document_count(),
        documents: hashable(input, recipe),
        from: Position::default(),
    };
    let stream = |batches| client.remove_stream(&args.corpus.corpus, batches);
    let done = documents::send("removing", rest, stream, |_| Ok(())).await?;
    note(format!(
        "removed {}, {} not there",
        count(done.changed),
        done.unchanged
    ));
    left_out(&done.skipped);
    Ok(())
}
