//! Shards compared with each other: each document is to have the same state in all its shards.
//!
//! Each shard has a sum of what it has in common with each other one. Where the sums of two shards for each other differ,
//! a node of the lower one compares their documents.

mod corpora;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};
use simshard_cluster::{CorpusState, RegisteredStore};
use simshard_node::{ScrubDifference, ScrubError, compare_shard, sum_cells_of};
use simshard_topology::replication::StoreId;
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::super::access::ClusterAccess;
use super::attempts::Attempts;
use super::manner::{Manner, SHOWN, state_text, state_value};
use super::places::Places;
use crate::progress;
use crate::say;
use corpora::{corpora_of, left_out, untold};

/// The sums of a shard, by the other shard.
type Sums = Vec<[u8; 16]>;

/// What came of all shards.
#[derive(Default)]
pub(super) struct Outcomes {
    /// The shards that were summed up, of those that were asked for.
    summed: ShardSet,
    /// By the lower shard of each pair.
    pub(super) by_shard: BTreeMap<ShardId, Outcome>,
    /// Corpora whose documents were not compared: nodes hold them, and their records are lost.
    pub(super) unrecorded: BTreeSet<CorpusUid>,
    /// Nodes that did not tell which corpora they hold.
    untold: Vec<String>,
}

impl Outcomes {
    /// Says of what documents were not compared.
    pub(super) fn left_out(&self) -> Option<String> {
        let problems = left_out(&self.unrecorded)
            .into_iter()
            .chain(untold(&self.untold));
        problems.reduce(|all, one| format!("{all}; {one}"))
    }
}

/// What came of a shard and those above it.
#[derive(Default)]
pub(super) struct Outcome {
    /// The others that it differs from, or did.
    differing: ShardSet,
    /// The others that it was not compared with.
    missed: ShardSet,
    /// Documents that differ, once for each other shard.
    differences: u64,
    /// Those of them that are repaired.
    repaired: u64,
    /// Whether an attempt failed: what it had begun may be in some of the shards only.
    pub(super) was_repeated: bool,
    /// Why some were not compared.
    pub(super) problem: Option<String>,
    /// Some of the documents that differ, as a user is told of them.
    pub(super) shown: Vec<String>,
}

