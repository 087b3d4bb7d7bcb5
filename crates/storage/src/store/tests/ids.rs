//! The ids behind a fingerprint: all of them, or the first ones.

use std::num::NonZeroUsize;

use simshard_simhash::Fingerprint;
use simshard_topology::ShardId;

use super::{CORPUS, Fixture, Options, Store, insert, owned, remove, small};

/// A fingerprint that is in shard 0, and in no other that is owned.
const VALUE: u64 = 0x0077_7777_7777_7777;

fn ids(fixture: &Fixture, most: usize) -> Vec<String> {
    let most = NonZeroUsize::new(most);
    let ids = fixture
        .store
        .live_ids(ShardId(0), CORPUS, Fingerprint(VALUE), most);
    ids.unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn the_ids_of_a_fingerprint_are_those_of_its_live_documents() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    let first = [(VALUE, "b"), (VALUE, ""), (VALUE + 1, "other")];
    insert(&fixture, 1, &first);
    fixture.flush();
    insert(&fixture, 2, &[(VALUE, "a"), (VALUE, "b")]);
    assert_eq!(ids(&fixture, 0), ["", "a", "b"]);
    remove(&fixture, 3, &[(VALUE, "b")]);
    assert_eq!(ids(&fixture, 0), ["", "a"]);
    fixture.flush();
    assert_eq!(ids(&fixture, 0), ["", "a"]);
}

/// Wherever they stand, and whatever was removed of them elsewhere.
#[test]
fn the_first_ids_are_the_first_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for version in 1..60 {
        let names = (0..random.usize(1..30)).map(|_| random.u8(0..120).to_string());
        let names: Vec<String> = names.collect();
        let documents: Vec<(u64, &str)> = names.iter().map(|id| (VALUE, &**id)).collect();
        if random.bool() {
            insert(&fixture, version, &documents)
        } else {
            remove(&fixture, version, &documents)
        };
        if random.u8(0..8) == 0 {
            fixture.upkeep(&|_| Ok(())).flush().unwrap();
        }
        let all = ids(&fixture, 0);
        for most in [1, 2, 3, 10, 50, 200] {
            assert_eq!(
                ids(&fixture, most),
                all[..most.min(all.len())],
                "{most} of {all:?}"
            );
        }
    }
}

#[test]
fn few_ids_of_many_take_few_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        cache_bytes: 64 << 20,
        ..small()
    };
    let store = Store::open(directory.path(), owned(), options).unwrap();
    let fixture = Fixture::start(store);
    fixture.create();
    let names: Vec<String> = (0..3000).map(|number| format!("{number:0500}")).collect();
    let documents: Vec<(u64, &str)> = names.iter().map(|id| (VALUE, &**id)).collect();
    insert(&fixture, 1, &documents);
    fixture.flush();
    let cached = || fixture.store.disk.as_ref().unwrap().cache.bytes();
    assert_eq!(ids(&fixture, 10), names[..10]);
    let few = cached();
    assert_eq!(ids(&fixture, 0), names);
    assert!(
        few < 2 * 65_536 + 1000 && cached() > 1_000_000,
        "{few} of {}",
        cached()
    );
}
