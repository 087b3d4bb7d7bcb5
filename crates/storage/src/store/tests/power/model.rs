//! What a store must hold: corpora, and the newest state of every element, tombstones among them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use simshard_simhash::{Fingerprint, Layout, Tables};
use simshard_topology::replication::Epoch;
use simshard_topology::{CorpusUid, ShardId};

use super::super::shards_of;
use super::owned;
use crate::element::{Change, Operation, State};
use crate::merge::{Cursor, Merge};
use crate::store::Store;

/// Corpora and elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) corpora: BTreeMap<CorpusUid, Layout>,
    elements: BTreeMap<(CorpusUid, ShardId, Fingerprint, String), State>,
    /// Of the records that are installed.
    epochs: BTreeMap<ShardId, Epoch>,
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
            let epoch = store.epoch(shard);
            if epoch != Epoch::NONE {
                model.epochs.insert(shard, epoch);
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
                let epochs = installed
                    .iter()
                    .map(|(shard, record)| (*shard, record.epoch));
                self.epochs.extend(epochs);
            }
        }
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
