//! Waiting until shards are where they are to be.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use simshard_admin::{Open, Placing, Progress, without_room_text};
use simshard_topology::{NodeId, ShardSet};
use tokio::time::{Instant, sleep};

use super::access::ClusterAccess;
use super::{MetadataArgs, admin};
use crate::args::JsonArgs;
use crate::progress;
use crate::say::note;

/// Between two looks at the records.
const INTERVAL: Duration = Duration::from_millis(300);

/// A command that waits ends once the metadata has been away for this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// After this long without a shard that arrived, a command says whom it waits for.
const STANDSTILL: Duration = Duration::from_secs(20);

/// What is said while moves are paused.
const PAUSED: &str = "moves are paused: `simshard cluster rebalance resume` lets the shards move";

/// What `--dry-run` says at its end.
pub(super) const DRY: &str = "nothing was changed: this was a dry run";

/// Whether a command waits until the nodes have done what it asks for.
#[derive(Args, Debug)]
pub struct Wait {
    /// Do not wait: the nodes go on by themselves
    #[arg(long)]
    pub no_wait: bool,
}

/// Arguments of the verbs that plan where shards go.
#[derive(Args, Debug)]
pub struct PlannedArgs {
    /// Only print what each node would hold
    #[arg(long)]
    pub dry_run: bool,
    /// How that is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Whether to wait.
    #[command(flatten)]
    pub wait: Wait,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// When shards arrived last, and whether a standstill was told since then.
struct Arrivals {
    open: usize,
    last: Instant,
    is_told: bool,
}

impl Arrivals {
    fn new() -> Self {
        Self {
            open: usize::MAX,
            last: Instant::now(),
            is_told: false,
        }
    }

