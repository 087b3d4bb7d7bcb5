//! The router decides for whole batches what [`Write`] decides for one document in one shard. Both follow the same random
//! answers here, and must agree (QW1, QW2).

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use simshard_proto::{Documents, bits_from, shards_from};
use simshard_simhash::Fingerprint;
use simshard_topology::replication::{Epoch, Outcome, ShardRecord, State, StoreId, Write, decide};
use simshard_topology::{NodeId, ShardId, ShardSet, Version};

use super::*;

const STORES: u8 = 4;
const SHARDS: u8 = 3;
const DOCUMENTS: usize = 3;

/// Rounds after which a request gives up.
const ROUNDS: usize = 6;

const CHANGE: State = State {
    version: Version(10),
    live: true,
};

/// Choices that a test makes. After the last one it takes the first of all there is.
struct Choices(std::vec::IntoIter<u8>);

impl Choices {
    fn one_of(&mut self, count: u8) -> u8 {
        self.0.next().unwrap_or_default() % count
    }

    /// Some numbers below `count`, at least one.
    fn some(&mut self, count: u8) -> Vec<u8> {
        let bits = 1 + self.one_of((1 << count) - 1);
        (0..count).filter(|place| bits & 1 << place != 0).collect()
    }
}

/// An element of a store: in a shard, of a document.
type Place = (ShardId, usize);

/// A request on its way, as the router and the rule see it.
struct Scene {
    choices: Choices,
    /// The shards of each document.
    shards_of: Vec<ShardSet>,
    records: BTreeMap<ShardId, ShardRecord>,
    /// What stores have.
    states: BTreeMap<(u8, Place), State>,
    writes: BTreeMap<Place, Write>,
    progress: ChangeProgress,
    meant: ShardSet,
}

fn shards() -> impl Iterator<Item = ShardId> {
    (0..SHARDS).map(ShardId)
}

fn id(store: u8) -> StoreId {
    StoreId([store; 16])
}

fn node(store: u8) -> NodeId {
    NodeId::new(&format!("n{store}")).unwrap()
}

impl Scene {
    fn new(mut choices: Choices) -> Self {
        let mut shards_of = || choices.some(SHARDS).into_iter().map(ShardId).collect();
        let shards_of: Vec<ShardSet> = (0..DOCUMENTS).map(|_| shards_of()).collect();
        let places = shards().flat_map(|shard| (0..DOCUMENTS).map(move |place| (shard, place)));
        let stored = places.filter(|(shard, place)| shards_of[*place].contains(*shard));
        let mut scene = Self {
            writes: stored.map(|place| (place, Write::new(CHANGE))).collect(),
            shards_of,
            records: BTreeMap::new(),
            states: BTreeMap::new(),
            progress: ChangeProgress::new(DOCUMENTS),
            meant: ShardSet::ALL,
            choices,
        };
        for shard in shards() {
            let stores: Vec<StoreId> = scene.choices.some(STORES).into_iter().map(id).collect();
            scene
                .records
                .insert(shard, ShardRecord::first(0, &stores, 7));
        }
        scene
    }

    /// Some records are replaced by others.
    fn change_records(&mut self) {
        for record in self.records.values_mut() {
            if self.choices.one_of(2) == 0 {
                continue;
            }
            let epoch = record.epoch.next();
            let stores: Vec<StoreId> = self.choices.some(STORES).into_iter().map(id).collect();
            *record = ShardRecord::first(0, &stores, 7);
            record.epoch = epoch;
        }
    }

    /// The part of a node by the records; none if it has none.
    fn part(&self, store: u8) -> Option<NodePart> {
        let names = |shard: &ShardId| {
            let record = self.records.get(shard);
            record.is_some_and(|record| record.write_set().any(|named| named == id(store)))
        };
        let named: ShardSet = self.meant.iter().filter(names).collect();
        let is_stored = |place: &u32| {
            let all = self.shards_of[*place as usize];
            all.iter().any(|shard| named.contains(shard))
        };
        let part = NodePart {
            shards: named,
            places: (0..DOCUMENTS as u32).filter(is_stored).collect(),
        };
        (!part.places.is_empty()).then_some(part)
    }

