//! From a request in JSON to one of gRPC.

use bytes::{Bytes, BytesMut};
use http::header::{
    ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use simshard_proto::{Reason, Violations};
use tonic::Status;
use tonic::body::Body;

use super::messages::{self, Method, Methods};
use super::{InJson, Refusal, too_large};
use crate::admission::{NO_MEMORY, overloaded};
use crate::budget::Taken;
use crate::deadline;

/// Bytes of a request in JSON. It takes several times as many while it is read, and streams are for more.
const LARGEST: usize = 4 << 20;

/// How content types of gRPC begin, and of gRPC-Web.
const GRPC: &str = "application/grpc";
const GRPC_WEB: &str = "application/grpc-web";

/// The header in which clients of the Connect protocol say how many milliseconds they wait.
const TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");

/// Digits of a timeout.
const TIMEOUT_DIGITS: usize = 10;

/// What says how the body of a request is written, which that of gRPC is not.
const OF_BODY: [HeaderName; 4] = [
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
];

/// Whether a request is none in JSON, and is not to be refused in JSON (JS2).
pub(super) fn is_of_grpc(request: &Request<Body>) -> bool {
    let content_type = content_type(request.headers());
    if request.version() < Version::HTTP_2 {
        return content_type.starts_with(GRPC_WEB);
    }
    !is_json(content_type)
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
    let is_utf8 = |parameter: &str| parameter.eq_ignore_ascii_case("charset=utf-8");
    name.eq_ignore_ascii_case("application/json") && parts.all(is_utf8)
}

/// The method that is asked for. Refuses a request that is not JSON, or for no unary method.
pub(super) fn check(head: &Parts, methods: &Methods) -> Result<Method, Refusal> {
    let path = head.uri.path();
    if head.method != Verb::POST {
        let status = Violations::of("method", format!("is {}, not POST", head.method));
        let allowed = (ALLOW, HeaderValue::from_static("POST"));
        return Err(Refusal::by(StatusCode::METHOD_NOT_ALLOWED, status).with_header(allowed));
    }
    let content_type = content_type(&head.headers);
    if !is_json(content_type) {
        let problem = if content_type.starts_with(GRPC) {
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
    let Some(method) = methods.of_path(path) else {
        let told = "there is no such method: check its name, as /simshard.v1.CorpusService/FindAll";
        let status = Reason::UnknownMethod.status(told, []);
        return Err(Refusal::by(StatusCode::NOT_FOUND, status));
    };
    if method.is_stream() {
        let told = "this method is a stream, which JSON has not: use gRPC";
        return Err(Reason::UnknownMethod.status(told, []).into());
    }
    Ok(method)
}

/// The message of a request, which counts until it is read (JS1).
///
/// # Errors
/// If it is too large, or not JSON of the method, or if there is no memory left for it.
pub(super) async fn message(method: &Method, body: Body, taken: Taken) -> Result<Bytes, Status> {
    let mut taken = taken;
    let json = read(body, &mut taken).await?;
    if !taken.try_grow(messages::bytes_of_json(&json)) {
        return Err(overloaded(NO_MEMORY));
    }
    let method = method.clone();
    messages::offloaded(json.len(), move || {
        let message = method.message(&json);
        drop(taken);
        message
    })
    .await
}

async fn read(body: Body, taken: &mut Taken) -> Result<Bytes, Status> {
    let (mut body, mut json) = (body, BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if json.len() + data.len() > LARGEST {
            return Err(too_large(
                "a request in JSON has at most 4 MiB: send smaller batches, or use gRPC",
            ));
        }
        if !taken.try_grow(data.len()) {
            return Err(overloaded(NO_MEMORY));
        }
        json.extend_from_slice(&data);
    }
    Ok(json.freeze())
}

/// The request of gRPC with a message.
pub(super) fn of_grpc(head: Parts, message: Bytes) -> Result<Request<Body>, Refusal> {
    let mut head = head;
    head.version = Version::HTTP_2;
    for name in OF_BODY {
        head.headers.remove(name);
    }
    let content_type = HeaderValue::from_static(GRPC);
    head.headers.insert(CONTENT_TYPE, content_type);
    if let Some(timeout) = head.headers.remove(TIMEOUT) {
        let timeout = timeout_of_grpc(&timeout)?;
        head.headers.insert(deadline::HEADER, timeout);
    }
    head.extensions.insert(InJson);
    Ok(Request::from_parts(head, Body::new(Full::new(message))))
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
