//! Faults that are planted in what drives the core, so that the simulation shows that it finds them.

/// A rule that a node or a router forgets. What the id after it promises breaks then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A node answers a write once it is appended: QW1.
    AnswersBeforeSync,
    /// A router acknowledges what a majority of the stores has: QW1.
    MajorityAcknowledges,
    /// A router does not wait for learners: QW1.
    LearnersAreNotAwaited,
    /// A node says that a write is done though a newer state stays.
    NewerIsSuccess,
    /// A change gets a new version though its caller was told that it failed: QW2.
    NewVersionAfterFailure,
    /// A router believes the first answer: QR2.
    NoProof,
    /// A router believes an answer by the word of one store: QR2.
    OneConfirmation,
    /// A router believes its own copy of the records: QR2.
    StaleMetadataProves,
    /// A step is taken from a record that is not sealed: EP2.
    NoSeal,
    /// A step evicts all dead stores at once: EP1.
    TwoEvictedAtOnce,
    /// A learner is promoted before it has copied the shard: EP4.
    PromotedWithoutCopy,
    /// A learner begins with what it held in a former role: RP3.
    LearnersKeepTheirData,
    /// The end of a copy undoes what the learner took meanwhile: RP3.
    CopiesReplaceLaterWrites,
    /// A copy counts though its source has left: RP5.
    SourceMayLeave,
    /// A source pins what is appended, and copies what is applied: RP5.
    PinnedBeforeApplied,
    /// A node takes writes by the record that is applied: RP1.
    GateFromApplied,
    /// A directory that is older than the last start serves: IC1, IC2.
    OlderDirectoryServes,
    /// Tombstones are dropped as soon as they are on disk.
    TombstonesDropped,
    /// A node comes to shards though it is drained: PE16.
    DrainedNodesCome,
    /// A repair does not go to the other shards of a document.
    RepairsStayInTheirShard,
    /// A store takes repairs by whatever record it has: SB2.
    RepairsAtAnyEpoch,
    /// A repair goes to other shards before all stores of its own have it: SB3.
    CarriedBetweenAtOnce,
    /// A store drops tombstones up to the floor, settled or not: FL5.
    DroppedUpToTheFloor,
    /// Nodes settle records as soon as they are frozen: FL3.
    SettledWithoutComparison,
    /// A store takes changes up to the floor: FL2.
    LateChangesTaken,
    /// A store takes repairs up to what is settled or frozen: FL2.
    LateRepairsTaken,
}

/// Each is found within [`FAULT_SEEDS`](crate::FAULT_SEEDS).
pub(crate) const COMMON: [Fault; 18] = [
    Fault::AnswersBeforeSync,
    Fault::MajorityAcknowledges,
    Fault::LearnersAreNotAwaited,
    Fault::NewerIsSuccess,
    Fault::NewVersionAfterFailure,
    Fault::NoProof,
    Fault::OneConfirmation,
    Fault::StaleMetadataProves,
    Fault::PromotedWithoutCopy,
    Fault::CopiesReplaceLaterWrites,
    Fault::SourceMayLeave,
    Fault::OlderDirectoryServes,
    Fault::TombstonesDropped,
    Fault::DrainedNodesCome,
    Fault::RepairsStayInTheirShard,
    Fault::DroppedUpToTheFloor,
    Fault::SettledWithoutComparison,
    Fault::LateChangesTaken,
];

/// These need several rare events in a row. The search of all states shows that their rules are needed.
pub(crate) const RARE: [Fault; 8] = [
    Fault::TwoEvictedAtOnce,
    Fault::LearnersKeepTheirData,
    Fault::PinnedBeforeApplied,
    Fault::GateFromApplied,
    Fault::NoSeal,
    Fault::RepairsAtAnyEpoch,
    Fault::CarriedBetweenAtOnce,
    Fault::LateRepairsTaken,
];
