//! From a request in JSON to one of gRPC.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::request::Parts;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, Request, StatusCode, Version,
};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use simshard_proto::{Reason, Violations};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;

use super::messages::{self, Method, Methods};
use super::{InJson, Refusal, syntax};
use crate::admission::{NO_MEMORY, overloaded};
use crate::budget::Taken;
use crate::deadline;

/// Bytes of a request in JSON. It takes several times as many while it is read, and streams are for more.
const LARGEST: usize = 4 << 20;

/// How long the body of a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// The content type of requests to gRPC.
const GRPC: &str = "application/grpc";

/// The content types of gRPC-Web.
const GRPC_WEB: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// The header in which clients of the Connect protocol say how many milliseconds they wait.
const TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");

/// Digits of a timeout.
const TIMEOUT_DIGITS: usize = 10;

/// Headers of the JSON body, wrong for the gRPC body.
const OF_BODY: [HeaderName; 4] = [
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
];

/// A request of gRPC that was one in JSON.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) request: Request<Body>,
    /// Whether all of the body has arrived.
    pub(super) has_arrived: Arc<AtomicBool>,
}

/// Whether the next layer takes a request as it is. Others are JSON, or are refused in JSON (JS2).
pub(super) fn passes_through(request: &Request<Body>) -> bool {
    if request.version() < Version::HTTP_2 {
        return request.method() == HttpMethod::POST && is_grpc_web(request.headers());
    }
    !is_json(content_type(request.headers()))
}

/// Whether a request is one of gRPC-Web.
pub(crate) fn is_grpc_web(headers: &HeaderMap) -> bool {
    GRPC_WEB.contains(&content_type(headers))
}

fn content_type(headers: &HeaderMap) -> &str {
    let content_type = headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    content_type.unwrap_or_default()
}

/// The only character set of JSON is UTF-8.
fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let is_utf8 = |parameter: &str| {
        let parameter = parameter.replace('"', "");
        parameter.is_empty() || parameter.eq_ignore_ascii_case("charset=utf-8")
    };
    name.eq_ignore_ascii_case("application/json") && parts.all(is_utf8)
}

/// The request of gRPC, whose message is read when it is asked for.
///
/// # Errors
/// If the request is not JSON, or for no unary method, or known to be too large.
pub(super) fn of_grpc(
    request: Request<Body>,
    methods: &Methods,
    taken: Taken,
) -> Result<Asked, Refusal> {
    let (mut head, body) = request.into_parts();
    let method = check(&head, methods)?;
    if body.size_hint().lower() > LARGEST as u64 {
        return Err(too_large().into());
    }
    head.version = Version::HTTP_2;
    for name in OF_BODY {
        head.headers.remove(name);
    }
    let content_type = HeaderValue::from_static(GRPC);
    head.headers.insert(CONTENT_TYPE, content_type);
    if let Some(milliseconds) = head.headers.remove(TIMEOUT) {
        let timeout = timeout_of_grpc(&milliseconds)?;
        head.headers.insert(deadline::HEADER, timeout);
    }
    head.extensions.insert(InJson);
    let has_arrived = Arc::new(AtomicBool::new(false));
    let (asked, arrived) = (method.clone(), Arc::clone(&has_arrived));
    let message = async move {
        let json = arrive(body, taken, &arrived).await?;
        message(asked, json).await.map(Frame::data)
    };
    let body = Body::new(StreamBody::new(stream::once(message)));
    Ok(Asked {
        method,
        request: Request::from_parts(head, body),
        has_arrived,
    })
}

