//! Copying the shards that this node is a learner of, several at once, until it has them. After a failure another source
//! is asked, if there is one, a while later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::ClusterLayout;
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, Role, ShardRecord, StoreId};
use simshard_transport::Dialer;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{debug, info, warn};

use super::Peers;
use super::copying::{CopyOutcome, Source, copy};
use super::health::INTERVAL;
use super::said::status_text;
use crate::engine::Engine;
use crate::engine::pace::Activity;

/// Shards that are copied at once.
const AT_ONCE: usize = 4;

/// After a failure, this time passes before the shard is copied again; twice the time after each further one.
const SHORTEST_PAUSE: Duration = INTERVAL;

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Copies again and again what is to be copied, as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    engine: &Arc<Engine>,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut copies = Copies::default();
    let mut copied = CopyTotals::default();
    let mut activity = Activity::default();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(done) = copies.next() => copied.add(done),
        }
        if copied.shards > 0 && copies.in_flight.is_empty() {
            let CopyTotals { shards, bytes } = std::mem::take(&mut copied);
            info!(
                shards,
                bytes, "this node has copied shards, and waits to hold them"
            );
        }
        let layout = Arc::clone(&followed.borrow());
        let now = Instant::now();
        let usual = activity.rate(engine.work_given(), now);
        engine.copy_pace().set(peers.copy_rate(&layout).or(usual));
        let live = peers.others.lock().live(now);
        let roles = engine.roles();
        copies.go_on_with(&roles);
        for (shard, record, added) in wanted(&roles) {
            let mut sources = sources(&peers.dialer, &layout, shard, record, &live);
            if sources.is_empty() || !copies.may_begin(shard, now) {
                continue;
            }
            // What was set aside in memory is written first.
            if let Ok(Some(base)) = engine.store().copy_base(shard, added) {
                let source = sources.swap_remove(copies.failures(shard) % sources.len());
                let engine = Arc::clone(engine);
                copies.begin(shard, added, async move |unwanted| {
                    let copied = copy(&engine, &source, base, shard, added, &unwanted).await;
                    copied.map_err(|error| Failed { source, error })
                });
            }
        }
    }
}

/// A copy that came to nothing.
#[derive(Debug)]
struct Failed {
    source: Source,
    error: Status,
}

/// The copies in flight, and what is known of those that failed.
#[derive(Default)]
struct Copies {
    in_flight: JoinSet<Result<CopyOutcome, Failed>>,
    /// What each is for.
    aims: BTreeMap<Id, Aim>,
    /// Of shards whose last copy failed.
    streaks: BTreeMap<ShardId, FailureStreak>,
}

/// What a copy is for.
struct Aim {
    shard: ShardId,
    /// The epoch that added the node.
    added: Epoch,
    unwanted: CancellationToken,
}

impl Aim {
    /// Whether the node has no use for the copy by its roles. One that the shard has taken ends by itself.
    fn is_unwanted(&self, roles: &[ShardRole]) -> bool {
        let mut roles = roles.iter();
        match roles.find(|(shard, ..)| *shard == self.shard) {
            Some((_, _, Role::Copying { added } | Role::Copied { added })) => *added != self.added,
            Some((_, _, Role::InSync)) => false,
            Some((_, _, Role::None)) | None => true,
        }
    }
}

/// What the node does for a shard, by a record.
type ShardRole = (ShardId, Arc<ShardRecord>, Role);

/// Failures in a row.
#[derive(Clone, Copy)]
struct FailureStreak {
    failures: u32,
    /// When the shard may be copied again.
    next: Instant,
}

impl FailureStreak {
    /// With one more failure.
    fn after(row: Option<Self>, now: Instant) -> Self {
        let before = row.map_or(0, |row| row.failures);
        let pause = SHORTEST_PAUSE.saturating_mul(2_u32.saturating_pow(before));
        Self {
            failures: before.saturating_add(1),
            next: now + pause.min(LONGEST_PAUSE),
        }
    }
}

