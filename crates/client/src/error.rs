//! Why a request failed, and whether to try again.

use simshard_proto::{MalformedColumns, Reason};
use tonic::{Code, Status};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL of the router is unusable.
    #[error("{url:?} is no router URL such as http://127.0.0.1:7460: {problem}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The router refused or failed the request.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// No router answers at the URL.
    #[error(
        "no router answers at {url}: start one with `simshard serve`, or give its URL ({problem})"
    )]
    NoRouter {
        /// The URL.
        url: String,
        /// What the connection said.
        problem: String,
    },
    /// The router's answer makes no sense.
    #[error("the router answered nonsense: {0}")]
    Malformed(#[from] MalformedColumns),
}

impl ClientError {
    /// The router's stable reason, if it gave one.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused(status) => Reason::of(status),
            Self::Url { .. } | Self::NoRouter { .. } | Self::Malformed(_) => None,
        }
    }

    /// Whether the request itself is wrong: trying it again is of no use.
    #[must_use]
    pub fn is_bad_request(&self) -> bool {
        match self {
            Self::Refused(status) => status.code() == Code::InvalidArgument,
            Self::Url { .. } => true,
            Self::NoRouter { .. } | Self::Malformed(_) => false,
        }
    }

    /// A status from the transport or the router.
    pub(crate) fn from_status(status: Status, url: &str) -> Self {
        let from_router = Reason::of(&status).is_some();
        // A peer that is no gRPC server gives rise to an unknown error.
        let from_transport = [Code::Unavailable, Code::Unknown].contains(&status.code());
        if !from_router && from_transport {
            return Self::NoRouter {
                url: url.to_owned(),
                problem: status.message().to_owned(),
            };
        }
        Self::Refused(Box::new(status))
    }

    /// Whether the same request may succeed a little later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Refused(status) => Reason::of(status).is_some_and(Reason::is_passing),
            Self::NoRouter { .. } => true,
            Self::Url { .. } | Self::Malformed(_) => false,
        }
    }
}
