//! The replicas of each shard, compared with each other.

use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use simshard_cluster::RegisteredStore;
use simshard_node::{ScrubDifference, ScrubError, ScrubSummary, scrub_shard};
use simshard_topology::{ShardId, ShardSet};

use super::attempts::Attempts;
use super::manner::{Manner, SHOWN, state_text, state_value};
use super::places::Places;
use crate::args::JsonArgs;
use crate::progress;
use crate::say;

/// What came of a shard.
pub(super) struct Outcome {
    pub(super) shard: ShardId,
    /// What was compared, or why nothing was.
    pub(super) summary: Result<ScrubSummary, String>,
    /// Documents that attempts repaired before they failed.
    repaired_before: u64,
    /// Some of the documents that differ, as a user is told of them.
    pub(super) shown: Vec<String>,
}

/// Compares the replicas of these shards. Answers what came of each shard.
pub(super) async fn compare(
    attempts: &Attempts<'_>,
    manner: Manner,
    within: ShardSet,
) -> anyhow::Result<Vec<Outcome>> {
    let places = attempts.places();
    let shards = places.records.keys().copied();
    let shards: Vec<ShardId> = shards.filter(|shard| within.contains(*shard)).collect();
    let bar = progress::bar("comparing replicas", Some(shards.len() as u64));
    let comparison = Comparison {
        manner,
        attempts,
        bar: &bar,
    };
    let outcomes = stream::iter(shards).map(|shard| comparison.shard(shard));
    let outcomes = outcomes.buffered(manner.at_once.get()).try_collect();
    let outcomes = attempts.during(outcomes).await;
    bar.finish_and_clear();
    outcomes
}

/// The work of the command.
struct Comparison<'a> {
    manner: Manner,
    attempts: &'a Attempts<'a>,
    bar: &'a ProgressBar,
}

impl Comparison<'_> {
    /// Has a node compare the replicas of a shard, until that succeeds.
    async fn shard(&self, shard: ShardId) -> anyhow::Result<Outcome> {
        let (mut told, mut printed) = (Told::default(), Ok(()));
        let only = ShardSet::from_iter([shard]);
        let compare = async |places: &Places, reader: &RegisteredStore| {
            let to = (&mut told, &mut printed);
            self.attempt(shard, places, reader, to).await
        };
        let summary = self.attempts.repeat(shard, only, compare).await;
        printed?;
        self.bar.inc(1);
        Ok(Outcome {
            shard,
            repaired_before: told.repaired_before,
            summary: summary.map(|summary| ScrubSummary {
                differences: summary.differences + told.repaired_before,
                repaired: summary.repaired + told.repaired_before,
                ..summary
            }),
            shown: told.shown,
        })
    }

    /// Has a node compare the replicas of a shard. What was told and not repaired before it failed is told again.
    async fn attempt(
        &self,
        shard: ShardId,
        places: &Places,
        reader: &RegisteredStore,
        (told, printed): (&mut Told, &mut anyhow::Result<()>),
    ) -> Result<ScrubSummary, ScrubError> {
        let mut repaired = 0;
        let visit = |difference: ScrubDifference| {
            repaired += u64::from(difference.is_repaired);
            if !self.manner.output.json {
                if told.shown.len() < SHOWN {
                    told.shown.push(text_of(shard, &difference, places));
                }
            } else if printed.is_ok() {
                *printed = say::print_json(&document(shard, &difference, places));
            }
        };
        let options = self.manner.options;
        let scrubbed = scrub_shard(
            self.attempts.asked(reader),
            reader.id,
            shard,
            options,
            visit,
        );
        let holders = places.holders(ShardSet::from_iter([shard]));
        let scrubbed = self.attempts.while_held(&holders, scrubbed).await;
        if scrubbed.is_err() {
            told.repaired_before += repaired;
        }
        scrubbed
    }
}

/// What all attempts at a shard have told.
#[derive(Default)]
struct Told {
    /// Documents that attempts repaired before they failed.
    repaired_before: u64,
    shown: Vec<String>,
}

/// A document that differs, for programs.
fn document(shard: ShardId, difference: &ScrubDifference, places: &Places) -> Value {
    let states = difference
        .states
        .iter()
        .map(|replica| (places.name(replica.store), state_value(replica.state)));
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
fn text_of(shard: ShardId, difference: &ScrubDifference, places: &Places) -> String {
    let states = difference.states.iter();
    let states = states.map(|one| format!("{} {}", places.name(one.store), state_text(one.state)));
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
                differences: self.repaired_before,
                repaired: self.repaired_before,
            },
        }
    }

    fn compared(&self) -> u64 {
        self.summary.as_ref().map_or(0, |summary| summary.compared)
    }

    /// Bytes of the messages between the replicas.
    fn message_bytes(&self) -> u64 {
        self.summary
            .as_ref()
            .map_or(0, |summary| summary.message_bytes)
    }

    /// Documents that differ still.
    pub(super) fn left(&self) -> u64 {
        let left = |summary: &ScrubSummary| summary.differences - summary.repaired;
        self.summary.as_ref().map_or(0, left)
    }

    pub(super) fn has_more(&self) -> bool {
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
pub(super) fn print(outcomes: &[Outcome], places: &Places, output: JsonArgs) -> anyhow::Result<()> {
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
                "message_bytes": alike.iter().map(|(outcome, _)| outcome.message_bytes()).sum::<u64>(),
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
