//! A store against a map: changes, flushes, compactions, restarts, and copies of a directory at any moment.

mod create;
mod drops;
mod failure;
mod ids;
mod upkeep;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use simshard_simhash::{Fingerprint, Layout, Tables};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};

use super::upkeep::{Trim, Upkeep};
use super::{Options, PageStart, Store};
use crate::element::{Change, ChangeKind, Documents, Operation, State};
use crate::shard::Effects;
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
        let mut live = self.live.lock().unwrap();
        let is_stored = |fingerprint| {
            live.get(&(shard, fingerprint))
                .is_some_and(|count| *count > 0)
        };
        let effects = self.store.apply(shard, change, places, is_stored);
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
                    newer = newer.max(effects.newer);
                }
            }
            let _ = ticket.send(Ok((changed, newer)));
        }
    }

    fn refused(&self, tickets: Vec<Ticket>, refusal: Refusal) {
        for ticket in tickets {
            let _ = ticket.send(Err(refusal));
        }
    }

    fn failed(&self, _: Vec<Ticket>, failure: Failure) {
        *self.failed.lock().unwrap() = Some(failure);
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

/// ST1, ST2, CO1: whatever is flushed and compacted, and however often it starts anew.
#[test]
fn a_store_equals_a_map_through_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    let mut version = 10;
    for round in 0..6 {
        let fixture = Fixture::open(directory.path());
        if round == 0 {
            fixture.create();
        }
        assert_eq!(fixture.contents(), model.contents(), "round {round}");
        for _ in 0..400 {
            version += 1;
            let change = random_change(&mut random, version);
            let expected = model.take(&change);
            let (changed, _) = fixture.run(Operation::Change(change));
            assert_eq!(changed, expected, "round {round}, version {version}");
        }
        assert_eq!(fixture.contents(), model.contents(), "round {round}");
        fixture.writer.close();
    }
    let segments = std::fs::read_dir(directory.path().join("segments"));
    assert!(segments.unwrap().count() > 0, "nothing was flushed");
}

/// ST1: a copy of the directory is what a process leaves that is killed between two steps.
#[test]
fn a_directory_without_a_clean_end_has_all_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    let mut random = fastrand::Rng::with_seed(3);
    let mut model = Model::default();
    for version in 10..500 {
        let change = random_change(&mut random, version);
        model.take(&change);
        fixture.run(Operation::Change(change));
    }
    fixture.writer.end_maintenance();
    let copy = tempfile::tempdir().unwrap();
    copy_folder(directory.path(), copy.path());
    let restored = Fixture::open(copy.path());
    assert_eq!(restored.contents(), model.contents());
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
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

/// SH1, SH2: in memory, and again when the newest state is in a segment.
#[test]
fn a_change_that_is_not_newer_is_answered_with_what_is() {
    let directory = tempfile::tempdir().unwrap();
    // Its home is shard 0, and no other block of it is in an owned one.
    let document = [(0x0077_7777_7777_7777, "a")];
    let (none, five) = (Version::NONE, Version(5));
    let fixture = Fixture::open(directory.path());
    fixture.create();
    assert_eq!(insert(&fixture, 5, &document), (1, none));
    for round in 0..2 {
        assert_eq!(insert(&fixture, 5, &document), (0, none), "the very same");
        assert_eq!(
            insert(&fixture, 4, &document),
            (0, none),
            "it is live already"
        );
        assert_eq!(remove(&fixture, 3, &document), (0, five), "round {round}");
        fixture.flush();
    }
    assert_eq!(
        remove(&fixture, 5, &document),
        (1, none),
        "a remove is later"
    );
    assert_eq!(insert(&fixture, 5, &document), (0, five));
    assert_eq!(
        remove(&fixture, 4, &document),
        (0, none),
        "it is gone already"
    );
    fixture.flush();
    assert_eq!(
        insert(&fixture, 4, &document),
        (0, five),
        "a tombstone in a segment"
    );
    assert_eq!(insert(&fixture, 6, &document), (1, none));
    assert_eq!(insert(&fixture, 7, &document), (0, none), "live already");
    assert_eq!(fixture.contents().len(), 1);
}

