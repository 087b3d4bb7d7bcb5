//! Admission: limits on the number of requests in flight and on their bytes. A request beyond them is refused at
//! once, and the refusal says when to retry.
//!
//! # Invariants
//! - AD1: every byte of a request's messages is counted from its arrival until its answer has left. The handler of a
//!   stream may end that earlier, when it says that it no longer holds the byte.
//! - AD2: a request beyond the limits is answered OVERLOADED; health checks are answered all the same.
//! - AD3: a request has its place until its answer has left, or until the handler of a stream gives it up before. A
//!   client that does not read an answer keeps a place, and the bytes on their way to it, as long as its connection
//!   lives.
//! - AD4: no peer has more than its share of the places, so others find some. A stream of batches takes a whole place
//!   only while a batch is in flight.
//! - AD5: a connection is in use while one of its requests has a place, or an answer that has not left. Health checks do
//!   not count.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either};
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::allowance::Allowance;
use super::budget::{Budget, Taken};
use super::incoming::{Caller, InUse};
use super::places::{Place, Places, Size};
use super::shares::Peer;
use simshard_proto::Reason;

/// Requests in flight at once in one process. One peer gets half at most.
const MAX_REQUESTS: usize = 8192;

/// The message of a refusal for want of memory.
pub const NO_MEMORY: &str = "requests in flight use all the memory that they may";

/// The message of a refusal to a peer that has its full share of places.
const NO_PLACE: &str = "too many requests from this address are in flight";

/// A health check has this path.
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// A stream of changes of health, which lasts as long as the client wants, has this path.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Admits requests while there is room.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    requests: Places,
    budget: Budget,
    /// The path of a stream that admits its messages itself.
    admits_itself: Option<&'static str>,
}

impl Admission {
    /// Admits requests within the memory of `budget`. Messages on a stream with the path `admits_itself` count, but are
    /// never refused here.
    pub(super) fn new(budget: Budget, admits_itself: Option<&'static str>) -> Self {
        Self {
            requests: Places::new(MAX_REQUESTS),
            budget,
            admits_itself,
        }
    }
}

impl<S> Layer<S> for Admission {
    type Service = Admitting<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Admitting {
            inner,
            admission: self.clone(),
        }
    }
}

/// The holdings of an admitted request: its place, and the bytes of its messages that have arrived. Servers find them
/// among the extensions of the request.
#[derive(Clone, Debug)]
pub struct Admitted {
    holdings: Arc<Mutex<Holdings>>,
    /// What is left of the limits of the caller, if it has any.
    allowance: Option<Arc<Allowance>>,
}

#[derive(Debug)]
struct Holdings {
    arrived: Taken,
    place: Option<Place>,
    /// Batches of a stream in flight.
    working: usize,
    /// Whether the place is released once no batch is in flight.
    is_left: bool,
}

impl Admitted {
    /// The holdings of this request.
    #[must_use]
    pub fn of<T>(request: &tonic::Request<T>) -> Self {
        let admitted = request.extensions().get();
        // Without admission nothing is limited.
        admitted
            .cloned()
            .unwrap_or_else(|| Self::new(&Budget::new(usize::MAX), None))
    }

    /// Holdings without bytes, with a place if places are counted.
    #[must_use]
    pub fn new(budget: &Budget, place: Option<Place>) -> Self {
        let holdings = Holdings {
            arrived: budget.take(0),
            place,
            working: 0,
            is_left: false,
        };
        Self {
            holdings: Arc::new(Mutex::new(holdings)),
            allowance: None,
        }
    }

    /// Waits until the next batch of a stream may begin, by the limits of its caller.
    pub async fn wait(&self) {
        if let Some(allowance) = &self.allowance {
            allowance.wait().await;
        }
    }

    /// Takes over the bytes that have arrived so far. They count until the returned guard is dropped.
    #[must_use]
    pub fn split(&self) -> Taken {
        self.lock(|held| held.arrived.split())
    }

    /// Releases most of the place of a stream until the next [`work`](Self::work) on it.
    pub fn rest(&self) {
        self.lock(Holdings::rest);
    }

    /// Takes a whole place for a stream, until the guard is dropped.
    ///
    /// # Errors
    /// `OVERLOADED` if its peer has its share of the places in use.
    pub fn work(&self) -> Result<Working, Status> {
        let has_place = self.lock(|held| {
            let place = held.place.as_mut();
            let has_place = place.is_none_or(|place| place.resize(Size::Whole));
            held.working += usize::from(has_place);
            has_place
        });
        if has_place {
            Ok(Working(self.clone()))
        } else {
            Err(overloaded(NO_PLACE))
        }
    }

