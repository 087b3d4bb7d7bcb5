//! Why a router refuses or fails a request.

mod metadata;
mod texts;

use std::collections::BTreeMap;
use std::time::Duration;

use simshard_cluster::{CorpusName, CorpusRecord, CorpusState, CorpusUid, MetadataError};
use simshard_proto::{MAX_MESSAGE_BYTES, MalformedColumns, Reason, Violations};
use simshard_simhash::{Recipe, TakesNoTexts, TextRecipe};
use simshard_topology::{NodeId, ShardSet};
use simshard_transport::NO_MEMORY;
use tokio::task::JoinError;
use tonic::Status;
use tonic_types::StatusExt;
use tracing::error;

use crate::too_far_ahead::TooFarAhead;

/// Why nodes did not do their part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A connection failed.
    Lost,
    /// Time ran out.
    Late,
    /// A connection failed, and the metadata does not answer either.
    LostWithMetadata,
    /// They have other records of shards, even after a while.
    WrongEpoch,
    /// They have no tables of shards, even after a while.
    Cold,
}

/// Why a router refused or failed a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouterError {
    #[error("there is no corpus {0}: create it first")]
    CorpusNotFound(CorpusName),
    #[error("corpus {0} exists: choose another name, or delete it first")]
    CorpusExists(CorpusName),
    #[error("corpus {corpus} is {}", texts::unfinished(*state))]
    NotLive {
        corpus: CorpusName,
        state: CorpusState,
    },
    #[error("the name is not free: corpus {corpus} is {}", texts::unfinished(*state))]
    NameNotFree {
        corpus: CorpusName,
        state: CorpusState,
    },
    #[error(
        "there are {max_corpora} corpora or more, in whatever state: delete some, or raise max_corpora of the routers"
    )]
    TooManyCorpora {
        /// The router's limit.
        max_corpora: usize,
    },
    /// Not all nodes have done what the creation or the deletion of a corpus asks of them.
    #[error("corpus {corpus} is {}: {problem}", texts::unfinished(*state))]
    Unfinished {
        corpus: CorpusName,
        state: CorpusState,
        problem: Box<RouterError>,
    },
    #[error(
        "records of corpora are missing, but nodes hold {}: restore each record with `simshard corpus recover`; with a \
         layout file, a backup of the corpora file does as well, but never an older copy of etcd",
        texts::listed(.0)
    )]
    RecordsLost(Vec<CorpusUid>),
    #[error(
        "no node stores a corpus {0}: `simshard corpus recover` without a uid lists those that are stored"
    )]
    NotStored(CorpusUid),
    #[error("corpus {0} was deleted: nodes that still store it drop it, so it cannot be recovered")]
    WasDeleted(CorpusUid),
    #[error("corpus {uid} has a record, by the name of {name}: there is nothing to recover")]
    IsRecorded { uid: CorpusUid, name: CorpusName },
    #[error(
        "nodes store corpus {0} with different blocks or distances: they are not of one cluster"
    )]
    OtherLayouts(String),
    #[error("corpus {corpus} was made with recipe {recipe}, not {given}")]
    RecipeMismatch {
        corpus: CorpusName,
        recipe: Recipe,
        /// The recipe of the request.
        given: String,
    },
    #[error(
        "corpus {} has --blocks {} --distance {} --recipe {}: this router is too old for it",
        .0.name, .0.blocks, .0.distance, .0.recipe
    )]
    ForeignCorpus(Box<CorpusRecord>),
    #[error("max_distance is {given}: the corpus is made for at most {most}")]
    DistanceTooLarge {
        /// The distance asked for.
        given: u32,
        /// The corpus's.
        most: u32,
    },
    #[error("texts were sent for corpus {corpus}: {refusal}")]
    NoTexts {
        corpus: CorpusName,
        refusal: TakesNoTexts,
    },
    #[error("texts[{place}] has no fingerprint by recipe {recipe}: leave it out")]
    NoFingerprint {
        /// Its place among the texts.
        place: usize,
        recipe: TextRecipe,
    },
    /// Nodes that are needed do not answer.
    #[error("{}", texts::unreachable(nodes, *why))]
    Unreachable {
        /// The nodes, and the shards of theirs that are needed.
        nodes: BTreeMap<NodeId, ShardSet>,
        /// What they did instead.
        why: Why,
    },
    #[error("there is no answer yet at the deadline: allow more time")]
    Late,
    #[error(
        "node {node} does not hold corpus {corpus}: start it with the data directory that it had; if that is lost, \
         delete and create the corpus, then insert its documents again"
    )]
    NotLoaded { node: NodeId, corpus: CorpusName },
    #[error("node {node} refused: {:?}, {}", status.code(), status.message())]
    Node { node: NodeId, status: Box<Status> },
    #[error("node {node} answered nonsense: {problem}")]
    Malformed {
        node: NodeId,
        problem: MalformedColumns,
    },
    #[error("node {node} answered nonsense: {given:?} is no uid of a corpus")]
    NoUid { node: NodeId, given: String },
    /// Whatever version the router took, a node had a newer one.
    #[error("others keep changing the same documents: retry later")]
    WriteConflict,
    /// Documents have versions over a minute ahead of wall time. The other documents of the request changed.
    #[error("{0}")]
    TooFarAhead(TooFarAhead),
    #[error("the stream was not done by its deadline: allow more time, or set none")]
    OutOfTime,
    #[error("no answer was read for {0:?}: ask again, and read on")]
    Stalled(Duration),
    #[error("{most} streams about whole corpora are in flight: retry once one of them has ended")]
    TooManyStreams { most: usize },
    #[error(
        "the answer is over {MAX_MESSAGE_BYTES} bytes: ask fewer queries at once, set limit or max_ids, or ask for columns, which take fewer bytes than rows"
    )]
    AnswerTooLarge,
    #[error("{NO_MEMORY}: retry a little later")]
    NoMemory,
    #[error("metadata: {0}")]
    Metadata(MetadataError),
    /// The metadata store did not answer. What it was told may yet happen.
    #[error(
        "metadata: the store did not answer within {0:?}: etcd may be away, or a router that hangs holds the lock of the corpora file; look at both, then repeat"
    )]
    MetadataLate(Duration),
    #[error("the work on this request failed without a word: the router's log may have more")]
    Fault,
    #[error("the router is shutting down")]
    Stopping,
}

