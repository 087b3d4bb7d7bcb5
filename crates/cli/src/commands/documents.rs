//! `simshard insert` and `simshard remove`.

use clap::Args;
use simshard_client::Client;

use crate::commands::{checking, pipeline};
use crate::connection::{CorpusArgs, RouterArgs, block_on};
use crate::input::InputArgs;
use crate::say::note;

/// Arguments of `insert` and `remove`.
#[derive(Args, Debug)]
#[command(after_help = "\
Inserting again what is there, or removing what is not, changes nothing: an
interrupted command can simply be run again. To remove documents, give the same
input that inserted them.

Examples:
  simshard insert pages.jsonl --text-field body
  simshard insert --format files articles/
  printf 'a\\t17\\nb\\t18\\n' | simshard insert --format tsv")]
pub struct DocumentsArgs {
    /// The documents.
    #[command(flatten)]
    pub input: InputArgs,
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// What is done with the documents.
#[derive(Clone, Copy)]
enum Change {
    Insert,
    Remove,
}

/// Inserts the documents.
///
/// # Errors
/// If the input is bad or the router fails.
pub fn insert(args: &DocumentsArgs) -> anyhow::Result<()> {
    block_on(change(Change::Insert, args))
}

/// Removes the documents.
///
/// # Errors
/// If the input is bad or the router fails.
pub fn remove(args: &DocumentsArgs) -> anyhow::Result<()> {
    block_on(change(Change::Remove, args))
}

fn count(documents: u64) -> String {
    match documents {
        1 => "1 document".to_owned(),
        more => format!("{more} documents"),
    }
}

async fn change(change: Change, args: &DocumentsArgs) -> anyhow::Result<()> {
    let client: &Client = &args.corpus.recipe.client(&args.router)?;
    let corpus = args.corpus.corpus.as_str();
    // Before any input is read, and even if there is none.
    client.recipe(corpus).await?;
    let input = checking::open(&args.input)?;
    let (verb, done, rest) = match change {
        Change::Insert => ("inserting", "inserted", "there already"),
        Change::Remove => ("removing", "removed", "not there"),
    };
    let (mut documents, mut changed) = (0, 0);
    let request = |batch| async {
        match change {
            Change::Insert => client.insert(corpus, batch).await,
            Change::Remove => client.remove(corpus, batch).await,
        }
    };
    let skipped = pipeline::run(verb, input, request, |ids, answered: u64| {
        documents += ids.len() as u64;
        changed += answered;
        Ok(())
    })
    .await?;
    note(format!(
        "{done} {}, {} {rest}",
        count(changed),
        documents - changed
    ));
    if !skipped.is_empty() {
        note(skipped);
    }
    Ok(())
}
