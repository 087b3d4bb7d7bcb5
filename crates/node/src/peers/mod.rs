//! The other stores that hold shards of this node, and bystanders: whether they live, and which records they have on disk.
//! Also what is done about those that are dead, or come back.
//!
//! | module | job |
//! |---|---|
//! | `aims` | the stores of the nodes that an operator has chosen |
//! | `asked` | which stores are asked for signs of life |
//! | `cadence` | how often this node takes steps that might wait |
//! | `copying` | copying the shards that this node is a learner of |
//! | `former` | deleting what this node has of shards that it lost |
//! | `health` | which stores are dead, as far as is known |
//! | `learning` | which shards are copied, and when |
//! | `leavings` | which shards a store has left lately |
//! | `news` | records that the metadata does not tell this store, or another one |
//! | `own_disk` | whether the own disk answers, and as fast as those of others |
//! | `own_room` | how much room this store has |
//! | `plans` | ending what an operator's command began with a staged plan |
//! | `pings` | asking them for signs of life |
//! | `reach` | whether this node reaches stores that would come |
//! | `readiness` | whether this node holds all that it should |
//! | `replacement` | which shards this store takes at once, as its node lost the one before it |
//! | `scrubbing` | comparing the replicas of a shard, and shards with each other, and repairing them |
//! | `step_log` | what is said in the log of changes of records |
//! | `steps` | taking the dead ones out of the records of shards, and this node back in |

mod aims;
mod asked;
mod cadence;
mod copying;
mod former;
mod health;
mod heard;
mod learning;
mod leavings;
mod news;
mod own_disk;
mod own_room;
mod pings;
mod plans;
mod reach;
mod readiness;
mod replacement;
mod said;
mod scrubbing;
mod step_log;
mod steps;

pub use cadence::PAUSE_BETWEEN_STEPS;
pub(crate) use news::{columns_of, records_of};
pub(crate) use pings::SOON;
pub use pings::{StoreAnswer, StoreNews, answers, ask_store, ask_store_to_count, heard_of};
pub use scrubbing::{
    Asked, MOST_DIFFERENCES, ReplicaState, ScrubDifference, ScrubError, ScrubOptions, ScrubSummary,
    compare_shard, scrub_shard, settle_shards, sum_cells_of,
};
pub(crate) use scrubbing::{OwnShard, agree, scrub, sum_cells};

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use simshard_cluster::{
    ClusterLayout, KeyValueStore, MetadataError, Paused, SettingsOfNodes, Targets,
    follow_node_settings, follow_paused, follow_targets,
};
use simshard_storage::Room;
use simshard_topology::replication::{Epoch, ShardRecords, StoreId};
use simshard_topology::{ShardId, ShardSet};
use simshard_transport::Dialer;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::engine::Engine;
use crate::reconcile::Copies;
use health::{Others, Sign};
use reach::Reach;

/// When a node takes a shard that it never held, and that lacks a replica.
#[derive(Debug, Clone, Copy)]
pub struct Takeover {
    /// How long the shard must have lacked one. As long after, the node that lost it deletes what it had of it.
    pub after: Duration,
    /// Whether it takes them at once as it starts, as its node lost the store that it had.
    pub at_once: bool,
}

impl Default for Takeover {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(600),
            at_once: false,
        }
    }
}

/// What this process knows of the others.
#[derive(Debug)]
pub(crate) struct Peers {
    /// How the others are reached.
    pub(crate) dialer: Dialer,
    /// The store of this process.
    own: StoreId,
    /// The number of its start.
    incarnation: u64,
    /// When this store takes shards that it never held.
    takeover: Takeover,
    /// The shards that it takes at once, if they lack a replica (PE21).
    taken_at_once: Mutex<ShardSet>,
    others: Mutex<Others>,
    /// Whether this node holds all that it should.
    ready: watch::Sender<bool>,
    /// Whether this process is about to stop.
    stops: watch::Sender<bool>,
    /// Whether it has then left all shards that it may leave.
    has_left: watch::Sender<bool>,
    /// The copies since whose end the corpora were compared with the metadata.
    agreed: watch::Sender<Copies>,
    /// The address at which stores in sync are to reach this one, while it would come to a shard.
    coming_at: Mutex<Option<String>>,
    /// Which nodes are to hold which shards, where an operator has chosen some; `None` until that was read.
    targets: watch::Sender<Option<Arc<Targets>>>,
    /// What an operator has set for nodes; `None` until that was read.
    settings: watch::Sender<Option<Arc<SettingsOfNodes>>>,
    /// Since when an operator lets no shard begin to move, if that is so; `None` until that was read.
    paused: watch::Sender<Option<Arc<Vec<Paused>>>>,
    /// How much room this store has.
    room: watch::Sender<Room>,
    /// How many bytes of copies this store has room for, where that is known.
    bytes_for_copies: watch::Sender<Option<u64>>,
    /// Whether this node reaches those that would come.
    reach: Reach,
    /// The latest records of which other stores told.
    told: watch::Sender<ShardRecords>,
}

