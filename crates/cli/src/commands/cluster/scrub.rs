//! `simshard cluster scrub`: whether the replicas of each shard hold the same, and repairing those that do not.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use simshard_cluster::{KeyValueStore, RegisteredStore, registered_stores, shard_records};
use simshard_node::{ScrubDifference, ScrubOptions, ScrubSummary, scrub_shard};
use simshard_runtime::terminal::counted;
use simshard_topology::replication::{ShardRecords, State, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::sleep;

use super::MetadataArgs;
use crate::args::JsonArgs;
use crate::progress;
use crate::say::{self, note, warn};

/// How often a shard is tried whose record changes meanwhile, or a node of which does not answer.
const ATTEMPTS: u32 = 6;

/// Between two attempts: a node that has died is taken out of the records by then.
const PAUSE: Duration = Duration::from_secs(1);

/// Documents that a table is followed by, at most.
const SHOWN: usize = 10;

/// Arguments of `cluster scrub`.
#[derive(Args, Debug)]
pub struct ScrubArgs {
    /// The shards that are compared, such as 00-1f,80 [default: all]
    #[arg(long, value_name = "SHARDS")]
    pub shards: Option<ShardSet>,
    /// Give each replica the newest state of the documents that differ
    #[arg(long)]
    pub repair: bool,
    /// Compare documents that were last changed this long ago, or longer: others may be on their way
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub settled_seconds: u64,
    /// Shards that are compared at once
    #[arg(long, value_name = "SHARDS", default_value = "2")]
    pub at_once: NonZeroUsize,
    /// Documents of a shard that differ of which its node takes note at once: each takes its id, and about 200 bytes
    #[arg(long, value_name = "DOCUMENTS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub most_differences: u32,
    /// How the outcome is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

pub(super) async fn run(args: &ScrubArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let places = Places::read(&*keys).await?;
    let within = args.shards.unwrap_or(ShardSet::ALL);
    let shards = places.records.keys().copied();
    let shards: Vec<ShardId> = shards.filter(|shard| within.contains(*shard)).collect();
    let bar = progress::bar("comparing shards", Some(shards.len() as u64));
    let scrub = Scrub {
        keys: &*keys,
        args,
        first: &places,
        bar: &bar,
    };
    let outcomes = stream::iter(shards).map(|shard| scrub.shard(shard));
    let outcomes = outcomes.buffered(args.at_once.get());
    let outcomes: Vec<Outcome> = outcomes.try_collect().await?;
    bar.finish_and_clear();
    print(&outcomes, &places, args.output)?;
    conclude(&outcomes, args)
}

/// Who holds which shard.
struct Places {
    records: ShardRecords,
    stores: BTreeMap<StoreId, RegisteredStore>,
}

impl Places {
    async fn read(keys: &dyn KeyValueStore) -> anyhow::Result<Self> {
        let records = shard_records(keys).await?;
        let stores = registered_stores(keys).await?.into_iter();
        let stores = stores.map(|store| (store.id, store)).collect();
        Ok(Self { records, stores })
    }

    /// What a store is called: by its node, if it has registered.
    fn name(&self, store: StoreId) -> String {
        let registered = self.stores.get(&store);
        registered.map_or_else(|| store.to_string(), |store| store.node.to_string())
    }

    fn names(&self, stores: &[StoreId]) -> Vec<String> {
        let mut names: Vec<String> = stores.iter().map(|store| self.name(*store)).collect();
        names.sort_unstable();
        names
    }
}

/// What came of a shard.
struct Outcome {
    shard: ShardId,
    /// What was compared, or why nothing was.
    summary: Result<ScrubSummary, String>,
    /// Whether another attempt may help.
    may_succeed_later: bool,
    /// Some of the documents that differ, as a user is told of them.
    shown: Vec<String>,
}

/// The work of the command.
struct Scrub<'a> {
    keys: &'a dyn KeyValueStore,
    args: &'a ScrubArgs,
    first: &'a Places,
    bar: &'a ProgressBar,
}

impl Scrub<'_> {
    /// Has a node compare a shard, several times if that may help.
    async fn shard(&self, shard: ShardId) -> anyhow::Result<Outcome> {
        let mut outcome = self.attempt(shard, self.first).await?;
        for _ in 1..ATTEMPTS {
            if !outcome.may_succeed_later {
                break;
            }
            sleep(PAUSE).await;
            let places = Places::read(self.keys).await?;
            outcome = self.attempt(shard, &places).await?;
        }
        self.bar.inc(1);
        Ok(outcome)
    }

    async fn attempt(&self, shard: ShardId, places: &Places) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome {
            shard,
            summary: Err("its node has not registered".to_owned()),
            may_succeed_later: false,
            shown: Vec::new(),
        };
        let record = places.records.get(&shard);
        let first = record.and_then(|record| places.stores.get(&record.in_sync.first()?.store));
        let Some(RegisteredStore { id, address, .. }) = first else {
            return Ok(outcome);
        };
        let options = ScrubOptions {
            settled: Duration::from_secs(self.args.settled_seconds),
            repairs: self.args.repair,
            most_differences: self.args.most_differences,
        };
        let mut printed = Ok(());
        let visit = |difference: ScrubDifference| {
            if self.args.output.json {
                let value = document(shard, &difference, places);
                printed =
                    std::mem::replace(&mut printed, Ok(())).and_then(|()| say::print_json(&value));
            } else if outcome.shown.len() < SHOWN {
                outcome.shown.push(told(shard, &difference, places));
            }
        };
        let scrubbed = scrub_shard(address, *id, shard, options, visit).await;
        printed?;
        outcome.may_succeed_later = scrubbed
            .as_ref()
            .is_err_and(|error| error.may_succeed_later);
        outcome.summary = scrubbed.map_err(|error| error.to_string());
        Ok(outcome)
    }
}

