//! `simshard find` and `simshard find-first`: one JSON line a query.

pub mod missing;
mod only_new;
mod search;

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use simshard_batch::write_json;
use simshard_client::v1::{NodeShards, NodeState};
use simshard_client::{
    Client, FindAnswer, Fingerprint, Missing, Queries, QueryMatches, SearchSpec,
};
use simshard_input::Notation;
use simshard_simhash::Recipe;

use search::{Search, Which};

use crate::args::{GivenFingerprint, InputArgs};
use crate::commands::documents::hashable;
use crate::commands::{checking, pipeline};
use crate::connection::{CorpusArgs, RouterArgs};
use crate::exit::UsageError;
use crate::say::{left_out, warn};

/// Arguments of `find`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints a line for each query, in their order:
{\"query\":\"5\",\"id\":\"a\",\"matches\":[{\"fingerprint\":\"4\",\"distance\":1,\"ids\":[\"b\"]}]}
`query` is the fingerprint that was searched for, `id` that of the input
document. Matches come by distance, then fingerprint. `\"truncated\": true` is
added where --limit cut them, `\"document_count\"` where --max-ids cut the ids,
and `\"guaranteed_distance\"` to a partial answer: farther matches may be missing.
Corpora of words-v3 and words-v2 add `\"similarity\"`, estimated from the
distance. Documents that the recipe gives no fingerprint are counted, and get no
line.

Examples:
  simshard find queries.jsonl --text-field body --limit 10
  simshard find --exclude-self corpus.tsv
  simshard find --only-new pages.jsonl > new.jsonl
  simshard find --fingerprint 5457064206285785525 --max-distance 2
  simshard find --text 'The quick brown fox jumps over the lazy dog'")]
pub struct FindArgs {
    /// The arguments of both commands.
    #[command(flatten)]
    pub common: FindFirstArgs,
    /// Print at most this many matches a query, the nearest; 0 means all
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Search",
        conflicts_with = "only_new"
    )]
    pub limit: u32,
}

/// Arguments of `find-first`, and of `find` as well.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Prints a line for each query, in their order, with one match or none:
{\"query\":\"5\",\"id\":\"a\",\"matches\":[{\"fingerprint\":\"4\",\"distance\":1,\"ids\":[\"b\"]}]}
`simshard find --help` says more of it.

Examples:
  simshard find-first queries.jsonl --text-field body
  simshard find-first --fingerprint 5457064206285785525",
    next_help_heading = "Search"
)]
pub struct FindFirstArgs {
    /// Search for this fingerprint instead of documents, with --signed in two's complement; repeat for more
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["paths", "text"],
        allow_negative_numbers = true
    )]
    pub fingerprint: Vec<GivenFingerprint>,
    /// Search for this text instead of documents; repeat for more
    #[arg(long, value_name = "TEXT", conflicts_with = "paths")]
    pub text: Vec<String>,
    /// Find matches up to this distance [default: the corpus's]
    #[arg(long, visible_alias = "distance", value_name = "BITS")]
    pub max_distance: Option<u32>,
    /// Print at most this many ids a match, the smallest; 0 means all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_ids: u32,
    /// If a node does not answer or does not hold the corpus, print what the others hold instead of failing
    #[arg(long)]
    pub allow_partial: bool,
    /// Do not find the document with the same id as the one that is searched for
    ///
    /// For input that is in the corpus already. Where --max-ids cuts the ids, `document_count` may
    /// count it all the same.
    #[arg(long, conflicts_with_all = ["fingerprint", "text"])]
    pub exclude_self: bool,
    /// Print the documents that have no match, as they stand in the input, instead of all with matches
    ///
    /// The lines of jsonl, csv, lines, tsv and hashes are printed again byte for byte, in their order, with
    /// headers and blank lines. Texts without a fingerprint, such as those without words, have no match.
    /// Documents are compared with those of the corpus, not with one another. The input is read
    /// twice; standard input is copied to a temporary file meanwhile.
    #[arg(long, conflicts_with_all = ["fingerprint", "text", "allow_partial", "max_ids"])]
    pub only_new: bool,
    /// The documents to search for.
    #[command(flatten)]
    pub input: InputArgs,
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Finds all matches.
pub async fn run(args: &FindArgs) -> anyhow::Result<()> {
    find(Which::All, &args.common, args.limit).await
}

