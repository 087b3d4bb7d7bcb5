//! The nodes of a cluster, and what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::{
    MetadataError, NodeSettings, RegisteredStore, SettingsOfNodes, node_settings, registered_stores,
};
use simshard_node::{StoreAnswer, StoreNews, ask_store, ask_store_to_count};
use simshard_topology::replication::{Epoch, ShardRecord, StoreId};
use simshard_topology::{Candidate, CorpusUid, NodeId, ShardId};
use tokio::time::{Instant, sleep};

use crate::{Admin, AdminError};

/// A node that does not answer in this time is asked again.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a node is asked before it counts as silent.
const ATTEMPTS: u32 = 3;

/// The stores that have registered, and what those answer that live.
#[derive(Debug)]
pub struct Cluster {
    /// Those that have registered.
    pub stores: BTreeMap<StoreId, RegisteredStore>,
    /// What those answer that live.
    answers: BTreeMap<StoreId, StoreAnswer>,
    settings: SettingsOfNodes,
}

/// The epochs of the shards that a store has on disk.
pub type Reports = BTreeMap<ShardId, Epoch>;

impl Cluster {
    /// Asks all stores that have registered.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn ask(admin: &Admin<'_>) -> Result<Self, MetadataError> {
        let stores = registered_stores(admin.keys).await?.into_iter();
        let stores: BTreeMap<_, _> = stores.map(|store| (store.id, store)).collect();
        let answers: Vec<_> = stores
            .values()
            .map(|store| admin.counted_answer_of(store))
            .collect();
        let answers = join_all(answers).await;
        let answers = stores.keys().zip(answers);
        let answers = answers.filter_map(|(&store, answer)| Some((store, answer?)));
        Ok(Self {
            answers: answers.collect(),
            settings: settings(admin).await?,
            stores,
        })
    }

    /// Stores of which some answer.
    #[cfg(test)]
    pub(crate) fn of_test(
        stores: Vec<RegisteredStore>,
        answers: BTreeMap<StoreId, StoreAnswer>,
        settings: SettingsOfNodes,
    ) -> Self {
        Self {
            stores: stores.into_iter().map(|store| (store.id, store)).collect(),
            answers,
            settings,
        }
    }

    /// What a store told, to be changed.
    #[cfg(test)]
    pub(crate) fn told_of(&mut self, store: StoreId) -> &mut StoreNews {
        match self.answers.get_mut(&store) {
            Some(StoreAnswer::News(news)) => news,
            Some(StoreAnswer::Busy) | None => panic!("it told nothing"),
        }
    }

    /// Puts a node in a zone.
    #[cfg(test)]
    pub(crate) fn put_in_zone(&mut self, node: &NodeId, zone: &str) {
        let settings = self.settings.entry(node.clone()).or_default();
        settings.zone = Some(zone.to_owned());
    }

    /// The zones and capacities that plans are drawn for, of nodes that have any.
    pub(crate) fn settings_for_plans(&self) -> SettingsOfNodes {
        let settings = self.settings.iter();
        let settings = settings.map(|(node, settings)| (node.clone(), settings.for_plans()));
        settings
            .filter(|(_, settings)| *settings != NodeSettings::default())
            .collect()
    }

    /// Whether a node is to take no shards.
    pub(crate) fn is_drained(&self, node: &NodeId) -> bool {
        let settings = self.settings.get(node);
        settings.is_some_and(|settings| settings.is_drained)
    }

    /// A node as plans see it.
    pub(crate) fn candidate(&self, node: NodeId) -> Candidate {
        let settings = self.settings.get(&node);
        let candidate = Candidate::new(node);
        let Some(settings) = settings else {
            return candidate;
        };
        let candidate = match settings.capacity {
            Some(capacity) => candidate.with_capacity(capacity),
            None => candidate,
        };
        match &settings.zone {
            Some(zone) => candidate.in_zone(zone),
            None => candidate,
        }
    }

    /// The documents of a shard. `None` if no hot replica that answers searches has counted them.
    #[must_use]
    pub fn documents(&self, shard: ShardId, record: &ShardRecord) -> Option<u64> {
        let is_built = |news: &StoreNews| {
            !news.unbuilt.contains(shard) && epoch_of(news, shard) >= record.epoch
        };
        // A store tells of the shards that have documents, once it has tables of them.
        let of_store = |store: StoreId| {
            let news = self.news(store)?;
            match news.document_counts.as_ref()?.get(&shard) {
                Some(documents) => Some(*documents),
                None => is_built(news).then_some(0),
            }
        };
        let hot = record.in_sync.iter().filter(|entry| entry.hot);
        hot.filter_map(|entry| of_store(entry.store)).max()
    }

    /// The bytes of a shard: of the replica in sync that has most. 0 if none has told.
    pub(crate) fn bytes(&self, shard: ShardId, record: &ShardRecord) -> u64 {
        let stores = record.in_sync.iter().map(|entry| entry.store);
        let bytes = stores.filter_map(|store| self.news(store)?.stored_bytes.get(&shard));
        bytes.copied().max().unwrap_or(0)
    }

    /// How many megabytes of copies a second a node may receive, or send, if an operator has limited that.
    pub(crate) fn copy_rate(&self, node: &NodeId) -> Option<NonZeroU32> {
        self.settings.get(node)?.copy_rate
    }

    /// Whether a store has room for copies of shards that it never held, as far as it has told.
    pub(crate) fn has_room(&self, store: StoreId) -> bool {
        self.news(store).is_none_or(|news| news.has_room_for_copies)
    }

    /// Whether a store answered. One that was too busy to tell more did.
    #[must_use]
    pub fn answers(&self, store: StoreId) -> bool {
        self.answers.contains_key(&store)
    }

    /// Whether a store answered that it is too busy to tell more.
    #[must_use]
    pub fn is_busy(&self, store: StoreId) -> bool {
        matches!(self.answers.get(&store), Some(StoreAnswer::Busy))
    }

    /// The stores that answered.
    pub fn answering(&self) -> impl Iterator<Item = StoreId> {
        self.answers.keys().copied()
    }

    /// The epoch of a shard that a store has on disk, if it told.
    #[must_use]
    pub fn report(&self, shard: ShardId, store: StoreId) -> Option<Epoch> {
        Some(epoch_of(self.news(store)?, shard))
    }

    /// Whether a shard cannot go on by itself. No operator is to act on what a busy store may know.
    #[must_use]
    pub fn is_stuck(&self, shard: ShardId, record: &ShardRecord) -> bool {
        is_stuck(shard, record, |store| self.answers.get(&store))
    }

    /// What a store told.
    pub(crate) fn news(&self, store: StoreId) -> Option<&StoreNews> {
        self.answers.get(&store)?.news()
    }

    /// What a store is called: by its node, if it has registered.
    #[must_use]
    pub fn name(&self, store: StoreId) -> String {
        let registered = self.stores.get(&store);
        registered.map_or_else(|| store.to_string(), |store| store.node.to_string())
    }

    /// What stores are called, with commas between.
    pub fn names(&self, stores: impl Iterator<Item = StoreId>) -> String {
        let names: BTreeSet<String> = stores.map(|store| self.name(store)).collect();
        Vec::from_iter(names).join(",")
    }

    /// The same for a sentence: those that have registered no more have no name that an operator knows.
    pub fn told(&self, stores: impl Iterator<Item = StoreId>) -> String {
        told(stores.map(|store| Some(&self.stores.get(&store)?.node))).join(",")
    }

    /// The store of a node.
    ///
    /// # Errors
    /// [`AdminError::UnknownNode`] if no node of this name has registered.
    pub fn of_node(&self, name: &NodeId) -> Result<&RegisteredStore, AdminError> {
        known(self.stores.values(), name)
    }
}