/// A document that differs, for programs.
fn document(shard: ShardId, difference: &ScrubDifference, places: &Places) -> Value {
    let states = difference.states.iter().map(|replica| {
        let state = replica
            .state
            .map(|State { version, live }| json!({ "version": version.to_string(), "live": live }));
        (places.name(replica.store), state.unwrap_or(Value::Null))
    });
    json!({
        "shard": shard.to_string(),
        "corpus": difference.corpus.to_string(),
        "fingerprint": difference.fingerprint.to_string(),
        "id": difference.id,
        "states": states.collect::<Map<_, _>>(),
        "repaired": difference.is_repaired,
    })
}

/// A document that differs, for people.
fn told(shard: ShardId, difference: &ScrubDifference, places: &Places) -> String {
    let state = |state| match state {
        None => "absent".to_owned(),
        Some(State { version, live }) => {
            let what = if live { "live" } else { "removed" };
            format!("{what} at {version}")
        }
    };
    let states = difference.states.iter();
    let states = states.map(|one| format!("{} {}", places.name(one.store), state(one.state)));
    let ScrubDifference {
        corpus,
        fingerprint,
        id,
        ..
    } = difference;
    let states = Vec::from_iter(states).join(", ");
    format!("shard {shard}, corpus {corpus}, fingerprint {fingerprint}, id {id:?}: {states}")
}

/// What a line says of shards.
#[derive(Clone, PartialEq, Eq)]
struct Row {
    nodes: Vec<String>,
    state: &'static str,
    differences: u64,
    repaired: u64,
}

impl Outcome {
    fn row(&self, places: &Places) -> Row {
        match &self.summary {
            Ok(summary) => Row {
                nodes: places.names(&summary.stores),
                state: state(summary),
                differences: summary.differences,
                repaired: summary.repaired,
            },
            Err(_) => Row {
                nodes: Vec::new(),
                state: "not compared",
                differences: 0,
                repaired: 0,
            },
        }
    }

    fn compared(&self) -> u64 {
        self.summary.as_ref().map_or(0, |summary| summary.compared)
    }

    /// Documents that differ still.
    fn left(&self) -> u64 {
        let left = |summary: &ScrubSummary| summary.differences - summary.repaired;
        self.summary.as_ref().map_or(0, left)
    }

    fn has_more(&self) -> bool {
        self.summary.as_ref().is_ok_and(|summary| summary.has_more)
    }
}

fn state(summary: &ScrubSummary) -> &'static str {
    match summary {
        ScrubSummary { stores, .. } if stores.len() < 2 => "one replica",
        ScrubSummary { has_more: true, .. } => "differs",
        ScrubSummary { differences: 0, .. } => "agrees",
        summary if summary.differences > summary.repaired => "differs",
        _ => "repaired",
    }
}

/// Prints a line for neighbouring shards that are alike.
fn print(outcomes: &[Outcome], places: &Places, output: JsonArgs) -> anyhow::Result<()> {
    let rows: Vec<(&Outcome, Row)> = outcomes.iter().map(|one| (one, one.row(places))).collect();
    let mut text = "shards\tnodes\tstate\tcompared\tdifferences\trepaired".to_owned();
    for alike in rows.chunk_by(|(_, one), (_, next)| one == next && one.differences == 0) {
        let shards: ShardSet = alike.iter().map(|(outcome, _)| outcome.shard).collect();
        let compared: u64 = alike.iter().map(|(outcome, _)| outcome.compared()).sum();
        let Row {
            nodes,
            state,
            differences,
            repaired,
        } = &alike[0].1;
        if output.json {
            say::print_json(&json!({
                "shards": shards.to_string(),
                "nodes": nodes,
                "state": state,
                "compared": compared,
                "differences": differences,
                "repaired": repaired,
            }))?;
        } else {
            let nodes = nodes.join(",");
            text.push_str(&format!(
                "\n{shards}\t{nodes}\t{state}\t{compared}\t{differences}\t{repaired}"
            ));
        }
    }
    if !output.json {
        say::print(&text)?;
    }
    Ok(())
}

/// Says which documents differ, and fails if some still do.
fn conclude(outcomes: &[Outcome], args: &ScrubArgs) -> anyhow::Result<()> {
    for told in outcomes
        .iter()
        .flat_map(|outcome| &outcome.shown)
        .take(SHOWN)
    {
        note(told);
    }
    let mut problems = Vec::new();
    let left: u64 = outcomes.iter().map(Outcome::left).sum();
    let has_more = outcomes.iter().any(Outcome::has_more);
    if left > 0 || has_more {
        let more = if has_more { "more than " } else { "" };
        let advice = if args.repair {
            ""
        } else {
            ": repair them with --repair"
        };
        problems.push(format!(
            "replicas differ in {more}{}{advice}",
            counted(left, "document")
        ));
    }
    let failed = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome.shard, outcome.summary.as_ref().err()?)));
    let failed: Vec<_> = failed.collect();
    for (shard, problem) in failed.iter().take(SHOWN) {
        warn(format!("shard {shard} was not compared: {problem}"));
    }
    if !failed.is_empty() {
        let shards: ShardSet = failed.iter().map(|(shard, _)| *shard).collect();
        problems.push(format!("shards {shards} were not compared"));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("; "))
}