    /// What a store does with a part: it is lost, has other records, or takes some shards.
    fn answer(&mut self, store: u8, part: &NodePart) -> Result<pb::Changed, CallError> {
        match self.choices.one_of(5) {
            1 => return Err(CallError::Unreachable),
            2 => return Err(CallError::WrongEpoch),
            _ => {}
        }
        let is_refused = |_: &ShardId| self.choices.one_of(4) == 1;
        let refused: ShardSet = part.shards.iter().filter(is_refused).collect();
        let (mut changed, mut newer) = (Vec::new(), BTreeMap::<u32, Version>::new());
        for (place, &document) in (0..).zip(&part.places) {
            let taken = part.shards.difference(&refused);
            let stored = self.shards_of[document as usize];
            for shard in taken.iter().filter(|shard| stored.contains(*shard)) {
                match self.take(store, (shard, document as usize)) {
                    Outcome::Done => changed.push(place),
                    Outcome::Newer(version) => {
                        let highest = newer.entry(place).or_default();
                        *highest = version.max(*highest);
                    }
                }
            }
        }
        changed.dedup();
        Ok(pb::Changed {
            documents: bits_from(part.places.len(), &changed),
            newer_documents: newer.keys().copied().collect(),
            newer_versions: newer.values().map(|version| version.0).collect(),
            refused_shards: shards_from(refused),
        })
    }

    /// A store applies the change to an element. The rule hears of it.
    fn take(&mut self, store: u8, place: Place) -> Outcome {
        let versions = [0, 0, 0, 5, 10, 11, 12];
        let version = versions[usize::from(self.choices.one_of(7))];
        let before = State {
            version: Version(version),
            live: self.choices.one_of(2) == 0,
        };
        let state = self.states.entry((store, place)).or_insert(before);
        let outcome = decide(state, CHANGE);
        let epoch: Epoch = self.records[&place.0].epoch;
        let write = self.writes.get_mut(&place).unwrap();
        write.answered(id(store), epoch, CHANGE, outcome);
        outcome
    }

    /// One round. Answers whether it was the last.
    fn round(&mut self) -> bool {
        let mut failures = Failures::default();
        let mut unanswered = ShardSet::EMPTY;
        for store in 0..STORES {
            let Some(part) = self.part(store) else {
                continue;
            };
            let answer = self.answer(store, &part);
            let refused = match &answer {
                Ok(changed) => shards_into(&changed.refused_shards).unwrap(),
                Err(_) => part.shards,
            };
            unanswered = unanswered.union(&refused);
            let taken = self
                .progress
                .take(&mut failures, &node(store), &part, answer);
            taken.unwrap();
        }
        let left = left_over(&failures);
        assert_eq!(left, unanswered);
        assert_eq!(left.is_empty(), failures.is_empty());
        for ((shard, document), write) in &self.writes {
            if self.meant.contains(*shard) && !left.contains(*shard) {
                let is_taken = write.may_acknowledge(&self.records[shard]);
                assert!(
                    is_taken || write.outdone_by().is_some(),
                    "{shard} {document}"
                );
            }
        }
        self.meant = left;
        left.is_empty()
    }

    /// What the router does next, once all shards have taken the change.
    fn end(self) {
        let mut newest = BTreeMap::new();
        for ((_, document), write) in &self.writes {
            if let Some(version) = write.outdone_by() {
                let highest = newest.entry(*document).or_insert(version);
                *highest = version.max(*highest);
            }
        }
        assert_eq!(self.progress.newer, newest);
        let ids: Vec<String> = (0..DOCUMENTS).map(|place| place.to_string()).collect();
        let again: Vec<String> = newest.keys().map(|place| ids[*place].clone()).collect();
        let documents = Documents {
            fingerprints: (0..DOCUMENTS as u64).map(Fingerprint).collect(),
            ids,
        };
        let pending = Pending::new(Arc::new(documents));
        match pending.sent(0, self.progress.newer, |_| Some(Stamp::Reading)) {
            Next::Send(rest) => assert_eq!(rest.documents().ids, again),
            Next::Answer(answer) => assert!(answer.is_ok() && again.is_empty()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_batch_is_acknowledged_where_the_rule_acknowledges_each_change(
        choices in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut scene = Scene::new(Choices(choices.into_iter()));
        for _ in 0..ROUNDS {
            if scene.round() {
                scene.end();
                break;
            }
            scene.change_records();
        }
    }
}
