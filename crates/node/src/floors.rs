//! Floors of shards: raising them before a scrub, and settling what is below them after it, so that stores may drop
//! tombstones. The scrub asks the first store in sync of each shard for that.
//!
//! ```text
//! raise    freeze at the version                   ->  thaw
//! settle   freeze at that version or a higher one  ->  compare all replicas up to it  ->  settle it
//! ```
//!
//! A request has its shards to itself. What it leaves frozen is thawed soon, also if another store looks after the shard by
//! then.
//!
//! # Invariants
//! - FD1: a record is settled only if its replicas were compared, with all corpora that any of them holds, at its epoch.
//! - FD2: no floor is over a minute ahead of the clock of a store that raises it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use simshard_cluster::{
    ClusterLayout, Feature, KeyValueStore, Steps, recorded_corpora, require, take_steps,
    without_record,
};
use simshard_topology::replication::{Epoch, Role, ShardRecord, Step, StoreId};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tonic::Status;
use tracing::{info, warn};

use crate::engine::Engine;
use crate::engine::change::check_clock;
use crate::error::NodeError;
use crate::patience::in_time;
use crate::peers::{OwnShard, Peers, agree};

/// How often a request looks at its shards. In between, stores install records.
const LOOKS: u32 = 50;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a node looks for records that are frozen, and that no request settles.
const THAWED_EVERY: Duration = Duration::from_secs(5);

/// What a shard waits for whose record was written.
const NOT_SEALED: &str = "its replicas do not all have its record yet";

/// Why shards are not closed to late changes: they would not be compared with each other in such a corpus.
const UNRECORDED: &str =
    "its node holds a corpus that has no record: `simshard corpus recover` restores it";

/// What a request is to come to, at a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// No change up to there is taken any more.
    Raised,
    /// Tombstones up to there may be dropped.
    Settled,
}

/// What became of the shards of a request.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Those that have come to the goal.
    pub(crate) done: ShardSet,
    /// Why the other ones have not.
    pub(crate) left: BTreeMap<ShardId, String>,
}

/// The floors of the shards that a node looks after.
#[derive(Debug)]
pub(crate) struct Floors {
    peers: Arc<Peers>,
    keys: Arc<dyn KeyValueStore>,
    engine: Arc<Engine>,
    followed: watch::Receiver<Arc<ClusterLayout>>,
    /// The shards of requests.
    busy: Mutex<ShardSet>,
}

/// The shards that this store looks after, and their records.
type Led = BTreeMap<ShardId, Arc<ShardRecord>>;

/// The next step of each shard that has one, from the record of an epoch.
type Chosen = BTreeMap<ShardId, (Epoch, Step)>;

impl Floors {
    pub(crate) fn new(
        peers: Arc<Peers>,
        keys: Arc<dyn KeyValueStore>,
        engine: Arc<Engine>,
        followed: watch::Receiver<Arc<ClusterLayout>>,
    ) -> Self {
        Self {
            peers,
            keys,
            engine,
            followed,
            busy: Mutex::default(),
        }
    }

    /// Brings shards to a goal, as far as that is possible within some seconds, beside the time that comparisons take.
    ///
    /// # Errors
    /// [`NodeError::ClockAhead`] if the version is ahead of the clock (FD2). Else when the metadata cannot be read or
    /// written.
    pub(crate) async fn reach(
        &self,
        goal: Goal,
        version: Version,
        shards: ShardSet,
    ) -> Result<Reached, NodeError> {
        check_clock(version)?;
        require(&*self.keys, Feature::Floors).await?;
        let claimed = Claimed::of(&self.busy, shards);
        let mut request = Request {
            floors: self,
            goal,
            version,
            waits: BTreeMap::new(),
            reached: Reached::default(),
        };
        for shard in shards.difference(&claimed.shards).iter() {
            request.leave(shard, "another scrub compares it now: wait until that ends");
        }
        let has_unrecorded = self.has_unrecorded().await?;
        for shard in claimed.shards.iter() {
            if has_unrecorded {
                request.leave(shard, UNRECORDED);
            } else {
                request.waits.insert(shard, NOT_SEALED.to_owned());
            }
        }
        for _ in 0..LOOKS {
            let chosen = request.look().await;
            if request.waits.is_empty() {
                break;
            }
            self.take(chosen).await?;
            sleep(PAUSE).await;
        }
        let Request {
            mut reached, waits, ..
        } = request;
        reached.left.extend(waits);
        Ok(reached)
    }

    /// Whether this node holds a corpus that has no record.
    async fn has_unrecorded(&self) -> Result<bool, NodeError> {
        let held = self.engine.uids().into_iter().collect();
        let recorded = in_time(recorded_corpora(&*self.keys)).await?;
        let unrecorded = in_time(without_record(&*self.keys, &recorded, held)).await?;
        Ok(!unrecorded.is_empty())
    }

