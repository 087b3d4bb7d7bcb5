//! Raising the floors of shards, and settling what is below them, so that stores may drop tombstones. The first store in
//! sync of a shard does that, now and then, where it has many tombstones.
//!
//! ```text
//! many tombstones  ->  raise the floor, frozen  ->  compare all replicas  ->  settle, or thaw
//! ```
//!
//! A floor is some minutes behind wall time, and no higher than some change that the shard has. A change that is older gets
//! a new version from its router. So a clock that is wrong costs changes that are sent twice, and loses none. If it is far
//! ahead, routers still pass the floor, as they have reached that version before.
//!
//! # Invariants
//! - FD1: a record is settled only if its replicas were compared, with all corpora that any of them holds, at its epoch. If
//!   they differ, or cannot be compared for a while, it is thawed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{
    ClusterLayout, Feature, KeyValueStore, METADATA_PATIENCE, MetadataError, Steps, require,
    take_steps,
};
use simshard_topology::replication::{Epoch, Role, ShardRecord, Step, StoreId};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tracing::{info, warn};

use crate::engine::Engine;
use crate::error::NodeError;
use crate::peers::{Peers, agree, settled_before};

/// How often replicas are compared before a record is thawed. In between, stores install records.
const ATTEMPTS: u32 = 10;

/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Shards whose replicas are compared in one go.
const FROZEN_AT_ONCE: usize = 16;

/// A tombstone is worth a merge if there is one for this number of documents.
const DOCUMENTS_PER_TOMBSTONE: u64 = 8;

/// A shard that has few is not read again for this number of looks: much of it is outdone, as documents changed.
const RESTED_LOOKS: u32 = 24;

/// The shards that were read in vain, and until when they are not read again.
type Rests = BTreeMap<ShardId, Instant>;

/// When tombstones are dropped.
#[derive(Debug, Clone, Copy)]
pub struct FloorPace {
    /// How often a node looks whether a shard has enough of them.
    pub every: Duration,
    /// How long ago a document must have been removed.
    pub margin: Duration,
    /// How many a shard has at least.
    pub least: u64,
}

impl FloorPace {
    /// The pace for clusters that serve.
    pub const HOURLY: Self = Self {
        every: Duration::from_secs(60 * 60),
        margin: Duration::from_secs(10 * 60),
        least: 10_000,
    };
}

/// The pace of a node whose settings name none: it drops no tombstones. If its clock is far ahead, and it took changes by
/// that, it may raise a floor that no other clock reaches for long. Nothing lowers that floor again. Only once replicas
/// refuse such a floor does this become [`FloorPace::HOURLY`].
pub const DEFAULT_PACE: Option<FloorPace> = None;

/// Looks again and again, as long as it is polled; not at all if tombstones are to stay.
pub(crate) async fn run(
    pace: Option<FloorPace>,
    peers: &Peers,
    keys: &dyn KeyValueStore,
    engine: &Arc<Engine>,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let Some(pace) = pace else {
        return;
    };
    let mut ticks = interval_at(Instant::now() + pace.every, pace.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing: Option<String> = None;
    let mut rests = Rests::new();
    loop {
        ticks.tick().await;
        let collector = Collector {
            peers,
            keys,
            engine,
            followed: &followed,
        };
        let failure = collector
            .look(pace, &mut rests)
            .await
            .err()
            .map(|error| error.to_string());
        if let Some(error) = &failure
            && failing != failure
        {
            warn!(%error, "tombstones are not dropped for now");
        }
        failing = failure;
    }
}

/// What a look needs.
struct Collector<'a> {
    peers: &'a Peers,
    keys: &'a dyn KeyValueStore,
    engine: &'a Arc<Engine>,
    followed: &'a watch::Receiver<Arc<ClusterLayout>>,
}

/// The shards that this store looks after, and their records.
type Led = BTreeMap<ShardId, Arc<ShardRecord>>;

