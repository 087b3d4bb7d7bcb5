//! How long a client waits, and the answer for one that would wait in vain.
//!
//! The transport enforces that time too, but reports only that it has expired. For a client to learn what to do
//! about it, our answer must come before.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either};
use http::{HeaderMap, Request, Response};
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use simshard_proto::{Reason, Violations};

/// The header in which gRPC clients say how long they wait.
pub(crate) const HEADER: &str = "grpc-timeout";

/// The transport is forestalled by this share of the time,
const AHEAD: u32 = 10;

/// but by no more than this.
const MOST_AHEAD: Duration = Duration::from_millis(1);

/// How long the client waits, if it says so.
#[must_use]
pub fn client_timeout(headers: &HeaderMap) -> Option<Duration> {
    parse(headers.get(HEADER)?.to_str().ok()?)
}

/// Refuses a timeout that cannot be read. To ignore it would mean to wait without an end.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Status> {
    let said = headers.get_all(HEADER).iter().count();
    if said == 0 || said == 1 && client_timeout(headers).is_some() {
        Ok(())
    } else {
        Err(Violations::of(
            HEADER,
            "must be there once at most: up to 8 digits and one of the units H, M, S, m, u and n",
        ))
    }
}

/// A timeout as gRPC writes it: up to 8 digits and a unit.
fn parse(header: &str) -> Option<Duration> {
    let (digits, unit) = header.split_at_checked(header.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// A service that answers in time: it gives up a request just before the transport does, and says why.
#[derive(Clone, Debug)]
pub(super) struct AnswerInTime<S>(pub(super) S);

impl<S> Service<Request<Body>> for AnswerInTime<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = client_timeout(request.headers());
        let now = Instant::now();
        let until = asked.and_then(|time| now.checked_add(time - (time / AHEAD).min(MOST_AHEAD)));
        let answer = self.0.call(request);
        match until {
            None => Either::Left(answer),
            Some(until) => Either::Right(Box::pin(by_deadline(answer, until))),
        }
    }
}

async fn by_deadline(
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
    until: Instant,
) -> Result<Response<Body>, Infallible> {
    let (mut answer, mut alarm) = (pin!(answer), pin!(sleep_until(until)));
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        // Timers go by whole milliseconds, in which that of the transport may wake us first: the clock is asked too.
        let rung = alarm.as_mut().poll(context).is_ready();
        if rung || Instant::now() >= until {
            return Poll::Ready(Ok(late().into_http()));
        }
        Poll::Pending
    })
    .await
}

fn late() -> Status {
    let late = "there is no answer yet at the deadline: allow more time";
    Reason::DeadlineTooShort.status(late, [])
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tokio::time::timeout;
    use tonic::Code;
    use tonic_types::StatusExt;
    use tower::{ServiceExt, service_fn};

    use super::*;

    fn request(header: &str) -> Request<Body> {
        let request = Request::builder().header(HEADER, header);
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn what_is_no_timeout_is_refused_by_name() {
        for bytes in [
            &b""[..],
            b"S",
            b"5",
            b"5s",
            b"-1S",
            b"+1S",
            b" 1S",
            b"1.5S",
            b"123456789S",
            b"5\xc3\xa9",
            b"\xff",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(bytes).unwrap());
            let status = check(&headers).unwrap_err();
            assert_eq!(Reason::of(&status), Some(Reason::InvalidRequest));
            let wrong = status.get_details_bad_request().unwrap();
            assert_eq!(wrong.field_violations[0].field, HEADER, "{bytes:?}");
        }
        let mut headers = HeaderMap::new();
        assert!(check(&headers).is_ok());
        headers.append(HEADER, HeaderValue::from_static("1S"));
        assert!(check(&headers).is_ok());
        headers.append(HEADER, HeaderValue::from_static("1S"));
        assert!(check(&headers).is_err(), "which of the two is meant?");
    }

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        for (header, expected) in [
            ("5S", Some(Duration::from_secs(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("250m", Some(Duration::from_millis(250))),
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("7u", Some(Duration::from_micros(7))),
            ("", None),
            ("S", None),
            ("-1S", None),
            ("123456789S", None),
            ("5s", None),
        ] {
            let request = request(header);
            assert_eq!(client_timeout(request.headers()), expected, "{header:?}");
        }
        assert_eq!(parse("5é"), None);
    }

    /// The transport asks the service for an answer first, and then its timer, as `timeout` does.
    #[tokio::test]
    async fn who_waits_in_vain_learns_why_before_the_transport_gives_up() {
        let silent = |_| std::future::pending::<Result<Response<Body>, Infallible>>();
        let service = AnswerInTime(service_fn(silent));
        for header in ["0m", "1n", "999u", "1m", "2m", "5m", "20m", "100m"] {
            let asked = parse(header).unwrap();
            for _ in 0..5 {
                let mut service = service.clone();
                let answer = service.ready().await.unwrap().call(request(header));
                let response = timeout(asked, answer).await.expect(header).unwrap();
                let status = Status::from_header_map(response.headers()).unwrap();
                assert_eq!(status.code(), Code::DeadlineExceeded, "{header}");
                assert_eq!(Reason::of(&status), Some(Reason::DeadlineTooShort));
            }
        }
    }

    #[tokio::test]
    async fn an_answer_in_time_is_left_as_it_is() {
        let prompt = |_| async { Ok::<_, Infallible>(Response::new(Body::empty())) };
        let service = AnswerInTime(service_fn(prompt));
        for header in ["0m", "5m", "99999999H", "soon"] {
            let response = service.clone().oneshot(request(header)).await.unwrap();
            assert!(Status::from_header_map(response.headers()).is_none());
        }
    }
}
