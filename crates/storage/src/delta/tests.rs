//! Copies of random contents to learners that have other ones, against the contents of the source.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::*;
use crate::element::State;
use crate::memtable::Memtable;
use crate::merge::Merge;
use crate::stored::Stored;
use crate::tests::is_long;

type Contents = BTreeMap<(CorpusUid, Fingerprint, Box<str>), State>;

const CORPORA: [CorpusUid; 2] = [CorpusUid([3; 16]), CorpusUid([7; 16])];

fn table(contents: &Contents) -> Memtable {
    let mut table = Memtable::default();
    for ((corpus, fingerprint, id), state) in contents {
        table.put(*corpus, Stored::new(*fingerprint, id, *state));
    }
    table
}

fn contents(mut elements: impl Cursor) -> Contents {
    let mut contents = Contents::new();
    while let Some((corpus, element)) = elements.element() {
        let key = (corpus, element.fingerprint, element.id.into());
        assert!(contents.insert(key, element.into()).is_none());
        elements.advance().unwrap();
    }
    contents
}

/// One of a few fingerprints, at the ends and in between.
fn fingerprint(random: &mut Rng, most: u64) -> Fingerprint {
    match random.u64(..most) {
        0 => Fingerprint(0),
        1 => Fingerprint(u64::MAX),
        number => Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    }
}

/// Puts an operation, as a store does.
fn put(random: &mut Rng, most: u64, version: u64, into: &mut [&mut Contents]) {
    let corpus = CORPORA[random.usize(..CORPORA.len())];
    let id = ["", "a", "b"][random.usize(..3)];
    let key = (corpus, fingerprint(random, most), id.into());
    let state = State {
        version: Version(version),
        live: random.u8(..4) > 0,
    };
    for contents in into {
        let there = contents.entry(key.clone()).or_insert(state);
        *there = state.max(*there);
    }
}

/// A source, and what a learner has set aside.
struct Scene {
    source: Contents,
    aside: Contents,
    until: Version,
    /// Tombstones up to this version may have been dropped on either side.
    settled: Version,
    per_range: u64,
}

/// What was copied.
#[derive(Debug)]
struct CopiedShard {
    result: Contents,
    /// Elements that were sent.
    sent: usize,
    differing: Vec<CopyRange>,
    is_kept: bool,
}

impl Scene {
    /// Both have a history, then each has some of its own, and the source goes on.
    fn random(random: &mut Rng) -> Self {
        let most = [3, 20, 200][random.usize(..3)];
        let (mut source, mut aside) = (Contents::new(), Contents::new());
        for version in 1..random.u64(2..300) {
            put(random, most, version, &mut [&mut source, &mut aside]);
        }
        if random.bool() {
            for _ in 0..random.u64(1..5) {
                let version = random.u64(250..400);
                put(random, most, version, &mut [&mut aside]);
            }
        }
        if random.bool() {
            for _ in 0..random.u64(1..5) {
                let version = random.u64(1..400);
                put(random, most, version, &mut [&mut source]);
            }
        }
        for version in 400..random.u64(401..500) {
            put(random, most, version, &mut [&mut source]);
        }
        let settled = Version(random.u64(..500) * u64::from(random.bool()));
        for contents in [&mut source, &mut aside] {
            contents.retain(|_, state| !is_forgotten(*state, settled) || random.bool());
        }
        let versions = aside.values().map(|state| state.version.0);
        let until = match random.u8(..4) {
            0 => 0,
            1 => random.u64(..600),
            _ => versions.max().unwrap_or(0),
        };
        Self {
            source,
            aside,
            until: Version(until),
            settled,
            per_range: random.u64(1..20),
        }
    }

    const fn versions(&self) -> Versions {
        Versions {
            until: self.until,
            settled: self.settled,
        }
    }

