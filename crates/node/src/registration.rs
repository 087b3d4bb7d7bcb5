//! How a node that registers itself shows that its directory is the one that ran last, and how it stays that.
//!
//! # Invariants
//! - RG1: a node serves only while the metadata holds its incarnation, as far as it has heard.
//! - RG2: a sequence is published only once the log is on disk up to it.
//! - RG3: a node whose directory lacks a record that it told another node to be on disk does not serve, if that one still
//!   runs and answers.
//! - RG5: a directory whose store cannot be opened begins no start, as that would count against the right one.
//! - RG6: a node registers where it answers only once its start is the last one of its store, and again if another address
//!   is registered meanwhile. So a copy that is refused, or waits, leaves the address of a node that runs. If none is
//!   registered any more, the node ends: an operator took it out while it did not answer.
//! - RG7: no start begins while a process with the same store answers where it is registered. What that one acknowledges
//!   until it ends, a copy of its directory lacks.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{
    ClusterLayout, KeyValueError, KeyValueStore, MetadataError, Published, RegisteredStore,
    Snapshot, follow, publish, published, published_in, published_key, random_nonce,
    register_start,
};
use simshard_storage::{Claim, OpenError};
use simshard_topology::replication::{
    Incarnation, PublishedStore, StaleStore, StartStep, StoreId, next_start_step, renewed,
};
use simshard_transport::Dialer;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{info, warn};

use crate::fresh_start::Obstacle;
use crate::peers::answers;

/// How long a node that stops tries to publish the end of its log.
const LAST_ATTEMPT: Duration = Duration::from_secs(2);

/// Between two attempts, where one was not confirmed.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a directory may not be used by a node that registers itself.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum RegistrationError {
    #[error("{} does not fit the metadata: {problem}; {}", path.display(), advice(problem))]
    Stale { path: PathBuf, problem: StaleStore },
    #[error(
        "{} was given up: a copy of it was started meanwhile, and this node ends; keep one of the two, and never start \
         a copy beside the original", path.display()
    )]
    Replaced { path: PathBuf },
    #[error(
        "{}: its store runs at {address}, and acknowledges changes that a copy lacks; end that node first, and start the \
         directory that ran last, or give this node a directory of its own", path.display()
    )]
    Runs { path: PathBuf, address: String },
    #[error(
        "this node was taken out of the cluster while it ran: start it again, and it registers anew"
    )]
    Removed,
    #[error("{refused}; {obstacle}")]
    Kept {
        refused: Box<Self>,
        obstacle: Obstacle,
    },
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Checks that no process with the store of a directory answers where it is registered (RG7). This one listens later.
///
/// # Errors
/// [`RegistrationError::Runs`] if one does.
pub async fn check_runs_nowhere(
    dialer: &Dialer,
    claim: &Claim,
    layout: &ClusterLayout,
) -> Result<(), RegistrationError> {
    match layout.node_of(claim.store).map(|node| node.address.clone()) {
        Some(address) if answers(dialer, &address, claim.store).await => {
            let path = claim.path().to_owned();
            Err(RegistrationError::Runs { path, address })
        }
        Some(_) | None => Ok(()),
    }
}

/// The start of a store, as the metadata holds it.
#[derive(Debug)]
pub struct Registration {
    keys: Arc<dyn KeyValueStore>,
    /// As it is registered.
    store: RegisteredStore,
    path: PathBuf,
    incarnation: Incarnation,
    published: watch::Receiver<Arc<Snapshot>>,
    /// How often the end of the log is published.
    interval: Duration,
}

