//! A store with a writer, and a map that tells what must be in it.

mod absent;
mod cells;
mod copies;
mod create;
mod drops;
mod failure;
mod floors;
mod hanging;
mod ids;
mod inspect;
mod installs;
mod limits;
mod model;
mod open;
mod power;
mod scrub;
mod shortage;
mod upkeep;
mod versions;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use parking_lot::Mutex;
use simshard_simhash::{Documents, Fingerprint, Layout, Tables};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::upkeep::{Trim, Upkeep};
use super::{Options, PageStart, Store};
use crate::element::{Change, ChangeKind, Operation, State};
use crate::shard::Effects;
use crate::stored::SharedChange;
use crate::writer::{Failure, Refusal, Sink, Writer};

const CORPUS: CorpusUid = CorpusUid([1; 16]);

fn layout() -> Layout {
    Layout::new(5, 3).unwrap()
}

/// Few, as each that changes makes a file at each flush.
fn owned() -> ShardSet {
    (0..6).map(ShardId).collect()
}

/// One of a few hundred fingerprints whose home is owned.
fn fingerprint(number: u64) -> u64 {
    let home = number % 6;
    home << 56 | number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}

/// Little memory, so that much is flushed and compacted.
fn small() -> Options {
    Options {
        memtable_bytes: 20_000,
        cache_bytes: 1 << 20,
        ..Options::default()
    }
}

/// Applies changes as a node would: for tables it counts the live documents of each fingerprint.
struct Applier {
    store: Arc<Store>,
    tables: Tables,
    live: Mutex<BTreeMap<(ShardId, Fingerprint), i64>>,
    failed: Mutex<Option<Failure>>,
}

impl Applier {
    fn new(store: &Arc<Store>) -> Self {
        let mut live = BTreeMap::new();
        for shard in owned().iter() {
            let count = |fingerprint, _: &str| *live.entry((shard, fingerprint)).or_default() += 1;
            store.scan(shard, CORPUS, count).unwrap();
        }
        Self {
            store: Arc::clone(store),
            tables: Tables::new(layout()),
            live: Mutex::new(live),
            failed: Mutex::default(),
        }
    }

    fn apply(&self, shard: ShardId, change: &Change, places: &[u32]) -> Effects {
        let mut live = self.live.lock();
        let is_stored = |fingerprint| {
            live.get(&(shard, fingerprint))
                .is_some_and(|count| *count > 0)
        };
        let effects = self
            .store
            .apply(shard, &SharedChange::new(change), places, is_stored);
        assert!(effects.error.is_none(), "{effects:?}");
        for &place in &effects.changed {
            let fingerprint = change.documents.fingerprints[place as usize];
            let count = live.entry((shard, fingerprint)).or_default();
            *count += if change.kind == ChangeKind::Insert {
                1
            } else {
                -1
            };
            assert!(*count >= 0, "{fingerprint:?} went twice");
        }
        effects
    }
}

type Ticket = Sender<Result<(usize, Version), Refusal>>;

impl Sink<Ticket> for Applier {
    fn committed(&self, batch: Vec<(Operation, Ticket)>) {
        for (operation, ticket) in batch {
            let mut changed = 0;
            let mut newer = Version::NONE;
            if let Operation::Change(change) = &operation
                && self.store.holds(change.corpus)
            {
                for shard in change.shards.iter() {
                    let places: Vec<u32> = (0..)
                        .zip(&change.documents.fingerprints)
                        .filter(|(_, f)| shards_of(&self.tables, **f).contains(shard))
                        .map(|(place, _)| place)
                        .collect();
                    let effects = self.apply(shard, change, &places);
                    changed += effects.changed.len();
                    newer = effects
                        .newer
                        .iter()
                        .fold(newer, |newer, (_, one)| newer.max(*one));
                }
            }
            let _ = ticket.send(Ok((changed, newer)));
        }
    }

    fn installed(&self, others: ShardSet) {
        let mut live = self.live.lock();
        live.retain(|(shard, _), _| !others.contains(*shard));
        for shard in others.intersection(&owned()).iter() {
            let count = |fingerprint, _: &str| *live.entry((shard, fingerprint)).or_default() += 1;
            self.store.scan(shard, CORPUS, count).unwrap();
        }
    }

    fn refused(&self, tickets: Vec<Ticket>, refusal: Refusal) {
        for ticket in tickets {
            let _ = ticket.send(Err(refusal));
        }
    }

    fn failed(&self, _: Vec<Ticket>, failure: Failure) {
        *self.failed.lock() = Some(failure);
    }
}

fn shards_of(tables: &Tables, fingerprint: Fingerprint) -> ShardSet {
    tables.document_shards(fingerprint).map(ShardId).collect()
}

/// A store with a writer, and what must be in it.
struct Fixture {
    store: Arc<Store>,
    writer: Writer<Ticket>,
}

impl Fixture {
    fn open(directory: &Path) -> Self {
        Self::start(Store::open(directory, owned(), small()).unwrap())
    }

    fn start(store: Store) -> Self {
        let store = Arc::new(store);
        let applier = Applier::new(&store);
        let writer = Writer::start(&store, applier).unwrap();
        Self { store, writer }
    }