    /// Copies, as two stores do.
    fn copy(&self) -> CopiedShard {
        let (source, aside) = (table(&self.source), table(&self.aside));
        let mut comparison = Comparison::new(aside.cursor(|_| true), self.versions());
        let mut later = Memtable::default();
        let mut sent = 0;
        let mut take = |corpus, element: Element<'_>, into: &mut Memtable| {
            sent += 1;
            let stored = Stored::new(element.fingerprint, element.id, element.into());
            into.put(corpus, stored);
        };
        let mut cursor = source.cursor(|_| true);
        let visit = |corpus, compared: Compared<'_>| {
            match compared {
                Compared::Later(element) => {
                    comparison.later(corpus, element).unwrap();
                    take(corpus, element, &mut later);
                }
                Compared::RangeEnd(last, digest) => {
                    comparison.end_range(corpus, last, digest).unwrap();
                }
            }
            true
        };
        let corpora = CORPORA.into_iter();
        assert!(compare(&mut cursor, corpora, self.versions(), self.per_range, visit).unwrap());
        let Differing { ranges, has_later } = comparison.finish().unwrap();
        let mut replaced = Memtable::default();
        let mut part = RangeElements::within(source.cursor(|_| true), &ranges, self.until).unwrap();
        while let Some((corpus, element)) = part.element() {
            take(corpus, element, &mut replaced);
            part.advance().unwrap();
        }
        let received = || Merge::new(vec![later.cursor(|_| true), replaced.cursor(|_| true)]);
        let all = || aside.cursor(|_| true);
        let is_kept = !has_later && is_outdone(all(), received(), &ranges).unwrap();
        let rest: Box<dyn Cursor> = if is_kept {
            Box::new(all())
        } else {
            Box::new(RangeElements::outside(all(), &ranges, self.until).unwrap())
        };
        let result = contents(Merge::new(vec![rest, Box::new(received())]));
        CopiedShard {
            result,
            sent,
            differing: ranges,
            is_kept,
        }
    }
}

/// What counts of contents.
fn remembered(contents: &Contents, settled: Version) -> Contents {
    let mut remembered = contents.clone();
    remembered.retain(|_, state| !is_forgotten(*state, settled));
    remembered
}

/// DC1, DC3, DC5.
#[test]
fn a_copy_has_what_its_source_has_whatever_was_set_aside() {
    let cases = if is_long() { 200_000 } else { 4_000 };
    let first = fastrand::u64(..u64::MAX / 2);
    println!("seeds from {first}");
    let (mut kept, mut rewritten, mut differing) = (0, 0, 0);
    for seed in first..first + cases {
        let scene = Scene::random(&mut Rng::with_seed(seed));
        let copied = scene.copy();
        let remembered = |contents| remembered(contents, scene.settled);
        let expected = remembered(&scene.source);
        assert_eq!(remembered(&copied.result), expected, "seed {seed}");
        kept += u64::from(copied.is_kept);
        rewritten += u64::from(!copied.is_kept);
        differing += u64::from(!copied.differing.is_empty());
    }
    println!("{kept} kept, {rewritten} rewritten, {differing} with ranges that differ");
    let least = kept.min(rewritten).min(differing);
    assert!(least > cases / 10, "{kept} {rewritten} {differing}");
}

/// What was inserted or removed while the learner was away is all that is sent.
#[test]
fn only_what_is_later_is_sent_to_a_learner_that_had_all_before() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let mut source = Contents::new();
        for version in 1..500 {
            put(&mut random, 200, version, &mut [&mut source]);
        }
        let aside = source.clone();
        for version in 500..530 {
            put(&mut random, 200, version, &mut [&mut source]);
        }
        let later = source.values().filter(|state| state.version.0 >= 500);
        let later = later.count();
        let scene = Scene {
            source,
            aside,
            until: Version(499),
            settled: Version::NONE,
            per_range: 8,
        };
        let copied = scene.copy();
        assert_eq!(copied.result, scene.source);
        assert_eq!(copied.differing, []);
        assert_eq!((copied.sent, copied.is_kept), (later, true));
    }
}

