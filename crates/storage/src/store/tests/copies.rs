//! A learner that copies shards from a source while both change.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use fastrand::Rng;
use simshard_topology::replication::{
    Epoch, InSync, Learner, Role, ShardRecord, ShardRecords, StoreId,
};
use simshard_topology::{ShardId, Version};
use tempfile::TempDir;

use super::{Fixture, insert, owned, random_change, remove, small};
use crate::delta::Compared;
use crate::element::{Element, Operation, ShardCopy, State};
use crate::inspect::inspect;
use crate::merge::{Cursor, Merge};
use crate::segment::{Segment, SegmentId};
use crate::store::{CopyBase, Holding, Pinned, SEGMENTS, Store};
use crate::tests::is_long;

const SHARD: ShardId = ShardId(3);

const ADDED: Epoch = Epoch {
    generation: 0,
    number: 2,
};

pub(super) fn store_in(directory: &Path) -> StoreId {
    Store::claim(directory).unwrap().store
}

/// One record for all shards.
fn all(record: &ShardRecord) -> ShardRecords {
    let record = |shard| (shard, Arc::new(record.clone()));
    owned().iter().map(record).collect()
}

/// The record by which a store holds shards alone.
pub(super) fn alone(source: StoreId, number: u64) -> ShardRecord {
    let mut record = ShardRecord::first(0, &[source], number);
    record.epoch.number = number;
    record
}

/// The record that adds learners to a source.
fn added(source: StoreId, number: u64, learners: &[StoreId]) -> ShardRecord {
    let mut record = alone(source, number);
    let added = record.epoch;
    let learner = |&store| Learner { store, added };
    record.learners = learners.iter().map(learner).collect();
    record
}

pub(super) fn open(directory: &Path, record: &ShardRecord) -> Fixture {
    let holding = Holding {
        shards: owned(),
        records: Some(all(record)),
    };
    Fixture::start(Store::open(directory, holding, small()).unwrap())
}

pub(super) fn install(fixture: &Fixture, record: &ShardRecord) {
    let (ticket, outcome) = channel();
    let reported = |_, _| record.epoch;
    let is_news = fixture.writer.install(&all(record), reported, ticket);
    assert!(is_news.unwrap());
    outcome.recv().unwrap().unwrap();
}

/// What a learner had of a shard, once it is written.
fn base(learner: &Fixture, shard: ShardId, added: Epoch) -> CopyBase {
    loop {
        if let Some(base) = learner.store.copy_base(shard, added).unwrap() {
            return base;
        }
        learner.flush();
    }
}

/// Copies what was pinned. `is_cut` ends it early.
fn try_copy(pinned: &Pinned, base: &CopyBase, is_cut: impl Fn() -> bool) -> Option<ShardCopy> {
    let corpora = pinned.corpora.iter().map(|corpus| corpus.uid);
    let mut writer = base.begin(corpora.collect()).unwrap();
    let visit = |corpus, compared: Compared<'_>| {
        match compared {
            Compared::Later(element) => writer.push(corpus, element).unwrap(),
            Compared::RangeEnd(last, digest) => writer.end_range(corpus, last, digest).unwrap(),
        }
        !is_cut()
    };
    if !pinned.compare(base.until(), visit).unwrap() {
        return None;
    }
    let ranges = writer.end_ranges().unwrap().to_vec();
    let visit = |corpus, element: Element<'_>| {
        writer.push(corpus, element).unwrap();
        !is_cut()
    };
    pinned.visit(&ranges, base.until(), visit).unwrap();
    (!is_cut()).then(|| writer.finish().unwrap())
}

fn copy(pinned: &Pinned, learner: &Fixture, shard: ShardId, added: Epoch) -> ShardCopy {
    try_copy(pinned, &base(learner, shard, added), || false).unwrap()
}

fn end(pinned: &Pinned, copy: ShardCopy, learner: &Fixture) -> bool {
    let (ticket, outcome) = channel();
    let is_ended = learner.writer.end_copy(pinned.pin, copy, ticket).unwrap();
    if is_ended {
        outcome.recv().unwrap().unwrap();
    }
    is_ended
}

