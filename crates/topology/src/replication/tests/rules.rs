//! The rules that a search can leave out. The code under test knows nothing of this: the model asks it, or does not.

/// A rule without which a promise breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A step evicts one store at most: EP1.
    OneEvictionAtOnce,
    /// A step does not promote a store and evict another: EP1.
    NoSwap,
    /// A step is taken from a sealed record: EP2.
    Seal,
    /// For a seal, synced records count: EP2.
    SealBySync,
    /// A store that lost its disk comes back under another name.
    LostDisksGetNewNames,
    /// All stores that the record names must answer: QW1.
    AllOfTheWriteSet,
    /// A store answers after the sync: QW1.
    AnswerAfterSync,
    /// A store takes writes at its own epoch only: RP1.
    EpochsMustAgree,
    /// A newer state that means the opposite is told.
    NewerIsNoSuccess,
    /// A newer state that means the same is told, too.
    SameMeaningIsNoSuccess,
    /// An answer needs a proof: QR2.
    Proof,
    /// A read quorum must confirm: QR2.
    ReadQuorum,
    /// The read of the metadata is linearizable: QR2.
    LinearizableMetadata,
    /// Learners are in the write set: QW1.
    LearnersAreWrittenTo,
    /// A source installs the addition before it is pinned.
    PinAfterInstall,
    /// A source applies the addition before it is pinned.
    PinAfterApply,
    /// A learner is promoted by its word: EP4.
    PromoteByWord,
    /// The gate obeys a record from its append on: RP1.
    GateFromAppend,
    /// The data of a former role is no part of a new learner: RP3.
    NewLearnersBeginEmpty,
    /// It is not merged later either: RP3.
    NothingSetAsideIsMerged,
    /// What was set aside counts for nothing if it is later than what is compared: DC1.
    LaterIsNotKept,
    /// Where what was set aside differs, it stays only below states that outdo it: DC3.
    DifferingIsReplaced,
    /// A copy throws away the tables that were made before it: HC1.
    CopiesThrowTablesAway,
    /// Tables follow changes: HC1.
    TablesFollow,
    /// At the end of a copy the source is still in sync: RP5.
    SourceStaysInSync,
    /// It has been in sync ever since the pin: RP5.
    SourceStaysInSyncSince,
    /// A pin serves the addition that it was made for: RP5.
    PinOfThisAddition,
    /// So does a learner's word: EP4.
    WordOfThisAddition,
    /// A repair passes the gate at the epoch of its source only: SB2.
    RepairsOfTheirEpoch,
    /// A learner takes writes once a store in sync has its addition: RI12.
    AdditionIsReported,
    /// A forced record waits until all that answered have it: FO2.
    ForceIsFenced,
    /// And no step follows before: FO2.
    ForceIsSealedByAll,
    /// A store that was stopped has the forced record before it serves.
    StoppedStoresLearnFirst,
    /// A store deletes what it has by its own log, not by the metadata: CY5.
    DeletedByTheOwnLog,
    /// The record that leaves it out is applied then: CY5.
    DeletedOnceApplied,
    /// What is settled was compared: FL3.
    SettledOnceCompared,
    /// On all stores in sync: FL3.
    AllInSyncAreCompared,
    /// Each of them had applied the record: FL3.
    ComparedOnceApplied,
    /// By the very record that is replaced: FL3.
    ComparedByThisRecord,
    /// No learner is there: FL3.
    NoLearnerIsThere,
    /// Changes up to what is compared are not taken any more: FL3.
    FloorIsRaisedFirst,
    /// Neither are repairs: FL3.
    FrozenWhileCompared,
    /// Where a store has a later state, the others agree without it: FL4.
    LaterStatesSayNothing,
    /// A store takes no changes up to the floor: FL2.
    LateChangesAreBarred,
    /// It takes no repairs up to what is settled: FL2.
    LateRepairsAreBarred,
    /// A learner has the floor of its record: FL2.
    LearnersHaveTheFloor,
    /// Tombstones go once they are settled: FL5.
    DroppedOnceSettled,
}
