//! Shards that are not in the store.

use simshard_simhash::Fingerprint;
use simshard_topology::ShardId;

use super::{CORPUS, ChangeKind, Fixture, change, owned};
use crate::{PageStart, ReadError, SharedChange};

#[test]
fn a_shard_that_is_not_in_the_store_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(directory.path());
    fixture.create();
    let store = &fixture.store;
    let all = |id: ShardId| {
        let start = PageStart::of(Fingerprint(0));
        let last = Fingerprint(u64::MAX);
        let change = change(ChangeKind::Insert, 1, &[(0, "")]);
        let effects = store.apply(id, &SharedChange::new(&change), &[0], |_| false);
        [
            store
                .live_ids(id, CORPUS, Fingerprint(1), None)
                .map(|ids| ids.len()),
            store.scan(id, CORPUS, |_, _| ()).map(|()| 0),
            store
                .page(id, CORPUS, &start, last, 10, |_, _| ())
                .map(|_| 0),
            effects.error.map_or(Ok(0), Err),
        ]
    };
    let absent = ShardId(6);
    assert!(!owned().contains(absent));
    for outcome in all(absent) {
        assert!(
            matches!(outcome, Err(ReadError::ShardAbsent(id)) if id == absent),
            "{outcome:?}"
        );
    }
    for outcome in all(ShardId(5)) {
        assert_eq!(outcome.unwrap(), 0);
    }
}