    /// Whether to say what is open now: once for each standstill, and only if nodes lack shards, or keep them.
    fn look(&mut self, open: &Open) -> bool {
        if open.shards < self.open {
            (self.open, self.last, self.is_told) = (open.shards, Instant::now(), false);
        }
        let is_known = !open.lacking.is_empty() || !open.staying.is_empty();
        if self.is_told || self.last.elapsed() < STANDSTILL || !is_known {
            return false;
        }
        self.is_told = true;
        true
    }
}

/// What is to be done about a standstill.
async fn advice(access: &ClusterAccess, open: &Open) -> String {
    let admin = admin(access);
    let is_paused = admin.paused().await.is_ok_and(|paused| paused.is_some());
    let without_room = admin.without_room(&open.lacking).await;
    advice_text(is_paused, &without_room.unwrap_or_default())
}

/// `without_room` are the shards that do not come as nodes lack room.
fn advice_text(is_paused: bool, without_room: &BTreeMap<NodeId, ShardSet>) -> String {
    if is_paused {
        PAUSED.to_owned()
    } else if without_room.is_empty() {
        "`simshard cluster nodes` shows which nodes answer".to_owned()
    } else {
        without_room_text(without_room)
    }
}

fn standstill_text(open: &Open, advice: &str) -> String {
    let lacking = open.lacking.iter();
    let lacking = lacking.map(|(node, shards)| format!("{node} to hold shards {shards}"));
    let staying = open.staying.iter();
    let staying = staying.map(|(node, shards)| format!("{node} to leave shards {shards}"));
    let all = lacking.chain(staying).collect::<Vec<_>>().join(", ");
    format!("still waiting for {all}: {advice}")
}

fn given_up_text(shards: ShardSet) -> String {
    format!(
        "shards {shards} are no longer part of the plan: operators have said something else for them since"
    )
}

fn elsewhere_text(shards: ShardSet) -> String {
    format!(
        "other nodes have been chosen for shards {shards} meanwhile, or their plan was taken back. `simshard cluster \
         shards` shows where they go now. The other shards go on"
    )
}

impl Wait {
    /// Waits until the shards are where they are to be. The nodes go on if this is cut off.
    pub(super) async fn until(
        &self,
        placing: &Placing,
        access: &ClusterAccess,
    ) -> anyhow::Result<()> {
        if !placing.given_up.is_empty() {
            note(given_up_text(placing.given_up));
        }
        let is_paused = !placing.unplaced.is_empty()
            && admin(access)
                .paused()
                .await
                .is_ok_and(|paused| paused.is_some());
        if is_paused {
            note(PAUSED);
        }
        if self.no_wait {
            if placing.unplaced.is_empty() {
                note("nothing is to move: the shards are there already");
            } else if !is_paused {
                note("the nodes move the shards: `simshard cluster shards` shows how far they are");
            }
            return Ok(());
        }
        let bar = progress::bar("moving shards", Some(placing.targets.len() as u64));
        let (mut read, mut is_told) = (Instant::now(), false);
        let mut arrivals = Arrivals::new();
        loop {
            match placing.progress(access.keys()).await {
                Ok(Progress::Open(open)) if open.shards == 0 => break,
                Ok(Progress::Open(open)) => {
                    (read, is_told) = (Instant::now(), false);
                    bar.set_position(placing.targets.len().saturating_sub(open.shards) as u64);
                    if arrivals.look(&open) {
                        note(standstill_text(&open, &advice(access, &open).await));
                    }
                }
                Ok(Progress::Elsewhere(shards)) => bail!(elsewhere_text(shards)),
                Ok(Progress::Freed(shards)) => bail!(
                    "another operator has taken this back for shards {shards}: they stay where they are"
                ),
                Ok(Progress::OtherWish(shards)) => bail!(
                    "other numbers of replicas have been chosen for shards {shards} meanwhile: they get those instead"
                ),
                Err(error) if read.elapsed() > PATIENCE => {
                    let told = "the nodes are told, and go on by themselves: `simshard cluster shards` shows how far they are";
                    return Err(error).context(told);
                }
                Err(error) if !is_told => {
                    note(format_args!("{error}: trying again"));
                    is_told = true;
                }
                Err(_) => {}
            }
            sleep(INTERVAL).await;
        }
        bar.finish_and_clear();
        note("done");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::collections::BTreeSet;

    use simshard_cluster::{MemoryKeyValues, Outcome, Targets, Transaction};
    use simshard_topology::ShardId;

    use super::*;

    /// Waits for shard 07 on n1, while its target is another one. Answers why that ended.
    async fn waited(target: &str) -> String {
        let access = ClusterAccess::of_test(Arc::new(MemoryKeyValues::new()));
        let nodes = BTreeSet::from([NodeId::new("n1").unwrap()]);
        let placing = Placing {
            targets: Targets::from([(ShardId(7), nodes)]),
            ..Placing::default()
        };
        let change = Transaction::new().put("targets/07", target);
        let outcome = access.keys().commit(&change).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
        let waited = Wait { no_wait: false }.until(&placing, &access).await;
        format!("{:#}", waited.unwrap_err())
    }

    /// Of two operators, the first would wait for ever.
    #[tokio::test]
    async fn who_waits_is_told_that_another_operator_has_chosen_other_nodes() {
        let error = waited(r#"{"nodes":["n2"]}"#).await;
        assert!(error.contains("for shards 07 meanwhile"), "{error}");
    }

    /// It may be what another operator has chosen.
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_target_that_gets_damaged_is_told_its_key() {
        let error = waited("{").await;
        assert!(error.contains("the key targets/07 "), "{error}");
        assert!(error.contains("`simshard cluster move`"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_standstill_is_told_once_with_the_nodes_that_lack_shards() {
        let node = NodeId::new("n4").unwrap();
        let shards: ShardSet = [ShardId(0x40), ShardId(0x41)].into_iter().collect();
        let open = |count, lacking| Open {
            shards: count,
            lacking,
            staying: BTreeMap::new(),
        };
        let lacking = BTreeMap::from([(node.clone(), shards)]);
        let mut arrivals = Arrivals::new();
        assert!(!arrivals.look(&open(3, lacking.clone())));
        tokio::time::advance(STANDSTILL).await;
        // Tables that are still to be made are no node's lack.
        assert!(!arrivals.look(&open(3, BTreeMap::new())));
        assert!(arrivals.look(&open(3, lacking.clone())));
        let still = "still waiting for n4 to hold shards 40-41: ";
        let without_room = BTreeMap::from([(node, "41".parse().unwrap())]);
        let told = |is_paused, without_room: &BTreeMap<_, _>| {
            standstill_text(
                &open(3, lacking.clone()),
                &advice_text(is_paused, without_room),
            )
        };
        let which_answer = "`simshard cluster nodes` shows which nodes answer";
        assert_eq!(
            told(false, &BTreeMap::new()),
            format!("{still}{which_answer}")
        );
        let room = "n4 has too little room for 41: make room there, or drain it";
        assert_eq!(told(false, &without_room), format!("{still}{room}"));
        assert_eq!(told(true, &without_room), format!("{still}{PAUSED}"));
        tokio::time::advance(STANDSTILL).await;
        assert!(!arrivals.look(&open(3, lacking.clone())));
        // Another shard arrived: the next standstill is told again.
        assert!(!arrivals.look(&open(2, lacking.clone())));
        tokio::time::advance(STANDSTILL).await;
        assert!(arrivals.look(&open(2, lacking)));
    }
}
