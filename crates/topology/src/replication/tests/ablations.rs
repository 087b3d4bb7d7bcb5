//! Each rule is needed: a search without it finds a breach, and prints the shortest way there.

use super::actions::Action;
use super::comparison::Comparison;
use super::metadata::Change;
use super::rules::Rule;
use super::search::{MOST_WAITING, search};
use super::world::Config;
use super::{QUIET, SKEWED, THREE_WRITERS};

/// One store that another one joins.
const GROWS: Config = Config {
    stores: 2,
    changes: 2,
    reads: false,
    ..QUIET
};

/// Two stores, of which one leaves.
const SHRINKS: Config = Config {
    stores: 2,
    in_sync: 2,
    changes: 1,
    ..QUIET
};

/// Three stores, of which two leave.
const SHRINKS_TWICE: Config = Config {
    stores: 3,
    in_sync: 3,
    changes: 2,
    ..QUIET
};

/// A store leaves and comes back, with an operation that was given up.
const COMES_BACK: Config = Config {
    stores: 2,
    in_sync: 2,
    changes: 3,
    reads: false,
    operations: SKEWED,
    before: GIVEN_UP,
    ..QUIET
};

/// A remove reached the first store only, and was given up.
const GIVEN_UP: &[Action] = &[
    Action::BeginWrite(0),
    Action::Append {
        writer: 0,
        store: 0,
        epoch: 1,
    },
    Action::TellFailure(0),
    Action::GiveUp(0),
];

/// A remove was given up, and a scrub carries it on.
const SCRUBBED: Config = Config {
    stores: 3,
    in_sync: 3,
    changes: 1,
    scrubs: 1,
    reads: false,
    operations: SKEWED,
    before: GIVEN_UP,
    ..QUIET
};

/// A write begins, and the first store is evicted.
const ONE_LEAVES: &[Action] = &[Action::BeginWrite(0), Action::Change(Change::Evict(0))];

/// An insert was outdone by a remove that goes on, got a new version, and was acknowledged.
const OUTDONE: &[Action] = &[
    Action::BeginWrite(0),
    Action::Append {
        writer: 0,
        store: 0,
        epoch: 1,
    },
    Action::BeginWrite(1),
    Action::Append {
        writer: 1,
        store: 0,
        epoch: 1,
    },
    Action::Restamp(1),
    Action::Append {
        writer: 1,
        store: 0,
        epoch: 1,
    },
    Action::Acknowledge {
        writer: 1,
        epoch: 1,
    },
];

/// A store copies from the first one, which is evicted and may come back meanwhile.
pub(super) const SOURCE_RETURNS: Config = Config {
    name: "source returns",
    stores: 3,
    changes: 5,
    before: &[
        Action::BeginWrite(0),
        Action::Append {
            writer: 0,
            store: 0,
            epoch: 1,
        },
        Action::TellFailure(0),
        Action::GiveUp(0),
        Action::Change(Change::Add(2)),
        Action::Install { store: 0, epoch: 2 },
        Action::Install { store: 2, epoch: 2 },
        Action::Pin {
            learner: 2,
            source: 0,
        },
        Action::Change(Change::Evict(0)),
        Action::Install { store: 0, epoch: 3 },
        Action::Install { store: 1, epoch: 3 },
        Action::Install { store: 2, epoch: 3 },
    ],
    ..COMES_BACK
};

/// An operator lets one of three stores go on alone, and steps follow.
const FORCED: Config = Config {
    stores: 3,
    in_sync: 3,
    changes: 1,
    forces: 1,
    ..QUIET
};

/// Three of six stores are learners, and all answer when a record is forced.
const THREE_LEARNERS: &[Action] = &[
    Action::BeginWrite(0),
    Action::Change(Change::Add(3)),
    Action::Install { store: 0, epoch: 2 },
    Action::Install { store: 1, epoch: 2 },
    Action::Change(Change::Add(4)),
    Action::Install { store: 0, epoch: 3 },
    Action::Install { store: 1, epoch: 3 },
    Action::Change(Change::Add(5)),
    Action::Install { store: 0, epoch: 4 },
    Action::Install { store: 1, epoch: 4 },
    Action::Install { store: 2, epoch: 4 },
    Action::Install { store: 3, epoch: 4 },
    Action::Install { store: 4, epoch: 4 },
    Action::Install { store: 5, epoch: 4 },
    Action::Change(Change::Force {
        store: 0,
        answering: 0b11_1111,
    }),
];

/// A change was given up, and a move has brought the shard to a second store. The first one leaves, deletes what it has,
/// and may come back.
pub(super) const MOVED: Config = Config {
    name: "moved",
    stores: 2,
    in_sync: 1,
    changes: 5,
    deletes: true,
    in_parts: true,
    reads: true,
    before: &[
        Action::BeginWrite(0),
        Action::Append {
            writer: 0,
            store: 0,
            epoch: 1,
        },
        Action::TellFailure(0),
        Action::GiveUp(0),
        Action::Change(Change::Add(1)),
        Action::Install { store: 0, epoch: 2 },
        Action::Install { store: 1, epoch: 2 },
        Action::Pin {
            learner: 1,
            source: 0,
        },
        Action::EndCopy {
            learner: 1,
            comparison: Comparison::WHOLE,
        },
        Action::Change(Change::Promote(1)),
        Action::Install { store: 0, epoch: 3 },
        Action::Install { store: 1, epoch: 3 },
    ],
    ..COMES_BACK
};