/// Some changes of several stores, or of one alone.
fn change(random: &mut Rng, fixtures: &[&Fixture], version: &mut u64) {
    for _ in 0..random.usize(1..20) {
        *version += 1;
        let change = random_change(random, *version);
        for fixture in fixtures {
            fixture.run(Operation::Change(change.clone()));
        }
        if random.u8(..20) == 0 {
            fixtures[random.usize(..fixtures.len())].flush();
        }
    }
}

/// All elements of the shard that is copied.
fn elements_of_shard(fixture: &Fixture) -> BTreeMap<(u8, u64, String), State> {
    let mut elements = elements(fixture);
    elements.retain(|(shard, ..), _| *shard == SHARD.0);
    elements
}

/// All elements of all shards, tombstones among them.
fn elements(fixture: &Fixture) -> BTreeMap<(u8, u64, String), State> {
    let mut all = BTreeMap::new();
    for shard in owned().iter() {
        let held = fixture.store.read(shard).unwrap();
        let mut streams: Vec<Box<dyn Cursor + '_>> = Vec::new();
        for segment in &*held.segments {
            streams.push(Box::new(segment.scan_all(|_| true).unwrap()));
        }
        for table in [&*held.frozen, &held.memtable] {
            streams.push(Box::new(table.cursor(|_| true)));
        }
        let mut merged = Merge::new(streams);
        while let Some((_, element)) = merged.element() {
            let key = (shard.0, element.fingerprint.0, element.id.to_owned());
            all.insert(key, element.into());
            merged.advance().unwrap();
        }
    }
    all
}

