//! `simshard corpus`: create, list, show and delete corpora, and look through all of one.

mod find_clusters;
mod find_pairs;
mod picture;
mod recover;
mod scan;
mod shards;
mod streaming;

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use simshard_client::{ClientError, Reason, v1};
use simshard_runtime::terminal::{counted, escaped};
use simshard_simhash::{Layout, Recipe, chance_pairs};

use crate::args::{Blocks, JsonArgs, document_count};
use crate::completion;
use crate::connection::RouterArgs;
use crate::exit::UsageError;
use crate::recipe::recipe_names;
use crate::say;
use crate::say::note;
pub(crate) use picture::picture;

/// The explanation of the output of `corpus show`.
const SHOW_HELP: &str = "\
`documents` and `fingerprints` count each once. `stored` counts the documents of
each shard of a node and adds them up. A document is in several shards, one for
each different leading byte that its tables give it, and so is counted as often:
with m blocks of 8 bits or more and distance k, up to k + 1 times. The bars show
the same for each 4 neighbouring shards, beside the fullest of all nodes. `cold`
has the replicas without tables: they have the documents too, and count nothing.";

/// The verbs of `corpus`.
#[derive(Debug, Subcommand)]
pub enum CorpusCommand {
    /// Create an empty corpus, or complete a creation that was cut short
    Create(CreateArgs),
    /// List all corpora, as TSV
    List(ListArgs),
    /// Show a corpus: its configuration, and what each node holds of it
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
    /// List which shards of a corpus hold a fingerprint, as TSV
    Shards(shards::ShardsArgs),
    /// Delete a corpus and all its documents, or complete a deletion that was cut short
    Delete(NameArgs),
    /// List the corpora that nodes store, or restore the lost record of one
    Recover(recover::RecoverArgs),
    /// Write every document of a corpus
    Scan(scan::ScanArgs),
    /// Find all pairs of near-duplicates in a corpus
    FindPairs(find_pairs::FindPairsArgs),
    /// Find the groups of near-duplicates in a corpus
    FindClusters(find_clusters::FindClustersArgs),
}

/// Arguments of `corpus create`.
#[derive(Args, Debug)]
#[command(after_help = "\
More blocks make each search look at fewer candidates, but every document is
then in more tables: C(blocks, distance) of them. `auto` weighs the two. For ten
million documents it takes 5 blocks (10 tables) at distance 3, 7 (21) at 5 and
8 (28) at 6. It says what it takes, and how many pairs of unlike documents will
be that near by chance.")]
pub struct CreateArgs {
    /// Its name: 1 to 128 characters of a-z, 0-9, '.', '_' and '-'
    #[arg(value_name = "CORPUS")]
    pub name: String,
    /// Blocks that a fingerprint is cut into: `auto`, or 1 to 64
    #[arg(long, value_name = "M", default_value = "auto")]
    pub blocks: Blocks,
    /// Largest distance that is searched, less than the blocks
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub distance: u32,
    /// How many documents it will hold, such as 1e8: `--blocks auto` follows from it
    #[arg(long, value_name = "N", default_value = "1e7", value_parser = document_count)]
    pub documents: f64,
    /// How texts become fingerprints
    #[arg(long, value_name = "RECIPE", default_value_t, value_parser = recipe_names())]
    pub recipe: Recipe,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Arguments of the verbs on one corpus.
#[derive(Args, Debug)]
pub struct NameArgs {
    /// Its name
    #[arg(value_name = "CORPUS", add = completion::corpora())]
    pub name: String,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Arguments of `corpus list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// How it is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Arguments of `corpus show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The corpus.
    #[command(flatten)]
    pub corpus: NameArgs,
    /// How it is printed.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// Does what the command says.
pub async fn run(command: CorpusCommand) -> anyhow::Result<()> {
    match command {
        CorpusCommand::Create(args) => create(args).await,
        CorpusCommand::List(args) => list(&args).await,
        CorpusCommand::Show(args) => show(&args).await,
        CorpusCommand::Shards(args) => shards::run(&args).await,
        CorpusCommand::Delete(args) => delete(&args).await,
        CorpusCommand::Recover(args) => recover::run(args).await,
        CorpusCommand::Scan(args) => scan::run(&args).await,
        CorpusCommand::FindPairs(args) => find_pairs::run(&args).await,
        CorpusCommand::FindClusters(args) => find_clusters::run(&args).await,
    }
}

async fn create(args: CreateArgs) -> anyhow::Result<()> {
    let client = args.router.client()?;
    let blocks = args.blocks.for_corpus(args.distance, args.documents)?;
    let request = v1::CreateCorpusRequest {
        name: args.name,
        blocks: Some(blocks),
        distance: Some(args.distance),
        recipe: args.recipe.to_string(),
    };
    let corpus = client.create_corpus(request).await?;
    note(format!(
        "created corpus {}: {}",
        corpus.name,
        describe(&corpus)
    ));
    let (documents, distance) = (args.documents, corpus.distance);
    let pairs = chance_pairs(documents, distance);
    let pairs = if pairs < 1.0 {
        "less than 1 pair".to_owned()
    } else {
        format!("about {pairs:.0} pairs")
    };
    note(format!(
        "expect {pairs} within distance {distance} by chance among {documents} documents"
    ));
    Ok(())
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let corpora = args.router.client()?.list_corpora().await?;
    if args.output.json {
        return corpora
            .iter()
            .map(as_json)
            .try_for_each(|one| say::print_json(&one));
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "name\tblocks\tdistance\trecipe\tstate")?;
    for corpus in corpora {
        let state = state(corpus.state());
        let v1::Corpus {
            name,
            blocks,
            distance,
            recipe,
            ..
        } = corpus;
        let (name, recipe) = (escaped(&name), escaped(&recipe));
        writeln!(out, "{name}\t{blocks}\t{distance}\t{recipe}\t{state}")?;
    }
    Ok(())
}

async fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let NameArgs { name, router } = &args.corpus;
    let response = router.client()?.get_corpus(name).await;
    let response = response.map_err(|error| or_absent(error, name))?;
    let corpus = response.corpus.unwrap_or_default();
    if args.output.json {
        let mut all = as_json(&corpus);
        all["document_count"] = response.document_count.into();
        all["fingerprint_count"] = response.fingerprint_count.into();
        all["nodes"] = response.nodes.iter().map(node_json).collect();
        return say::print_json(&all);
    }
    let count = |count: Option<u64>| match count {
        Some(count) => count.to_string(),
        None => "unknown, as a node does not answer or does not hold the corpus".to_owned(),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "corpus        {}", escaped(&corpus.name))?;
    writeln!(out, "layout        {}", escaped(&describe(&corpus)))?;
    writeln!(out, "documents     {}", count(response.document_count))?;
    writeln!(out, "fingerprints  {}", count(response.fingerprint_count))?;
    write!(out, "\n{}", picture(&response.nodes))?;
    Ok(())
}

async fn delete(args: &NameArgs) -> anyhow::Result<()> {
    let deleted = args.router.client()?.delete_corpus(&args.name).await;
    deleted.map_err(|error| or_absent(error, &args.name))?;
    note(format!("deleted corpus {}", args.name));
    Ok(())
}

/// `live`, or what is not complete.
const fn state(state: v1::CorpusState) -> &'static str {
    match state {
        v1::CorpusState::Unspecified => "unknown",
        v1::CorpusState::Creating => "creating",
        v1::CorpusState::Live => "live",
        v1::CorpusState::Deleting => "deleting",
    }
}