/// What operators have set.
struct Wishes {
    /// The nodes that are to hold shards.
    targets: Arc<Targets>,
    settings: Arc<SettingsOfNodes>,
    moves_are_paused: bool,
}

impl Peers {
    pub(crate) fn new(own: StoreId, incarnation: u64, takeover: Takeover, dialer: Dialer) -> Self {
        let others = Mutex::default();
        Self {
            reach: Reach::new(dialer.clone()),
            dialer,
            own,
            incarnation,
            takeover,
            taken_at_once: Mutex::new(if takeover.at_once {
                ShardSet::ALL
            } else {
                ShardSet::EMPTY
            }),
            others,
            ready: watch::Sender::new(false),
            stops: watch::Sender::new(false),
            has_left: watch::Sender::new(false),
            agreed: watch::Sender::default(),
            coming_at: Mutex::default(),
            targets: watch::Sender::default(),
            settings: watch::Sender::default(),
            paused: watch::Sender::default(),
            room: watch::Sender::new(Room::Ample),
            bytes_for_copies: watch::Sender::default(),
            told: watch::Sender::default(),
        }
    }

    /// What operators have set, once all of it was read.
    fn wishes(&self) -> Option<Wishes> {
        Some(Wishes {
            targets: self.targets.borrow().clone()?,
            settings: self.settings.borrow().clone()?,
            moves_are_paused: !self.paused.borrow().as_ref()?.is_empty(),
        })
    }

    /// Whether this node holds all that it should; not before it has looked.
    pub(crate) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Leaves the shards that go on without this node, as it is about to stop (PE19).
    pub(crate) async fn leave_shards(&self) {
        self.stops.send_replace(true);
        let mut has_left = self.has_left.subscribe();
        // The sender lives as long as this does.
        let _ = has_left.wait_for(|has_left| *has_left).await;
    }

    /// Where to tell which copies may count (AG1).
    pub(crate) const fn agreed(&self) -> &watch::Sender<Copies> {
        &self.agreed
    }

    /// How much room this store has for more.
    pub(crate) fn room(&self) -> Room {
        *self.room.borrow()
    }

    /// How many bytes of copies this store has room for, where that is known.
    pub(crate) fn bytes_for_copies(&self) -> Option<u64> {
        *self.bytes_for_copies.borrow()
    }

    /// Whether this node reaches stores that ask for it.
    pub(crate) const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The latest records of which other stores told. What waits for a report is told again.
    pub(crate) fn told(&self) -> watch::Receiver<ShardRecords> {
        self.told.subscribe()
    }

    /// Takes note of records of which another store tells.
    pub(crate) fn hear(&self, records: ShardRecords) {
        let mut news = ShardSet::EMPTY;
        self.told.send_modify(|told| {
            for (shard, record) in records {
                let known = told.get(&shard).map_or(Epoch::NONE, |known| known.epoch);
                if record.epoch > known {
                    news.insert(shard);
                }
                // Another record of the same epoch is refused where it is installed.
                if record.epoch >= known {
                    told.insert(shard, record);
                }
            }
        });
        if !news.is_empty() {
            info!(shards = %news, "another node tells of records of shards");
        }
    }

    /// The shards that this store takes at once, if they lack a replica.
    fn taken_at_once(&self) -> ShardSet {
        *self.taken_at_once.lock()
    }

    /// Those of them that an operator, and its room, let it take now.
    fn may_take_at_once(&self, layout: &ClusterLayout) -> ShardSet {
        let wishes = self.wishes();
        let is_drained = wishes.is_some_and(|wishes| steps::is_drained(&wishes, layout, self.own));
        if is_drained || self.room() != Room::Ample {
            return ShardSet::EMPTY;
        }
        self.taken_at_once()
    }

    /// Takes no shards at once any more but some. Answers whether none is left.
    fn end_at_once_but(&self, lacking: &ShardSet) -> bool {
        let mut taken = self.taken_at_once.lock();
        *taken = taken.intersection(lacking);
        taken.is_empty()
    }

    /// The store of this process, and the number of its start.
    pub(crate) const fn own(&self) -> (StoreId, u64) {
        (self.own, self.incarnation)
    }

    /// The stores that do not answer.
    pub(crate) fn silent(&self) -> BTreeSet<StoreId> {
        self.others.lock().silent(Instant::now())
    }

