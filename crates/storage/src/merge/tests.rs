//! Merging against a plain map.

use std::io;

use proptest::prelude::*;
use simshard_topology::Version;

use super::*;
use crate::element::State;
use crate::segment::tests::{Model, open, rest, write};

type Owned = ((CorpusUid, Fingerprint, String), State);

/// A stream of elements in memory, which may fail now and then.
#[derive(Debug)]
struct Listed {
    elements: Vec<Owned>,
    place: usize,
    /// Advances that fail once, by their number, the next one last.
    failures: Vec<usize>,
    advances: usize,
}

impl Listed {
    fn new(model: &Model) -> Self {
        let elements = model.iter().map(|(key, state)| (key.clone(), *state));
        Self {
            elements: elements.collect(),
            place: 0,
            failures: Vec::new(),
            advances: 0,
        }
    }
}

impl Cursor for Listed {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        let ((corpus, fingerprint, id), state) = self.elements.get(self.place)?;
        let element = Element {
            fingerprint: *fingerprint,
            id,
            version: state.version,
            live: state.live,
        };
        Some((*corpus, element))
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.advances += 1;
        if self.failures.last() == Some(&self.advances) {
            self.failures.pop();
            let path = "listed".into();
            let source = io::ErrorKind::TimedOut.into();
            return Err(ReadError::Io { path, source });
        }
        self.place += 1;
        Ok(())
    }
}

/// A few streams over few keys, so that they meet; versions are few too.
fn streams() -> impl Strategy<Value = Vec<Model>> {
    let corpus = prop_oneof![Just([0; 16]), Just([255; 16]), Just([7; 16])].prop_map(CorpusUid);
    let fingerprint = prop_oneof![Just(0), Just(5), Just(u64::MAX)].prop_map(Fingerprint);
    let id = prop_oneof![2 => Just(String::new()), 1 => "[ab]{1,2}"];
    let state = (1_u64..5, any::<bool>()).prop_map(|(version, live)| State {
        version: Version(version),
        live,
    });
    let stream = prop::collection::btree_map((corpus, fingerprint, id), state, 0..12);
    prop::collection::vec(stream, 0..7)
}

fn merged(streams: &[Model]) -> Model {
    let mut merged = Model::new();
    for (key, state) in streams.iter().flatten() {
        let newest = merged.entry(key.clone()).or_insert(*state);
        *newest = (*state).max(*newest);
    }
    merged
}

proptest! {
    /// K1, K2: `rest` checks that keys ascend strictly.
    #[test]
    fn the_newest_state_of_each_key_comes_once(streams in streams()) {
        let merge = Merge::new(streams.iter().map(Listed::new).collect());
        prop_assert_eq!(rest(merge).unwrap(), merged(&streams));
    }

    /// K3.
    #[test]
    fn errors_are_passed_on_and_lose_nothing(
        streams in streams(),
        failures in prop::collection::vec(prop::collection::vec(1_usize..15, 0..6), 7),
    ) {
        let mut failing: Vec<Listed> = streams.iter().map(Listed::new).collect();
        for (stream, mut failures) in failing.iter_mut().zip(failures) {
            failures.sort_by(|a, b| b.cmp(a));
            failures.dedup();
            stream.failures = failures;
        }
        let mut merge = Merge::new(failing);
        let mut found = Model::new();
        while let Some((corpus, element)) = merge.element() {
            let key = (corpus, element.fingerprint, element.id.to_owned());
            prop_assert_eq!(found.insert(key.clone(), element.into()), None);
            while merge.advance().is_err() {
                let (corpus, element) = merge.element().unwrap();
                prop_assert_eq!((corpus, element.fingerprint, element.id), (key.0, key.1, &*key.2));
            }
        }
        prop_assert_eq!(found, merged(&streams));
    }

    #[test]
    fn segments_merge_like_their_maps(streams in streams()) {
        let directories: Vec<_> = streams.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        let mut segments = Vec::new();
        for (model, directory) in streams.iter().zip(&directories) {
            if !model.is_empty() {
                let meta = write(directory.path(), model);
                segments.push(open(directory.path(), meta, 0).unwrap());
            }
        }
        let scans = segments.iter().map(|segment| segment.scan_all(|_| true).unwrap());
        let boxed = scans.map(|scan| Box::new(scan) as Box<dyn Cursor + '_>);
        let merge = Merge::new(boxed.collect());
        prop_assert_eq!(rest(merge).unwrap(), merged(&streams));
    }
}

/// K3, K4.
#[test]
fn forgotten_tombstones_are_left_out_and_nothing_else() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model::new();
        for _ in 0..random.usize(..40) {
            let key = (
                CorpusUid([random.u8(..2); 16]),
                Fingerprint(random.u64(..20)),
            );
            let state = State {
                version: Version(random.u64(1..20)),
                live: random.bool(),
            };
            model.insert((key.0, key.1, String::new()), state);
        }
        let settled = Version(random.u64(..20));
        let mut stream = Listed::new(&model);
        stream.failures = vec![random.usize(1..20)];
        let mut remembered = loop {
            match Remembered::new(stream, settled) {
                Ok(remembered) => break remembered,
                Err(_) => stream = Listed::new(&model),
            }
        };
        let mut found = Model::new();
        while let Some((corpus, element)) = remembered.element() {
            let state = State::from(element);
            if !is_forgotten(state, settled) {
                found.insert((corpus, element.fingerprint, element.id.to_owned()), state);
            }
            // A failure leaves it where it is, or at a tombstone.
            let _ = remembered.advance();
        }
        model.retain(|_, state| !is_forgotten(*state, settled));
        assert_eq!(found, model, "seed {seed}");
    }
}