impl Admin<'_> {
    /// Refuses a node that has not registered.
    pub(crate) async fn check_known(&self, node: &NodeId) -> Result<(), AdminError> {
        let stores = registered_stores(self.keys).await?;
        known(stores.iter(), node).map(|_| ())
    }
}

/// What nodes are called in a sentence, in order. Those that have registered no more were removed, or replaced.
pub(crate) fn told<'a>(nodes: impl Iterator<Item = Option<&'a NodeId>>) -> Vec<String> {
    let names = nodes.map(|node| node.map_or("data that no node has now", NodeId::as_str));
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The store of a node, among those that have registered.
pub(crate) fn known<'a>(
    mut stores: impl Iterator<Item = &'a RegisteredStore> + Clone,
    name: &NodeId,
) -> Result<&'a RegisteredStore, AdminError> {
    let others = stores.clone();
    stores.find(|store| store.node == *name).ok_or_else(|| {
        let others: BTreeSet<&str> = others.map(|store| store.node.as_str()).collect();
        let there_are = match Vec::from_iter(others).join(",") {
            none if none.is_empty() => "there are none".to_owned(),
            names => format!("there are {names}"),
        };
        AdminError::UnknownNode(format!("no node {name} has registered: {there_are}"))
    })
}

/// What is set for nodes. Warns of settings that are not understood.
pub(crate) async fn settings(admin: &Admin<'_>) -> Result<SettingsOfNodes, MetadataError> {
    node_settings(admin.keys, |error| admin.warn_of_bad(error)).await
}

/// The epoch of a shard that a store has on disk.
pub(crate) fn epoch_of(news: &StoreNews, shard: ShardId) -> Epoch {
    news.epochs.get(&shard).copied().unwrap_or(Epoch::NONE)
}

/// Whether a shard cannot go on by itself. A store that is too busy to tell lives, and counts as one with the record.
pub(crate) fn is_stuck<'a>(
    shard: ShardId,
    record: &ShardRecord,
    answer: impl Fn(StoreId) -> Option<&'a StoreAnswer>,
) -> bool {
    record.is_stuck(|store| {
        let news = answer(store)?.news();
        Some(news.map_or(record.epoch, |news| epoch_of(news, shard)))
    })
}