/// Finds the nearest matches.
pub async fn run_first(args: &FindFirstArgs) -> anyhow::Result<()> {
    find(Which::First, args, 0).await
}

async fn find(which: Which, args: &FindFirstArgs, limit: u32) -> anyhow::Result<()> {
    let client: &Client = &args.corpus.recipe.checked_by(args.router.client()?);
    let corpus = args.corpus.corpus.as_str();
    let options = SearchSpec {
        max_distance: args.max_distance,
        limit: NonZeroU32::new(limit),
        max_ids: NonZeroU32::new(args.max_ids),
        allow_partial: args.allow_partial,
    };
    let search = Search {
        client,
        corpus,
        which,
        spec: options,
        exclude_self: args.exclude_self,
    };
    let mut out = BufWriter::new(std::io::stdout());
    let fingerprints = args.fingerprint.iter();
    let fingerprints = fingerprints.map(|given| given.value(args.input.signed));
    let fingerprints: Vec<Fingerprint> = fingerprints.collect::<Result<_, _>>()?;
    let queries = match (fingerprints.is_empty(), args.text.is_empty()) {
        (false, _) => Some(Queries::Fingerprints(fingerprints)),
        (true, false) => Some(Queries::Texts(args.text.clone())),
        (true, true) => None,
    };
    // The recipe decides whether output has similarities. A wrong corpus fails here, before any input is read.
    let recipe = args.corpus.known_recipe(client).await?;
    check_texts(&args.text, recipe)?;
    let notation = args.input.notation();
    if let Some(queries) = queries {
        let found = search.run(queries, &[]).await?;
        print(&mut out, &[], &found, recipe, notation)?;
        warn_of_missing(client, corpus, &found.unreachable_nodes).await;
        return Ok(());
    }
    if args.only_new {
        return only_new::run(search, &args.input.options(), recipe).await;
    }
    let input = checking::open(&args.input.options())?;
    let (count, documents) = (input.document_count(), hashable(input, recipe));
    let mut missing = BTreeSet::new();
    let request =
        |batch: simshard_client::Documents| async move { search.run(batch.keys, &batch.ids).await };
    let skipped = pipeline::run("searching", count, documents, request, |ids, found| {
        print(&mut out, &ids, &found, recipe, notation)?;
        missing.extend(found.unreachable_nodes);
        Ok(())
    })
    .await?;
    warn_of_missing(client, corpus, &missing).await;
    left_out(&skipped);
    Ok(())
}

/// Refuses a text that the recipe gives no fingerprint. The router would call it by its place in a request.
fn check_texts(texts: &[String], recipe: Option<Recipe>) -> Result<(), UsageError> {
    let Some(recipe) = recipe.and_then(|recipe| recipe.for_texts().ok()) else {
        return Ok(());
    };
    let mut texts_without = (1..)
        .zip(texts)
        .filter(|(_, text)| !recipe.has_fingerprint(text));
    let Some((number, _)) = texts_without.next() else {
        return Ok(());
    };
    let text = match texts.len() {
        1 => "the text".to_owned(),
        several => format!("text {number} of {several}"),
    };
    let lack = recipe.too_little().unwrap_or_else(|| "no words".to_owned());
    Err(UsageError(format!(
        "{text} has {lack}, and so no fingerprint by recipe {recipe}: search for another one"
    )))
}

/// How long the warning may wait for the state of missing nodes. The answers are printed before.
const WARNING_TIMEOUT: Duration = Duration::from_secs(1);

