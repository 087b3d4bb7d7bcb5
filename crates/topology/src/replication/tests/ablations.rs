//! Each rule is needed: a search without it finds a breach, and prints the shortest way there.

use super::actions::Action;
use super::comparison::Comparison;
use super::metadata::Change;
use super::rules::Rule;
use super::search::{MOST_WAITING, search};
use super::world::{Config, Operation};
use super::{FLOORS, QUIET, SKEWED, THREE_WRITERS};

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

/// A document was inserted and removed.
pub(super) const REMOVED: &[Action] = &[
    Action::BeginWrite(0),
    Action::Append {
        writer: 0,
        store: 0,
        epoch: 1,
    },
    Action::Append {
        writer: 0,
        store: 1,
        epoch: 1,
    },
    Action::Acknowledge {
        writer: 0,
        epoch: 1,
    },
    Action::BeginWrite(1),
    Action::Append {
        writer: 1,
        store: 0,
        epoch: 1,
    },
    Action::Append {
        writer: 1,
        store: 1,
        epoch: 1,
    },
    Action::Acknowledge {
        writer: 1,
        epoch: 1,
    },
];

/// The same with one store.
const REMOVED_FROM_ONE: &[Action] = &[
    Action::BeginWrite(0),
    Action::Append {
        writer: 0,
        store: 0,
        epoch: 1,
    },
    Action::Acknowledge {
        writer: 0,
        epoch: 1,
    },
    Action::BeginWrite(1),
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

/// A store comes while tombstones are dropped.
pub(super) const JOINED: Config = Config {
    name: "joined",
    in_sync: 1,
    changes: 4,
    reads: false,
    before: REMOVED_FROM_ONE,
    ..FLOORS
};

/// A store leaves and comes back, and copies only what differs, after the other one has dropped a tombstone. The remove has
/// not reached it.
pub(super) const FORGOTTEN: Config = Config {
    name: "forgotten",
    changes: 5,
    in_parts: true,
    reads: false,
    before: &[
        Action::BeginWrite(0),
        Action::Append {
            writer: 0,
            store: 0,
            epoch: 1,
        },
        Action::Append {
            writer: 0,
            store: 1,
            epoch: 1,
        },
        Action::Acknowledge {
            writer: 0,
            epoch: 1,
        },
        Action::Change(Change::Evict(1)),
        Action::Install { store: 0, epoch: 2 },
        Action::BeginWrite(1),
        Action::Append {
            writer: 1,
            store: 0,
            epoch: 2,
        },
        Action::Acknowledge {
            writer: 1,
            epoch: 2,
        },
    ],
    ..FLOORS
};

/// A remove is on its way to another shard, which a scrub reads.
pub(super) const ELSEWHERE: Config = Config {
    name: "elsewhere",
    changes: 2,
    scrubs: 1,
    elsewhere: true,
    reads: false,
    before: REMOVED.split_at(REMOVED.len() - 1).0,
    ..FLOORS
};

/// A remove has reached another shard, and a scrub carries it here.
pub(super) const CARRIED: Config = Config {
    name: "carried",
    changes: 2,
    before: REMOVED.split_at(4).0,
    ..ELSEWHERE
};

/// An insert was acknowledged by three stores. A remove has reached the second one, and a later insert the first one.
pub(super) const SCATTERED: Config = Config {
    name: "scattered",
    stores: 3,
    in_sync: 3,
    late: false,
    reads: false,
    operations: &[
        super::INSERT,
        Operation {
            version: 5,
            live: false,
            may_fail: true,
        },
        Operation {
            version: 14,
            live: true,
            may_fail: true,
        },
    ],
    before: &[
        Action::BeginWrite(0),
        Action::Append {
            writer: 0,
            store: 0,
            epoch: 1,
        },
        Action::Append {
            writer: 0,
            store: 1,
            epoch: 1,
        },
        Action::Append {
            writer: 0,
            store: 2,
            epoch: 1,
        },
        Action::BeginWrite(1),
        Action::Append {
            writer: 1,
            store: 1,
            epoch: 1,
        },
        Action::BeginWrite(2),
        Action::Append {
            writer: 2,
            store: 0,
            epoch: 1,
        },
    ],
    ..FLOORS
};

/// The smallest scene that needs each rule.
const SCENES: [(Rule, Config); 48] = [
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
    (Rule::SettledOnceCompared, FLOORS),
    (Rule::AllInSyncAreCompared, FLOORS),
    (Rule::ComparedOnceApplied, FLOORS),
    (Rule::ComparedByThisRecord, FLOORS),
    (Rule::FloorIsRaisedFirst, FLOORS),
    (Rule::FrozenWhileCompared, CARRIED),
    (Rule::LaterStatesSayNothing, SCATTERED),
    (
        Rule::LateChangesAreBarred,
        Config {
            before: REMOVED,
            ..FLOORS
        },
    ),
    (Rule::LateRepairsAreBarred, ELSEWHERE),
    (Rule::NoLearnerIsThere, JOINED),
    (Rule::LearnersHaveTheFloor, JOINED),
    (Rule::DroppedOnceSettled, JOINED),
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
