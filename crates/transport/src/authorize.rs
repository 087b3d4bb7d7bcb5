//! Who may call which method: by the token that a request carries, or the certificate that its connection has shown.

mod rules;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Request, Response};
use simshard_proto::Reason;
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tracing::info;

use crate::allowance::{Allowance, Limits};
use crate::certified::{Owner, Party};
use crate::incoming;
use crate::tokens::{Principal, TokenDigest, Tokens};
use rules::{ADMINS, Need, Scope, need_of};

/// How callers are known, where not all may do all.
#[derive(Clone, Debug)]
pub(super) enum KnownBy {
    /// By the token of each request.
    Tokens(Tokens),
    /// By the certificate of the connection.
    Certificates,
}

/// Who calls a method, and may. Each request that reaches a handler carries one. There is nothing in it where all may do
/// all, and for the processes of a cluster.
#[derive(Clone, Debug)]
pub struct Caller(Option<Known>);

/// A caller that is known.
#[derive(Clone)]
enum Known {
    /// The owner of a token.
    Token {
        tokens: Tokens,
        digest: TokenDigest,
        need: Need,
    },
    /// The owner of a certificate.
    Certificate(Principal),
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Caller {
    /// Checks that the caller may call the method still: a stream may outlive its token. Answers who it is; `None` where the
    /// server does not ask.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if the token is not known any more, and `PERMISSION_DENIED` if it is not for the method any more.
    pub fn check(&self) -> Result<Option<Principal>, Status> {
        self.0.as_ref().map(Known::check).transpose()
    }
}

impl Known {
    fn check(&self) -> Result<Principal, Status> {
        let (tokens, digest, need) = match self {
            Self::Certificate(principal) => return Ok(principal.clone()),
            Self::Token {
                tokens,
                digest,
                need,
            } => (tokens, digest, need),
        };
        let (principal, _) = owner(tokens, digest)?;
        need.check(&principal)?;
        Ok(principal)
    }
}

/// The owner of a token, and what is left of its limits, if it has any.
fn owner(
    tokens: &Tokens,
    digest: &TokenDigest,
) -> Result<(Principal, Option<Arc<Allowance>>), Status> {
    tokens.owner(digest).ok_or_else(|| {
        let message =
            "the token is not known to this server, or has expired: ask its operator for another";
        Reason::Unauthenticated.status(message, [])
    })
}

impl Need {
    /// Whether the owner of a token may do what needs this.
    fn check(&self, principal: &Principal) -> Result<(), Status> {
        let name = &principal.name;
        if !self.who.has(Party::Client(principal.role)) {
            let message = format!(
                "the token {name:?} has the role {}, and this method is for {}",
                principal.role.name(),
                self.who.names()
            );
            return Err(Reason::PermissionDenied.status(message, []));
        }
        if principal.corpora.is_some() && self.scope == Scope::All {
            let message = format!(
                "the token {name:?} is for some corpora, and this method is about all of them, or the cluster"
            );
            return Err(Reason::PermissionDenied.status(message, []));
        }
        Ok(())
    }
}

/// A service that is called only by those who may, if callers are to be known.
#[derive(Clone, Debug)]
pub(super) struct Authorize<S> {
    inner: S,
    known_by: Option<KnownBy>,
}

impl<S> Authorize<S> {
    pub(super) const fn new(inner: S, known_by: Option<KnownBy>) -> Self {
        Self { inner, known_by }
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
        let caller = match &self.known_by {
            None => Ok((Caller(None), None)),
            Some(known_by) => known_by.caller(&request),
        };
        match caller {
            Ok((caller, allowance)) => {
                if let Some(allowance) = allowance {
                    request.extensions_mut().insert(allowance);
                }
                request.extensions_mut().insert(caller);
                // Nothing behind this needs it, and so nothing can show it.
                request.headers_mut().remove(AUTHORIZATION);
                Either::Left(self.inner.call(request))
            }
            Err(refusal) => Either::Right(ready(Ok(refusal.into_http()))),
        }
    }
}

impl KnownBy {
    /// Who calls a method, and what is left of the limits of the caller, if it has any.
    ///
    /// # Errors
    /// If the caller may not call it.
    fn caller(&self, request: &Request<Body>) -> Result<(Caller, Option<Arc<Allowance>>), Status> {
        let path = request.uri().path();
        let Some(need) = need_of(path) else {
            return Ok((Caller(None), None));
        };
        let (known, principal, allowance) = match self {
            Self::Tokens(tokens) => {
                let digest = digest_of(request.headers())?;
                let (principal, allowance) = owner(tokens, &digest)?;
                need.check(&principal)?;
                let known = Known::Token {
                    tokens: tokens.clone(),
                    digest,
                    need,
                };
                (Some(known), Some(principal), allowance)
            }
            Self::Certificates => {
                let connection = request.extensions().get::<incoming::Caller>();
                let owner = connection.and_then(incoming::Caller::owner);
                let principal = by_certificate(owner, need)?;
                let known = principal.clone().map(Known::Certificate);
                (known, principal, None)
            }
        };
        if let Some(principal) = principal.filter(|_| need.who == ADMINS) {
            let owner = &*principal.name;
            info!(
                owner,
                method = path,
                "a method for administrators is called"
            );
        }
        Ok((Caller(known), allowance))
    }
}

/// The digest of the token of a request.
fn digest_of(headers: &HeaderMap) -> Result<TokenDigest, Status> {
    let token = bearer(headers).ok_or_else(|| {
        let message = "this server asks for a token: send the header `authorization: Bearer TOKEN`";
        Reason::Unauthenticated.status(message, [])
    })?;
    Ok(TokenDigest::of(token))
}

/// The client that owns a certificate. `None` for the processes of a cluster.
///
/// # Errors
/// If the owner may not do what needs this.
fn by_certificate(owner: Option<&Owner>, need: Need) -> Result<Option<Principal>, Status> {
    let owner = owner.ok_or_else(|| {
        let message = "the certificate of this client does not say who it is: it needs one URI such as simshard:read among \
                       its names (SAN)";
        Reason::PermissionDenied.status(message, [])
    })?;
    let party = owner.party;
    if !need.who.has(party) {
        let message = format!(
            "the certificate of this client is one of {}, and this method is for {}",
            party.name(),
            need.who.names()
        );
        return Err(Reason::PermissionDenied.status(message, []));
    }
    Ok(match party {
        Party::Router | Party::Node => None,
        Party::Client(role) => Some(Principal {
            name: owner.name.clone().unwrap_or_else(|| party.name().into()),
            role,
            corpora: None,
            limits: Limits::default(),
        }),
    })
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