    /// Thaws what is frozen and no request settles, as long as it is polled.
    pub(crate) async fn thaw_forgotten(&self) {
        let mut ticks = interval(THAWED_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let claimed = *self.busy.lock();
            let led = self.led().into_iter();
            let forgotten =
                led.filter(|(shard, record)| record.is_frozen && !claimed.contains(*shard));
            let chosen = forgotten.map(|(shard, record)| (shard, (record.epoch, Step::Thaw)));
            if let Err(error) = self.take(chosen.collect()).await {
                warn!(%error, "shards that a scrub left frozen take no repairs yet: trying again");
            }
        }
    }

    /// The shards that this store holds in sync before all others, and whose last record it has applied.
    fn led(&self) -> Led {
        let own = self.peers.own().0;
        let roles = self.engine.roles().into_iter();
        let led = roles
            .filter(|(_, record, role)| *role == Role::InSync && record.in_sync[0].store == own);
        led.map(|(shard, record, _)| (shard, record)).collect()
    }

    /// Whether the replicas of a shard agree up to a version (FD1).
    async fn compare(
        &self,
        shard: ShardId,
        record: Arc<ShardRecord>,
        until: Version,
    ) -> Result<bool, Status> {
        let own = OwnShard {
            dialer: self.peers.dialer.clone(),
            engine: Arc::clone(&self.engine),
            layout: Arc::clone(&self.followed.borrow()),
            id: shard,
            store: self.peers.own().0,
            record,
        };
        agree(&own, until).await
    }

    /// The epoch of a shard that a store has on disk, as far as is known.
    fn reported(&self, shard: ShardId, store: StoreId) -> Epoch {
        self.peers.epoch_on_disk(&self.engine, shard, store)
    }

    /// Takes steps of the records of these epochs, where they are still the last ones, and sealed.
    async fn take(&self, chosen: Chosen) -> Result<(), NodeError> {
        if chosen.is_empty() {
            return Ok(());
        }
        let reported = |shard, store| self.reported(shard, store);
        let step = |shard: ShardId, record: &ShardRecord| {
            let (epoch, step) = chosen.get(&shard)?;
            (record.epoch == *epoch).then_some(*step)
        };
        let mut steps = Steps::default();
        let taking = take_steps(&*self.keys, step, reported, |_, _, _| false, &mut steps);
        in_time(taking).await?;
        let is_settled = |shard: &ShardId| matches!(chosen[shard], (_, Step::Settle { .. }));
        let settled = steps.taken.into_keys().filter(is_settled);
        let settled: ShardSet = settled.collect();
        if !settled.is_empty() {
            info!(shards = %settled, "the replicas of shards agree: old tombstones are dropped");
        }
        Ok(())
    }
}

/// What a request has come to.
struct Request<'a> {
    floors: &'a Floors,
    goal: Goal,
    version: Version,
    /// The shards that may come to the goal still, and what they wait for.
    waits: BTreeMap<ShardId, String>,
    reached: Reached,
}

impl Request<'_> {
    /// Looks at each shard that waits, and chooses its next step.
    async fn look(&mut self) -> Chosen {
        let led = self.floors.led();
        let waiting: ShardSet = self.waits.keys().copied().collect();
        let mut chosen = Chosen::new();
        for shard in waiting.iter() {
            let Some(record) = led.get(&shard) else {
                self.leave(shard, "another node looks after it now");
                continue;
            };
            let step = match next(self.goal, self.version, record) {
                Next::Nothing => {
                    self.waits.remove(&shard);
                    self.reached.done.insert(shard);
                    None
                }
                Next::Impossible(problem) => {
                    self.leave(shard, problem);
                    None
                }
                Next::Step(step) => Some(step),
                Next::Compare => self.compare(shard, record).await,
            };
            chosen.extend(step.map(|step| (shard, (record.epoch, step))));
        }
        chosen
    }

    /// Settles a shard, if its record is sealed and its replicas agree.
    async fn compare(&mut self, shard: ShardId, record: &Arc<ShardRecord>) -> Option<Step> {
        if !record.is_sealed(|store| self.floors.reported(shard, store)) {
            return None;
        }
        let (until, compared) = (self.version, record.epoch);
        let agree = self.floors.compare(shard, Arc::clone(record), until);
        match agree.await {
            Ok(true) => return Some(Step::Settle { until, compared }),
            Ok(false) => self.leave(shard, "its replicas differ"),
            // Its record may have changed meanwhile.
            Err(status) => drop(self.waits.insert(shard, status.message().to_owned())),
        }
        None
    }

    fn leave(&mut self, shard: ShardId, problem: &str) {
        self.waits.remove(&shard);
        self.reached.left.insert(shard, problem.to_owned());
    }
}

