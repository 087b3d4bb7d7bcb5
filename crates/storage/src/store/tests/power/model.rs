//! What a store must hold: corpora, and the newest state of every element, tombstones among them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use simshard_simhash::{Fingerprint, Layout, Tables};
use simshard_topology::replication::{Epoch, Role, ShardRecord};
use simshard_topology::{CorpusUid, ShardId, Version};

use super::super::shards_of;
use super::{IDS, fingerprint, owned};
use crate::element::{Change, Operation, ShardCopy, State};
use crate::merge::{Cursor, Merge};
use crate::store::Store;

/// Corpora and elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) corpora: BTreeMap<CorpusUid, Layout>,
    elements: BTreeMap<(CorpusUid, ShardId, Fingerprint, String), State>,
    /// Of the records that are installed, and what the store does by them.
    records: BTreeMap<ShardId, (Epoch, Role)>,
}

impl Model {
    /// All that a store holds.
    pub(super) fn of(store: &Store) -> Self {
        let corpora = store.corpora().into_iter();
        let corpora = corpora.map(|corpus| (corpus.uid, corpus.layout));
        let mut model = Self {
            corpora: corpora.collect(),
            ..Self::default()
        };
        for shard in owned().iter() {
            model.add_shard(store, shard);
            if let Some(role) = store.role(shard) {
                model.records.insert(shard, (store.epoch(shard), role));
            }
        }
        model
    }

    fn add_shard(&mut self, store: &Store, id: ShardId) {
        let shard = store.read(id).unwrap();
        let mut streams: Vec<Box<dyn Cursor + '_>> = Vec::new();
        for segment in &*shard.segments {
            let scan = segment.scan_all(|corpus| self.corpora.contains_key(&corpus));
            streams.push(Box::new(scan.unwrap()));
        }
        for table in [&*shard.frozen, &shard.memtable] {
            streams.push(Box::new(table.cursor(|corpus| store.holds(corpus))));
        }
        let mut merged = Merge::new(streams);
        while let Some((corpus, element)) = merged.element() {
            let key = (corpus, id, element.fingerprint, element.id.to_owned());
            self.elements.insert(key, element.into());
            merged.advance().unwrap();
        }
    }

    /// Does what an operation says.
    pub(super) fn take(&mut self, operation: &Operation) {
        match operation {
            Operation::CreateCorpus { uid, layout } => drop(self.corpora.insert(*uid, *layout)),
            Operation::DropCorpus { uid } => {
                self.corpora.remove(uid);
                self.elements.retain(|(corpus, ..), _| corpus != uid);
            }
            Operation::Change(change) => self.change(change),
            Operation::Install(installed) => {
                for (shard, record) in installed {
                    self.install(*shard, record);
                }
            }
            Operation::Copied(copy) => {
                let (ShardCopy { shard, added, .. }, corpora) = (copy, self.corpora.clone());
                self.records.get_mut(shard).unwrap().1 = Role::Copied { added: *added };
                for (corpus, fingerprint, id, state) in copied(corpora, *shard, *added) {
                    let key = (corpus, *shard, fingerprint, id.to_owned());
                    let there = self.elements.entry(key).or_insert(state);
                    *there = state.max(*there);
                }
            }
        }
    }

    /// A store that was not a learner of this addition begins anew.
    fn install(&mut self, shard: ShardId, record: &ShardRecord) {
        let before = self.records.get(&shard).map(|(_, role)| *role);
        let role = match (&record.in_sync[..], record.learners.first()) {
            ([_, _], _) => Role::InSync,
            (_, None) => Role::None,
            (_, Some(learner)) => {
                let added = learner.added;
                let (copying, copied) = (Role::Copying { added }, Role::Copied { added });
                if before == Some(copied) {
                    copied
                } else {
                    if before != Some(copying) {
                        self.elements.retain(|(_, id, ..), _| *id != shard);
                    }
                    copying
                }
            }
        };
        self.records.insert(shard, (record.epoch, role));
    }

    fn change(&mut self, change: &Change) {
        let Some(layout) = self.corpora.get(&change.corpus) else {
            return;
        };
        let tables = tables(*layout);
        for (place, fingerprint) in change.documents.fingerprints.iter().enumerate() {
            let shards = shards_of(tables, *fingerprint).intersection(&change.shards);
            for shard in shards.iter() {
                let id = change.documents.id(place).to_owned();
                let key = (change.corpus, shard, *fingerprint, id);
                let state = self.elements.entry(key).or_insert(State::NEVER);
                *state = change.state().max(*state);
            }
        }
    }
}

/// What a copy has. Each has one element that is always the same, so that a part of what was set aside may be kept. Some
/// outdo all else that there may be; others are older than some of that.
pub(super) fn copied(
    corpora: impl IntoIterator<Item = (CorpusUid, Layout)>,
    shard: ShardId,
    added: Epoch,
) -> Vec<(CorpusUid, Fingerprint, &'static str, State)> {
    let version = if added.number.is_multiple_of(3) {
        Version(added.number - 40)
    } else {
        Version(added.number)
    };
    let mut copied = Vec::new();
    for (uid, layout) in corpora {
        for number in 0..8 {
            let fingerprint = fingerprint(number);
            if !shards_of(tables(layout), fingerprint).contains(shard) {
                continue;
            }
            for id in IDS {
                let live = !(number + added.number).is_multiple_of(4);
                copied.push((uid, fingerprint, id, State { version, live }));
            }
            let same = State {
                version: Version(5),
                live: true,
            };
            copied.push((uid, fingerprint, "same", same));
        }
    }
    copied
}

/// The layouts of corpora. Their tables are made once.
pub(super) fn layouts() -> [Layout; 2] {
    [(5, 3), (4, 2)].map(|(blocks, distance)| Layout::new(blocks, distance).unwrap())
}

/// The tables of one of these layouts.
pub(super) fn tables(layout: Layout) -> &'static Tables {
    static TABLES: LazyLock<[Arc<Tables>; 2]> = LazyLock::new(|| layouts().map(Tables::shared));
    let place = layouts().iter().position(|one| *one == layout);
    &TABLES[place.unwrap()]
}