/// A source, a learner that was there before, and one that is new.
struct Scene {
    random: Rng,
    version: u64,
    paths: [TempDir; 3],
    names: [StoreId; 3],
    source: Fixture,
    /// None while it starts again.
    learner: Option<Fixture>,
    /// Of the last record.
    epoch: u64,
    /// Copies that keep segments from before.
    kept: usize,
    /// Copies that were written anew, though there were segments from before.
    rewritten: usize,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let paths = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let names = paths.each_ref().map(|path| store_in(path.path()));
        let open_alone = |place: usize| open(paths[place].path(), &alone(names[place], 1));
        let (source, learner) = (open_alone(0), open_alone(1));
        for fixture in [&source, &learner] {
            fixture.create();
        }
        Self {
            random: Rng::with_seed(seed),
            version: 1000,
            source,
            learner: Some(learner),
            paths,
            names,
            epoch: 1,
            kept: 0,
            rewritten: 0,
        }
    }

    fn change_both(&mut self) {
        let both = [&self.source, self.learner.as_ref().unwrap()];
        change(&mut self.random, &both, &mut self.version);
    }

    fn change_one(&mut self, learner: bool) {
        let learner = self.learner.as_ref().filter(|_| learner);
        let one = learner.unwrap_or(&self.source);
        change(&mut self.random, &[one], &mut self.version);
    }

    /// The learner ends, without a flush, and starts again.
    fn restart(&mut self, record: &ShardRecord) {
        drop(self.learner.take());
        self.learner = Some(open(self.paths[1].path(), record));
    }

    fn learner(&self) -> &Fixture {
        self.learner.as_ref().unwrap()
    }

    /// The learner was away, comes back and copies all shards, while changes go on.
    fn come_back(&mut self) {
        self.epoch += 2;
        let out = alone(self.names[0], self.epoch - 1);
        let back = added(self.names[0], self.epoch, &self.names[1..]);
        let added = back.epoch;
        for record in [&out, &back] {
            install(&self.source, record);
        }
        self.change_one(false);
        install(self.learner(), &out);
        self.delete_some();
        if self.random.bool() {
            self.restart(&out);
        }
        install(self.learner(), &back);
        assert!(self.learner().contents().is_empty());
        self.change_both();
        for shard in owned().iter() {
            self.copy(shard, &back);
            let role = self.learner().store.role(shard);
            assert_eq!(role, Some(Role::Copied { added }));
        }
    }

    /// The learner deletes what it has of some shards. A restart may bring it back.
    fn delete_some(&mut self) {
        for shard in owned().iter() {
            if self.random.u8(..8) == 0 {
                let store = &self.learner.as_ref().unwrap().store;
                store.delete_former(shard);
                assert!(store.read(shard).unwrap().is_empty());
            }
        }
    }

    fn copy(&mut self, shard: ShardId, record: &ShardRecord) {
        let added = record.epoch;
        let pinned = self.source.store.pin(shard, added).unwrap().unwrap();
        self.change_both();
        if self.random.u8(..3) == 0 {
            let left = Cell::new(self.random.usize(1..50));
            let is_cut = || {
                left.set(left.get().saturating_sub(1));
                left.get() == 0
            };
            let base = base(self.learner(), shard, added);
            let _ = try_copy(&pinned, &base, is_cut).map(|copy| {
                self.learner().store.abandon_copy(&copy).unwrap();
            });
            if self.random.bool() {
                drop(base);
                self.restart(record);
            }
        }
        let before = self.learner().store.segments_aside();
        let before = before.iter().filter(|one| one.id().shard == shard);
        let before: Vec<_> = before.map(|one| one.id()).collect();
        let copy = copy(&pinned, self.learner(), shard, added);
        let kept = copy.segments.iter().filter(|(id, _)| before.contains(id));
        if kept.count() > 0 {
            self.kept += 1;
        } else if !before.is_empty() {
            self.rewritten += 1;
        }
        self.change_both();
        assert!(end(&pinned, copy, self.learner()));
    }

    /// A new store copies all that the source has.
    fn whole_copy(&self) -> Fixture {
        let record = added(self.names[0], self.epoch, &self.names[1..]);
        let fixture = open(self.paths[2].path(), &alone(self.names[2], 1));
        fixture.create();
        install(&fixture, &record);
        for shard in owned().iter() {
            let pinned = self.source.store.pin(shard, record.epoch);
            let pinned = pinned.unwrap().unwrap();
            let base = base(&fixture, shard, record.epoch);
            assert_eq!(base.until(), Version::NONE);
            let copy = try_copy(&pinned, &base, || false).unwrap();
            assert!(copy.segments.len() <= 1);
            assert!(end(&pinned, copy, &fixture));
        }
        fixture
    }
}

/// CY1, CY2, CY3, CY4, CY5, DC1.
#[test]
fn a_learner_that_copied_what_differs_equals_one_that_copied_all() {
    let (mut kept, mut rewritten) = (0, 0);
    for seed in 0..if is_long() { 500 } else { 10 } {
        println!("seed {seed}");
        let mut scene = Scene::new(seed);
        for _ in 0..scene.random.usize(1..4) {
            scene.change_both();
        }
        // What only one of them has of the time before.
        for learner in [true, false] {
            if scene.random.u8(..3) == 0 {
                scene.change_one(learner);
            }
        }
        for _ in 0..scene.random.usize(1..4) {
            scene.come_back();
        }
        let whole = scene.whole_copy();
        assert_eq!(elements(&whole), elements(&scene.source));
        assert_eq!(elements(scene.learner()), elements(&whole));
        assert_eq!(scene.learner().contents(), scene.source.contents());
        let record = added(scene.names[0], scene.epoch, &scene.names[1..]);
        scene.restart(&record);
        assert_eq!(elements(scene.learner()), elements(&whole));
        scene.change_both();
        scene.learner().flush();
        assert_eq!(elements(scene.learner()), elements(&scene.source));
        let on_disk = scene.learner().store.all_segments().len();
        let folder = scene.paths[1].path().join(SEGMENTS);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), on_disk);
        kept += scene.kept;
        rewritten += scene.rewritten;
    }
    println!("{kept} copies kept what was set aside, {rewritten} did not");
    assert!(kept > 10 && rewritten > 10, "{kept} {rewritten}");
}

