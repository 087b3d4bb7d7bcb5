//! Attempts at what nodes are to do with shards: again while records change, and for a while when a node stays away.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use simshard_cluster::{MetadataError, RegisteredStore};
use simshard_node::{Asked, ScrubError, answers};
use simshard_topology::replication::StoreId;
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::super::access::ClusterAccess;
use super::super::patience::patiently;
use super::manner::problem_of;
use super::places::Places;

/// Readings of the records that are awaited without a change, before attempts end. A node that has died is taken out of
/// them by then.
pub(super) const PATIENCE: u32 = 10;

/// Between two readings.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a reading is awaited.
const READING_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts of one phase of the command, with the newest places that were read.
pub(super) struct Attempts<'a> {
    access: &'a ClusterAccess,
    read: watch::Sender<Reading>,
    /// By the stores that have not done their part since: where a node stays away, each shard would wait for it.
    failing: RefCell<BTreeMap<StoreId, Failing>>,
    answers: Answers,
}

/// Whether a store answers at all.
type Answers = Box<dyn Fn(&RegisteredStore) -> BoxFuture<'static, bool>>;

/// A reading of the records.
struct Reading {
    number: u64,
    places: Arc<Places>,
    /// Why the last one failed, if it did: then the places are those of before.
    failure: Option<MetadataError>,
}

/// A store that does not do its part.
#[derive(Default)]
struct Failing {
    /// Readings that were awaited in vain.
    in_vain: u32,
    /// The last one, which counts once for all shards.
    last: u64,
    /// The reading at which it was last found to be silent.
    silent_at: Option<u64>,
}

impl<'a> Attempts<'a> {
    pub(super) async fn begin(access: &'a ClusterAccess) -> Result<Self, MetadataError> {
        let places = patiently(async || Places::read(access.keys()).await).await?;
        let dialer = access.dialer.clone();
        Ok(Self {
            access,
            read: watch::Sender::new(Reading {
                number: 0,
                places: Arc::new(places),
                failure: None,
            }),
            failing: RefCell::default(),
            answers: Box::new(move |store| {
                let (dialer, store) = (dialer.clone(), store.clone());
                async move { answers(&dialer, &store.address, store.id).await }.boxed()
            }),
        })
    }