impl Outcome {
    /// A shard that is compared with none.
    fn unknown(problem: String) -> Self {
        Self {
            missed: ShardSet::ALL,
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// Documents that differed, once for each other shard, and are repaired.
    pub(super) const fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Documents that differ still.
    pub(super) const fn left(&self) -> u64 {
        self.differences - self.repaired
    }

    /// Adds what came of another pair.
    fn add(&mut self, pair: Self) {
        self.differing = self.differing.union(&pair.differing);
        self.missed = self.missed.union(&pair.missed);
        self.differences += pair.differences;
        self.repaired += pair.repaired;
        self.was_repeated |= pair.was_repeated;
        self.problem = self.problem.take().or(pair.problem);
        self.shown.extend(pair.shown);
        self.shown.truncate(SHOWN);
    }

    const fn state(&self) -> &'static str {
        match self {
            Self {
                problem: Some(_), ..
            } => "not compared",
            Self { differences: 0, .. } => "agrees",
            _ if self.left() > 0 => "differs",
            Self { .. } => "repaired",
        }
    }
}

/// Compares these shards with all others: those whose sums differ.
pub(super) async fn compare(
    access: &ClusterAccess,
    manner: Manner,
    within: ShardSet,
) -> anyhow::Result<Outcomes> {
    let comparison = Comparison::begin(access, manner).await?;
    let compared = async {
        let mut outcomes = Outcomes::default();
        let mut sums: BTreeMap<ShardId, Sums> = BTreeMap::new();
        for (shard, summed) in comparison.sum().await {
            match summed {
                Ok(summed) => drop(sums.insert(shard, summed)),
                Err(problem) => outcomes.miss(shard, within, &problem),
            }
        }
        let summed = sums.keys().filter(|shard| within.contains(**shard));
        outcomes.summed = summed.copied().collect();
        let pairs = differing(&sums, within);
        comparison.compare(&pairs, &mut outcomes.by_shard).await?;
        comparison.check_corpora(access, &mut outcomes).await?;
        Ok(outcomes)
    };
    comparison.attempts.during(compared).await
}

/// Compares these shards with all others, whatever their sums: most of them lack what the others have. Answers what came of
/// it by the lower shard of each pair. It fails if a corpus has no record: its documents would be left out.
pub(super) async fn compare_all(
    access: &ClusterAccess,
    manner: Manner,
    within: ShardSet,
) -> anyhow::Result<BTreeMap<ShardId, Outcome>> {
    let comparison = Comparison::begin(access, manner).await?;
    if let Some(problem) = left_out(&comparison.unrecorded) {
        bail!("{problem}; then run this command again");
    }
    let (pairs, mut outcomes) = (all(within), BTreeMap::new());
    let compared = comparison.compare(&pairs, &mut outcomes);
    comparison.attempts.during(compared).await?;
    Ok(outcomes)
}

/// A shard, and a higher one.
type Pair = (ShardId, ShardId);

/// All pairs of which one is `within`.
fn all(within: ShardSet) -> Vec<Pair> {
    let pairs = ShardId::all().flat_map(|shard| ShardId::all().map(move |other| (shard, other)));
    let is_meant = |&(shard, other): &Pair| {
        shard < other && (within.contains(shard) || within.contains(other))
    };
    pairs.filter(is_meant).collect()
}

/// Those whose sums for each other differ. One of a pair is `within`.
fn differing(sums: &BTreeMap<ShardId, Sums>, within: ShardSet) -> Vec<Pair> {
    let sum = |shard, other: ShardId| Some(sums.get(&shard)?[usize::from(other.0)]);
    let differ = |&(shard, other): &Pair| {
        let both = sum(shard, other).zip(sum(other, shard));
        both.is_some_and(|(one, other)| one != other)
    };
    all(within).into_iter().filter(differ).collect()
}

/// The work of the command.
struct Comparison<'a> {
    manner: Manner,
    corpora: Vec<CorpusUid>,
    unrecorded: BTreeSet<CorpusUid>,
    /// Stores that have not told which corpora they hold.
    untold: Vec<StoreId>,
    attempts: Attempts<'a>,
}

impl<'a> Comparison<'a> {
    async fn begin(access: &'a ClusterAccess, manner: Manner) -> anyhow::Result<Self> {
        let (corpora, unrecorded, untold) = corpora_of(access).await?;
        let live = corpora
            .records()
            .filter(|record| record.state == CorpusState::Live);
        Ok(Self {
            manner,
            corpora: live.map(|record| record.uid).collect(),
            unrecorded,
            untold,
            attempts: Attempts::begin(access).await?,
        })
    }

    /// Takes note of corpora that were left out. Stores that had not told what they hold are asked again, if they hold a
    /// shard still.
    async fn check_corpora(
        &self,
        access: &ClusterAccess,
        outcomes: &mut Outcomes,
    ) -> anyhow::Result<()> {
        outcomes.unrecorded.clone_from(&self.unrecorded);
        if self.untold.is_empty() {
            return Ok(());
        }
        let (_, unrecorded, silent) = corpora_of(access).await?;
        outcomes.unrecorded.extend(unrecorded);
        let places = self.attempts.places();
        let stores = places.stores_of(ShardSet::ALL).into_iter();
        let never_told =
            stores.filter(|store| self.untold.contains(&store.id) && silent.contains(&store.id));
        outcomes.untold = never_told.map(|store| store.node.to_string()).collect();
        Ok(())
    }