/// CY5.
#[test]
fn what_a_store_has_of_a_shard_that_it_lost_can_be_deleted() {
    let mut scene = Scene::new(3);
    scene.change_both();
    scene.learner().flush();
    scene.change_both();
    let back = added(scene.names[0], 2, &scene.names[1..]);
    let out = alone(scene.names[0], 3);
    let learner = scene.learner();
    let delete = |fixture: &Fixture| fixture.store.delete_former(SHARD);
    assert!(!delete(learner), "it is in sync");
    install(learner, &back);
    assert!(!delete(learner), "it is a learner");
    let folder = scene.paths[1].path().join(SEGMENTS);
    let files = || {
        let files = std::fs::read_dir(&folder).unwrap();
        let ids = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let ids: Vec<SegmentId> = ids.map(|name| name.parse().unwrap()).collect();
        ids.into_iter()
            .partition::<Vec<_>, _>(|id| id.shard == SHARD)
    };
    // What was set aside, and what came since.
    change(
        &mut scene.random,
        &[scene.learner.as_ref().unwrap()],
        &mut scene.version,
    );
    let learner = scene.learner.as_ref().unwrap();
    learner.flush();
    install(learner, &out);
    let (of_shard, of_others) = files();
    assert!(!of_shard.is_empty() && !of_others.is_empty());
    assert!(delete(learner));
    assert!(!delete(learner), "nothing is left");
    learner.flush();
    assert_eq!(files(), (vec![], of_others));
    scene.restart(&out);
    assert!(!delete(scene.learner()), "nothing comes back");
}

/// The task that asks for it has others to look after.
#[test]
fn what_was_set_aside_is_not_waited_for_while_its_shard_is_changed() {
    let scene = Scene::new(4);
    let record = added(scene.names[0], 2, &scene.names[1..]);
    install(scene.learner(), &record);
    drop(base(scene.learner(), SHARD, record.epoch));
    let store = &scene.learner().store;
    let _changing = store.shard(SHARD).unwrap().write();
    assert!(store.copy_base(SHARD, record.epoch).unwrap().is_none());
}

