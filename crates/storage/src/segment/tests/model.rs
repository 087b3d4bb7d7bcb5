//! What is read equals what a plain map says.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

/// Documents of a model and others like them.
fn some_keys(model: &Model, seed: u64) -> Vec<(CorpusUid, Fingerprint, String)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let all: Vec<_> = model.keys().collect();
    let mut keys = Vec::new();
    for _ in 0..60 {
        let (mut corpus, mut fingerprint, mut id) = all[random.usize(..all.len())].clone();
        match random.u8(0..8) {
            0 => corpus.0[random.usize(0..16)] ^= 1,
            1 => fingerprint.0 = fingerprint.0.wrapping_add(1),
            2 => fingerprint.0 = fingerprint.0.wrapping_sub(1),
            3 => id.push('!'),
            4 => drop(id.pop()),
            _ => {}
        }
        keys.push((corpus, fingerprint, id));
    }
    keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if crate::tests::is_long() { 4_000 } else { 60 }))]

    /// G1.
    #[test]
    fn a_segment_is_the_map_that_was_written(
        seed: u64,
        corpora in 1_usize..6,
        cache_bytes in prop_oneof![Just(0_u64), Just(100_000), Just(1 << 26)],
    ) {
        let model = model(seed, corpora);
        let directory = tempfile::tempdir().unwrap();
        let meta = write(directory.path(), &model);
        let segment = open(directory.path(), meta, cache_bytes).unwrap();

        let highest = model.values().map(|state| state.version).max();
        prop_assert_eq!((meta.elements, Some(meta.highest_version)), (model.len() as u64, highest));
        let path = directory.path().join(ID.to_string());
        let file = std::fs::read(path).unwrap();
        prop_assert_eq!((meta.bytes, meta.hash), (file.len() as u64, blake3::hash(&file).into()));
        segment.verify(|_| true).unwrap();

        let mut corpora: Vec<CorpusUid> = model.keys().map(|key| key.0).collect();
        corpora.dedup();
        prop_assert!(segment.corpora().eq(corpora.iter().copied()));
        prop_assert!(rest(segment.scan_all(|_| true).unwrap()).unwrap() == model);
        for &kept in &corpora {
            let expected: Model = model.iter()
                .filter(|(key, _)| key.0 != kept)
                .map(|(key, state)| (key.clone(), *state))
                .collect();
            prop_assert!(rest(segment.scan_all(|corpus| corpus != kept).unwrap()).unwrap() == expected);
        }
        for (corpus, fingerprint, id) in some_keys(&model, seed) {
            let key = (corpus, fingerprint, id.clone());
            let found = segment.find(corpus, fingerprint, &id).unwrap();
            prop_assert_eq!(found, model.get(&key).copied());

            let mut found = Vec::new();
            let visit = |element: Element<'_>| {
                assert_eq!(element.fingerprint, fingerprint);
                found.push((element.id.to_owned(), State::from(element)));
                ControlFlow::Continue(())
            };
            segment.lookup(corpus, fingerprint, visit).unwrap();
            let expected: Vec<_> = model
                .range((corpus, fingerprint, String::new())..)
                .take_while(|(key, _)| (key.0, key.1) == (corpus, fingerprint))
                .map(|(key, state)| (key.2.clone(), *state))
                .collect();
            prop_assert!(found == expected);

            let from = segment.scan(corpus, Some((fingerprint, &id))).unwrap();
            let expected = model.range(key..).take_while(|(key, _)| key.0 == corpus);
            let expected: Model = expected.map(|(key, state)| (key.clone(), *state)).collect();
            prop_assert!(rest(from).unwrap() == expected);
        }
        let whole = segment.scan(corpora[0], None).unwrap();
        let expected = model.iter().filter(|(key, _)| key.0 == corpora[0]);
        prop_assert_eq!(rest(whole).unwrap().len(), expected.count());
    }
}