/// A corpus as programs get it.
fn as_json(corpus: &v1::Corpus) -> Value {
    json!({
        "name": corpus.name,
        "blocks": corpus.blocks,
        "distance": corpus.distance,
        "recipe": corpus.recipe,
        "state": state(corpus.state()),
    })
}

/// A node and what it holds of a corpus, as programs get it.
fn node_json(node: &v1::NodeShards) -> Value {
    let state = match node.state() {
        v1::NodeState::Serving => "serving",
        v1::NodeState::Unreachable => "unreachable",
        v1::NodeState::CorpusNotLoaded => "corpus not loaded",
        v1::NodeState::OtherRecords => "other records",
        v1::NodeState::Unspecified => "unknown",
    };
    json!({
        "node": node.node,
        "address": node.address,
        "state": state,
        "shards": node.shards,
        "cold_shards": node.cold_shards,
        "document_counts": node.document_counts,
    })
}

/// Why a corpus cannot be looked at or deleted: where it is not there, making it is not what was meant.
fn or_absent(error: ClientError, name: &str) -> anyhow::Error {
    match error.reason() {
        Some(Reason::CorpusNotFound) if error.corpus_state().is_none() => UsageError(format!(
            "there is no corpus {name}: `simshard corpus list` lists those that exist"
        ))
        .into(),
        _ => error.into(),
    }
}

fn describe(corpus: &v1::Corpus) -> String {
    let v1::Corpus {
        blocks,
        distance,
        recipe,
        ..
    } = corpus;
    let tables = match Layout::new(*blocks, *distance) {
        Ok(layout) => counted(layout.table_count(), "table"),
        Err(_) => "? tables".to_owned(),
    };
    let blocks = counted(blocks, "block");
    format!("{blocks}, distance {distance}, {tables}, recipe {recipe}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_makes_one_table() {
        let corpus = |blocks, distance| v1::Corpus {
            blocks,
            distance,
            recipe: "words-v3".to_owned(),
            ..v1::Corpus::default()
        };
        for (corpus, described) in [
            (corpus(1, 0), "1 block, distance 0, 1 table"),
            (corpus(5, 3), "5 blocks, distance 3, 10 tables"),
            (corpus(0, 3), "0 blocks, distance 3, ? tables"),
        ] {
            let described = format!("{described}, recipe words-v3");
            assert_eq!(describe(&corpus), described);
        }
    }
}