/// SH1: what a segment holds may be superseded in another one, which is not read as it is older than the change.
#[test]
fn a_superseded_state_says_nothing() {
    for kind in [ChangeKind::Insert, ChangeKind::Remove] {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Fixture::open(directory.path());
        fixture.create();
        let value = 0x0077_7777_7777_7777;
        insert(&fixture, 5, &[(value, "d")]);
        insert(&fixture, 10, &[(1, "of a router whose clock is ahead")]);
        fixture.flush();
        remove(&fixture, 7, &[(value, "d")]);
        fixture.flush();
        let change = change(kind, 8, &[(value, "d")]);
        let (changed, newer) = fixture.run(Operation::Change(change));
        assert_eq!(
            (changed, newer),
            (usize::from(kind == ChangeKind::Insert), Version::NONE)
        );
    }
}

/// A corpus that was dropped is gone for good, from memory and from segments, and others stay.
#[test]
fn a_dropped_corpus_stays_gone() {
    let directory = tempfile::tempdir().unwrap();
    let documents = [(1, "a"), (2, "b")];
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &documents);
    fixture.flush();
    insert(&fixture, 2, &[(3, "c")]);
    fixture.run(Operation::DropCorpus { uid: CORPUS });
    fixture.create();
    assert_eq!(fixture.store.corpora(), []);
    fixture.flush();
    drop(fixture);
    let fixture = Fixture::open(directory.path());
    assert_eq!(fixture.store.corpora(), []);
    assert!(fixture.contents().is_empty());
}

/// ST3.
#[test]
fn what_a_step_that_was_cut_off_left_is_deleted_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    fixture.flush();
    let contents = fixture.contents();
    drop(fixture);
    let folder = directory.path().join("segments");
    let file = |name: &str| folder.join(name);
    let leftovers = ["00-00000000000000ff.seg", "01-0000000000000009.new"];
    let others = ["notes.txt", "00-ff.seg"];
    for name in leftovers.iter().chain(&others) {
        std::fs::write(file(name), "x").unwrap();
    }
    let fixture = Fixture::open(directory.path());
    assert_eq!(fixture.contents(), contents);
    assert!(leftovers.iter().all(|name| !file(name).exists()));
    assert!(others.iter().all(|name| file(name).exists()));
}

/// ST3: nothing is deleted where something is missing.
#[test]
fn a_store_without_all_its_files_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    insert(&fixture, 1, &[(1, "a")]);
    fixture.flush();
    drop(fixture);
    let refusal = |hidden: &Path, leftover: bool| {
        let aside = directory.path().join("aside");
        std::fs::rename(hidden, &aside).unwrap();
        let orphan = directory.path().join("segments/00-00000000000000ff.seg");
        std::fs::write(&orphan, "x").unwrap();
        let error = Store::open(directory.path(), owned(), small()).unwrap_err();
        assert_eq!(orphan.exists(), leftover);
        std::fs::rename(&aside, hidden).unwrap();
        error.to_string()
    };
    let segments = std::fs::read_dir(directory.path().join("segments")).unwrap();
    let segment = segments.map(|entry| entry.unwrap().path()).next().unwrap();
    let message = refusal(&segment, true);
    assert!(message.contains(segment.to_str().unwrap()), "{message}");
    let message = refusal(&directory.path().join("manifest"), true);
    assert!(message.contains("no manifest"), "{message}");
    let log = std::fs::read_dir(directory.path().join("log")).unwrap();
    let log = log.map(|entry| entry.unwrap().path()).next().unwrap();
    let message = refusal(&log, true);
    assert!(message.contains("no file has record"), "{message}");
    Fixture::open(directory.path());
}

/// ST4.
#[test]
fn memtables_stay_within_their_limit() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    for version in 1..400 {
        let documents: Vec<(u64, &str)> = (0..20)
            .map(|n| (fingerprint(version * 20 + n), "an id"))
            .collect();
        insert(&fixture, version, &documents);
        let bytes = fixture.store.memory.load(Ordering::Relaxed);
        // What one change adds comes on top.
        assert!(bytes < 2 * small().memtable_bytes + 10_000, "{bytes}");
    }
}

#[test]
fn a_directory_serves_one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = Fixture::open(directory.path());
    let error = Store::open(directory.path(), owned(), small()).unwrap_err();
    let message = error.to_string();
    let process = format!("process {}", std::process::id());
    assert!(
        message.contains("in use") && message.contains(&process),
        "{message}"
    );
    drop(first);
    Fixture::open(directory.path());
}