impl Registration {
    /// Makes this start the newest one of the store, in its directory and in the metadata, and registers where it answers
    /// (RG6). Whether changes may be lost is for an operator to say, with `accepts_loss`.
    ///
    /// # Errors
    /// [`RegistrationError::Stale`] if the directory is not the one that ran last. [`RegistrationError::Replaced`] if
    /// another start begins meanwhile. Else when the directory or the metadata cannot be read or written. A directory that
    /// the store could not open begins no start (RG5).
    pub async fn enter(
        keys: &Arc<dyn KeyValueStore>,
        claim: &mut Claim,
        store: RegisteredStore,
        accepts_loss: bool,
        interval: Duration,
    ) -> Result<Self, RegistrationError> {
        claim.check_segments()?;
        let incarnation = begin(&**keys, claim, accepts_loss).await?;
        let on_turn = |turn: Result<(), &KeyValueError>| match turn {
            Err(error) => {
                warn!(%error, "the node cannot see now whether a copy of it was started");
            }
            Ok(()) => info!("the node sees again whether a copy of it was started"),
        };
        let followed = follow(Arc::clone(keys), published_key(claim.store), on_turn).await;
        let entered = Self {
            keys: Arc::clone(keys),
            store,
            path: claim.path().to_owned(),
            incarnation,
            published: followed.map_err(MetadataError::from)?,
            interval,
        };
        entered.register().await?;
        Ok(entered)
    }

    /// Registers where this node answers, while its start is the last one (RG6).
    async fn register(&self) -> Result<(), RegistrationError> {
        if register_start(&*self.keys, &self.store, self.incarnation).await? {
            return Ok(());
        }
        let path = self.path.clone();
        Err(RegistrationError::Replaced { path })
    }

    /// The store, and the number of its start.
    pub(crate) const fn start(&self) -> (StoreId, u64) {
        (self.store.id, self.incarnation.number)
    }

    /// The start.
    #[must_use]
    pub const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The keys of the cluster.
    pub(crate) const fn keys(&self) -> &Arc<dyn KeyValueStore> {
        &self.keys
    }

    /// Checks that no copy was started, as far as this process has heard (RG1).
    ///
    /// # Errors
    /// [`RegistrationError::Replaced`] if one was, [`RegistrationError::Stale`] if the metadata went back in time.
    pub(crate) fn check(&self) -> Result<Published, RegistrationError> {
        let published = published_in(&self.published.borrow(), self.store.id)?;
        match published {
            Some((_, known)) if known.incarnation != self.incarnation => Err(self.ended_by(&known)),
            // It may be absent: then the metadata was lost, and nothing is compared.
            Some(_) | None => Ok(published),
        }
    }

    /// Why this node ends, as the metadata holds another start.
    fn ended_by(&self, known: &PublishedStore) -> RegistrationError {
        let path = self.path.clone();
        // A copy takes a later number than the metadata held, so it was this start that was not there.
        if known.incarnation.number < self.incarnation.number {
            let problem = StaleStore::OlderMetadata;
            return RegistrationError::Stale { path, problem };
        }
        RegistrationError::Replaced { path }
    }

    /// Registers where this node answers whenever the metadata has another address of it (RG6). Returns why the node may
    /// not go on: another start has begun, or the node is not registered any more. Failures pass.
    pub(crate) async fn keep_registered(
        &self,
        mut followed: watch::Receiver<Arc<ClusterLayout>>,
    ) -> RegistrationError {
        // What is followed may be older than the registration.
        let mut was_seen = false;
        loop {
            let registered = followed.borrow_and_update().node_of(self.store.id).cloned();
            if registered.is_none() && was_seen {
                return RegistrationError::Removed;
            }
            was_seen |= registered.is_some();
            if let Some(other) = registered.filter(|other| other.address != self.store.address) {
                let (own, other) = (&self.store.address, other.address);
                match self.register().await {
                    Ok(()) => warn!(%own, %other, "another address was registered for this node"),
                    Err(RegistrationError::Metadata(error)) => {
                        warn!(%own, %other, %error, "another address is registered for this node");
                    }
                    Err(ended) => return ended,
                }
            }
            let changed = timeout(self.interval, followed.changed()).await;
            if let Ok(Err(_)) = changed {
                return pending().await;
            }
        }
    }

