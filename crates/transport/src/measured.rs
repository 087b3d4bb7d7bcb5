//! Measuring requests, from their head until the answer has left, and telling of the slow ones.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use simshard_runtime::observed::Slow;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;
use tracing::warn;

use crate::incoming::Caller;
use crate::metrics::{Method, Methods, name_of};
use crate::shares::Peer;

/// A service whose requests are measured.
#[derive(Clone, Debug)]
pub(super) struct Measured<S> {
    inner: S,
    methods: Methods,
    slow: Slow,
}

impl<S> Measured<S> {
    pub(super) fn new(inner: S, methods: &Methods, slow: &Slow) -> Self {
        Self {
            inner,
            methods: methods.clone(),
            slow: slow.clone(),
        }
    }
}

impl<S> Service<Request<Body>> for Measured<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let call = Call {
            method: self.methods.of_path(request.uri().path()),
            peer: request.extensions().get::<Caller>().map(Caller::peer),
            slow: self.slow.clone(),
            begun: Instant::now(),
            is_counted: false,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut call = call;
            let answer = answer.await?;
            // An error without a message has its status in front.
            if call.count_if_ended(answer.headers()) {
                return Ok(answer);
            }
            if answer.body().is_end_stream() {
                call.count(Code::Unknown);
                return Ok(answer);
            }
            Ok(answer.map(|body| Body::new(Answer { body, call })))
        })
    }
}

/// A call in progress. One that is dropped before its end was given up.
struct Call {
    method: Arc<Method>,
    peer: Option<Peer>,
    slow: Slow,
    begun: Instant,
    is_counted: bool,
}

impl Call {
    /// Counts the call if these headers, or trailers, tell its end. Answers whether they do.
    fn count_if_ended(&mut self, headers: &HeaderMap) -> bool {
        let Some(status) = Status::from_header_map(headers) else {
            return false;
        };
        if status.code() != Code::Ok {
            self.method.count_reason(&status);
        }
        self.count(status.code());
        true
    }

    fn count(&mut self, code: Code) {
        if !self.is_counted {
            self.is_counted = true;
            let took = self.begun.elapsed();
            self.method.count(code, took);
            self.tell_if_slow(code, took);
        }
    }

    fn tell_if_slow(&self, code: Code, took: Duration) {
        if self.method.is_stream() {
            return;
        }
        let Some(left_out) = self.slow.tells(took) else {
            return;
        };
        let (service, method) = (self.method.service(), self.method.method());
        let peer = self.peer.unwrap_or(Peer::UNKNOWN);
        let code = name_of(code);
        warn!(service, method, code, ?took, %peer, left_out, "a request was slow");
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.count(Code::Cancelled);
    }
}

/// The body of an answer, whose end is the end of the call.
struct Answer {
    body: Body,
    call: Call,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    self.call.count_if_ended(trailers);
                }
            }
            Some(Err(status)) => self.call.count(status.code()),
            None => self.call.count(Code::Unknown),
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
mod tests {
    use http_body_util::BodyExt;
    use simshard_proto::{CORPUS_SERVICE_DESCRIPTORS, Reason};
    use simshard_runtime::observed::Observed;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::budget::Budget;
    use crate::metrics::Requests;

    const FIND: &str = "/simshard.v1.CorpusService/FindAll";

    /// What is counted of one call that is answered like this, and read to its end if `is_read`.
    async fn counted(answer: Response<Body>, is_read: bool) -> String {
        let observed = Observed::default();
        let requests: Requests = observed.metrics();
        let methods = requests.of_server("x", CORPUS_SERVICE_DESCRIPTORS, &Budget::new(1));
        let answer = std::sync::Mutex::new(Some(answer));
        let inner = service_fn(move |_| {
            let answer = answer.lock().unwrap().take().unwrap();
            async { Ok::<_, Infallible>(answer) }
        });
        let service = Measured::new(inner, &methods, &Slow::default());
        let request = Request::post(FIND).body(Body::empty()).unwrap();
        let answer = service.oneshot(request).await.unwrap();
        if is_read {
            let _ = answer.into_body().collect().await;
        } else {
            drop(answer);
        }
        let shown = observed.metrics_text().unwrap();
        let counts = shown.lines().filter(|line| {
            line.starts_with("simshard_transport_request_seconds_count")
                || line.starts_with("simshard_transport_refused_requests_total")
        });
        counts.collect::<Vec<_>>().join("\n")
    }

    fn with_trailers(status: &Status) -> Response<Body> {
        let mut trailers = HeaderMap::new();
        status.add_header(&mut trailers).unwrap();
        let frames = futures_util::stream::iter([Ok::<_, Status>(Frame::trailers(trailers))]);
        Response::new(Body::new(http_body_util::StreamBody::new(frames)))
    }

    #[tokio::test]
    async fn a_call_counts_once_by_the_code_of_its_end() {
        let refused = Reason::Overloaded.status("much", []);
        for (answer, is_read, code, reason) in [
            (with_trailers(&Status::ok("")), true, "OK", None),
            (with_trailers(&Status::ok("")), false, "CANCELLED", None),
            (
                with_trailers(&refused),
                true,
                "RESOURCE_EXHAUSTED",
                Some("OVERLOADED"),
            ),
            (
                refused.clone().into_http(),
                true,
                "RESOURCE_EXHAUSTED",
                Some("OVERLOADED"),
            ),
            (Response::new(Body::empty()), true, "UNKNOWN", None),
        ] {
            let counted = counted(answer, is_read).await;
            assert!(
                counted.contains(&format!("code=\"{code}\"}} 1")),
                "{counted}"
            );
            let lines = 1 + usize::from(reason.is_some());
            assert_eq!(counted.lines().count(), lines, "{counted}");
            if let Some(reason) = reason {
                assert!(
                    counted.contains(&format!("reason=\"{reason}\"}} 1")),
                    "{counted}"
                );
            }
        }
    }
}