fn check(head: &Parts, methods: &Methods) -> Result<Method, Refusal> {
    if head.method != HttpMethod::POST {
        return Err(Refusal::of_method(&head.method));
    }
    let content_type = content_type(&head.headers);
    if !is_json(content_type) {
        let problem = if content_type.starts_with(GRPC) && !is_grpc_web(&head.headers) {
            "is that of gRPC, which needs HTTP/2"
        } else {
            "is not application/json"
        };
        let status = Violations::of("content-type", problem);
        return Err(Refusal::by(StatusCode::UNSUPPORTED_MEDIA_TYPE, status));
    }
    let encodings = head.headers.get_all(CONTENT_ENCODING);
    if encodings.iter().any(|encoding| encoding != "identity") {
        let told = "compressed requests are not understood: send them without compression";
        let status = Reason::UnsupportedEncoding.status(told, []);
        return Err(Refusal::by(StatusCode::UNSUPPORTED_MEDIA_TYPE, status));
    }
    if head.headers.contains_key(deadline::HEADER) {
        let status = Violations::of(deadline::HEADER, "is for gRPC: send connect-timeout-ms");
        return Err(status.into());
    }
    let Some(method) = methods.of_path(head.uri.path()) else {
        let told = "there is no such method: check its name, as /simshard.v1.CorpusService/FindAll";
        let status = Reason::UnknownMethod.status(told, []);
        return Err(Refusal::by(StatusCode::NOT_FOUND, status));
    };
    if method.is_stream() {
        let told = "this method is a stream, and JSON has none: use gRPC";
        return Err(Reason::UnknownMethod.status(told, []).into());
    }
    Ok(method)
}

/// The JSON of a request, and what it takes, once all of it is there.
async fn arrive(
    body: Body,
    taken: Taken,
    has_arrived: &AtomicBool,
) -> Result<(Bytes, Taken), Status> {
    let mut taken = taken;
    let arrived = timeout(ARRIVAL, read(body, &mut taken)).await;
    let json = arrived.unwrap_or_else(|_| {
        let told = "the body has not arrived within 30 s";
        Err(Reason::DeadlineTooShort.status(told, []))
    })?;
    has_arrived.store(true, Ordering::Relaxed);
    Ok((json, taken))
}

/// The message of a request, whose JSON counts until it is read (JS1).
async fn message(method: Method, (json, taken): (Bytes, Taken)) -> Result<Bytes, Status> {
    let mut taken = taken;
    messages::offloaded(json.len(), move || {
        let bytes = syntax::bytes_once_read(&json);
        if !taken.may_ever_grow(bytes) {
            let told = "the body has more values than there is memory for: send smaller batches, or use gRPC";
            return Err(Reason::MessageTooLarge.status(told, []));
        }
        if !taken.try_grow(bytes) {
            return Err(overloaded(NO_MEMORY));
        }
        method.message(&json)
    })
    .await
}

async fn read(body: Body, taken: &mut Taken) -> Result<Bytes, Status> {
    let (mut body, mut json) = (body, BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let problem = format!("ends early, or is malformed: {}", error.message());
            Violations::of("body", problem)
        });
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if json.len() + data.len() > LARGEST {
            return Err(too_large());
        }
        if !taken.try_grow(data.len()) {
            return Err(overloaded(NO_MEMORY));
        }
        json.extend_from_slice(&data);
    }
    Ok(json.freeze())
}

fn too_large() -> Status {
    let told = "a request in JSON has at most 4 MiB: send smaller batches, or use gRPC";
    Reason::MessageTooLarge.status(told, [])
}

/// gRPC has fewer digits.
fn timeout_of_grpc(milliseconds: &HeaderValue) -> Result<HeaderValue, Status> {
    let digits = milliseconds.to_str().unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = (is_number && digits.len() <= TIMEOUT_DIGITS).then(|| digits.parse::<u64>());
    let timeout = match number {
        Some(Ok(number)) if number < 100_000_000 => format!("{number}m"),
        Some(Ok(number)) => format!("{}S", number / 1000),
        Some(Err(_)) | None => {
            let problem = format!("is no number of milliseconds of up to {TIMEOUT_DIGITS} digits");
            return Err(Violations::of(TIMEOUT.as_str(), problem));
        }
    };
    HeaderValue::try_from(timeout).map_err(|error| Status::internal(error.to_string()))
}
