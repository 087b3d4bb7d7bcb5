//! Damage that the scrub finds before a request needs the segment.

use simshard_simhash::Fingerprint;
use simshard_topology::{ShardId, ShardSet};

use super::{CORPUS, Fixture, Options, Store, change, insert, owned, small};
use crate::element::ChangeKind;
use crate::stored::SharedChange;

/// SC1, SC2.
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
    assert!(fixture.store.damaged().is_empty());
    fixture.store.scrub_all(|_| true);
    assert_eq!(fixture.store.damaged(), ShardSet::from_iter([ShardId(0)]));
    let message = ids().unwrap_err().to_string();
    assert!(message.contains(file.to_str().unwrap()), "{message}");

    // A document that needs the segment is refused. The other one changes, and the effects say so.
    let both = change(ChangeKind::Insert, 2, &[(value, "a"), (1, "b")]);
    let is_stored = |fingerprint: Fingerprint| fingerprint.0 == value;
    let effects = fixture
        .store
        .apply(ShardId(0), &SharedChange::new(&both), &[0, 1], is_stored);
    assert_eq!(effects.changed, [1]);
    assert!(effects.error.is_some());
    std::fs::write(&file, sound).unwrap();
    assert!(ids().is_err(), "until an operator has looked at it");
}