impl Collector<'_> {
    async fn look(&self, pace: FloorPace, rests: &mut Rests) -> Result<(), NodeError> {
        match require(self.keys, Feature::Floors).await {
            // An operator raises it.
            Err(MetadataError::LevelTooLow { .. }) => return Ok(()),
            checked => checked?,
        }
        // Another store may have left some so, which looked after them before.
        for shard in self.led().into_keys() {
            self.settle(shard, None).await?;
        }
        let documents = self.engine.document_counts().await?;
        let elements = self.engine.store().stored_elements();
        let floor = settled_before(pace.margin);
        let is_idle = |record: &ShardRecord| {
            record.learners.is_empty() && !record.is_frozen && floor > record.floor
        };
        let unbuilt = self.engine.unbuilt();
        rests.retain(|_, until| Instant::now() < *until);
        let mut raised = BTreeMap::new();
        for (shard, record) in self.led() {
            let is_counted = record.in_sync[0].hot && !unbuilt.contains(shard);
            let documents = documents.get(&shard).copied().unwrap_or_default();
            let elements = elements.get(&shard).copied().unwrap_or_default();
            let are_many = |tombstones: u64| {
                tombstones >= pace.least && tombstones >= documents / DOCUMENTS_PER_TOMBSTONE
            };
            // What is outdone counts here, too.
            let may_have_many = is_counted && are_many(elements.saturating_sub(documents));
            if !may_have_many || !is_idle(&record) || rests.contains_key(&shard) {
                continue;
            }
            let (old, all, highest) = self.tombstones(shard, record.epoch, floor).await?;
            if are_many(old) && highest > record.floor {
                raised.insert(shard, (record.epoch, Step::RaiseFloor(highest)));
            } else if !are_many(all) {
                rests.insert(shard, Instant::now() + pace.every * RESTED_LOOKS);
            }
        }
        // Few are frozen at once, as no scrub repairs them then.
        let raised: Vec<(ShardId, (Epoch, Step))> = raised.into_iter().collect();
        for some in raised.chunks(FROZEN_AT_ONCE) {
            let taken = self.take(some.iter().copied().collect()).await?;
            for (shard, (epoch, _)) in some.iter().filter(|(shard, _)| taken.contains(shard)) {
                self.settle(*shard, Some(*epoch)).await?;
            }
        }
        Ok(())
    }

    /// Counts the tombstones of a shard up to a version, and in all, by reading it. Answers its highest version up to there,
    /// too.
    async fn tombstones(
        &self,
        shard: ShardId,
        epoch: Epoch,
        until: Version,
    ) -> Result<(u64, u64, Version), NodeError> {
        let Some(pinned) = self.engine.store().pin(shard, epoch)? else {
            return Ok((0, 0, Version::NONE));
        };
        let permit = self.engine.scrub_permit().await?;
        let counted = spawn_blocking(move || {
            let _permit = permit;
            pinned.tombstones(until)
        });
        Ok(counted.await.map_err(|_| NodeError::Stopping)??)
    }

    /// The shards that this store holds in sync before all others, and whose last record it has applied.
    fn led(&self) -> Led {
        let own = self.peers.own().0;
        let roles = self.engine.roles().into_iter();
        let led = roles
            .filter(|(_, record, role)| *role == Role::InSync && record.in_sync[0].store == own);
        led.map(|(shard, record, _)| (shard, record)).collect()
    }

    /// Compares the replicas of a shard, if its record is frozen, and settles or thaws it. If the floor was raised just now,
    /// from a record of an epoch, this store may have that one still.
    async fn settle(&self, shard: ShardId, raised_from: Option<Epoch>) -> Result<(), NodeError> {
        let mut unclear = None;
        for _ in 0..ATTEMPTS {
            let Some(record) = self.led().remove(&shard) else {
                return Ok(());
            };
            let is_to_come = raised_from.is_some_and(|epoch| record.epoch <= epoch);
            if !record.is_frozen && !is_to_come {
                return Ok(());
            }
            // It is to be installed here, and sealed, before a step may follow.
            if is_to_come || !record.is_sealed(|store| self.reported(shard, store)) {
                sleep(PAUSE).await;
                continue;
            }
            let layout = Arc::clone(&self.followed.borrow());
            let step = match agree(self.engine, &layout, shard, self.peers.own().0, &record).await {
                Ok(true) if record.learners.is_empty() => Step::Settle {
                    compared: record.epoch,
                },
                Ok(_) => Step::Thaw,
                Err(status) => {
                    unclear = Some(status);
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let taken = self
                .take(BTreeMap::from([(shard, (record.epoch, step))]))
                .await?;
            if taken.contains(&shard) {
                return Ok(());
            }
            // It is not sealed yet, or another one by now.
            sleep(PAUSE).await;
        }
        if let Some(status) = unclear {
            info!(%shard, error = status.message(), "replicas of a shard are not compared now");
        }
        let Some(record) = self.led().remove(&shard).filter(|record| record.is_frozen) else {
            return Ok(());
        };
        self.take(BTreeMap::from([(shard, (record.epoch, Step::Thaw))]))
            .await?;
        Ok(())
    }

    /// The epoch of a shard that a store has on disk, as far as is known.
    fn reported(&self, shard: ShardId, store: StoreId) -> Epoch {
        if store == self.peers.own().0 {
            self.engine.report(shard)
        } else {
            self.peers.reported_epoch(shard, store)
        }
    }

    /// Takes steps of the records of these epochs. Answers the shards whose were taken.
    async fn take(
        &self,
        chosen: BTreeMap<ShardId, (Epoch, Step)>,
    ) -> Result<Vec<ShardId>, NodeError> {
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let reported = |shard, store| self.reported(shard, store);
        let step = |shard: ShardId, record: &ShardRecord| {
            let (epoch, step) = chosen.get(&shard)?;
            (record.epoch == *epoch).then_some(*step)
        };
        let mut steps = Steps::default();
        let taking = take_steps(self.keys, step, reported, |_, _, _| false, &mut steps);
        match timeout(METADATA_PATIENCE, taking).await {
            Ok(taken) => taken?,
            Err(_elapsed) => return Err(NodeError::MetadataLate(METADATA_PATIENCE)),
        }
        let taken: Vec<ShardId> = steps.taken.into_keys().collect();
        for (says, is_meant) in SAID {
            let shards = taken.iter().filter(|shard| is_meant(chosen[shard].1));
            let shards: ShardSet = shards.copied().collect();
            if !shards.is_empty() {
                info!(%shards, "{says}");
            }
        }
        Ok(taken)
    }
}

/// What the log says of some steps.
type Said = (&'static str, fn(Step) -> bool);

/// What the log says of steps.
const SAID: [Said; 3] = [
    (
        "shards take no changes of some minutes ago any more",
        |step| matches!(step, Step::RaiseFloor(_)),
    ),
    (
        "the replicas of shards agree: old tombstones are dropped",
        |step| matches!(step, Step::Settle { .. }),
    ),
    (
        "the replicas of shards do not agree now: no tombstone is dropped",
        |step| matches!(step, Step::Thaw),
    ),
];