/// A remove that reached the learner alone, and was given up, would outdo an insert that was acknowledged later.
#[test]
fn a_newer_state_that_only_the_learner_has_goes() {
    let state = |version, live| State {
        version: Version(version),
        live,
    };
    let key = (CORPORA[0], Fingerprint(5), Box::default());
    for (until, source) in [(12, 7), (12, 12), (20, 15)] {
        let scene = Scene {
            source: Contents::from([(key.clone(), state(source, true))]),
            aside: Contents::from([(key.clone(), state(12, false))]),
            until: Version(until),
            settled: Version::NONE,
            per_range: 1,
        };
        let copied = scene.copy();
        assert_eq!(copied.result, scene.source);
        assert_eq!(copied.is_kept, source > 12);
    }
    let scene = Scene {
        source: Contents::new(),
        aside: Contents::from([(key, state(12, true))]),
        until: Version(12),
        settled: Version::NONE,
        per_range: 1,
    };
    let copied = scene.copy();
    assert_eq!(copied.result, Contents::new());
    assert!(!copied.is_kept);
}

/// DC2.
#[test]
fn ranges_follow_each_other_and_part_no_fingerprint() {
    for seed in 0..300 {
        let scene = Scene::random(&mut Rng::with_seed(seed));
        let source = table(&scene.source);
        let mut ranges: Vec<CopyRange> = Vec::new();
        let visit = |corpus, compared: Compared<'_>| {
            if let Compared::RangeEnd(last, _) = compared {
                let before = ranges.last().filter(|range| range.corpus == corpus);
                let first = before.map_or(0, |range| range.last.0 + 1);
                assert!(Fingerprint(first) <= last);
                let first = Fingerprint(first);
                ranges.push(CopyRange {
                    corpus,
                    first,
                    last,
                });
            }
            true
        };
        let mut cursor = source.cursor(|_| true);
        let corpora = CORPORA.into_iter();
        compare(
            &mut cursor,
            corpora,
            scene.versions(),
            scene.per_range,
            visit,
        )
        .unwrap();
        for corpus in CORPORA {
            let last = ranges.iter().rfind(|range| range.corpus == corpus);
            assert_eq!(last.unwrap().last, Fingerprint(u64::MAX));
        }
    }
}

/// The states of a replica that a comparison counts.
fn counted(contents: &Contents, scene: &Scene) -> Contents {
    let mut counted = contents.clone();
    counted.retain(|_, state| scene.versions().has(*state));
    counted
}

/// The ranges that a replica finds to differ from another one.
fn compared(scene: &Scene) -> Vec<CopyRange> {
    let (own, other) = (table(&scene.aside), table(&scene.source));
    let elements: Vec<Box<dyn Cursor>> = vec![Box::new(own.cursor(|_| true))];
    // The first corpus is one that the own replica lacks.
    let corpora = [CorpusUid([1; 16]), CORPORA[0], CORPORA[1]];
    let mut comparison =
        ReplicaComparison::new(Merge::new(elements), CORPORA.into(), scene.versions());
    let visit = |corpus, compared: Compared<'_>| {
        if let Compared::RangeEnd(last, digest) = compared {
            comparison.end_range(corpus, last, digest).unwrap();
        }
        true
    };
    let mut cursor = other.cursor(|_| true);
    let corpora = corpora.into_iter();
    assert!(
        compare(
            &mut cursor,
            corpora,
            scene.versions(),
            scene.per_range,
            visit
        )
        .unwrap()
    );
    let (ranges, elements) = comparison.finish().unwrap();
    assert_eq!(elements as usize, counted(&scene.aside, scene).len());
    ranges
}

