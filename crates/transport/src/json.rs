//! JSON for unary methods: a request becomes one of gRPC, and its answer becomes JSON. Paths, codes, errors and timeouts are
//! those of the [Connect protocol](https://connectrpc.com/docs/protocol), so its clients work too if they send JSON.
//!
//! The head of a request is changed at once, and its body where a body of gRPC would be read. So all that holds for
//! requests of gRPC holds for it: limits, places, deadlines and metrics.
//!
//! # Invariants
//! - JS1: what a request in JSON takes counts in the budget, and so does its answer until all of it has left.
//! - JS2: a request of HTTP/1.1 that is neither JSON nor gRPC-Web is refused in JSON.
//! - JS3: no number is taken for another one: those that some programs round are to be strings.

mod answers;
mod errors;
mod messages;
mod requests;
mod syntax;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, Either};
use http::{Request, Response};
use tonic::body::Body;
use tower::{Layer, Service};

use crate::budget::Budget;
use crate::metrics;
use messages::Methods;

pub(crate) use errors::Refusal;
pub(crate) use requests::is_grpc_web;

/// Among the extensions of a request: its client has sent JSON, and reads JSON.
#[derive(Clone, Copy, Debug)]
pub struct InJson;

/// Takes JSON beside gRPC.
#[derive(Clone)]
pub(super) struct JsonLayer(Arc<Shared>);

struct Shared {
    methods: Methods,
    budget: Budget,
    metrics: metrics::Methods,
}

impl JsonLayer {
    /// For the methods of an encoded `google.protobuf.FileDescriptorSet`.
    pub(super) fn new(
        descriptors: &[u8],
        budget: &Budget,
        metrics: &metrics::Methods,
    ) -> Result<Self, prost_reflect::DescriptorError> {
        Ok(Self(Arc::new(Shared {
            methods: Methods::of(descriptors)?,
            budget: budget.clone(),
            metrics: metrics.clone(),
        })))
    }
}

impl<S> Layer<S> for JsonLayer {
    type Service = Json<S>;

    fn layer(&self, inner: S) -> Json<S> {
        let shared = Arc::clone(&self.0);
        Json { inner, shared }
    }
}

/// A service of gRPC that takes JSON too.
#[derive(Clone)]
pub(super) struct Json<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request<Body>> for Json<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if requests::passes_through(&request) {
            return Either::Left(self.inner.call(request));
        }
        // The one that is ready takes the request.
        let other = self.inner.clone();
        let inner = mem::replace(&mut self.inner, other);
        let shared = Arc::clone(&self.shared);
        Either::Right(Box::pin(async move {
            let answer = shared.answer(inner, request).await;
            Ok(answer.unwrap_or_else(Refusal::into_http))
        }))
    }
}

impl Shared {
    async fn answer<S>(&self, inner: S, request: Request<Body>) -> Result<Response<Body>, Refusal>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let counted = self.metrics.of_path(request.uri().path());
        let version = request.version();
        let asked = requests::of_grpc(request, &self.methods, self.budget.take(0));
        let asked = asked.map_err(|refusal| {
            counted.count_refusal(&refusal.status);
            refusal.without_body(version)
        })?;
        let mut inner = inner;
        let answer = match inner.call(asked.request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let json = answers::json(&asked.method, answer, self.budget.take(0)).await;
        let json = json.map_err(|refusal| {
            if asked.has_arrived.load(Ordering::Relaxed) {
                return refusal;
            }
            refusal.without_body(version)
        })?;
        Ok(json.map(Body::new))
    }
}
