//! `simshard insert`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueHint};
use simshard_client::Client;
use simshard_input::{InputIdentity, Needs, Position};
use simshard_simhash::Recipe;

use super::checking;
use super::documents::{self, DocumentsArgs, SendOutcome, Unsent, count};
use crate::checkpoint::{CheckpointFile, CorpusIdentity, Subject};
use crate::progress;
use crate::say::{left_out, note, warn};

/// Arguments of `insert`.
#[derive(Args, Debug)]
#[command(after_help = "\
Inserting again what is there changes nothing: an interrupted command can simply
be run again. With --checkpoint it goes on where it was:

  simshard insert 'crawl/*.jsonl.gz' --checkpoint crawl.checkpoint

The file says how many documents are durable, from the start of the input. It is
written about once a second, so what a killed command inserted since then is
sent again, and counts as there already. When all is done it stays, and says so.
Delete it to start anew.

It is of one corpus and one input: a corpus that was deleted and made anew,
other paths or options, and files that were changed are refused.

Examples:
  simshard insert pages.jsonl --text-field body
  simshard insert --format files articles/
  printf 'a\\t17\\nb\\t18\\n' | simshard insert --format tsv")]
pub struct InsertArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: DocumentsArgs,

    /// Note in this file how far the input is inserted, and go on from there when run again
    ///
    /// Needs input that can be read again: files and folders, not standard input or pipes. The file
    /// is JSON, and replaced whole; put it outside of folders that are read.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub checkpoint: Option<PathBuf>,
}

/// Inserts the documents.
pub async fn run(args: &InsertArgs) -> anyhow::Result<()> {
    let client = &args.documents.client()?;
    // Before any input is read, and even if there is none. It also makes the router look whether the
    // corpus is still the same.
    let recipe = args.documents.corpus.awaited_recipe(client).await?;
    let Some(file) = &args.checkpoint else {
        let rest = rest(args, recipe, None)?;
        let done = send(client, args, rest, None).await?;
        say(&done, 0);
        return Ok(());
    };
    let mut checkpoint = open(file, args, client).await?;
    let before = checkpoint.documents();
    if checkpoint.is_complete() {
        let all = count(before);
        note(format!(
            "inserted nothing: {} says that all {all} are in, delete it to start anew",
            checkpoint.name()
        ));
        return Ok(());
    }
    let rest = rest(args, recipe, Some(&checkpoint))?;
    let outcome = send(client, args, rest, Some(&mut checkpoint)).await;
    let done = match outcome {
        Ok(done) => done,
        Err(error) => {
            // The error that ended the load is more useful than one of this write.
            if checkpoint.write().is_ok() {
                warn(format!(
                    "{} are in: run this again to insert the rest",
                    count(checkpoint.documents())
                ));
            }
            return Err(error);
        }
    };
    checkpoint.complete()?;
    say(&done, before);
    note(format!("{} says that all is in", checkpoint.name()));
    Ok(())
}

/// The checkpoint of this load.
async fn open(file: &Path, args: &InsertArgs, client: &Client) -> anyhow::Result<CheckpointFile> {
    let input = args.documents.input.options();
    let subject = Subject {
        input: InputIdentity::of(&input, Needs::CLIENT)?,
        corpus: corpus(&args.documents.corpus.corpus, client).await?,
    };
    let inputs = input.expanded()?.paths;
    Ok(CheckpointFile::open(file, subject, &inputs)?)
}

/// The corpus as it is listed: so no node is asked.
async fn corpus(name: &str, client: &Client) -> anyhow::Result<CorpusIdentity> {
    let corpora = client.list_corpora().await?;
    let corpus = corpora.into_iter().find(|corpus| corpus.name == name);
    let corpus = corpus.with_context(|| format!("corpus {name} was deleted just now"))?;
    let create_time = corpus.create_time.map(|time| time.to_string());
    Ok(CorpusIdentity {
        name: corpus.name,
        create_time: create_time.unwrap_or_default(),
    })
}

/// The documents that are to be inserted yet.
fn rest(
    args: &InsertArgs,
    recipe: Option<Recipe>,
    checkpoint: Option<&CheckpointFile>,
) -> anyhow::Result<Unsent> {
    let input = checking::open(&args.documents.input.options())?;
    let document_count = input.document_count();
    let mut documents = documents::hashable(input, recipe);
    let mut from = Position::default();
    if let Some(checkpoint) = checkpoint {
        let _spinner = progress::spinner("passing over what is in");
        from = Position::after(checkpoint.documents(), &mut documents)?;
        checkpoint.go_on_from(from)?;
    }
    Ok(Unsent {
        documents,
        from,
        document_count,
    })
}

async fn send(
    client: &Client,
    args: &InsertArgs,
    rest: Unsent,
    mut checkpoint: Option<&mut CheckpointFile>,
) -> anyhow::Result<SendOutcome> {
    let stream = |batches| client.insert_stream(&args.documents.corpus.corpus, batches);
    documents::send(
        "inserting",
        rest,
        stream,
        |position| match &mut checkpoint {
            Some(checkpoint) => Ok(checkpoint.advance(position)?),
            None => Ok(()),
        },
    )
    .await
}

fn say(done: &SendOutcome, before: u64) {
    let (inserted, there) = (count(done.changed), done.unchanged);
    match before {
        0 => note(format!("inserted {inserted}, {there} there already")),
        before => note(format!(
            "inserted {inserted}, {there} there already, after {before} that were done before"
        )),
    }
    left_out(&done.skipped);
}
