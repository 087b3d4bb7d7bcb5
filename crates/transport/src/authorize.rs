//! Who may call which method: by the role of the token that a request carries.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Request, Response};
use simshard_proto::Reason;
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tracing::info;

use crate::tokens::{Principal, Role, TokenDigest, Tokens};

/// Whatever state a server is in, those that watch it may ask.
const HEALTH: &str = "grpc.health.v1.Health";

const CORPUS_SERVICE: &str = "simshard.v1.CorpusService";

const ADMIN_SERVICE: &str = "simshard.admin.v1.AdminService";

/// What a method is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The corpora that its request names, or those that the caller may know.
    Named,
    /// All corpora, or the cluster.
    All,
}

/// What a caller needs for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    role: Role,
    scope: Scope,
}

/// That of a method without a rule.
const MOST: Need = Need {
    role: Role::Admin,
    scope: Scope::All,
};

/// What each method but those of health asks for.
const RULES: [(&str, Role, Scope, &[&str]); 8] = [
    (
        "grpc.reflection.v1.ServerReflection",
        Role::Read,
        Scope::Named,
        &["ServerReflectionInfo"],
    ),
    (
        "grpc.reflection.v1alpha.ServerReflection",
        Role::Read,
        Scope::Named,
        &["ServerReflectionInfo"],
    ),
    (
        CORPUS_SERVICE,
        Role::Read,
        Scope::Named,
        &[
            "GetCorpus",
            "ListCorpora",
            "FindFirst",
            "FindAll",
            "FindFirstStream",
            "FindAllStream",
            "Scan",
            "FindPairs",
            "FindClusters",
            "Fingerprint",
        ],
    ),
    (
        CORPUS_SERVICE,
        Role::Write,
        Scope::Named,
        &["Insert", "Remove", "InsertStream", "RemoveStream"],
    ),
    (
        CORPUS_SERVICE,
        Role::Admin,
        Scope::Named,
        &["CreateCorpus", "DeleteCorpus"],
    ),
    (
        CORPUS_SERVICE,
        Role::Admin,
        Scope::All,
        &["ListStoredCorpora", "RecoverCorpus"],
    ),
    (
        ADMIN_SERVICE,
        Role::Read,
        Scope::All,
        &[
            "GetStatus",
            "ListNodes",
            "ListShards",
            "GetPlan",
            "GetUpgrade",
        ],
    ),
    (
        ADMIN_SERVICE,
        Role::Admin,
        Scope::All,
        &[
            "DrawPlan",
            "ApplyPlan",
            "AbortPlan",
            "PauseMoves",
            "ResumeMoves",
            "MoveShards",
            "FreeShards",
            "DrainNode",
            "UndrainNode",
            "ReplaceNode",
            "RemoveNode",
            "SetReplication",
            "SetZone",
            "SetCapacity",
            "SetLimits",
            "FinalizeUpgrade",
        ],
    ),
];

/// Who calls a method, and may. Each request that reaches a handler carries one.
#[derive(Clone, Debug)]
pub struct Caller(Option<Known>);

/// The owner of a token.
#[derive(Clone)]
struct Known {
    tokens: Tokens,
    digest: TokenDigest,
    need: Need,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Caller {
    /// Checks that the caller may call the method still: a stream may outlive its token. Answers whose the token is;
    /// `None` where the server asks for none.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if the token is not known any more, and `PERMISSION_DENIED` if it is not for the method any more.
    pub fn check(&self) -> Result<Option<Principal>, Status> {
        self.0.as_ref().map(Known::check).transpose()
    }
}

impl Known {
    fn check(&self) -> Result<Principal, Status> {
        let principal = self.tokens.principal(&self.digest).ok_or_else(|| {
            let message =
                "the token is not known to this server, or has expired: ask its operator for another";
            Reason::Unauthenticated.status(message, [])
        })?;
        let (name, needed) = (&principal.name, self.need.role);
        if principal.role < needed {
            let message = format!(
                "the token {name:?} has the role {}, and this method is for the role {}",
                principal.role.name(),
                needed.name()
            );
            return Err(Reason::PermissionDenied.status(message, []));
        }
        if principal.corpora.is_some() && self.need.scope == Scope::All {
            let message = format!(
                "the token {name:?} is for some corpora, and this method is about all of them, or the cluster"
            );
            return Err(Reason::PermissionDenied.status(message, []));
        }
        Ok(principal)
    }
}

/// A service that is called only by those who may, where there are tokens.
#[derive(Clone, Debug)]
pub(super) struct Authorize<S> {
    inner: S,
    tokens: Option<Tokens>,
}

impl<S> Authorize<S> {
    pub(super) const fn new(inner: S, tokens: Option<Tokens>) -> Self {
        Self { inner, tokens }
    }
}

impl<S> Service<Request<Body>> for Authorize<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let caller = match &self.tokens {
            None => Ok(Caller(None)),
            Some(tokens) => caller_of(tokens, request.uri().path(), request.headers()),
        };
        match caller {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                // Nothing behind this needs it, and so nothing can show it.
                request.headers_mut().remove(AUTHORIZATION);
                Either::Left(self.inner.call(request))
            }
            Err(refusal) => Either::Right(ready(Ok(refusal.into_http()))),
        }
    }
}

/// Who calls a method.
///
/// # Errors
/// If the caller may not call it.
fn caller_of(tokens: &Tokens, path: &str, headers: &HeaderMap) -> Result<Caller, Status> {
    let Some(need) = need_of(path) else {
        return Ok(Caller(None));
    };
    let token = bearer(headers).ok_or_else(|| {
        let message = "this server asks for a token: send the header `authorization: Bearer TOKEN`";
        Reason::Unauthenticated.status(message, [])
    })?;
    let known = Known {
        tokens: tokens.clone(),
        digest: TokenDigest::of(token),
        need,
    };
    let principal = known.check()?;
    if need.role == Role::Admin {
        let owner = &*principal.name;
        info!(owner, method = path, "a token for administrators is used");
    }
    Ok(Caller(Some(known)))
}

/// What a method asks for; `None` if it is open to all.
fn need_of(path: &str) -> Option<Need> {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    match parts {
        Some((HEALTH, _)) => None,
        Some((service, method)) => Some(rule_for(service, method).unwrap_or(MOST)),
        None => Some(MOST),
    }
}

fn rule_for(service: &str, method: &str) -> Option<Need> {
    let mut rules = RULES.iter();
    let rule = rules.find(|(of, .., methods)| *of == service && methods.contains(&method));
    rule.map(|&(_, role, scope, _)| Need { role, scope })
}

/// The token of a request, if it carries one and no other.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