#[test]
fn a_directory_with_documents_is_not_used_for_other_shards() {
    let directory = tempfile::tempdir().unwrap();
    let open = |shards: ShardSet| Store::open(directory.path(), shards, small());
    let more: ShardSet = (0..9).map(ShardId).collect();
    open(owned()).unwrap();
    // Nothing is in it yet.
    open(more).unwrap();
    let fixture = Fixture::start(open(owned()).unwrap());
    fixture.create();
    drop(fixture);
    for other in [0..3, 0..10] {
        let message = open(other.map(ShardId).collect()).unwrap_err().to_string();
        assert!(
            message.contains("holds documents of the shards 0x00-0x05"),
            "{message}"
        );
    }
    open(owned()).unwrap();
}

#[test]
fn a_store_in_memory_takes_the_same_changes() {
    let fixture = Fixture::start(Store::in_memory(owned()));
    fixture.create();
    let mut random = fastrand::Rng::with_seed(5);
    let mut model = Model::default();
    for version in 10..300 {
        let change = random_change(&mut random, version);
        model.take(&change);
        fixture.run(Operation::Change(change));
    }
    assert_eq!(fixture.contents(), model.contents());
}

/// SC1.
#[test]
fn a_damaged_segment_is_found_and_answers_nothing_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        cache_bytes: 0,
        ..small()
    };
    let fixture = Fixture::start(Store::open(directory.path(), owned(), options).unwrap());
    fixture.create();
    let value = 0x0077_7777_7777_7777;
    insert(&fixture, 1, &[(value, "a")]);
    fixture.flush();
    let ids = || {
        fixture
            .store
            .live_ids(ShardId(0), CORPUS, Fingerprint(value), None)
    };
    fixture.store.scrub_all(|_| true);
    assert_eq!(ids().unwrap().len(), 1);
    let folder = directory.path().join("segments");
    let file = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = std::fs::read(&file).unwrap();
    let sound = bytes.clone();
    // Within the header, which no lookup reads.
    bytes[40] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(ids().unwrap().len(), 1);
    fixture.store.scrub_all(|_| true);
    let message = ids().unwrap_err().to_string();
    assert!(message.contains(file.to_str().unwrap()), "{message}");

    // What needs the segment is refused; the others change, and whoever derives tables hears of it.
    let both = change(ChangeKind::Insert, 2, &[(value, "a"), (1, "b")]);
    let is_stored = |fingerprint: Fingerprint| fingerprint.0 == value;
    let effects = fixture.store.apply(ShardId(0), &both, &[0, 1], is_stored);
    assert_eq!(effects.changed, [1]);
    assert!(effects.error.is_some());
    std::fs::write(&file, sound).unwrap();
    assert!(ids().is_err(), "until somebody has looked at it");
}

/// ST5.
#[test]
fn the_log_stays_short_however_often_the_same_documents_change() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.log.file_bytes = 4096;
    let fixture = Fixture::start(Store::open(directory.path(), owned(), options).unwrap());
    fixture.create();
    let files = || {
        std::fs::read_dir(directory.path().join("log"))
            .unwrap()
            .count()
    };
    for version in 1..4000 {
        insert(
            &fixture,
            version,
            &[(1, "the same document again and again")],
        );
    }
    fixture.writer.end_maintenance();
    assert!(files() < 40, "{} files", files());
}

/// ST5.
#[test]
fn the_log_stays_short_however_often_a_process_restarts_before_it_is_long() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.log.file_bytes = 4096;
    let open = || Store::open(directory.path(), owned(), options).unwrap();
    for round in 0..20 {
        let fixture = Fixture::start(open());
        if round == 0 {
            fixture.create();
        }
        for version in 1..50 {
            let version = 50 * round + version;
            insert(&fixture, version, &[(1, "the same document")]);
        }
        while fixture.store.maintenance.needs_flush() {
            std::thread::yield_now();
        }
        fixture.writer.close();
    }
    let files = std::fs::read_dir(directory.path().join("log"));
    let files = files.unwrap().count();
    assert!(files < 12, "{files} files");
}