/// DC2, DC5: what two replicas differ in is in the ranges that are found, and each of these holds something that differs.
#[test]
fn ranges_that_differ_are_those_that_hold_a_difference() {
    let first = fastrand::u64(..u64::MAX / 2);
    println!("seeds from {first}");
    let (mut equal, mut differing) = (0, 0);
    for seed in first..first + 4000 {
        let scene = Scene::random(&mut Rng::with_seed(seed));
        let ranges = compared(&scene);
        let own = counted(&scene.aside, &scene);
        let other = counted(&scene.source, &scene);
        let keys = own.keys().chain(other.keys());
        let keys: Vec<_> = keys
            .filter(|key| own.get(*key) != other.get(*key))
            .collect();
        let holds = |range: &CopyRange, (corpus, fingerprint, _): &(CorpusUid, Fingerprint, _)| {
            range.corpus == *corpus && (range.first..=range.last).contains(fingerprint)
        };
        let is_found = |key| ranges.iter().any(|range| holds(range, key));
        assert!(keys.iter().all(|key| is_found(*key)), "seed {seed}");
        let holds_any = |range| keys.iter().any(|key| holds(range, key));
        assert!(ranges.iter().all(holds_any), "seed {seed}");
        equal += u64::from(ranges.is_empty());
        differing += u64::from(!ranges.is_empty());
    }
    assert!(equal.min(differing) > 200, "{equal} {differing}");
}

#[test]
fn a_union_of_ranges_holds_what_they_hold_and_has_no_neighbours() {
    let mut random = Rng::with_seed(3);
    let fingerprint = |place: u64| Fingerprint(u64::MAX - 9 + place);
    for _ in 0..2000 {
        let range = |_| {
            let (one, other) = (random.u64(..10), random.u64(..10));
            CopyRange {
                corpus: CORPORA[random.usize(..2)],
                first: fingerprint(one.min(other)),
                last: fingerprint(one.max(other)),
            }
        };
        let ranges: Vec<CopyRange> = (0..4).map(range).collect();
        let union = CopyRange::union(ranges.clone());
        for corpus in CORPORA {
            let held = |ranges: &[CopyRange]| -> Vec<u64> {
                let holds = |place: &u64| {
                    let is_in = |range: &CopyRange| {
                        let within = range.first..=range.last;
                        range.corpus == corpus && within.contains(&fingerprint(*place))
                    };
                    ranges.iter().any(is_in)
                };
                (0..10).filter(holds).collect()
            };
            assert_eq!(held(&union), held(&ranges));
        }
        for pair in union.windows(2) {
            let has_gap = pair[0].last.0.checked_add(1) < Some(pair[1].first.0);
            assert!(pair[0].corpus < pair[1].corpus || pair[0].corpus == pair[1].corpus && has_gap);
        }
    }
}

#[test]
fn ranges_that_leave_a_gap_or_come_twice_are_refused() {
    let aside = table(&Contents::from([(
        (CORPORA[0], Fingerprint(5), Box::default()),
        State {
            version: Version(3),
            live: true,
        },
    )]));
    let all = Versions {
        until: Version(9),
        settled: Version::NONE,
    };
    let begin = || Comparison::new(aside.cursor(|_| true), all);
    let digest = Digest::default();
    let end = Fingerprint(u64::MAX);
    // It ends in the midst of a corpus, or leaves one out.
    let mut comparison = begin();
    comparison
        .end_range(CORPORA[0], Fingerprint(7), digest)
        .unwrap();
    assert!(comparison.finish().is_err());
    assert!(begin().finish().is_err());
    assert!(begin().end_range(CORPORA[1], end, digest).is_err());
    // Ranges go back, or a corpus comes before the one before has ended, or twice.
    for (corpus, last) in [(CORPORA[0], 7), (CORPORA[1], 9)] {
        let mut comparison = begin();
        comparison
            .end_range(CORPORA[0], Fingerprint(7), digest)
            .unwrap();
        assert!(
            comparison
                .end_range(corpus, Fingerprint(last), digest)
                .is_err()
        );
    }
    let mut comparison = begin();
    comparison.end_range(CORPORA[0], end, digest).unwrap();
    assert!(comparison.end_range(CORPORA[0], end, digest).is_err());
    comparison.end_range(CORPORA[1], end, digest).unwrap();
    let differing = comparison.finish().unwrap();
    assert_eq!(differing.ranges.len(), 2);
}

#[test]
fn a_large_shard_has_as_many_ranges_as_one_that_is_ten_times_larger() {
    assert_eq!(elements_per_range(0), 64);
    assert_eq!(elements_per_range(100_000), 64);
    assert_eq!(elements_per_range(4_096_000), 1_000);
}