    /// Compares pairs of shards, some at once.
    async fn compare(
        &self,
        pairs: &[Pair],
        outcomes: &mut BTreeMap<ShardId, Outcome>,
    ) -> anyhow::Result<()> {
        let bar = progress::bar("comparing pairs of shards", Some(pairs.len() as u64));
        let compared = stream::iter(pairs).map(async |&pair| {
            let (shard, outcome) = (pair.0, self.pair(pair).await?);
            bar.inc(1);
            anyhow::Ok((shard, outcome))
        });
        let mut compared = compared.buffered(self.manner.at_once.get());
        while let Some((shard, outcome)) = compared.try_next().await? {
            outcomes.entry(shard).or_default().add(outcome);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// The sums of all shards, or why there are none.
    async fn sum(&self) -> Vec<(ShardId, Result<Sums, String>)> {
        let first = self.attempts.places();
        let bar = progress::bar("summing up shards", Some(first.records.len() as u64));
        // The same for all shards: one that is settled has none of the tombstones that another one may have.
        let versions = (self.manner.options.until, first.settled());
        let summed = stream::iter(first.records.keys()).map(async |&shard| {
            let sums = self.sum_of(shard, versions).await;
            bar.inc(1);
            (shard, sums)
        });
        let summed = summed.buffered(self.manner.at_once.get()).collect().await;
        bar.finish_and_clear();
        summed
    }

    async fn sum_of(&self, shard: ShardId, versions: (Version, Version)) -> Result<Sums, String> {
        let only = ShardSet::from_iter([shard]);
        let attempts = &self.attempts;
        let sum = async |_: &Places, reader: &RegisteredStore| {
            let summed = sum_cells_of(
                attempts.asked(reader),
                reader.id,
                shard,
                &self.corpora,
                versions,
            );
            attempts.while_held(&[(shard, reader.id)], summed).await
        };
        attempts.repeat(shard, only, sum).await
    }

    /// Has a node compare a shard with another one, until that succeeds.
    async fn pair(&self, (shard, other): Pair) -> anyhow::Result<Outcome> {
        let (mut outcome, mut printed, mut attempts) = (Outcome::default(), Ok(()), 0);
        let both = ShardSet::from_iter([shard, other]);
        let compare = async |places: &Places, reader: &RegisteredStore| {
            attempts += 1;
            let to = (&mut outcome, &mut printed);
            self.attempt((shard, other), places, reader, to).await
        };
        let compared = self.attempts.repeat(shard, both, compare).await;
        printed?;
        outcome.was_repeated = attempts > 1 || compared.is_err();
        if let Err(problem) = compared {
            outcome.missed.insert(other);
            outcome.problem = Some(problem);
        }
        Ok(outcome)
    }

    /// Has a node compare a shard with another one. What was told and not repaired before it failed is told again.
    async fn attempt(
        &self,
        (shard, other): Pair,
        places: &Places,
        reader: &RegisteredStore,
        (outcome, printed): (&mut Outcome, &mut anyhow::Result<()>),
    ) -> Result<(), ScrubError> {
        let (mut differences, mut repaired) = (0, 0);
        let visit = |difference: ScrubDifference| {
            differences += 1;
            repaired += u64::from(difference.is_repaired);
            if !self.manner.output.json {
                if outcome.shown.len() < SHOWN {
                    outcome.shown.push(told(&difference));
                }
            } else if printed.is_ok() {
                *printed = say::print_json(&document(&difference));
            }
        };
        let (options, corpora) = (self.manner.options, &self.corpora);
        let others = ShardSet::from_iter([other]);
        let (node, store) = (self.attempts.asked(reader), reader.id);
        let compared = compare_shard(node, store, shard, others, corpora, options, visit);
        let holders = places.holders(ShardSet::from_iter([shard, other]));
        let compared = self.attempts.while_held(&holders, compared).await;
        if differences > 0 {
            outcome.differing.insert(other);
        }
        outcome.repaired += repaired;
        outcome.differences += if compared.is_ok() {
            differences
        } else {
            repaired
        };
        compared.map(|_| ())
    }
}

/// The shards that were compared, joined.
fn shards(difference: &ScrubDifference) -> String {
    let shards = difference.states.iter().map(|one| one.shard.to_string());
    Vec::from_iter(shards).join(" and ")
}

/// A document that differs, for programs.
fn document(difference: &ScrubDifference) -> Value {
    let states = difference.states.iter();
    let states = states.map(|one| (one.shard.to_string(), state_value(one.state)));
    json!({
        "between": difference.states.iter().map(|one| one.shard.to_string()).collect::<Vec<_>>(),
        "corpus": difference.corpus.to_string(),
        "fingerprint": difference.fingerprint.to_string(),
        "id": difference.id,
        "states": states.collect::<Map<_, _>>(),
        "repaired": difference.is_repaired,
    })
}

/// A document that differs, for people.
fn told(difference: &ScrubDifference) -> String {
    let states = difference.states.iter();
    let states = states.map(|one| format!("{} {}", one.shard, state_text(one.state)));
    let ScrubDifference {
        corpus,
        fingerprint,
        id,
        ..
    } = difference;
    let states = Vec::from_iter(states).join(", ");
    let shards = shards(difference);
    format!("shards {shards}, corpus {corpus}, fingerprint {fingerprint}, id {id:?}: {states}")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use simshard_node::ScrubOptions;

    use super::super::super::two_nodes::two_nodes;
    use super::*;
    use crate::args::JsonArgs;

    fn sums(of: &[(u8, u8, u8)]) -> BTreeMap<ShardId, Sums> {
        let mut sums: BTreeMap<ShardId, Sums> = BTreeMap::new();
        for &(shard, other, sum) in of {
            let own = sums.entry(ShardId(shard));
            own.or_insert_with(|| vec![[0; 16]; ShardId::COUNT])[usize::from(other)] = [sum; 16];
        }
        sums
    }

    #[test]
    fn pairs_with_other_sums_differ_and_the_lower_shard_compares_them() {
        let sums = sums(&[
            (1, 2, 7),
            (2, 1, 7),
            (1, 3, 8),
            (3, 1, 9),
            (3, 5, 4),
            (5, 3, 0),
        ]);
        let of = |shards: &[u8]| -> ShardSet { shards.iter().copied().map(ShardId).collect() };
        let pair = |shard, other| (ShardId(shard), ShardId(other));
        let found = differing(&sums, ShardSet::ALL);
        assert_eq!(found, [pair(1, 3), pair(3, 5)]);
        assert_eq!(differing(&sums, of(&[5])), [pair(3, 5)]);
        assert_eq!(differing(&sums, of(&[2])), []);
        assert_eq!(all(of(&[1])).len(), 255);
        assert_eq!(all(of(&[1, 2])).len(), 255 + 254);
    }

    /// All shards may be found to agree once nodes answer again that did not at first.
    #[tokio::test]
    async fn nodes_that_never_tell_their_corpora_are_named() {
        let access = two_nodes().await;
        let manner = Manner {
            options: ScrubOptions {
                until: Version::MAX,
                repairs: false,
                most_differences: 1,
            },
            at_once: NonZeroUsize::MIN,
            output: JsonArgs { json: false },
        };
        let comparison = Comparison::begin(&access, manner).await.unwrap();
        let mut outcomes = Outcomes::default();
        let checked = comparison.check_corpora(&access, &mut outcomes).await;
        checked.unwrap();
        assert_eq!(outcomes.untold, ["n1", "n2"]);
        outcomes.left_out().unwrap();
    }

    #[test]
    fn a_shard_whose_sums_are_unknown_is_left_out() {
        let sums = sums(&[(1, 2, 7), (2, 1, 7), (1, 9, 8)]);
        assert_eq!(differing(&sums, ShardSet::ALL), []);
    }
}