    /// The stores that have not answered yet.
    pub(crate) fn unheard(&self) -> BTreeSet<StoreId> {
        self.others.lock().unheard()
    }

    /// The epoch of a shard that another store has on disk, by what it has reported.
    pub(crate) fn reported_epoch(&self, shard: ShardId, store: StoreId) -> Epoch {
        let others = self.others.lock();
        let health = others.by_store.get(&store);
        health.map_or(Epoch::NONE, |health| health.report(shard))
    }

    /// The epoch of a shard that a store has on disk, as far as is known. The own store knows its log, and others report.
    pub(crate) fn epoch_on_disk(&self, engine: &Engine, shard: ShardId, store: StoreId) -> Epoch {
        if store == self.own {
            engine.report(shard)
        } else {
            self.reported_epoch(shard, store)
        }
    }

    /// Takes note that this process looks at these stores now.
    fn look(&self, stores: &BTreeSet<StoreId>) {
        self.others.lock().look(Instant::now(), stores);
    }

    /// The number of installations by which a store reported.
    fn installations(&self, store: StoreId) -> u64 {
        let others = self.others.lock();
        let health = others.by_store.get(&store);
        health.map_or(0, |health| health.installations)
    }

    /// The last record of its log that a store said to be on disk; 0 if it said nothing.
    pub(crate) fn heard_synced(&self, store: StoreId) -> u64 {
        let others = self.others.lock();
        others
            .by_store
            .get(&store)
            .map_or(0, |health| health.synced)
    }

    fn set_coming_at(&self, address: Option<String>) {
        *self.coming_at.lock() = address;
    }

    fn coming_at(&self) -> Option<String> {
        self.coming_at.lock().clone()
    }

    /// The shards that this store is to hold, by what an operator has chosen.
    fn targeted(&self, layout: &ClusterLayout) -> ShardSet {
        let Some(own) = layout.node_of(self.own) else {
            return ShardSet::EMPTY;
        };
        let targets = self.targets.borrow();
        let own = targets
            .iter()
            .flat_map(|targets| &**targets)
            .filter(|(_, nodes)| nodes.contains(&own.id));
        own.map(|(shard, _)| *shard).collect()
    }

    /// How many megabytes of copies a second this node may receive, and send, by what an operator has set.
    fn copy_rate(&self, layout: &ClusterLayout) -> Option<NonZeroU32> {
        let own = layout.node_of(self.own)?;
        let settings = self.settings.borrow();
        settings.as_ref()?.get(&own.id)?.copy_rate
    }

    /// The stores that are dead, by what is known.
    fn dead(&self, layout: &ClusterLayout) -> BTreeSet<StoreId> {
        dead(&self.others.lock(), layout, Instant::now())
    }

    fn note(&self, store: StoreId, sign: Sign) {
        if let Some(health) = self.others.lock().by_store.get_mut(&store) {
            health.note(Instant::now(), sign);
        }
    }

    fn note_life(&self, store: StoreId) {
        if let Some(health) = self.others.lock().by_store.get_mut(&store) {
            health.note_life(Instant::now());
        }
    }

    /// Keeps in touch with other stores, and takes those that die out of the records.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        keys: &Arc<dyn KeyValueStore>,
        engine: &Arc<Engine>,
        followed: watch::Receiver<Arc<ClusterLayout>>,
    ) {
        tokio::join!(
            follow_targets(Arc::clone(keys), &self.targets, left_out),
            follow_node_settings(Arc::clone(keys), &self.settings, left_out),
            follow_paused(Arc::clone(keys), &self.paused, left_out),
            plans::run(keys, self.own),
            replacement::run(self, &**keys, followed.clone()),
            own_room::run(self, engine),
            pings::run(self, engine, followed.clone()),
            learning::run(self, engine, followed.clone()),
            readiness::run(self, engine, followed.clone()),
            former::run(self, engine, followed.clone()),
            news::run(self, engine, followed.clone()),
            steps::run(self, &**keys, engine, followed),
        );
    }
}

fn left_out(error: &MetadataError) {
    warn!(%error, "what an operator has set is damaged: this node goes on with what it said before");
}

/// The stores that are dead, by what is known of others.
fn dead(others: &Others, layout: &ClusterLayout, now: Instant) -> BTreeSet<StoreId> {
    others.dead(now, |other, store| share(layout, other, store))
}

/// Whether two stores share a shard: then each asks the other for signs of life.
fn share(layout: &ClusterLayout, one: StoreId, other: StoreId) -> bool {
    let mut records = layout.records().into_iter().flatten();
    records.any(|(_, record)| record.names(one) && record.names(other))
}
