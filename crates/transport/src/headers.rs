//! Refuses requests with another method than POST, or with wrong headers, before anything else is done for them.
//!
//! # Invariants
//! - HD1: a request is served only if it is a POST, its headers take at most [`MAX_HEADERS`], and its content type is
//!   that of gRPC. Its messages must not be compressed, and its timeout, if it has one, must be well formed.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataValue;
use tower::Service;

use super::deadline;
use simshard_proto::{Reason, Violations};

/// Bytes of the headers of one request, counted as HTTP/2 counts them.
const MAX_HEADERS: usize = 16 << 10;

/// Bytes that HTTP/2 adds to each header.
const OVERHEAD: usize = 32;

/// Says how the messages of a request are compressed.
const ENCODING: &str = "grpc-encoding";

/// Says which compression is understood.
const ACCEPTED: &str = "grpc-accept-encoding";

/// The encoding that is none.
const PLAIN: &str = "identity";

/// A service that gets no requests with wrong headers.
#[derive(Clone, Debug)]
pub(super) struct CheckHeaders<S>(pub(super) S);

impl<S> Service<Request<Body>> for CheckHeaders<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match check(&request) {
            Ok(()) => Either::Left(self.0.call(request)),
            Err(refusal) => Either::Right(ready(Ok(refusal))),
        }
    }
}

/// # Errors
/// The answer that says what is wrong.
fn check(request: &Request<Body>) -> Result<(), Response<Body>> {
    let headers = request.headers();
    let refusal = check_size(request)
        .and_then(|()| check_encoding(headers))
        .and_then(|()| deadline::check(headers));
    refusal.map_err(Status::into_http)?;
    // A client that does not speak gRPC looks at the HTTP status alone.
    let with_code = |code| {
        move |status: Status| {
            let mut response = status.into_http();
            *response.status_mut() = code;
            response
        }
    };
    check_method(request.method()).map_err(|status| {
        let mut response = with_code(StatusCode::METHOD_NOT_ALLOWED)(status);
        let allowed = HeaderValue::from_static("POST");
        response.headers_mut().insert(ALLOW, allowed);
        response
    })?;
    check_content_type(headers).map_err(with_code(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

fn check_method(method: &Method) -> Result<(), Status> {
    if method == Method::POST {
        return Ok(());
    }
    Err(Violations::of(
        "method",
        format!("is {method}, not POST: use a client for gRPC"),
    ))
}

fn check_size(request: &Request<Body>) -> Result<(), Status> {
    let headers = request.headers().iter();
    let bytes: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD)
        .sum();
    let path = request.uri().path().len();
    if bytes + path <= MAX_HEADERS {
        Ok(())
    } else {
        Err(Violations::of(
            "metadata",
            format!("takes more than {MAX_HEADERS} bytes: send less of it"),
        ))
    }
}

fn check_encoding(headers: &HeaderMap) -> Result<(), Status> {
    if headers.get_all(ENCODING).iter().all(|name| name == PLAIN) {
        return Ok(());
    }
    let refused = "compressed messages are not understood: send them without compression";
    let mut status = Reason::UnsupportedEncoding.status(refused, []);
    let metadata = status.metadata_mut();
    metadata.insert(ACCEPTED, MetadataValue::from_static(PLAIN));
    Err(status)
}

/// The content type of gRPC may name the format of its messages, which is Protobuf here.
fn check_content_type(headers: &HeaderMap) -> Result<(), Status> {
    let name = headers
        .get(CONTENT_TYPE)
        .and_then(|name| name.to_str().ok());
    let without_parameters = name.map(|name| name.split(';').next().unwrap_or(name).trim());
    match without_parameters {
        Some("application/grpc" | "application/grpc+proto") => Ok(()),
        Some(_) | None => Err(Violations::of(
            "content-type",
            "is not application/grpc: use a client for gRPC",
        )),
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// The answer to a request with the required headers and these.
    async fn ask(headers: &[(&'static str, &[u8])]) -> (StatusCode, Option<Status>) {
        let mut request = Request::post("/").body(Body::empty()).unwrap();
        let content_type = HeaderValue::from_static("application/grpc");
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value).unwrap();
            match *name {
                "content-type" => request.headers_mut().insert(*name, value).is_some(),
                _ => request.headers_mut().append(*name, value),
            };
        }
        answer_to(request).await
    }

    async fn answer_to(request: Request<Body>) -> (StatusCode, Option<Status>) {
        let answer = |_| async { Ok::<_, Infallible>(Response::new(Body::empty())) };
        let service = CheckHeaders(service_fn(answer));
        let response = service.oneshot(request).await.unwrap();
        let status = Status::from_header_map(response.headers());
        (response.status(), status)
    }

    /// HD1.
    #[tokio::test]
    async fn only_posts_are_served() {
        for method in [Method::GET, Method::OPTIONS, Method::PUT] {
            let request = Request::builder().method(method.clone());
            let request = request.header(CONTENT_TYPE, "application/grpc");
            let (code, status) = answer_to(request.body(Body::empty()).unwrap()).await;
            assert_eq!(code, StatusCode::METHOD_NOT_ALLOWED, "{method}");
            let reason = status.as_ref().and_then(Reason::of);
            assert_eq!(reason, Some(Reason::InvalidRequest), "{method}");
        }
    }

    /// HD1.
    #[tokio::test]
    async fn headers_as_grpc_writes_them_are_let_in() {
        for (name, value) in [
            ("content-type", "application/grpc"),
            ("content-type", "application/grpc+proto"),
            ("content-type", "application/grpc; charset=utf-8"),
            (ENCODING, PLAIN),
            ("grpc-timeout", "99999999H"),
            ("x-more", &"x".repeat(MAX_HEADERS - 200)),
        ] {
            let (code, status) = ask(&[(name, value.as_bytes())]).await;
            assert_eq!(code, StatusCode::OK, "{name}: {value}");
            assert!(status.is_none(), "{name}: {value}: {status:?}");
        }
    }

    /// HD1.
    #[tokio::test]
    async fn all_others_are_told_what_is_wrong() {
        let much = [b'x'; MAX_HEADERS / 2];
        for (headers, reason) in [
            (
                &[("grpc-timeout", &b"soon"[..])][..],
                Reason::InvalidRequest,
            ),
            (
                &[("grpc-timeout", b"1S"), ("grpc-timeout", b"1S")],
                Reason::InvalidRequest,
            ),
            (
                &[("content-type", b"application/json")],
                Reason::InvalidRequest,
            ),
            (
                &[("content-type", b"application/grpc-web+proto")],
                Reason::InvalidRequest,
            ),
            (&[("content-type", b"\xff")], Reason::InvalidRequest),
            (&[(ENCODING, b"gzip")], Reason::UnsupportedEncoding),
            (
                &[(ENCODING, b"identity"), (ENCODING, b"zstd")],
                Reason::UnsupportedEncoding,
            ),
            (&[("x-a", &much), ("x-b", &much)], Reason::InvalidRequest),
        ] {
            let (code, status) = ask(headers).await;
            let status = status.unwrap();
            assert_eq!(Reason::of(&status), Some(reason), "{headers:?}");
            let is_grpc = headers[0].0 != "content-type";
            assert_eq!(code == StatusCode::OK, is_grpc, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn a_server_says_which_compression_it_understands() {
        let (_, status) = ask(&[(ENCODING, b"gzip")]).await;
        let status = status.unwrap();
        assert_eq!(status.metadata().get(ACCEPTED).unwrap(), PLAIN);
    }
}