/// What is to be done with a shard.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    Step(Step),
    Compare,
    Impossible(&'static str),
}

/// What is to be done so that a shard comes to a goal.
fn next(goal: Goal, version: Version, record: &ShardRecord) -> Next {
    if record.is_rebuilt() {
        return Next::Impossible(
            "it begins anew, and is not filled yet: go on with `simshard cluster force --rebuild`",
        );
    }
    match goal {
        Goal::Raised if record.floor < version => Next::Step(Step::Freeze(version)),
        Goal::Raised if record.is_frozen => Next::Step(Step::Thaw),
        Goal::Settled if record.settled < version => settling(version, record),
        Goal::Raised | Goal::Settled => Next::Nothing,
    }
}

/// What is to be done so that a shard is settled.
fn settling(version: Version, record: &ShardRecord) -> Next {
    if record.floor < version {
        return Next::Impossible("its floor is not raised: drop tombstones from the beginning");
    }
    if !record.learners.is_empty() {
        return Next::Impossible(
            "a replica is being copied: wait until `simshard cluster status` shows no copies",
        );
    }
    if record.is_frozen {
        Next::Compare
    } else {
        Next::Step(Step::Freeze(record.floor))
    }
}

/// Shards that no other request has meanwhile.
struct Claimed<'a> {
    busy: &'a Mutex<ShardSet>,
    shards: ShardSet,
}

impl<'a> Claimed<'a> {
    /// Claims those that are free.
    fn of(busy: &'a Mutex<ShardSet>, wanted: ShardSet) -> Self {
        let mut taken = busy.lock();
        let shards = wanted.difference(&taken);
        *taken = taken.union(&shards);
        Self { busy, shards }
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let mut taken = self.busy.lock();
        *taken = taken.difference(&self.shards);
    }
}

#[cfg(test)]
mod tests {
    use simshard_topology::replication::Learner;

    use super::*;

    /// FD1: what is not frozen is not settled.
    #[test]
    fn a_shard_is_compared_while_it_is_frozen_at_the_version_of_the_scrub_or_above() {
        let version = Version(9);
        let first = ShardRecord::first(0, &[StoreId([1; 16]), StoreId([2; 16])], 0);
        let record = |floor, is_frozen, settled| ShardRecord {
            floor: Version(floor),
            is_frozen,
            settled: Version(settled),
            ..first.clone()
        };
        let freeze = Next::Step(Step::Freeze(version));
        for (record, raised, settled) in [
            (record(0, false, 0), Some(&freeze), None),
            (record(7, true, 5), Some(&freeze), None),
            (
                record(9, true, 0),
                Some(&Next::Step(Step::Thaw)),
                Some(&Next::Compare),
            ),
            (record(9, false, 0), Some(&Next::Nothing), Some(&freeze)),
            (
                record(9, false, 9),
                Some(&Next::Nothing),
                Some(&Next::Nothing),
            ),
            (
                record(12, false, 9),
                Some(&Next::Nothing),
                Some(&Next::Nothing),
            ),
            (
                record(12, true, 7),
                Some(&Next::Step(Step::Thaw)),
                Some(&Next::Compare),
            ),
            (
                record(12, false, 7),
                Some(&Next::Nothing),
                Some(&Next::Step(Step::Freeze(Version(12)))),
            ),
        ] {
            for (goal, expected) in [(Goal::Raised, raised), (Goal::Settled, settled)] {
                let step = next(goal, version, &record);
                let possible = (!matches!(step, Next::Impossible(_))).then_some(&step);
                assert_eq!(possible, expected, "{goal:?} of {record:?}");
            }
        }
    }

    #[test]
    fn a_shard_with_a_learner_is_not_settled() {
        let store = StoreId([3; 16]);
        let first = ShardRecord::first(0, &[StoreId([1; 16])], 0);
        let added = first.epoch;
        let learning = ShardRecord {
            learners: vec![Learner { store, added }],
            floor: Version(9),
            ..first
        };
        let copied = next(Goal::Settled, Version(9), &learning);
        assert_eq!(
            copied,
            Next::Impossible(
                "a replica is being copied: wait until `simshard cluster status` shows no copies"
            )
        );
        assert_eq!(next(Goal::Raised, Version(9), &learning), Next::Nothing);
    }

    #[test]
    fn two_requests_share_no_shard() {
        let busy = Mutex::default();
        let of = |shards: &[u8]| -> ShardSet { shards.iter().copied().map(ShardId).collect() };
        let one = Claimed::of(&busy, of(&[1, 2]));
        let other = Claimed::of(&busy, of(&[2, 3]));
        assert_eq!((one.shards, other.shards), (of(&[1, 2]), of(&[3])));
        drop(one);
        assert_eq!(*busy.lock(), of(&[3]));
        assert_eq!(Claimed::of(&busy, of(&[2])).shards, of(&[2]));
    }
}