/// Warns of nodes whose documents some answers lack, with the state of each.
async fn warn_of_missing(client: &Client, corpus: &str, nodes: &BTreeSet<String>) {
    if nodes.is_empty() {
        return;
    }
    // Without an answer in time, the warning still names the nodes.
    let client = client.clone().with_timeout(WARNING_TIMEOUT);
    let shown = client.get_corpus(corpus).await.unwrap_or_default();
    for name in nodes {
        let node = shown.nodes.iter().find(|node| node.node == *name);
        let matter = matter(node.map_or(NodeState::Unspecified, NodeShards::state));
        warn(format!("partial answers: node {name} {matter}"));
    }
}

/// Why answers lack the documents of a node, given its state after the search.
fn matter(state: NodeState) -> &'static str {
    match state {
        NodeState::CorpusNotLoaded => "does not hold the corpus",
        NodeState::OtherRecords => "has other records of its shards than the router just now",
        NodeState::Unreachable | NodeState::Serving | NodeState::Unspecified => {
            "was unreachable or late"
        }
    }
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'a> {
    query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    matches: Vec<LineMatch<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    guaranteed_distance: Option<i64>,
}

#[derive(Serialize)]
struct LineMatch<'a> {
    fingerprint: String,
    distance: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    ids: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    document_count: Option<u64>,
}

/// The distance up to which no match is missing; -1 if none is certain.
fn guaranteed(missing: Missing) -> i64 {
    missing.guaranteed_distance.map_or(-1, i64::from)
}

/// Prints the answers to queries with these ids, or without any.
fn print(
    out: &mut impl Write,
    ids: &[String],
    found: &FindAnswer,
    recipe: Option<Recipe>,
    notation: Notation,
) -> anyhow::Result<()> {
    for (place, query) in found.queries.iter().enumerate() {
        let id = ids.get(place).map(String::as_str);
        write_json(&mut *out, &line(query, id, recipe, notation))?;
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

fn line<'a>(
    query: &'a QueryMatches,
    id: Option<&'a str>,
    recipe: Option<Recipe>,
    notation: Notation,
) -> Line<'a> {
    let matches = query.matches.iter().map(|found| LineMatch {
        fingerprint: notation.text(found.fingerprint),
        distance: found.distance,
        similarity: recipe.and_then(|recipe| recipe.similarity(found.distance)),
        ids: &found.ids,
        document_count: (found.document_count > found.ids.len() as u64)
            .then_some(found.document_count),
    });
    Line {
        query: notation.text(query.query),
        id,
        matches: matches.collect(),
        truncated: query.truncated,
        guaranteed_distance: query.missing.map(guaranteed),
    }
}

#[cfg(test)]
mod tests {
    use simshard_client::{LeadGroups, Match};

    use super::*;

    #[test]
    fn lines_have_the_published_form() {
        let found = FindAnswer {
            queries: vec![
                QueryMatches {
                    query: Fingerprint(u64::MAX),
                    matches: vec![Match {
                        fingerprint: Fingerprint(u64::MAX - 1),
                        distance: 1,
                        document_count: 3,
                        ids: vec!["a\"b".into()],
                    }],
                    truncated: true,
                    missing: Some(Missing {
                        lead_groups: LeadGroups(1),
                        guaranteed_distance: Some(2),
                    }),
                },
                QueryMatches::default(),
            ],
            unreachable_nodes: BTreeSet::new(),
        };
        let mut out = Vec::new();
        print(
            &mut out,
            &["x".into(), "y".into()],
            &found,
            None,
            Notation::Unsigned,
        )
        .unwrap();
        let expected = concat!(
            r#"{"query":"18446744073709551615","id":"x","matches":[{"fingerprint":"18446744073709551614","#,
            r#""distance":1,"ids":["a\"b"],"document_count":3}],"truncated":true,"guaranteed_distance":2}"#,
            "\n",
            r#"{"query":"0","id":"y","matches":[]}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);

        let mut out = Vec::new();
        print(
            &mut out,
            &[],
            &found,
            Some(Recipe::default()),
            Notation::Signed,
        )
        .unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.contains(r#""fingerprint":"-2","distance":1,"similarity":0.96875,"ids""#),
            "{out}"
        );
    }
}
