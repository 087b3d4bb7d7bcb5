//! Dropping tombstones: shards are closed to late changes before they are compared. Once all agree, all are settled.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use futures_util::future::{join_all, try_join_all};
use serde_json::json;
use simshard_cluster::{Feature, RegisteredStore, require};
use simshard_node::{Goal, ScrubError, settle_shards};
use simshard_runtime::terminal::counted;
use simshard_topology::{ShardId, ShardSet, Version};

use super::super::access::ClusterAccess;
use super::super::patience::patiently;
use super::attempts::{Attempts, PATIENCE};
use super::places::Places;
use crate::args::JsonArgs;
use crate::exit::UsageError;
use crate::progress;
use crate::say;

/// Shards of a node that take no repairs at once, while their replicas are compared.
const AT_ONCE: usize = 16;

/// Tombstones up to a version, which are to be dropped.
pub(super) struct Dropping<'a> {
    access: &'a ClusterAccess,
    /// How old they are at least.
    age: Duration,
    until: Version,
}

impl<'a> Dropping<'a> {
    /// Sees to it that no shard takes changes up to a version any more.
    ///
    /// # Errors
    /// If a node does not answer, or its clock is behind that version.
    pub(super) async fn begin(
        access: &'a ClusterAccess,
        age: Duration,
        until: Version,
    ) -> anyhow::Result<Self> {
        if age.is_zero() {
            let problem = "--drop-tombstones needs --settled-seconds of 1 or more";
            return Err(UsageError(problem.to_owned()).into());
        }
        patiently(async || require(access.keys(), Feature::Floors).await).await?;
        let dropping = Self { access, age, until };
        // All clocks are compared before the first shard depends on it.
        dropping.compare_clocks().await?;
        let left = dropping
            .reach("closing shards to late changes", Goal::Raised)
            .await?;
        if !left.is_empty() {
            bail!(
                "no tombstone is dropped: {}; run this command again",
                told(&left)
            );
        }
        Ok(dropping)
    }

    /// Has each node compare the version with its clock, again and again while one has just died.
    async fn compare_clocks(&self) -> anyhow::Result<()> {
        let attempts = Attempts::begin(self.access).await?;
        let compared = async {
            let mut in_vain = 0;
            loop {
                let places = attempts.places();
                let compared = places
                    .stores_of(ShardSet::ALL)
                    .into_iter()
                    .map(async |store| {
                        let (node, none) = (attempts.asked(store), ShardSet::EMPTY);
                        let compared =
                            settle_shards(node, store.id, none, self.until, Goal::Raised);
                        let compared = compared.await;
                        compared.map_err(|error| (store.node.clone(), error))
                    });
                let Err((node, error)) = try_join_all(compared).await else {
                    return Ok(());
                };
                if !error.may_succeed_later || in_vain == PATIENCE {
                    bail!("node {node}: {error}");
                }
                let has_changed = attempts.has_changed(&places, ShardSet::ALL).await;
                in_vain = if has_changed { 0 } else { in_vain + 1 };
            }
        };
        attempts.during(compared).await
    }

    /// Lets all nodes drop tombstones, once all shards were compared and agree.
    ///
    /// # Errors
    /// If some may not be dropped yet.
    pub(super) async fn end(&self, output: JsonArgs) -> anyhow::Result<()> {
        let left = self
            .reach("comparing replicas once more", Goal::Settled)
            .await?;
        let kept: ShardSet = left.keys().copied().collect();
        let settled = ShardSet::ALL.difference(&kept);
        if output.json {
            let until = self.until.to_string();
            say::print_json(&json!({ "settled": settled.to_string(), "until": until }))?;
        } else if !settled.is_empty() {
            let ago = counted(self.age.as_secs(), "second");
            say::print(format!(
                "shards {settled} drop the tombstones of documents that were removed {ago} ago, or earlier"
            ))?;
        }
        if !left.is_empty() {
            bail!(
                "shards {kept} keep their tombstones for now: {}; run this command again",
                told(&left)
            );
        }
        Ok(())
    }

    /// Has the nodes of all shards bring them to the goal, again and again while that helps. Answers why some have not come.
    async fn reach(&self, what: &str, goal: Goal) -> anyhow::Result<BTreeMap<ShardId, String>> {
        let attempts = Attempts::begin(self.access).await?;
        let reached = self.reach_by(&attempts, what, goal);
        Ok(attempts.during(reached).await)
    }

    async fn reach_by(
        &self,
        attempts: &Attempts<'_>,
        what: &str,
        goal: Goal,
    ) -> BTreeMap<ShardId, String> {
        let unregistered = |shard| (shard, ScrubError::unregistered().to_string());
        let mut left: BTreeMap<ShardId, String> = ShardId::all().map(unregistered).collect();
        let bar = progress::bar(what, Some(left.len() as u64));
        let mut in_vain = 0;
        loop {
            let places = attempts.places();
            let before = left.len();
            let waiting: ShardSet = left.keys().copied().collect();
            let asked = places.readers(waiting).into_iter();
            let asked =
                asked.map(|(store, shards)| self.ask(attempts, &places, store, shards, goal));
            for (shard, problem) in join_all(asked).await.into_iter().flatten() {
                match problem {
                    Some(problem) => drop(left.insert(shard, problem)),
                    None => drop(left.remove(&shard)),
                }
            }
            bar.set_position((ShardId::COUNT - left.len()) as u64);
            if left.is_empty() || in_vain == PATIENCE {
                bar.finish_and_clear();
                return left;
            }
            let has_changed = attempts.has_changed(&places, waiting).await;
            let helps = has_changed || left.len() < before;
            in_vain = if helps { 0 } else { in_vain + 1 };
        }
    }

    /// Has a node bring shards to the goal, some at once. Answers what is wrong with each, if something is.
    async fn ask(
        &self,
        attempts: &Attempts<'_>,
        places: &Places,
        store: &RegisteredStore,
        shards: ShardSet,
        goal: Goal,
    ) -> Vec<(ShardId, Option<String>)> {
        let mut answers = Vec::new();
        let shards: Vec<ShardId> = shards.iter().collect();
        for some in shards.chunks(AT_ONCE) {
            let asked = some.iter().copied().collect();
            let reached = settle_shards(attempts.asked(store), store.id, asked, self.until, goal);
            let reached = attempts.while_held(&places.holders(asked), reached).await;
            answers.extend(some.iter().map(|shard| {
                let problem = match &reached {
                    Ok(left) => left.get(shard).cloned(),
                    Err(error) => Some(format!("node {}: {error}", store.node)),
                };
                (*shard, problem)
            }));
        }
        answers
    }
}

/// What is wrong with the first of some shards.
fn told(left: &BTreeMap<ShardId, String>) -> String {
    let first = left.first_key_value();
    first.map_or_else(String::new, |(shard, problem)| {
        format!("shard {shard}: {problem}")
    })
}