/// A task that ended before its work. A panic is a fault: clients must not take it for a stop, after which they send again.
/// Else the runtime is going down.
impl From<JoinError> for RouterError {
    fn from(ended: JoinError) -> Self {
        if ended.is_panic() {
            Self::Fault
        } else {
            Self::Stopping
        }
    }
}

impl RouterError {
    /// The name belongs to a corpus in this state.
    pub(crate) const fn taken(corpus: CorpusName, state: CorpusState) -> Self {
        match state {
            CorpusState::Live => Self::CorpusExists(corpus),
            CorpusState::Creating | CorpusState::Deleting => Self::NameNotFree { corpus, state },
        }
    }

    /// The only mapping to what clients see.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::CorpusNotFound(_) | Self::NotLive { .. } => Reason::CorpusNotFound,
            Self::CorpusExists(_) | Self::NameNotFree { .. } => Reason::CorpusExists,
            Self::TooManyCorpora { .. } => Reason::TooManyCorpora,
            Self::RecordsLost(_) => Reason::MetadataFailed,
            Self::NotStored(_) | Self::WasDeleted(_) => Reason::CorpusNotFound,
            Self::IsRecorded { .. } => Reason::CorpusExists,
            Self::OtherLayouts(_) => Reason::CorpusDiffers,
            Self::Unfinished { problem, .. } => problem.reason(),
            Self::RecipeMismatch { .. } => Reason::RecipeMismatch,
            Self::DistanceTooLarge { .. } | Self::NoTexts { .. } | Self::NoFingerprint { .. } => {
                Reason::InvalidRequest
            }
            Self::Unreachable { why: Why::Late, .. }
            | Self::Late
            | Self::OutOfTime
            | Self::Stalled(_) => Reason::DeadlineTooShort,
            Self::Unreachable {
                why: Why::Lost | Why::LostWithMetadata | Why::WrongEpoch | Why::Cold,
                ..
            } => Reason::NodeUnreachable,
            Self::Stopping => Reason::Stopping,
            Self::NotLoaded { .. } => Reason::CorpusNotLoaded,
            Self::Node { status, .. } => node_reason(status),
            Self::Malformed { .. } | Self::NoUid { .. } | Self::ForeignCorpus(_) | Self::Fault => {
                Reason::Internal
            }
            Self::WriteConflict => Reason::WriteConflict,
            Self::TooFarAhead(_) => Reason::ClockAhead,
            Self::TooManyStreams { .. } => Reason::Overloaded,
            Self::AnswerTooLarge => Reason::AnswerTooLarge,
            Self::NoMemory => Reason::Overloaded,
            Self::Metadata(_) | Self::MetadataLate(_) => Reason::MetadataFailed,
        }
    }

    /// Whether the corpus that was remembered may be at fault.
    pub(crate) fn may_be_stale(&self) -> bool {
        match self {
            Self::RecipeMismatch { .. }
            | Self::DistanceTooLarge { .. }
            | Self::NoTexts { .. }
            | Self::NoFingerprint { .. }
            | Self::NotLoaded { .. } => true,
            Self::Node { status, .. } => Reason::of(status) == Some(Reason::CorpusDiffers),
            Self::CorpusNotFound(_)
            | Self::NotLive { .. }
            | Self::CorpusExists(_)
            | Self::NameNotFree { .. }
            | Self::TooManyCorpora { .. }
            | Self::Unfinished { .. }
            | Self::RecordsLost(_)
            | Self::NotStored(_)
            | Self::WasDeleted(_)
            | Self::IsRecorded { .. }
            | Self::OtherLayouts(_)
            | Self::ForeignCorpus(_)
            | Self::Unreachable { .. }
            | Self::Late
            | Self::Malformed { .. }
            | Self::NoUid { .. }
            | Self::WriteConflict
            | Self::TooFarAhead(_)
            | Self::OutOfTime
            | Self::Stalled(_)
            | Self::TooManyStreams { .. }
            | Self::AnswerTooLarge
            | Self::NoMemory
            | Self::Metadata(_)
            | Self::MetadataLate(_)
            | Self::Fault
            | Self::Stopping => false,
        }
    }

    /// Names and values for programs.
    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Unreachable { nodes, .. } => {
                let names: Vec<&str> = nodes.keys().map(NodeId::as_str).collect();
                let shards: ShardSet = nodes.values().flat_map(ShardSet::iter).collect();
                vec![("nodes", names.join(",")), ("shards", shards.to_string())]
            }
            Self::Node { node, status } => {
                let info = status.get_details_error_info();
                let shards = info.and_then(|info| info.metadata.get("shards").cloned());
                let shards = shards.map(|shards| ("shards", shards));
                [("nodes", node.to_string())]
                    .into_iter()
                    .chain(shards)
                    .collect()
            }
            Self::NotLoaded { node, corpus } => {
                vec![("nodes", node.to_string()), ("corpus", corpus.to_string())]
            }
            Self::Malformed { node, .. } | Self::NoUid { node, .. } => texts::one_node(node),
            Self::NotLive { corpus, state } | Self::NameNotFree { corpus, state } => {
                texts::corpus_in(corpus, *state).into()
            }
            Self::Unfinished {
                corpus,
                state,
                problem,
            } => {
                let mut metadata = problem.metadata();
                metadata.retain(|(name, _)| *name != "corpus");
                metadata.extend(texts::corpus_in(corpus, *state));
                metadata
            }
            Self::CorpusNotFound(corpus)
            | Self::CorpusExists(corpus)
            | Self::RecipeMismatch { corpus, .. }
            | Self::NoTexts { corpus, .. } => vec![("corpus", corpus.to_string())],
            Self::ForeignCorpus(record) => vec![("corpus", record.name.to_string())],
            Self::IsRecorded { name, .. } => vec![("corpus", name.to_string())],
            Self::TooManyCorpora { .. }
            | Self::RecordsLost(_)
            | Self::NotStored(_)
            | Self::WasDeleted(_)
            | Self::OtherLayouts(_)
            | Self::DistanceTooLarge { .. }
            | Self::NoFingerprint { .. }
            | Self::Late
            | Self::WriteConflict
            | Self::TooFarAhead(_)
            | Self::OutOfTime
            | Self::Stalled(_)
            | Self::TooManyStreams { .. }
            | Self::AnswerTooLarge
            | Self::NoMemory
            | Self::Metadata(_)
            | Self::MetadataLate(_)
            | Self::Fault
            | Self::Stopping => Vec::new(),
        }
    }
}