    /// Publishes the end of the log again and again, while it changes. Ends once the node may not go on. Failures pass:
    /// the node serves without the metadata.
    pub(crate) async fn keep_published(&self, synced: impl Fn() -> u64) -> RegistrationError {
        let mut news = self.published.clone();
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = false;
        loop {
            let is_time = tokio::select! {
                Ok(()) = news.changed() => false,
                _ = ticks.tick() => true,
            };
            let attempt = match self.check() {
                Ok(read) if is_time => self.publish(read, synced()).await.map(|_| ()),
                Ok(_) => Ok(()),
                Err(passes @ RegistrationError::Metadata(_)) => Err(passes),
                Err(ended) => return ended,
            };
            match &attempt {
                Err(error) if !is_failing => {
                    warn!(%error, "the end of the log cannot be published now");
                }
                Ok(()) if is_failing => info!("the end of the log can be published again"),
                Ok(()) | Err(_) => {}
            }
            is_failing = attempt.is_err();
        }
    }

    /// Publishes the end of the log that was closed. Gives up soon if the metadata is away: the node is to end.
    pub(crate) async fn publish_last(&self, synced: u64) {
        let attempt = async {
            loop {
                let read = published(&*self.keys, self.store.id).await?;
                match self.publish(read, synced).await {
                    Ok(false) => {}
                    Err(error) if is_unknown(&error) => sleep(PAUSE).await,
                    published => return published.map(|_| ()),
                }
            }
        };
        match timeout(LAST_ATTEMPT, attempt).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "the end of the log was not published"),
            Err(_elapsed) => warn!("the end of the log was not published: the metadata is late"),
        }
    }

    /// Publishes the end of the log if it is news, in place of what was read. Answers whether there is nothing more to
    /// do.
    async fn publish(&self, read: Published, synced: u64) -> Result<bool, RegistrationError> {
        match read {
            Some((revision, known))
                if known.incarnation == self.incarnation && known.synced < synced =>
            {
                let news = PublishedStore { synced, ..known };
                Ok(publish(&*self.keys, self.store.id, Some(revision), &news).await?)
            }
            Some(_) | None => Ok(true),
        }
    }
}

/// Whether the metadata did not confirm what was published.
const fn is_unknown(error: &RegistrationError) -> bool {
    matches!(
        error,
        RegistrationError::Metadata(MetadataError::KeyValues(KeyValueError::Unknown { .. }))
    )
}

/// What an operator does about a directory that is not as its store left it.
const fn advice(problem: &StaleStore) -> &'static str {
    match problem {
        StaleStore::Copy | StaleStore::ChangesMissing { .. } => {
            "acknowledged changes would be lost, so start the node with the directory that ran last; if that is gone, \
             give --accept-lost-changes once: searches then miss what was inserted since, and find what was removed"
        }
        StaleStore::OlderMetadata => {
            "stop all nodes, give the cluster the metadata that it had last, and start them; if that is gone, stop all \
             nodes, delete all keys of the cluster, start the nodes with their directories, then run `simshard cluster \
             init` and `simshard corpus recover`, as docs/operating.md tells under \"If the metadata is lost\""
        }
    }
}

/// Checks that a directory is the one that ran last, and changes nothing yet. So a copy does not register itself.
///
/// # Errors
/// [`RegistrationError::Stale`] if it is not, unless the loss is accepted, else when the metadata cannot be read.
pub async fn check_directory(
    keys: &dyn KeyValueStore,
    claim: &Claim,
    accepts_loss: bool,
) -> Result<(), RegistrationError> {
    let (_, known) = published(keys, claim.store).await?.unzip();
    match next_step(claim, known.as_ref()) {
        Err(RegistrationError::Stale { .. }) if accepts_loss => Ok(()),
        checked => checked.map(|_| ()),
    }
}

