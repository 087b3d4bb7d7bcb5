//! Why a request failed, and whether to try again.

use std::error::Error;
use std::iter;

use simshard_proto::v1::CorpusState;
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
        /// The problem.
        problem: String,
    },
    /// The certificates of the client, or of authorities, are unusable.
    #[error("cannot connect with these certificates")]
    Certificates(#[source] Box<dyn Error + Send + Sync>),
    /// The token has characters that no token has.
    #[error(
        "the token has characters that no token has: give a file that holds a token, and nothing else"
    )]
    Token,
    /// The router refused or failed the request.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// No router answers at the URL.
    #[error(
        "no router answers at {url}: start one with `simshard serve`, in a cluster with `simshard serve router`, or give its URL ({problem})"
    )]
    NoRouter {
        /// The URL.
        url: String,
        /// The error of the connection.
        problem: String,
    },
    /// Something else than a router answers at the URL.
    #[error(
        "what answers at {url} is no router, or one of another version: a node, say; give the URL of the router"
    )]
    NotARouter {
        /// The URL.
        url: String,
    },
    /// The router took a stream of batches and did not answer all of them.
    #[error("the router at {url} stopped answering: {problem}, see what it logs")]
    NoAnswer {
        /// The URL.
        url: String,
        /// How it stopped.
        problem: String,
    },
    /// The router's answer makes no sense.
    #[error("the router answered nonsense")]
    Malformed(#[from] MalformedColumns),
    /// The router's answer is not to the batch whose turn it was.
    #[error("the router answered nonsense: an answer to batch {0}, whose turn it was not")]
    OutOfTurn(u64),
}

/// The codes that a broken connection gives rise to, and a peer that is no gRPC server.
const CONNECTION_CODES: [Code; 4] = [
    Code::Unavailable,
    Code::Unknown,
    Code::Cancelled,
    Code::Internal,
];

/// The codes of requests that fail the same way until they, or the corpora that there are, are others.
const WRONG_REQUEST_CODES: [Code; 5] = [
    Code::InvalidArgument,
    Code::NotFound,
    Code::AlreadyExists,
    Code::Unauthenticated,
    Code::PermissionDenied,
];

impl ClientError {
    /// The router's stable reason, if it gave one.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        Reason::of(self.status()?)
    }

    /// The router's status, if it refused or failed the request.
    fn status(&self) -> Option<&Status> {
        if let Self::Refused(status) = self {
            Some(status)
        } else {
            None
        }
    }

    /// The nodes that the failure is about, if the router named any.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let nodes = self
            .status()
            .and_then(|status| Reason::metadata(status, "nodes"));
        let nodes = nodes.unwrap_or_default();
        nodes.split_terminator(',').map(str::to_owned).collect()
    }

    /// The state of the corpus that the router names, if its creation or its deletion is not complete. Then repeat what
    /// is not complete.
    #[must_use]
    pub fn corpus_state(&self) -> Option<CorpusState> {
        let state = self
            .status()
            .and_then(|status| Reason::metadata(status, "state"))?;
        CorpusState::from_str_name(&format!("CORPUS_STATE_{state}"))
    }

    /// Whether the request itself is wrong, or names a corpus that is not there, or makes one that is:
    /// trying it again is of no use.
    #[must_use]
    pub fn is_bad_request(&self) -> bool {
        match self {
            Self::Refused(status) => WRONG_REQUEST_CODES.contains(&status.code()),
            Self::Url { .. } | Self::Certificates(_) | Self::Token | Self::NotARouter { .. } => {
                true
            }
            Self::NoRouter { .. }
            | Self::NoAnswer { .. }
            | Self::Malformed(_)
            | Self::OutOfTurn(_) => false,
        }
    }

    /// A status from the transport or the router.
    pub(crate) fn from_status(status: Status, url: &str) -> Self {
        let reason = Reason::of(&status);
        let from_router = reason.is_some();
        let is_unknown = match reason {
            None => status.code() == Code::Unimplemented,
            Some(reason) => reason == Reason::UnknownMethod,
        };
        if is_unknown {
            return Self::NotARouter {
                url: url.to_owned(),
            };
        }
        if !from_router && CONNECTION_CODES.contains(&status.code()) {
            return Self::NoRouter {
                url: url.to_owned(),
                problem: first_cause(&status),
            };
        }
        Self::Refused(Box::new(status))
    }

    /// Whether the same request may succeed a little later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Refused(status) => Reason::of(status).is_some_and(Reason::is_passing),
            Self::NoRouter { .. } | Self::NoAnswer { .. } => true,
            Self::Url { .. }
            | Self::Certificates(_)
            | Self::Token
            | Self::NotARouter { .. }
            | Self::Malformed(_)
            | Self::OutOfTurn(_) => false,
        }
    }
}

/// Why a connection failed: a certificate that is not trusted, say. The transport says only that it did.
fn first_cause(status: &Status) -> String {
    let causes = iter::successors(status.source(), |cause| (*cause).source());
    let first = causes.last();
    first.map_or_else(|| status.message().to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reason: Reason, nodes: &str) -> ClientError {
        let status = reason.status("no", [("nodes", nodes.to_owned())]);
        ClientError::from_status(status, "http://127.0.0.1:1")
    }

    #[test]
    fn a_failure_names_the_nodes_that_it_is_about() {
        assert_eq!(
            refused(Reason::NodeUnreachable, "n1,n2").nodes(),
            ["n1", "n2"]
        );
        assert!(refused(Reason::DeadlineTooShort, "").nodes().is_empty());
        assert!(ClientError::OutOfTurn(1).nodes().is_empty());
    }

    #[test]
    fn a_request_is_bad_if_it_fails_until_something_else_changes() {
        for (reason, is_bad) in [
            (Reason::InvalidRequest, true),
            (Reason::Unauthenticated, true),
            (Reason::PermissionDenied, true),
            (Reason::CorpusNotFound, true),
            (Reason::CorpusExists, true),
            (Reason::CorpusNotLoaded, false),
            (Reason::NodeUnreachable, false),
        ] {
            assert_eq!(refused(reason, "").is_bad_request(), is_bad, "{reason:?}");
        }
    }
}