/// What is damaged is not used, and the copy is whole.
#[test]
fn what_was_set_aside_and_is_damaged_is_forgotten() {
    let mut scene = Scene::new(1);
    scene.change_both();
    scene.learner().flush();
    let record = added(scene.names[0], 2, &scene.names[1..]);
    scene.epoch = 2;
    for fixture in [&scene.source, scene.learner()] {
        install(fixture, &record);
    }
    let base_before = base(scene.learner(), SHARD, record.epoch);
    let aside = scene.learner().store.segments_aside();
    let of_shard = aside.iter().find(|one| one.id().shard == SHARD).unwrap();
    let path = scene.paths[1].path().join(SEGMENTS);
    let path = path.join(of_shard.id().to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let corpora = vec![super::CORPUS];
    assert!(base_before.begin(corpora).is_err());
    assert!(base_before.is_damaged());
    // SC2.
    assert!(scene.learner().store.damaged().is_empty());
    scene.learner().store.forget_aside(SHARD);
    let pinned = scene.source.store.pin(SHARD, record.epoch);
    let pinned = pinned.unwrap().unwrap();
    let base = base(scene.learner(), SHARD, record.epoch);
    assert_eq!(base.until(), Version::NONE);
    let copy = try_copy(&pinned, &base, || false).unwrap();
    assert!(end(&pinned, copy, scene.learner()));
    assert_eq!(
        elements_of_shard(scene.learner()),
        elements_of_shard(&scene.source)
    );
    scene.learner().flush();
    assert!(!path.exists());
}

/// CY3: a store that may open no more files takes a finished copy.
#[test]
fn a_finished_copy_is_taken_without_opening_a_file() {
    let mut scene = Scene::new(2);
    scene.change_both();
    let record = added(scene.names[0], 2, &scene.names[1..]);
    scene.epoch = 2;
    for fixture in [&scene.source, scene.learner()] {
        install(fixture, &record);
    }
    scene.learner().store.forget_aside(SHARD);
    let pinned = scene.source.store.pin(SHARD, record.epoch);
    let pinned = pinned.unwrap().unwrap();
    let copy = copy(&pinned, scene.learner(), SHARD, record.epoch);
    let segments = scene.paths[1].path().join(SEGMENTS);
    let hidden = scene.paths[1].path().join("hidden");
    std::fs::rename(&segments, &hidden).unwrap();
    assert!(!copy.segments.is_empty());
    assert!(end(&pinned, copy, scene.learner()));
    std::fs::rename(&hidden, &segments).unwrap();
    assert_eq!(
        elements_of_shard(scene.learner()),
        elements_of_shard(&scene.source)
    );
}

/// CY1.
#[test]
fn a_view_stays_as_it_was_pinned() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let own = store_in(directory);
    let source = open(directory, &ShardRecord::first(0, &[own], 1));
    source.create();
    let document = |number: u64| (3 << 56 | number, "");
    insert(&source, 1, &[document(1), document(2)]);
    source.flush();
    remove(&source, 2, &[document(1)]);
    insert(&source, 3, &[document(3)]);
    let pinned = source.store.pin(SHARD, Epoch::FIRST).unwrap().unwrap();
    let seen = || {
        let mut seen = Vec::new();
        let visit = |_, compared: Compared<'_>| {
            if let Compared::Later(element) = compared {
                let fingerprint = element.fingerprint.0 & 0xff;
                seen.push((fingerprint, element.version.0, element.live));
            }
            true
        };
        pinned.compare(Version::NONE, visit).unwrap();
        seen
    };
    let before = seen();
    assert_eq!(before, [(1, 2, false), (2, 1, true), (3, 3, true)]);
    insert(&source, 4, &[document(1), document(4)]);
    for number in 5..10 {
        source.flush();
        insert(&source, number, &[document(number)]);
    }
    assert_eq!(seen(), before);
}

/// CY3.
#[test]
fn a_copy_does_not_count_once_its_source_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let [source, other] = [1, 2].map(|byte| StoreId([byte; 16]));
    let own = store_in(directory.path());
    let learner = open(directory.path(), &ShardRecord::first(0, &[source], 1));
    learner.create();
    let record = added(source, ADDED.number, &[own]);
    install(&learner, &record);
    let source_path = tempfile::tempdir().unwrap();
    let mut pinned = {
        let id = store_in(source_path.path());
        let source = open(source_path.path(), &ShardRecord::first(0, &[id], 1));
        source.create();
        source.store.pin(SHARD, Epoch::FIRST).unwrap().unwrap()
    };
    pinned.pin.source = source;
    pinned.pin.at = ADDED;
    let mut next = record;
    next.epoch = next.epoch.next();
    next.in_sync = vec![InSync {
        store: other,
        since: ADDED,
        hot: true,
    }];
    install(&learner, &next);
    let copied = copy(&pinned, &learner, SHARD, ADDED);
    assert!(!end(&pinned, copied.clone(), &learner));
    learner.store.abandon_copy(&copied).unwrap();
    pinned.pin.source = other;
    let copied = copy(&pinned, &learner, SHARD, ADDED);
    assert!(end(&pinned, copied, &learner));
}