impl From<RouterError> for Status {
    fn from(error: RouterError) -> Self {
        if let RouterError::DistanceTooLarge { given, most } = error {
            let wrong = format!("is {given}: the corpus is made for at most {most}");
            return Violations::of("max_distance", wrong);
        }
        if let RouterError::NoTexts { corpus, refusal } = error {
            return Violations::of("texts", format!("is set for corpus {corpus}: {refusal}"));
        }
        if let RouterError::NoFingerprint { place, recipe } = error {
            let wrong = format!("has no fingerprint by recipe {recipe}: leave it out");
            return Violations::of(&format!("texts[{place}]"), wrong);
        }
        let reason = error.reason();
        if reason == Reason::Internal {
            error!(%error, "a request failed that should not");
        }
        reason.status(error.to_string(), error.metadata())
    }
}

/// What a node's refusal means to the client: its own fault only where the reason is handed on.
fn node_reason(status: &Status) -> Reason {
    let handed_on = [
        Reason::MetadataFailed,
        Reason::NotOwner,
        Reason::CorpusDiffers,
        Reason::AnswerTooLarge,
        Reason::DiskFull,
        Reason::Overloaded,
        Reason::ClockAhead,
        Reason::StorageFailed,
    ];
    let reason = Reason::of(status).filter(|reason| handed_on.contains(reason));
    reason.unwrap_or(Reason::Internal)
}