    /// Releases the place of a stream, once no [`work`](Self::work) on it is in flight. The stream begins no other
    /// work, but its answers may still be unread.
    pub fn leave(&self) {
        self.lock(|held| {
            held.is_left = true;
            held.shrink();
        });
    }

    /// Counts bytes that have arrived, if they fit or `in_any_case`; returns whether it did.
    fn grow(&self, bytes: usize, in_any_case: bool) -> bool {
        self.lock(|held| {
            if in_any_case {
                held.arrived.grow(bytes);
            }
            in_any_case || held.arrived.try_grow(bytes)
        })
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Holdings) -> T) -> T {
        act(&mut self.holdings.lock())
    }
}

impl Holdings {
    /// Releases the part of the place that only a batch in flight needs.
    fn shrink(&mut self) {
        if self.working > 0 {
            return;
        }
        if self.is_left {
            self.place = None;
        } else {
            self.rest();
        }
    }

    fn rest(&mut self) {
        if let Some(place) = &mut self.place {
            // A smaller size always fits.
            let _ = place.resize(Size::Resting);
        }
    }
}

/// A batch in flight, of a stream.
#[derive(Debug)]
pub struct Working(Admitted);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.lock(|held| {
            held.working -= 1;
            held.shrink();
        });
    }
}

/// A service behind an admission.
#[derive(Clone, Debug)]
pub(super) struct Admitting<S> {
    inner: S,
    admission: Admission,
}

impl<S> Service<Request<Body>> for Admitting<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<
        Ready<Result<Response<Body>, Infallible>>,
        BoxFuture<'static, Result<Response<Body>, Infallible>>,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        if path == CHECK {
            return Either::Right(Box::pin(self.inner.call(request)));
        }
        let allowance: Option<Arc<Allowance>> = request.extensions().get().cloned();
        if let Some(Err(refusal)) = allowance.as_deref().map(Allowance::begin) {
            return Either::Left(ready(Ok(refusal.into_http())));
        }
        let size = if path == WATCH {
            Size::Resting
        } else {
            Size::Whole
        };
        let caller = request.extensions().get::<Caller>();
        let peer = caller.map_or(Peer::UNKNOWN, Caller::peer);
        let Some(place) = self.admission.requests.take_of_size(peer, size) else {
            return Either::Left(ready(Ok(overloaded(NO_PLACE).into_http())));
        };
        let in_use = caller.map(Caller::begin);
        let budget = &self.admission.budget;
        let budget = match &allowance {
            Some(allowance) => allowance.within(budget),
            None => budget.clone(),
        };
        let admitted = Admitted {
            allowance,
            ..Admitted::new(&budget, Some(place))
        };
        let admits_itself = self.admission.admits_itself == Some(request.uri().path());
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(admitted.clone());
        let body = Body::new(Arriving {
            body,
            admitted: admitted.clone(),
            admits_itself,
        });
        let answer = self.inner.call(Request::from_parts(parts, body));
        Either::Right(Box::pin(async move {
            let leaving = |body| Leaving {
                body,
                frame: budget.take(0),
                budget,
                _admitted: admitted,
                _in_use: in_use,
            };
            Ok(answer.await?.map(|body| Body::new(leaving(body))))
        }))
    }
}

/// The error for a request beyond the limits.
#[must_use]
pub fn overloaded(what: &str) -> Status {
    Reason::Overloaded.status(format!("{what}: retry a little later"), [])
}

/// The body of a request, counted as it arrives.
struct Arriving {
    body: Body,
    admitted: Admitted,
    admits_itself: bool,
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => 0,
        };
        if bytes == 0 || self.admitted.grow(bytes, self.admits_itself) {
            return Poll::Ready(frame);
        }
        Poll::Ready(Some(Err(overloaded(NO_MEMORY))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. The bytes of its request count until it has left.
struct Leaving {
    body: Body,
    budget: Budget,
    /// The frame that the connection took last, and may still hold.
    frame: Taken,
    _admitted: Admitted,
    _in_use: Option<InUse>,
}

impl http_body::Body for Leaving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.frame = self.budget.take(bytes);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