impl Admin<'_> {
    /// What a store answers that lives.
    pub(crate) async fn answer_of(&self, store: &RegisteredStore) -> Option<StoreAnswer> {
        patiently(|| ask_store(self.dialer, &store.address, store.id, ANSWER_TIMEOUT)).await
    }

    /// The same of a store that also counts the documents of its shards.
    async fn counted_answer_of(&self, store: &RegisteredStore) -> Option<StoreAnswer> {
        let ask = || ask_store_to_count(self.dialer, &store.address, store.id, ANSWER_TIMEOUT);
        patiently(ask).await
    }

    /// The corpora that stores hold, and the stores that have not told it now: what they said when they registered counts.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn held_corpora(&self) -> Result<(BTreeSet<CorpusUid>, Vec<StoreId>), MetadataError> {
        let asked = self.ask_all().await?;
        let news =
            |answer: &Option<StoreAnswer>| answer.as_ref().is_some_and(|one| one.news().is_some());
        let silent = asked.iter().filter(|(_, answer)| !news(answer));
        let silent = silent.map(|(store, _)| store.id).collect();
        Ok((held_corpora(&asked), silent))
    }

    /// What a store has on disk, if it tells at once.
    pub async fn reports_of(&self, store: &RegisteredStore) -> Option<Reports> {
        match ask_store(self.dialer, &store.address, store.id, ANSWER_TIMEOUT).await? {
            StoreAnswer::Busy => None,
            StoreAnswer::News(news) => Some(news.epochs),
        }
    }
}

/// The corpora that these stores hold. Those that do not answer have said it when they registered.
pub(crate) fn held_corpora(
    asked: &[(RegisteredStore, Option<StoreAnswer>)],
) -> BTreeSet<CorpusUid> {
    let news = asked
        .iter()
        .filter_map(|(_, answer)| answer.as_ref()?.news());
    let now = news.flat_map(|news| news.corpora.iter().copied());
    let before = asked.iter().flat_map(|(store, _)| store.corpora.clone());
    now.chain(before).collect()
}

/// Asks several times if there is no answer, or one that tells nothing: a node that is late or busy for a moment is no
/// dead node.
async fn patiently<F: Future<Output = Option<StoreAnswer>>>(
    ask: impl Fn() -> F,
) -> Option<StoreAnswer> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let asked = Instant::now();
        match ask().await {
            Some(news @ StoreAnswer::News(_)) => return Some(news),
            Some(busy @ StoreAnswer::Busy) => last = Some(busy),
            None => {}
        }
        // A connection that is refused fails at once.
        sleep(ANSWER_TIMEOUT.saturating_sub(asked.elapsed())).await;
    }
    last
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use simshard_topology::ShardSet;

    use super::*;

    /// What a store tells that has room and the tables of all shards, by what it has on disk.
    pub(crate) fn news(epochs: Reports) -> StoreNews {
        StoreNews {
            epochs,
            lacks_room: false,
            has_room_for_copies: true,
            bytes_for_copies: None,
            unbuilt: ShardSet::EMPTY,
            damaged: ShardSet::EMPTY,
            document_counts: None,
            stored_bytes: BTreeMap::new(),
            corpora: BTreeSet::new(),
        }
    }

    /// An operator acts on nodes that are dead.
    #[test]
    fn a_store_that_is_too_busy_to_tell_answers_and_what_it_has_is_unknown() {
        let stores = [1, 2].map(|id| StoreId([id; 16]));
        let answers = BTreeMap::from([
            (stores[0], StoreAnswer::News(news(Reports::new()))),
            (stores[1], StoreAnswer::Busy),
        ]);
        let cluster = Cluster::of_test(Vec::new(), answers, SettingsOfNodes::new());
        assert!(stores.iter().all(|store| cluster.answers(*store)));
        assert_eq!(cluster.answering().count(), 2);
        let report = |store| cluster.report(ShardId(7), store);
        assert_eq!(stores.map(report), [Some(Epoch::NONE), None]);
        let record = ShardRecord::first(0, &stores, 1);
        assert!(!cluster.is_stuck(ShardId(7), &record));
        // The forced record waits until the busy store may have it.
        let forced = record.forced(stores[1], 2, |_| true).unwrap();
        assert!(!cluster.is_stuck(ShardId(7), &forced));
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_node_is_asked_again_and_lives_if_it_stays_busy() {
        let asked = Cell::new(0);
        let busy_until = |last: u32| {
            let asked = &asked;
            move || {
                asked.set(asked.get() + 1);
                let is_busy = asked.get() < last;
                let told = || StoreAnswer::News(news(Reports::new()));
                ready(Some(if is_busy { StoreAnswer::Busy } else { told() }))
            }
        };
        let answer = patiently(busy_until(2)).await.unwrap();
        assert!(answer.news().is_some() && asked.get() == 2);
        let answer = patiently(busy_until(u32::MAX)).await.unwrap();
        assert!(answer.news().is_none());
        assert!(patiently(|| ready(None)).await.is_none());
    }
}