/// Checks that a directory has all that other stores heard of it. What is published may be seconds old.
///
/// # Errors
/// [`RegistrationError::Stale`] if it lacks some, unless the loss is accepted.
pub fn check_heard(claim: &Claim, heard: u64, accepts_loss: bool) -> Result<(), RegistrationError> {
    if claim.recovered >= heard || accepts_loss {
        return Ok(());
    }
    Err(RegistrationError::Stale {
        path: claim.path().to_owned(),
        problem: StaleStore::ChangesMissing {
            recovered: claim.recovered,
            synced: heard,
        },
    })
}

fn next_step(
    claim: &Claim,
    published: Option<&PublishedStore>,
) -> Result<StartStep, RegistrationError> {
    let step = next_start_step(claim.incarnations(), published, claim.recovered);
    step.map_err(|problem| {
        let path = claim.path().to_owned();
        RegistrationError::Stale { path, problem }
    })
}

/// The steps of a start, until the metadata holds the incarnation that it made.
async fn begin(
    keys: &dyn KeyValueStore,
    claim: &mut Claim,
    accepts_loss: bool,
) -> Result<Incarnation, RegistrationError> {
    let mut made = None;
    loop {
        let (revision, known) = published(keys, claim.store).await?.unzip();
        if let Some(made) = made
            && known.is_some_and(|known| known.incarnation == made)
        {
            return Ok(made);
        }
        let (incarnation, synced) = match next_step(claim, known.as_ref()) {
            Ok(StartStep::Renew) => {
                made = Some(renew(claim, known.as_ref())?);
                continue;
            }
            Ok(StartStep::Enter(incarnation)) => {
                (incarnation, known.map_or(0, |known| known.synced))
            }
            Err(RegistrationError::Stale { path, problem }) if accepts_loss => {
                let path = path.display();
                warn!(%path, %problem, "acknowledged changes are given up: --accept-lost-changes");
                let incarnation = renew(claim, known.as_ref())?;
                made = Some(incarnation);
                (incarnation, 0)
            }
            Err(refused) => return Err(refused),
        };
        let news = PublishedStore {
            incarnation,
            synced,
        };
        // If another process has written meanwhile, the next round reads what.
        publish(keys, claim.store, revision, &news).await?;
    }
}