/// An insert goes on while its shard is moved, and stores apply what they append later.
const MOVED_LATER: Config = Config {
    operations: &[super::INSERT],
    changes: 3,
    crashes: 1,
    in_parts: false,
    at_once: false,
    before: &[Action::BeginWrite(0), Action::Change(Change::Evict(0))],
    in_sync: 2,
    ..MOVED
};

/// The smallest scene that needs each rule.
const SCENES: [(Rule, Config); 36] = [
    (
        Rule::OneEvictionAtOnce,
        Config {
            changes: 1,
            ..SHRINKS_TWICE
        },
    ),
    (
        Rule::NoSwap,
        Config {
            reads: true,
            ..GROWS
        },
    ),
    (Rule::Seal, SHRINKS_TWICE),
    (
        Rule::SealBySync,
        Config {
            at_once: false,
            crashes: 1,
            before: ONE_LEAVES,
            ..SHRINKS_TWICE
        },
    ),
    // A log that refuses a record does what a crash does.
    (
        Rule::SealBySync,
        Config {
            at_once: false,
            before: ONE_LEAVES,
            ..SHRINKS_TWICE
        },
    ),
    (Rule::LostDisksGetNewNames, Config { wipes: 1, ..QUIET }),
    (
        Rule::AllOfTheWriteSet,
        Config {
            stores: 3,
            in_sync: 3,
            ..QUIET
        },
    ),
    (
        Rule::AnswerAfterSync,
        Config {
            at_once: false,
            crashes: 1,
            ..QUIET
        },
    ),
    (Rule::EpochsMustAgree, GROWS),
    (
        Rule::NewerIsNoSuccess,
        Config {
            operations: SKEWED,
            ..QUIET
        },
    ),
    (Rule::Proof, SHRINKS),
    (Rule::ReadQuorum, SHRINKS),
    (Rule::LinearizableMetadata, SHRINKS),
    (Rule::LearnersAreWrittenTo, GROWS),
    (
        Rule::PinAfterInstall,
        Config {
            stores: 3,
            in_sync: 2,
            ..GROWS
        },
    ),
    (
        Rule::PinAfterApply,
        Config {
            at_once: false,
            ..GROWS
        },
    ),
    (Rule::PromoteByWord, GROWS),
    (
        Rule::GateFromAppend,
        Config {
            at_once: false,
            ..GROWS
        },
    ),
    (Rule::NewLearnersBeginEmpty, COMES_BACK),
    (Rule::NothingSetAsideIsMerged, COMES_BACK),
    (
        Rule::SourceStaysInSync,
        Config {
            stores: 3,
            ..COMES_BACK
        },
    ),
    (
        Rule::SameMeaningIsNoSuccess,
        Config {
            in_sync: 1,
            reads: false,
            before: OUTDONE,
            ..THREE_WRITERS
        },
    ),
    (Rule::SourceStaysInSyncSince, SOURCE_RETURNS),
    (
        Rule::PinOfThisAddition,
        Config {
            changes: 4,
            ..GROWS
        },
    ),
    (
        Rule::WordOfThisAddition,
        Config {
            changes: 4,
            ..GROWS
        },
    ),
    (
        Rule::AdditionIsReported,
        Config {
            operations: SKEWED,
            ..GROWS
        },
    ),
    (Rule::ForceIsFenced, FORCED),
    (
        Rule::ForceIsSealedByAll,
        Config {
            stores: 6,
            keeps: true,
            changes: 5,
            before: THREE_LEARNERS,
            ..FORCED
        },
    ),
    (Rule::StoppedStoresLearnFirst, FORCED),
    (
        Rule::LaterIsNotKept,
        Config {
            in_parts: true,
            ..COMES_BACK
        },
    ),
    (
        Rule::DifferingIsReplaced,
        Config {
            in_parts: true,
            ..COMES_BACK
        },
    ),
    (
        Rule::CopiesThrowTablesAway,
        Config {
            hot: 2,
            reads: true,
            ..GROWS
        },
    ),
    (Rule::RepairsOfTheirEpoch, SCRUBBED),
    (Rule::TablesFollow, Config { hot: 1, ..QUIET }),
    (Rule::DeletedByTheOwnLog, MOVED),
    (Rule::DeletedOnceApplied, MOVED_LATER),
];

#[test]
fn each_rule_is_needed() {
    let mut needless = Vec::new();
    for (rule, scene) in SCENES {
        let config = Config {
            without: Some(rule),
            ..scene
        };
        let found = search(&config, MOST_WAITING);
        match found.breach {
            Some((promise, trace)) => {
                println!(
                    "without {rule:?}: {promise:?} breaks in {} steps",
                    trace.len()
                );
                println!("  {trace:?}");
            }
            None => needless.push((rule, found.states)),
        }
    }
    assert!(needless.is_empty(), "{needless:?}");
}
