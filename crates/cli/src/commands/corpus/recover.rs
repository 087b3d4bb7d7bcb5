//! `simshard corpus recover`: the corpora that nodes store, and new records for those that have lost theirs.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use simshard_client::{Client, v1};
use simshard_runtime::terminal::escaped;
use simshard_simhash::Recipe;

use crate::args::JsonArgs;
use crate::connection::RouterArgs;
use crate::recipe::recipe_names;
use crate::say;
use crate::say::{note, warn};

/// Arguments of `corpus recover`.
#[derive(Args, Debug)]
#[command(after_help = "\
For a cluster whose file of corpora is lost or damaged while its nodes have
their data. Without a UID, all corpora that nodes store are listed, as TSV:
those without a name have no record. Blocks and distance are stored with the
documents, name and recipe are not. Give the recipe that the corpus had: with
another one, texts find nothing.

A damaged file is never replaced: move it away first. Restore all corpora
before clients come: while one has no record, none is created. To get rid of
one, restore it, then delete it. Restart routers that ran meanwhile: they
remember the corpora that they have used.

Examples:
  simshard corpus recover
  simshard corpus recover UID --name articles --recipe words-v1")]
pub struct RecoverArgs {
    /// The uid of the corpus whose record is lost
    #[arg(requires = "name", requires = "recipe")]
    pub uid: Option<String>,
    /// The name that it gets
    #[arg(long, value_name = "CORPUS", requires = "uid")]
    pub name: Option<String>,
    /// The recipe that made its fingerprints
    #[arg(long, value_name = "RECIPE", requires = "uid", value_parser = recipe_names())]
    pub recipe: Option<Recipe>,
    /// How the list is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Lists the corpora that nodes store, or makes a record for one.
pub(super) async fn run(args: RecoverArgs) -> anyhow::Result<()> {
    let client = args.router.client()?;
    let Some(uid) = args.uid else {
        let stored = client.list_stored_corpora().await?;
        if args.output.json {
            return stored
                .iter()
                .map(as_json)
                .try_for_each(|one| say::print_json(&one));
        }
        return list(&stored);
    };
    let request = v1::RecoverCorpusRequest {
        uid,
        name: args.name.context("clap requires a name")?,
        recipe: args.recipe.context("clap requires a recipe")?.to_string(),
    };
    let corpus = client.recover_corpus(request).await?;
    note(format!(
        "recovered corpus {}: {}",
        corpus.name,
        super::describe(&corpus)
    ));
    warn_of_parts(&client, &corpus).await;
    let stored = client.list_stored_corpora().await?;
    match stored.iter().filter(|one| one.name.is_empty()).count() {
        0 => {}
        1 => warn("1 more corpus has no record"),
        left => warn(format!("{left} more corpora have no record")),
    }
    Ok(())
}

/// Says where the corpus is not whole.
async fn warn_of_parts(client: &Client, corpus: &v1::Corpus) {
    if corpus.state() == v1::CorpusState::Creating {
        warn("it is empty, and a node does not hold it: repeat its creation, or delete it");
    }
    let described = client.get_corpus(&corpus.name).await;
    for node in described
        .map(|described| described.nodes)
        .unwrap_or_default()
    {
        if node.state() == v1::NodeState::CorpusNotLoaded {
            warn(format!(
                "node {} does not hold it: start the node with the data directory that it had",
                escaped(&node.node)
            ));
        }
    }
}

/// A corpus that nodes store, as programs get it. One without a record has no name.
fn as_json(corpus: &v1::StoredCorpus) -> Value {
    let name = Some(&corpus.name).filter(|name| !name.is_empty());
    json!({
        "uid": corpus.uid,
        "name": name,
        "blocks": corpus.blocks,
        "distance": corpus.distance,
        "document_count": corpus.document_count,
        "nodes": corpus.nodes,
    })
}

fn list(stored: &[v1::StoredCorpus]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "uid\tname\tblocks\tdistance\tdocuments\tnodes")?;
    for corpus in stored {
        let v1::StoredCorpus {
            uid,
            name,
            blocks,
            distance,
            document_count,
            nodes,
        } = corpus;
        let (uid, name, nodes) = (escaped(uid), escaped(name), nodes.join(","));
        let nodes = escaped(&nodes);
        writeln!(
            out,
            "{uid}\t{name}\t{blocks}\t{distance}\t{document_count}\t{nodes}"
        )?;
    }
    Ok(())
}