/// Makes an incarnation, and keeps it in the directory.
fn renew(
    claim: &mut Claim,
    published: Option<&PublishedStore>,
) -> Result<Incarnation, RegistrationError> {
    let held = renewed(claim.incarnations(), published, random_nonce());
    claim.keep(held)?;
    Ok(held.newest)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::Path;

    use simshard_cluster::{
        Corpora, KeyValueMetadata, MemoryKeyValues, MetadataStore, Transaction, initialize,
        register, unregister,
    };
    use simshard_storage::Store;
    use simshard_topology::{NodeId, plan_evenly};

    use super::*;

    const NEVER: Duration = Duration::from_secs(3600);

    /// What the node n1 registers, with the store of a directory.
    pub(crate) fn store_of(claim: &Claim) -> RegisteredStore {
        RegisteredStore {
            in_sync: claim.in_sync(),
            partners: claim.partners(),
            ..RegisteredStore::new(
                claim.store,
                NodeId::new("n1").unwrap(),
                "http://127.0.0.1:7470".to_owned(),
            )
        }
    }

    async fn start(
        keys: &Arc<dyn KeyValueStore>,
        directory: &Path,
        accepts_loss: bool,
    ) -> Result<Registration, RegistrationError> {
        let mut claim = Store::claim(directory)?;
        check_directory(&**keys, &claim, accepts_loss).await?;
        let store = store_of(&claim);
        Registration::enter(keys, &mut claim, store, accepts_loss, NEVER).await
    }

    fn memory() -> Arc<dyn KeyValueStore> {
        Arc::new(MemoryKeyValues::default())
    }

    async fn synced(keys: &Arc<dyn KeyValueStore>, registration: &Registration) -> u64 {
        let read = published(&**keys, registration.store.id).await.unwrap();
        read.unwrap().1.synced
    }

    /// RG1.
    #[tokio::test]
    async fn a_node_ends_when_its_directory_is_started_again_and_goes_on_without_metadata() {
        let (keys, directory) = (memory(), tempfile::tempdir().unwrap());
        let first = start(&keys, directory.path(), false).await.unwrap();
        // It is not compared with nothing.
        let deleted = Transaction::new().delete(published_key(first.store.id));
        let _ = keys.commit(&deleted).await.unwrap();
        first.check().unwrap();
        let second = start(&keys, directory.path(), false).await.unwrap();
        second.check().unwrap();
        let ended = first.keep_published(|| 0).await;
        assert!(
            matches!(ended, RegistrationError::Replaced { .. }),
            "{ended}"
        );
    }

    /// RG1: etcd is restored from a backup.
    #[tokio::test]
    async fn a_node_ends_when_its_metadata_go_back_in_time_and_says_so() {
        let (keys, directory) = (memory(), tempfile::tempdir().unwrap());
        let older = start(&keys, directory.path(), false).await.unwrap();
        let older = published(&*keys, older.store.id).await.unwrap().unwrap().1;
        let newest = start(&keys, directory.path(), false).await.unwrap();
        let read = published(&*keys, newest.store.id).await.unwrap().unzip().0;
        assert!(
            publish(&*keys, newest.store.id, read, &older)
                .await
                .unwrap()
        );
        let ended = newest.keep_published(|| 0).await.to_string();
        for told in [
            "older copy of the metadata",
            "delete all keys",
            "`simshard cluster init`",
        ] {
            assert!(ended.contains(told), "{ended}");
        }
    }

    /// RG6.
    #[tokio::test]
    async fn a_node_that_runs_takes_its_address_back_until_another_one_begins_a_start() {
        let (keys, directory) = (memory(), tempfile::tempdir().unwrap());
        let own = store_of(&Store::claim(directory.path()).unwrap());
        register(&*keys, &own).await.unwrap();
        let map = plan_evenly(None, std::slice::from_ref(&own.node), 1).unwrap();
        initialize(&*keys, &map, 1, &Corpora::default(), &[])
            .await
            .unwrap();
        let first = start(&keys, directory.path(), false).await.unwrap();
        let metadata = KeyValueMetadata::follow(Arc::clone(&keys), || {}, |_| {}).await;
        let mut followed = metadata.unwrap().watch_layout();
        let is_at = |layout: &Arc<ClusterLayout>, address: &str| {
            layout.node_of(own.id).unwrap().address == address
        };
        let other = RegisteredStore {
            address: "http://127.0.0.1:9".to_owned(),
            ..own.clone()
        };
        let taken = register_start(&*keys, &other, first.incarnation).await;
        assert!(taken.unwrap());
        let taken = followed.wait_for(|layout| is_at(layout, &other.address));
        drop(taken.await.unwrap());
        let mut seen = followed.clone();
        tokio::select! {
            ended = first.keep_registered(followed.clone()) => panic!("{ended}"),
            back = seen.wait_for(|layout| is_at(layout, &own.address)) => drop(back.unwrap()),
        }

        let second = start(&keys, directory.path(), false).await.unwrap();
        let taken = register_start(&*keys, &other, second.incarnation).await;
        assert!(taken.unwrap());
        let ended = first.keep_registered(followed).await;
        assert!(
            matches!(ended, RegistrationError::Replaced { .. }),
            "{ended}"
        );
    }

    /// RG6.
    #[tokio::test]
    async fn a_node_that_is_taken_out_while_it_runs_ends() {
        let (keys, directory) = (memory(), tempfile::tempdir().unwrap());
        let own = store_of(&Store::claim(directory.path()).unwrap());
        let other = RegisteredStore::new(
            StoreId([9; 16]),
            NodeId::new("n2").unwrap(),
            "http://127.0.0.1:9".to_owned(),
        );
        register(&*keys, &other).await.unwrap();
        let map = plan_evenly(None, std::slice::from_ref(&other.node), 1).unwrap();
        initialize(&*keys, &map, 1, &Corpora::default(), &[])
            .await
            .unwrap();
        register(&*keys, &own).await.unwrap();
        let started = start(&keys, directory.path(), false).await.unwrap();
        let metadata = KeyValueMetadata::follow(Arc::clone(&keys), || {}, |_| {}).await;
        let followed = metadata.unwrap().watch_layout();
        let (revision, _) = published(&*keys, own.id).await.unwrap().unzip();
        let later = unregister(&*keys, &own.node, None).await;
        assert!(matches!(later, Err(MetadataError::Raced)), "it has started");
        let taken_out = async {
            // It has seen itself by then.
            tokio::task::yield_now().await;
            unregister(&*keys, &own.node, revision).await.unwrap();
            pending::<()>().await;
        };
        let ended = tokio::select! {
            biased;
            ended = started.keep_registered(followed) => ended,
            () = taken_out => unreachable!(),
        };
        assert!(matches!(ended, RegistrationError::Removed), "{ended}");
    }

    /// RG2.
    #[tokio::test]
    async fn the_end_of_the_log_is_published_upwards_and_of_the_newest_start_only() {
        let (keys, directory) = (memory(), tempfile::tempdir().unwrap());
        let first = start(&keys, directory.path(), false).await.unwrap();
        assert_eq!(synced(&keys, &first).await, 0);
        for (end, expected) in [(5, 5), (4, 5), (6, 6)] {
            first.publish_last(end).await;
            assert_eq!(synced(&keys, &first).await, expected);
        }
        let refused = start(&keys, directory.path(), false).await.unwrap_err();
        let told = refused.to_string();
        let expected = "its log ends with record 0, and had record 6";
        assert!(told.contains(expected), "{told}");
        let second = start(&keys, directory.path(), true).await.unwrap();
        assert_eq!(synced(&keys, &second).await, 0);
        first.publish_last(7).await;
        assert_eq!(synced(&keys, &second).await, 0);
    }

    #[tokio::test]
    async fn a_refused_directory_is_left_as_it_is() {
        let (keys, directory) = (memory(), tempfile::tempdir().unwrap());
        let file = directory.path().join("incarnations");
        start(&keys, directory.path(), false).await.unwrap();
        let older = fs::read(&file).unwrap();
        for _ in 0..2 {
            start(&keys, directory.path(), false).await.unwrap();
        }
        let newest = fs::read(&file).unwrap();
        fs::write(&file, &older).unwrap();
        let refused = start(&keys, directory.path(), false).await.unwrap_err();
        assert!(refused.to_string().contains("older copy"), "{refused}");
        assert_eq!(fs::read(&file).unwrap(), older);
        fs::write(&file, &newest).unwrap();
        start(&keys, directory.path(), false).await.unwrap();
        // Metadata of an earlier time.
        let refused = start(&memory_with(&keys, &older).await, directory.path(), false).await;
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("the metadata that it had last"), "{told}");
    }

    /// Metadata as it was when a directory had this file, but for that.
    async fn memory_with(keys: &Arc<dyn KeyValueStore>, file: &[u8]) -> Arc<dyn KeyValueStore> {
        let pair = keys.read("").await.unwrap().pairs.remove(0);
        let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        let text = format!(
            "{{\"incarnation\":{},\"nonce\":\"{:016x}\",\"synced\":0}}",
            number(32),
            number(40)
        );
        let older = memory();
        let put = Transaction::new().put(pair.key, text);
        let _ = older.commit(&put).await.unwrap();
        older
    }
}
