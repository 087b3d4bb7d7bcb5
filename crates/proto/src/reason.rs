//! Why a request was refused or failed, as clients see it: a gRPC code, and a
//! stable reason in `google.rpc.ErrorInfo`.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// When to try again where that may help.
const RETRY: Duration = Duration::from_millis(100);

/// When to try again where an operator has to make room first.
const SLOW_RETRY: Duration = Duration::from_secs(1);

/// The domain of every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "simshard";

/// The stable reasons; the interface's own description lists what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A field is wrong.
    InvalidRequest,
    /// The corpus was made with another recipe.
    RecipeMismatch,
    /// A message is over [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    MessageTooLarge,
    /// The server has no such method.
    UnknownMethod,
    /// The messages are compressed.
    UnsupportedEncoding,
    /// The server asks for a token. The request has none, or one that the server does not know.
    Unauthenticated,
    /// The token is not for this method, or not for this corpus.
    PermissionDenied,
    /// There is no such corpus.
    CorpusNotFound,
    /// The name is taken.
    CorpusExists,
    /// There are as many corpora as the router allows.
    TooManyCorpora,
    /// A needed node does not answer.
    NodeUnreachable,
    /// A needed node did not answer in time.
    DeadlineTooShort,
    /// The node serves other shards.
    NotOwner,
    /// The node has other records of shards than the router.
    WrongEpoch,
    /// The node has no tables of shards, or not yet.
    Cold,
    /// The node does not hold the corpus.
    CorpusNotLoaded,
    /// A node holds the corpus with another layout.
    CorpusDiffers,
    /// The answer would be over the largest message.
    AnswerTooLarge,
    /// The metadata store cannot be read or written.
    MetadataFailed,
    /// A node has no room left for documents.
    DiskFull,
    /// More is in flight than a process may hold.
    Overloaded,
    /// Others keep changing the same documents.
    WriteConflict,
    /// The clocks of the machines differ by too much.
    ClockAhead,
    /// A node cannot read or write what it stores.
    StorageFailed,
    /// The nodes of the router do not register themselves.
    NoRegisteredNodes,
    /// No node of that name has registered.
    NodeNotFound,
    /// The cluster is in no state for what an operator asks for.
    Refused,
    /// What is dangerous was not confirmed.
    NotConfirmed,
    /// Another operator changes the same.
    ChangedMeanwhile,
    /// The process is shutting down.
    Stopping,
    /// A fault in Simshard.
    Internal,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 31] = [
        Self::InvalidRequest,
        Self::RecipeMismatch,
        Self::MessageTooLarge,
        Self::UnknownMethod,
        Self::UnsupportedEncoding,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::CorpusNotFound,
        Self::CorpusExists,
        Self::TooManyCorpora,
        Self::NodeUnreachable,
        Self::DeadlineTooShort,
        Self::NotOwner,
        Self::WrongEpoch,
        Self::Cold,
        Self::CorpusNotLoaded,
        Self::CorpusDiffers,
        Self::AnswerTooLarge,
        Self::MetadataFailed,
        Self::DiskFull,
        Self::Overloaded,
        Self::WriteConflict,
        Self::ClockAhead,
        Self::StorageFailed,
        Self::NoRegisteredNodes,
        Self::NodeNotFound,
        Self::Refused,
        Self::NotConfirmed,
        Self::ChangedMeanwhile,
        Self::Stopping,
        Self::Internal,
    ];

    /// The only table: the name on the wire, the gRPC code, and whether the same request may succeed a little later.
    const fn row(self) -> (&'static str, Code, bool) {
        const PASSING: bool = true;
        const FINAL: bool = false;
        match self {
            Self::InvalidRequest => ("INVALID_REQUEST", Code::InvalidArgument, FINAL),
            Self::RecipeMismatch => ("RECIPE_MISMATCH", Code::InvalidArgument, FINAL),
            Self::MessageTooLarge => ("MESSAGE_TOO_LARGE", Code::InvalidArgument, FINAL),
            Self::UnknownMethod => ("UNKNOWN_METHOD", Code::Unimplemented, FINAL),
            Self::UnsupportedEncoding => ("UNSUPPORTED_ENCODING", Code::Unimplemented, FINAL),
            Self::Unauthenticated => ("UNAUTHENTICATED", Code::Unauthenticated, FINAL),
            Self::PermissionDenied => ("PERMISSION_DENIED", Code::PermissionDenied, FINAL),
            Self::CorpusNotFound => ("CORPUS_NOT_FOUND", Code::NotFound, FINAL),
            Self::CorpusExists => ("CORPUS_EXISTS", Code::AlreadyExists, FINAL),
            Self::TooManyCorpora => ("TOO_MANY_CORPORA", Code::ResourceExhausted, FINAL),
            Self::NodeUnreachable => ("NODE_UNREACHABLE", Code::Unavailable, PASSING),
            Self::DeadlineTooShort => ("DEADLINE_TOO_SHORT", Code::DeadlineExceeded, FINAL),
            Self::NotOwner => ("NOT_OWNER", Code::FailedPrecondition, FINAL),
            Self::WrongEpoch => ("WRONG_EPOCH", Code::FailedPrecondition, FINAL),
            Self::Cold => ("COLD", Code::FailedPrecondition, FINAL),
            Self::CorpusNotLoaded => ("CORPUS_NOT_LOADED", Code::FailedPrecondition, FINAL),
            Self::CorpusDiffers => ("CORPUS_DIFFERS", Code::FailedPrecondition, FINAL),
            Self::AnswerTooLarge => ("ANSWER_TOO_LARGE", Code::ResourceExhausted, FINAL),
            Self::MetadataFailed => ("METADATA_FAILED", Code::Unavailable, PASSING),
            Self::DiskFull => ("DISK_FULL", Code::ResourceExhausted, PASSING),
            Self::Overloaded => ("OVERLOADED", Code::ResourceExhausted, PASSING),
            Self::WriteConflict => ("WRITE_CONFLICT", Code::Aborted, PASSING),
            Self::ClockAhead => ("CLOCK_AHEAD", Code::Internal, FINAL),
            Self::StorageFailed => ("STORAGE_FAILED", Code::Internal, FINAL),
            Self::NoRegisteredNodes => ("NO_REGISTERED_NODES", Code::FailedPrecondition, FINAL),
            Self::NodeNotFound => ("NODE_NOT_FOUND", Code::NotFound, FINAL),
            Self::Refused => ("REFUSED", Code::FailedPrecondition, FINAL),
            Self::NotConfirmed => ("NOT_CONFIRMED", Code::FailedPrecondition, FINAL),
            Self::ChangedMeanwhile => ("CHANGED_MEANWHILE", Code::Aborted, FINAL),
            Self::Stopping => ("STOPPING", Code::Unavailable, PASSING),
            Self::Internal => ("INTERNAL", Code::Internal, FINAL),
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The gRPC code that goes with it.
    #[must_use]
    pub const fn code(self) -> Code {
        self.row().1
    }

    /// Whether the same request may succeed a little later. For all others it is
    /// of no use to try again.
    #[must_use]
    pub const fn is_passing(self) -> bool {
        self.row().2
    }

    /// How long to wait before the same request is sent again, if that may help: in `google.rpc.RetryInfo`.
    #[must_use]
    pub fn retry_delay(self) -> Option<Duration> {
        let is_slow = self == Self::DiskFull;
        let delay = if is_slow { SLOW_RETRY } else { RETRY };
        self.is_passing().then_some(delay)
    }

    /// The reason of an error from a Simshard server, if it is one.
    #[must_use]
    pub fn of(status: &Status) -> Option<Self> {
        let info = status.get_details_error_info()?;
        if info.domain != DOMAIN {
            return None;
        }
        Self::ALL
            .into_iter()
            .find(|reason| reason.name() == info.reason)
    }

    /// A value that an error from a Simshard server has for programs, if it is one and has it.
    #[must_use]
    pub fn metadata(status: &Status, name: &str) -> Option<String> {
        Self::of(status)?;
        let mut info = status.get_details_error_info()?;
        info.metadata.remove(name)
    }

    /// An error for the client: the message says what to do, the metadata holds
    /// the values in it, for programs.
    pub fn status<'a>(
        self,
        message: impl Into<String>,
        metadata: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Status {
        self.with_details(message, metadata, ErrorDetails::new())
    }

    pub(crate) fn with_details<'a>(
        self,
        message: impl Into<String>,
        metadata: impl IntoIterator<Item = (&'a str, String)>,
        mut details: ErrorDetails,
    ) -> Status {
        let metadata: HashMap<String, String> = metadata
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        details.set_error_info(self.name(), DOMAIN, metadata);
        if let Some(delay) = self.retry_delay() {
            details.set_retry_info(Some(delay));
        }
        Status::with_error_details(self.code(), message, details)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_carries_its_reason_and_code() {
        for reason in Reason::ALL {
            let status = reason.status("no", [("shards", "00-0f".to_owned())]);
            assert_eq!(status.code(), reason.code());
            assert_eq!(Reason::of(&status), Some(reason));
            let info = status.get_details_error_info().unwrap();
            assert_eq!(info.metadata["shards"], "00-0f");
            let retry = status.get_details_retry_info();
            let delay = retry.and_then(|retry| retry.retry_delay);
            assert_eq!(delay, reason.retry_delay(), "{reason}");
            assert_eq!(delay.is_some(), reason.is_passing(), "{reason}");
        }
        assert_eq!(Reason::of(&Status::internal("other")), None);
    }

    #[test]
    fn every_reason_is_described_in_an_interface() {
        let public = include_str!("../../../proto/simshard/v1/corpus_service.proto");
        let admin = include_str!("../../../proto/simshard/admin/v1/admin.proto");
        for reason in Reason::ALL {
            let mut lines = public.lines().chain(admin.lines());
            let line = lines
                .find(|line| line.contains(&format!("  {reason} ")))
                .unwrap_or_else(|| panic!("{reason} is not described"));
            let code = format!("{:?}", reason.code()).to_uppercase();
            assert!(line.replace('_', "").contains(&code), "{line}");
        }
    }

    #[test]
    fn every_reason_is_in_the_page() {
        let page = include_str!("../../../docs/grpc.md");
        for reason in Reason::ALL {
            let row = page
                .lines()
                .find(|line| line.starts_with(&format!("| `{reason}` | ")))
                .unwrap_or_else(|| panic!("{reason} is not in the table"));
            let code = format!("{:?}", reason.code()).to_uppercase();
            assert!(row.replace('_', "").contains(&code), "{row}");
        }
    }
}