/// G5.
#[test]
fn the_cache_keeps_to_its_bytes_and_scans_leave_it_alone() {
    let elements =
        (0..60_000).map(|n| ((CorpusUid([1; 16]), Fingerprint(n), String::new()), STATE));
    let model: Model = elements.collect();
    let directory = tempfile::tempdir().unwrap();
    let meta = write(directory.path(), &model);
    let cache = Arc::new(BlockCache::new(300_000));
    let opened = DiskDirectory::read_only(directory.path());
    let segment = Segment::open(&opened, STORE, ID, meta, Arc::clone(&cache)).unwrap();
    rest(segment.scan_all(|_| true).unwrap()).unwrap();
    assert_eq!(cache.bytes(), 0);
    segment
        .find(CorpusUid([1; 16]), Fingerprint(0), "")
        .unwrap();
    assert!(
        (65_000..70_000).contains(&cache.bytes()),
        "one block: {}",
        cache.bytes()
    );
    for n in 0..60_000 {
        let found = segment
            .find(CorpusUid([1; 16]), Fingerprint(n), "")
            .unwrap();
        assert_eq!(found, Some(STATE));
        assert!((1..=300_000).contains(&cache.bytes()), "{}", cache.bytes());
    }
}

const STATE: State = State {
    version: Version(5),
    live: true,
};

/// Counts how often it is read.
struct Counted<'a>(&'a [u8], AtomicUsize);

impl ReadAt for Counted<'_> {
    fn length(&self) -> std::io::Result<u64> {
        self.0.length()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read_exact_at(buffer, offset)
    }
}

#[test]
fn one_of_very_many_ids_is_found_with_few_reads() {
    let ids: Vec<String> = (0..9_000).map(|n| format!("{n:0>1000}")).collect();
    let (corpus, fingerprint) = (CorpusUid([1; 16]), Fingerprint(3));
    let blocks: Vec<_> = ids
        .chunks(60)
        .map(|ids| {
            let documents: Vec<_> = ids.iter().map(|id| (3, id.as_str())).collect();
            (corpus, block(&documents))
        })
        .collect();
    let (bytes, meta) = assemble(&blocks);
    let segment = open_bytes(Counted(&bytes, AtomicUsize::new(0)), meta).unwrap();
    assert_eq!(blocks.len(), 150);
    for id in ids.iter().step_by(101) {
        segment.source().1.store(0, Ordering::Relaxed);
        assert!(segment.find(corpus, fingerprint, id).unwrap().is_some());
        let reads = segment.source().1.load(Ordering::Relaxed);
        assert!((1..=9).contains(&reads), "{reads}");
    }
    let behind = segment.scan(corpus, Some((fingerprint, "~"))).unwrap();
    assert!(behind.element().is_none());
}

#[test]
fn a_hot_block_is_read_once_and_one_in_no_block_never() {
    let (corpus, other) = (CorpusUid([1; 16]), CorpusUid([2; 16]));
    let (bytes, meta) = assemble(&[(corpus, block(&[(3, ""), (9, "a")]))]);
    let source = Counted(&bytes, AtomicUsize::new(0));
    let header = Header {
        store: STORE,
        id: ID,
    };
    let cache = Arc::new(BlockCache::new(1 << 20));
    let segment = Segment::from_source(source, PathBuf::new(), header, meta, cache).unwrap();
    let reads_to_open = segment.source().1.load(Ordering::Relaxed);
    for (corpus, fingerprint) in [(other, 3), (corpus, 2), (corpus, 10)] {
        assert_eq!(
            segment.find(corpus, Fingerprint(fingerprint), "").unwrap(),
            None
        );
    }
    assert_eq!(segment.source().1.load(Ordering::Relaxed), reads_to_open);
    for _ in 0..5 {
        assert!(segment.find(corpus, Fingerprint(9), "a").unwrap().is_some());
        assert!(segment.find(corpus, Fingerprint(5), "a").unwrap().is_none());
    }
    assert_eq!(
        segment.source().1.load(Ordering::Relaxed),
        reads_to_open + 1
    );
}

#[test]
fn segments_that_share_a_cache_keep_their_blocks_apart() {
    let corpus = CorpusUid([1; 16]);
    let cache = Arc::new(BlockCache::new(1 << 20));
    // Two of one name: the number of a segment that no manifest names is given again.
    for (fingerprint, other) in [(3, 4), (4, 3)] {
        let (bytes, meta) = assemble(&[(corpus, block(&[(0, ""), (fingerprint, ""), (9, "")]))]);
        let header = Header {
            store: STORE,
            id: ID,
        };
        let cache = Arc::clone(&cache);
        let segment =
            Segment::from_source(&bytes[..], PathBuf::new(), header, meta, cache).unwrap();
        assert!(
            segment
                .find(corpus, Fingerprint(fingerprint), "")
                .unwrap()
                .is_some()
        );
        assert!(
            segment
                .find(corpus, Fingerprint(other), "")
                .unwrap()
                .is_none()
        );
    }
}
