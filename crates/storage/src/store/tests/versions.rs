//! Changes that meet a state which is as new as they are, or newer.

use simshard_topology::Version;

use super::{Fixture, change, insert, remove};
use crate::element::{ChangeKind, Operation};

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