impl Copies {
    /// Has the copies end that the node has no use for by its roles, and forgets what is known of these shards.
    fn go_on_with(&mut self, roles: &[ShardRole]) {
        let wanted: BTreeSet<ShardId> = wanted(roles).map(|(shard, ..)| shard).collect();
        self.streaks.retain(|shard, _| wanted.contains(shard));
        for aim in self.aims.values().filter(|aim| aim.is_unwanted(roles)) {
            aim.unwanted.cancel();
        }
    }

    fn may_begin(&self, shard: ShardId, now: Instant) -> bool {
        let is_in_flight = self.aims.values().any(|aim| aim.shard == shard);
        let is_due = self.streaks.get(&shard).is_none_or(|row| row.next <= now);
        is_due && !is_in_flight && self.in_flight.len() < AT_ONCE
    }

    /// How often a shard could not be copied since it last was.
    fn failures(&self, shard: ShardId) -> usize {
        self.streaks
            .get(&shard)
            .map_or(0, |row| row.failures as usize)
    }

    /// Begins a copy, which is told once it is not wanted any more.
    fn begin<Copy>(
        &mut self,
        shard: ShardId,
        added: Epoch,
        copy: impl FnOnce(CancellationToken) -> Copy,
    ) where
        Copy: Future<Output = Result<CopyOutcome, Failed>> + Send + 'static,
    {
        let unwanted = CancellationToken::new();
        let id = self.in_flight.spawn(copy(unwanted.clone())).id();
        let aim = Aim {
            shard,
            added,
            unwanted,
        };
        self.aims.insert(id, aim);
    }

    /// What comes of the next copy that ends: `None` of one that failed. Nothing if none is in flight.
    async fn next(&mut self) -> Option<Option<CopyOutcome>> {
        let (id, outcome) = match self.in_flight.join_next_with_id().await? {
            Ok((id, outcome)) => (id, outcome.map_err(Some)),
            // If it panicked, the process says so.
            Err(ended) => (ended.id(), Err(None)),
        };
        let aim = self.aims.remove(&id)?;
        Some(match outcome {
            Ok(copied) => {
                self.streaks.remove(&aim.shard);
                Some(copied)
            }
            Err(_) if aim.unwanted.is_cancelled() => None,
            Err(failed) => {
                self.note_failure(aim.shard, failed.as_ref());
                None
            }
        })
    }

    /// Says why a shard is not copied, once for a streak of failures.
    fn note_failure(&mut self, shard: ShardId, failed: Option<&Failed>) {
        let streak = FailureStreak::after(self.streaks.get(&shard).copied(), Instant::now());
        self.streaks.insert(shard, streak);
        let Some(Failed { source, error }) = failed else {
            return;
        };
        let (source, error) = (&*source.address, status_text(error));
        if streak.failures == 1 {
            warn!(%shard, source, error, "a shard is not copied yet, trying again");
        } else {
            debug!(%shard, source, error, failures = streak.failures, "a shard is not copied yet");
        }
    }
}

/// The shards that are to be copied, and the epoch that added the node.
fn wanted(roles: &[ShardRole]) -> impl Iterator<Item = (ShardId, &ShardRecord, Epoch)> {
    roles.iter().filter_map(|(shard, record, role)| match role {
        Role::Copying { added } => Some((*shard, &**record, *added)),
        Role::None | Role::Copied { .. } | Role::InSync => None,
    })
}

/// The stores in sync that have answered lately, in the order in which they are asked.
fn sources(
    dialer: &Dialer,
    layout: &ClusterLayout,
    shard: ShardId,
    record: &ShardRecord,
    live: &BTreeSet<StoreId>,
) -> Vec<Source> {
    let nodes: BTreeMap<StoreId, _> = layout.replicas(shard).collect();
    let order = record.copy_sources(shard, |store| live.contains(&store));
    let sources = order.into_iter().filter_map(|store| {
        let address = layout.node(nodes.get(&store)?)?.address.clone();
        Some(Source {
            store,
            address,
            dialer: dialer.clone(),
        })
    });
    sources.collect()
}