    fn run(&self, operation: Operation) -> (usize, Version) {
        let (ticket, outcome) = channel();
        self.writer.append(operation, ticket).unwrap();
        outcome.recv().unwrap().unwrap()
    }

    fn create(&self) {
        let layout = layout();
        self.run(Operation::CreateCorpus {
            uid: CORPUS,
            layout,
        });
    }

    /// Writes everything to segments, and compacts.
    fn flush(&self) {
        let mut upkeep = self.upkeep(&|_| Ok(()));
        upkeep.flush().unwrap();
        while upkeep.compact_one().unwrap().is_some() {}
    }

    /// What the thread of the store does, to be done here.
    fn upkeep<'a>(&'a self, trim: &'a Trim<'a>) -> Upkeep<'a> {
        self.store.upkeep(self.store.disk.as_ref().unwrap(), trim)
    }

    /// Live documents of every shard: by one scan, and by pages of any size.
    fn contents(&self) -> BTreeMap<(u8, u64, String), ()> {
        let mut contents = BTreeMap::new();
        for shard in owned().iter() {
            let mut scanned = Vec::new();
            let visit = |fingerprint: Fingerprint, id: &str| {
                scanned.push((shard.0, fingerprint.0, id.to_owned()));
            };
            self.store.scan(shard, CORPUS, visit).unwrap();
            for most in [1, 7, 10_000] {
                assert_eq!(self.paged(shard, most), scanned, "PA1: {shard}, {most}");
            }
            contents.extend(scanned.into_iter().map(|document| (document, ())));
        }
        contents
    }

    fn paged(&self, shard: ShardId, most: usize) -> Vec<(u8, u64, String)> {
        let mut paged = Vec::new();
        let mut next = Some(PageStart::of(Fingerprint(0)));
        while let Some(start) = next {
            let visit = |fingerprint: Fingerprint, id: &str| {
                paged.push((shard.0, fingerprint.0, id.to_owned()));
            };
            let last = Fingerprint(u64::MAX);
            let page = self.store.page(shard, CORPUS, &start, last, most, visit);
            next = page.unwrap();
        }
        paged
    }
}

fn change(kind: ChangeKind, version: u64, documents: &[(u64, &str)]) -> Change {
    let fingerprints = documents.iter().map(|(f, _)| Fingerprint(*f)).collect();
    let ids = documents.iter().map(|(_, id)| (*id).to_owned()).collect();
    Change {
        kind,
        corpus: CORPUS,
        version: Version(version),
        shards: owned(),
        documents: Documents { fingerprints, ids },
    }
}

/// What a store must hold: the newest state of every document.
#[derive(Default)]
struct Model(BTreeMap<(u64, String), State>);

impl Model {
    /// Takes a change; how many elements of all owned shards became live, or ceased to be.
    fn take(&mut self, change: &Change) -> usize {
        let tables = Tables::new(layout());
        let mut changed = 0;
        for (place, fingerprint) in change.documents.fingerprints.iter().enumerate() {
            let key = (fingerprint.0, change.documents.id(place).to_owned());
            let state = self.0.entry(key).or_insert(State::NEVER);
            let before = *state;
            *state = change.state().max(before);
            if state.live != before.live {
                changed += shards_of(&tables, *fingerprint)
                    .intersection(&owned())
                    .len();
            }
        }
        changed
    }

    fn contents(&self) -> BTreeMap<(u8, u64, String), ()> {
        let tables = Tables::new(layout());
        let mut contents = BTreeMap::new();
        for ((fingerprint, id), _) in self.0.iter().filter(|(_, state)| state.live) {
            let shards = shards_of(&tables, Fingerprint(*fingerprint));
            for shard in shards.intersection(&owned()).iter() {
                contents.insert((shard.0, *fingerprint, id.clone()), ());
            }
        }
        contents
    }
}

/// Changes of few documents, so that they meet, with versions that do not always ascend: some are of routers whose
/// clocks are far behind.
fn random_change(random: &mut fastrand::Rng, version: u64) -> Change {
    let kind = match random.u8(0..3) {
        0 => ChangeKind::Remove,
        _ => ChangeKind::Insert,
    };
    let ids = ["", "a", "b", "a longer id than most others have"];
    let documents: Vec<(u64, &str)> = (0..random.usize(1..20))
        .map(|_| {
            let fingerprint = fingerprint(random.u64(0..300));
            (fingerprint, ids[random.usize(0..ids.len())])
        })
        .collect();
    let behind = if random.u8(0..4) == 0 { 600 } else { 5 };
    let version = version.saturating_sub(random.u64(0..behind)).max(1);
    change(kind, version, &documents)
}

fn insert(fixture: &Fixture, version: u64, documents: &[(u64, &str)]) -> (usize, Version) {
    fixture.run(Operation::Change(change(
        ChangeKind::Insert,
        version,
        documents,
    )))
}

fn remove(fixture: &Fixture, version: u64, documents: &[(u64, &str)]) -> (usize, Version) {
    fixture.run(Operation::Change(change(
        ChangeKind::Remove,
        version,
        documents,
    )))
}
