//! `simshard corpus shards`: which shards of a corpus hold a fingerprint.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use simshard_simhash::{Fingerprint, Layout, Tables};

use super::{NameArgs, or_absent};
use crate::args::JsonArgs;
use crate::say;

/// Arguments of `corpus shards`.
#[derive(Args, Debug)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
A fingerprint is stored once for each different first byte of its permutations,
and that byte names the shard, as two hexadecimal digits. The first one listed
is its home: the first byte of the fingerprint itself, where it is counted. The
others follow in the order of the tables. They depend on the blocks and the
distance of the corpus alone, so a fingerprint need not be stored to be asked
for. `simshard corpus show` says which node has which shards, and `simshard
cluster shards` does for nodes that register themselves.

Example:
  simshard corpus shards default 5456993838078482869"
)]
pub struct ShardsArgs {
    /// The corpus.
    #[command(flatten)]
    pub corpus: NameArgs,
    /// Fingerprints, decimal
    #[arg(value_name = "FINGERPRINT", required = true)]
    pub fingerprints: Vec<Fingerprint>,
    /// How they are printed.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// Prints the shards of each fingerprint.
pub(super) async fn run(args: &ShardsArgs) -> anyhow::Result<()> {
    let NameArgs { name, router } = &args.corpus;
    let response = router.client()?.get_corpus(name).await;
    let response = response.map_err(|error| or_absent(error, name))?;
    let corpus = response.corpus.unwrap_or_default();
    let layout = Layout::new(corpus.blocks, corpus.distance);
    let tables =
        Tables::new(layout.context("the router names blocks or a distance that cannot be")?);
    let holding = args
        .fingerprints
        .iter()
        .map(|&fingerprint| (fingerprint, shards(&tables, fingerprint)));
    if args.output.json {
        return holding
            .map(|(fingerprint, shards)| as_json(fingerprint, &shards))
            .try_for_each(|one| say::print_json(&one));
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "fingerprint\tshards")?;
    for (fingerprint, shards) in holding {
        writeln!(out, "{fingerprint}\t{}", shards.join(","))?;
    }
    Ok(())
}

/// The shards that hold a fingerprint, each once, its home first.
fn shards(tables: &Tables, fingerprint: Fingerprint) -> Vec<String> {
    let mut shards = Vec::new();
    for shard in tables.document_shards(fingerprint) {
        let shard = format!("{shard:02x}");
        if !shards.contains(&shard) {
            shards.push(shard);
        }
    }
    shards
}

/// A fingerprint and its shards, as programs get them.
fn as_json(fingerprint: Fingerprint, shards: &[String]) -> Value {
    json!({
        "fingerprint": fingerprint.to_string(),
        "home": shards.first(),
        "shards": shards,
    })
}