    /// Does work, and reads the records once a second meanwhile. All below is for such work.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.follow() => match never {},
        }
    }

    async fn follow(&self) -> Infallible {
        loop {
            sleep(PAUSE).await;
            let places = Places::read(self.access.keys()).await;
            self.read.send_modify(|read| {
                read.number += 1;
                read.failure = match places {
                    Ok(places) => {
                        read.places = Arc::new(places);
                        None
                    }
                    Err(error) => Some(error),
                };
            });
        }
    }

    /// A node, to be asked.
    pub(super) fn asked<'b>(&'b self, store: &'b RegisteredStore) -> Asked<'b> {
        Asked {
            dialer: &self.access.dialer,
            address: &store.address,
        }
    }

    pub(super) fn places(&self) -> Arc<Places> {
        Arc::clone(&self.read.borrow().places)
    }

    /// Awaits what nodes do with shards. It fails once one of these stores does not hold its shard any more: what waits for
    /// a node that hangs may wait for ever.
    pub(super) async fn while_held<T>(
        &self,
        holders: &[(ShardId, StoreId)],
        work: impl Future<Output = Result<T, ScrubError>>,
    ) -> Result<T, ScrubError> {
        let mut read = self.read.subscribe();
        let left = async {
            let _ = read.wait_for(|read| !read.places.are_held(holders)).await;
            // A node that lives tells what it did, and ends by itself.
            sleep(PAUSE).await;
        };
        tokio::select! {
            biased;
            done = work => done,
            () = left => Err(ScrubError::left()),
        }
    }

    /// Asks the first store of a shard to do something, and repeats what failed and may pass. `shards` are all that it
    /// concerns. While a store of theirs is silent there is no attempt: it would only take long, and fail.
    ///
    /// # Errors
    /// Why it is not done.
    pub(super) async fn repeat<T>(
        &self,
        shard: ShardId,
        shards: ShardSet,
        mut attempt: impl AsyncFnMut(&Places, &RegisteredStore) -> Result<T, ScrubError>,
    ) -> Result<T, String> {
        let mut in_vain = 0;
        loop {
            let places = self.places();
            let Some(reader) = places.reader(shard) else {
                return Err(ScrubError::unregistered().to_string());
            };
            let stores = places.stores_of(shards);
            if stores.iter().any(|store| self.is_given_up(store.id)) {
                let silent = self.silent(&stores).await;
                if !silent.is_empty() {
                    return Err(self.explained(silence_of(&silent)));
                }
            }
            let error = match attempt(&places, reader).await {
                Ok(done) => {
                    let is_of_others =
                        |store: &StoreId| stores.iter().all(|other| other.id != *store);
                    let mut failing = self.failing.borrow_mut();
                    failing.retain(|store, _| is_of_others(store));
                    return Ok(done);
                }
                Err(error) => error,
            };
            let is_over = in_vain >= PATIENCE || self.is_given_up(reader.id);
            if !error.may_succeed_later || is_over {
                return Err(self.explained(problem_of(reader, &error)));
            }
            in_vain = self.wait(&places, reader, shards, in_vain).await;
        }
    }

    /// Waits until another attempt may help, or the patience with a store has ended. Answers for how many readings attempts
    /// have been in vain.
    async fn wait(
        &self,
        places: &Places,
        reader: &RegisteredStore,
        shards: ShardSet,
        mut in_vain: u32,
    ) -> u32 {
        let stores = places.stores_of(shards);
        loop {
            if self.has_changed(places, shards).await {
                return 0;
            }
            in_vain += 1;
            let silent = self.silent(&stores).await;
            let failing = if silent.is_empty() {
                &[reader][..]
            } else {
                &silent
            };
            failing.iter().for_each(|store| self.note_in_vain(store.id));
            let is_over = silent.iter().any(|store| self.is_given_up(store.id));
            if silent.is_empty() || is_over {
                return in_vain;
            }
        }
    }

    /// Those of these stores that do not answer at all.
    async fn silent<'b>(&self, stores: &[&'b RegisteredStore]) -> Vec<&'b RegisteredStore> {
        let asked = stores.iter().map(async |&store| {
            if self.is_known_as_silent(store.id) {
                return Some(store);
            }
            let answers = (self.answers)(store).await;
            (!answers).then(|| self.note_silent(store))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Waits for a reading, unless there is one since. Answers whether other stores hold these shards than at these places.
    pub(super) async fn has_changed(&self, since: &Places, shards: ShardSet) -> bool {
        let mut read = self.read.subscribe();
        if since.have_changed(&read.borrow().places, shards) {
            return true;
        }
        // A reading may wait for the metadata as long as it likes.
        let _ = timeout(READING_TIMEOUT, read.changed()).await;
        since.have_changed(&read.borrow().places, shards)
    }

    /// A problem, and that the metadata is away, if it is: then no node leaves the records.
    fn explained(&self, problem: String) -> String {
        match &self.read.borrow().failure {
            Some(failure) => format!("{problem}; and the metadata cannot be read: {failure}"),
            None => problem,
        }
    }

    /// Whether a store has failed for as many readings as are awaited. It gets one attempt for each shard, as it may
    /// fail for one alone, and none while it is silent.
    fn is_given_up(&self, store: StoreId) -> bool {
        let failing = self.failing.borrow();
        let in_vain = failing.get(&store).map(|failing| failing.in_vain);
        in_vain.is_some_and(|in_vain| in_vain >= PATIENCE)
    }

    fn note_in_vain(&self, store: StoreId) {
        let number = self.read.borrow().number;
        let mut failing = self.failing.borrow_mut();
        let failing = failing.entry(store).or_default();
        if failing.in_vain == 0 || failing.last != number {
            failing.in_vain += 1;
            failing.last = number;
        }
    }

    fn note_silent<'b>(&self, store: &'b RegisteredStore) -> &'b RegisteredStore {
        let number = self.read.borrow().number;
        let mut failing = self.failing.borrow_mut();
        failing.entry(store.id).or_default().silent_at = Some(number);
        store
    }

    /// Whether a store was silent a moment ago that has been so for long. It is not asked for each shard.
    fn is_known_as_silent(&self, store: StoreId) -> bool {
        let number = self.read.borrow().number;
        let failing = self.failing.borrow();
        let silent_at = failing.get(&store).and_then(|failing| failing.silent_at);
        let is_new = silent_at.is_some_and(|at| number < at + u64::from(PATIENCE));
        drop(failing);
        is_new && self.is_given_up(store)
    }
}

/// Says which stores are silent, and what to do.
fn silence_of(silent: &[&RegisteredStore]) -> String {
    let stores = silent.iter();
    let stores: Vec<String> = stores
        .map(|store| format!("{} at {}", store.node, store.address))
        .collect();
    let answers = if silent.len() == 1 {
        "does not answer: start it"
    } else {
        "do not answer: start them"
    };
    format!(
        "{} {answers}, or see `simshard cluster status`",
        stores.join(", ")
    )
}

#[cfg(test)]
mod tests;