/// SH2: a remove reached the source alone, and is repeated with an older version by a router whose clock is behind. The
/// learner would lose it to what it copies.
#[test]
fn a_change_that_only_the_source_has_is_not_done_by_an_older_one() {
    let scene = Scene::new(0);
    let (source, learner) = (&scene.source, scene.learner());
    // Its home is shard 3.
    let document = [(0x0377_7777_7777_7777, "a")];
    insert(source, 13, &document);
    let record = added(scene.names[0], ADDED.number, &scene.names[1..2]);
    install(source, &record);
    install(learner, &record);
    let pinned = source.store.pin(SHARD, ADDED).unwrap().unwrap();
    remove(source, 15, &document);
    assert_eq!(remove(source, 6, &document), (0, Version(15)));
    remove(learner, 6, &document);
    // So the router sends the change again to both.
    for fixture in [source, learner] {
        remove(fixture, 16, &document);
    }
    let copied = copy(&pinned, learner, SHARD, ADDED);
    assert!(end(&pinned, copied, learner));
    for fixture in [source, learner] {
        assert!(
            !fixture
                .contents()
                .contains_key(&(3, document[0].0, "a".to_owned()))
        );
    }
}

/// CY4: what was set aside does not wait for the next flush. It may be as large as the shard, and changes may be few.
#[test]
fn what_a_copy_takes_the_place_of_is_deleted_soon() {
    let mut scene = Scene::new(5);
    scene.change_both();
    let folder = scene.paths[1].path().join(SEGMENTS);
    let learner = scene.learner();
    // It reached no other store, so nothing of before is kept.
    insert(learner, 1 << 40, &[(0x0377_7777_7777_7777, "given up")]);
    learner.flush();
    let out = alone(scene.names[0], 2);
    let back = added(scene.names[0], 3, &scene.names[1..]);
    for record in [&out, &back] {
        install(&scene.source, record);
        install(learner, record);
    }
    let pinned = scene.source.store.pin(SHARD, back.epoch).unwrap().unwrap();
    drop(base(learner, SHARD, back.epoch));
    let before = learner.store.read(SHARD).unwrap().aside.segments.clone();
    let copied = copy(&pinned, learner, SHARD, back.epoch);
    assert!(end(&pinned, copied, learner));
    learner.upkeep(&|_| Ok(())).step().unwrap();
    let held = learner.store.read(SHARD).unwrap().segments.to_vec();
    let exists = |segment: &Arc<Segment>| folder.join(segment.id().to_string()).exists();
    assert!(!before.is_empty() && before.iter().all(|segment| !exists(segment)));
    assert!(!held.is_empty() && held.iter().all(exists));
}

/// Only the log names them until a later manifest does.
#[test]
fn copies_are_inspected_and_verified_before_a_manifest_names_them() {
    let mut scene = Scene::new(1);
    scene.change_both();
    scene.come_back();
    drop(scene.whole_copy());
    let directory = scene.paths[2].path();
    let folder = directory.join(SEGMENTS);
    let files = fs::read_dir(&folder).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    let inspection = inspect(directory).unwrap();
    inspection.verify(|_| ()).unwrap();
    let shown = inspection.segments.iter();
    let shown: BTreeSet<_> = shown.map(|segment| segment.path.clone()).collect();
    assert_eq!(shown, files);
    assert!(inspection.segments.iter().all(|one| !one.is_set_aside));
    let path = files.first().unwrap();
    let whole = fs::read(path).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(path, &damaged).unwrap();
    inspection.verify(|_| ()).unwrap_err();
    fs::write(path, &whole).unwrap();
    inspection.verify(|_| ()).unwrap();
    fs::remove_file(path).unwrap();
    inspection.verify(|_| ()).unwrap_err();
}

/// What a shard had before it began anew is set aside, though the manifest does not say so yet.
#[test]
fn what_the_log_sets_aside_is_inspected_as_such() {
    let mut scene = Scene::new(2);
    scene.change_both();
    scene.learner().flush();
    let directory = scene.paths[1].path().to_owned();
    let out = alone(scene.names[0], 2);
    let back = added(scene.names[0], 3, &scene.names[1..]);
    for record in [&out, &back] {
        install(scene.learner(), record);
    }
    drop(scene.learner.take());
    let inspection = inspect(&directory).unwrap();
    assert!(!inspection.segments.is_empty());
    assert!(inspection.segments.iter().all(|one| one.is_set_aside));
    inspection.verify(|_| ()).unwrap();
}
