//! Requests that are sent in parts.

use simshard_proto::Reason;
use simshard_simhash::Fingerprint;

use super::*;

/// Versions from here on are too far ahead.
const TOO_FAR: u64 = 1000;

/// Versions below are passed by the clock.
const OBSERVED: u64 = 100;

fn above(version: Version) -> Option<Stamp> {
    match version.0 {
        ..OBSERVED => Some(Stamp::Reading),
        OBSERVED..TOO_FAR => Some(Stamp::After(version)),
        TOO_FAR.. => None,
    }
}

/// A request about `documents` documents: 0, 10, 20, …
fn request(documents: u64) -> Pending {
    let documents = Documents {
        fingerprints: (0..documents)
            .map(|number| Fingerprint(10 * number))
            .collect(),
        ids: Vec::new(),
    };
    Pending::new(Arc::new(documents))
}

fn fingerprints(request: &Pending) -> Vec<u64> {
    let documents = request.documents();
    documents.fingerprints.iter().map(|one| one.0).collect()
}

fn sent(request: Pending, changed: u64, newer: &[(usize, u64)]) -> Next {
    let newer = newer
        .iter()
        .map(|(place, version)| (*place, Version(*version)));
    request.sent(changed, newer, above)
}

fn left(next: Next) -> Pending {
    match next {
        Next::Send(request) => request,
        Next::Answer(answer) => panic!("{answer:?}"),
    }
}

fn answer(next: Next) -> Result<u64, RouterError> {
    match next {
        Next::Send(request) => panic!("{request:?}"),
        Next::Answer(answer) => answer,
    }
}

/// CH2.
#[test]
fn only_documents_that_newer_versions_stood_against_are_sent_again_each_above_its_own() {
    let whole = request(6);
    assert_eq!(whole.stamp(), Stamp::Reading);
    assert_eq!(fingerprints(&whole), [0, 10, 20, 30, 40, 50]);
    let newer = [(1, 200), (2, 7), (3, 300), (4, 200), (5, 8)];
    let rest = left(sent(whole, 1, &newer));
    assert_eq!(
        (rest.stamp(), &*fingerprints(&rest)),
        (Stamp::Reading, &[20, 50][..])
    );
    // Of these one meets what others have met already.
    let rest = left(sent(rest, 1, &[(1, 200)]));
    let stamp = Stamp::After(Version(200));
    assert_eq!(
        (rest.stamp(), &*fingerprints(&rest)),
        (stamp, &[10, 40, 50][..])
    );
    let rest = left(sent(rest, 3, &[]));
    let stamp = Stamp::After(Version(300));
    assert_eq!((rest.stamp(), &*fingerprints(&rest)), (stamp, &[30][..]));
    assert_eq!(answer(sent(rest, 1, &[])).unwrap(), 6);
}

/// CH2: whatever the order in which documents meet newer versions.
#[test]
fn what_is_refused_of_a_part_is_what_was_sent_at_its_place() {
    let rest = left(sent(request(2), 0, &[(0, 7), (1, 200)]));
    assert_eq!(fingerprints(&rest), [0]);
    let both = left(sent(rest, 0, &[(0, 200)]));
    assert_eq!(fingerprints(&both), [0, 10]);
    let first = left(sent(both, 1, &[(0, 300)]));
    assert_eq!(fingerprints(&first), [0]);
    assert_eq!(answer(sent(first, 1, &[])).unwrap(), 2);
}

/// CH3.
#[test]
fn documents_too_far_ahead_are_named_once_all_others_are_done() {
    let newer = [(0, 5000), (1, 9), (3, 7000), (4, 6000)];
    let rest = left(sent(request(5), 1, &newer));
    assert_eq!(fingerprints(&rest), [10]);
    let error = answer(sent(rest, 1, &[])).unwrap_err();
    assert_eq!(error.reason(), Reason::ClockAhead);
    let RouterError::TooFarAhead(documents) = error else {
        panic!("{error}");
    };
    let expected = TooFarAhead {
        count: 3,
        fingerprint: Fingerprint(30),
        version: Version(7000),
    };
    assert_eq!(documents, expected);
}

#[test]
fn a_request_gives_way_after_the_most_conflicts_however_many_parts_it_has() {
    let mut rest = left(sent(request(20), 0, &[(0, 1)]));
    for _ in 2..MOST_CONFLICTS {
        rest = left(sent(rest, 0, &[(0, 1)]));
    }
    let error = answer(sent(rest, 0, &[(0, 1)])).unwrap_err();
    assert_eq!(error.reason(), Reason::WriteConflict);

    let newer: Vec<(usize, u64)> = (0..20).zip(OBSERVED..).collect();
    let mut rest = left(sent(request(20), 0, &newer));
    for _ in 1..20 {
        rest = left(sent(rest, 1, &[]));
    }
    assert_eq!(answer(sent(rest, 1, &[])).unwrap(), 20);
    assert_eq!(answer(sent(request(0), 0, &[])).unwrap(), 0);
}

/// CH3.
#[test]
fn documents_that_did_not_change_are_not_hidden_by_one_that_is_too_far_ahead() {
    let mut request = left(sent(request(2), 0, &[(0, TOO_FAR), (1, 1)]));
    for _ in 2..MOST_CONFLICTS {
        request = left(sent(request, 0, &[(0, 1)]));
    }
    let answer = answer(sent(request, 0, &[(0, 1)]));
    assert!(
        matches!(answer, Err(RouterError::WriteConflict)),
        "{answer:?}"
    );
}