/// Copies that were made one after the other.
#[derive(Default)]
struct CopyTotals {
    shards: usize,
    /// Bytes of messages, both ways.
    bytes: usize,
}

impl CopyTotals {
    fn add(&mut self, copied: Option<CopyOutcome>) {
        if let Some(copied) = copied {
            self.shards += usize::from(copied.is_taken);
            self.bytes += copied.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const SHARD: ShardId = ShardId(7);

    fn failed() -> Failed {
        Failed {
            source: Source {
                store: StoreId([1; 16]),
                address: "http://127.0.0.1:7470".to_owned(),
                dialer: Dialer::PLAIN,
            },
            error: Status::data_loss("a segment is damaged"),
        }
    }

    #[test]
    fn pauses_grow_with_the_failures_in_a_row() {
        let now = Instant::now();
        let mut streak = None;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            let next = FailureStreak::after(streak, now);
            pauses.push((next.next - now).as_millis());
            streak = Some(next);
        }
        assert_eq!(pauses[..7], [200, 400, 800, 1600, 3200, 6400, 10_000]);
        assert!(pauses[7..].iter().all(|pause| *pause == 10_000));
    }

    /// Another source is asked after each.
    #[tokio::test]
    async fn failures_count_until_a_copy_is_made() {
        let mut copies = Copies::default();
        for failures in 1..=3 {
            copies.begin(SHARD, Epoch::FIRST, async |_| Err(failed()));
            assert!(copies.next().await.unwrap().is_none());
            assert_eq!(copies.failures(SHARD), failures);
            assert!(!copies.may_begin(SHARD, Instant::now()));
            assert!(copies.may_begin(SHARD, Instant::now() + LONGEST_PAUSE));
        }
        assert!(copies.may_begin(ShardId(8), Instant::now()));
        copies.begin(SHARD, Epoch::FIRST, async |_| {
            Ok(CopyOutcome {
                is_taken: true,
                bytes: 5,
            })
        });
        assert!(copies.next().await.unwrap().is_some());
        assert_eq!(copies.failures(SHARD), 0);
        assert!(copies.may_begin(SHARD, Instant::now()));
    }

    #[tokio::test]
    async fn a_shard_whose_copy_panicked_is_copied_again() {
        let mut copies = Copies::default();
        copies.begin(SHARD, Epoch::FIRST, async |_| panic!("it is a test"));
        assert!(!copies.may_begin(SHARD, Instant::now() + LONGEST_PAUSE));
        assert!(copies.next().await.unwrap().is_none());
        assert!(copies.may_begin(SHARD, Instant::now() + LONGEST_PAUSE));
        assert_eq!(copies.failures(SHARD), 1);
    }

    /// It would keep its source from others, and the shard from its next copy.
    #[tokio::test(start_paused = true)]
    async fn a_copy_that_is_not_wanted_any_more_ends() {
        let record = Arc::new(ShardRecord::first(0, &[StoreId([1; 16])], 7));
        let added = Epoch::FIRST.next();
        let roles = |role| vec![(SHARD, Arc::clone(&record), role)];
        let mut copies = Copies::default();
        copies.begin(SHARD, added, async |unwanted| {
            unwanted.cancelled().await;
            Err(failed())
        });
        let same = [
            Role::Copying { added },
            Role::Copied { added },
            Role::InSync,
        ];
        for role in same {
            copies.go_on_with(&roles(role));
            assert!(copies.next().now_or_never().is_none(), "{role:?}");
        }
        let again = Role::Copying {
            added: added.next(),
        };
        for role in [again, Role::None] {
            copies.go_on_with(&roles(role));
            let ended = timeout(LONGEST_PAUSE, copies.next()).await;
            assert!(ended.unwrap().unwrap().is_none());
            // That is no failure.
            assert!(copies.may_begin(SHARD, Instant::now()));
            copies.begin(SHARD, added, async |unwanted| {
                unwanted.cancelled().await;
                Err(failed())
            });
        }
    }
}
