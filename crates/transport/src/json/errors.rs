//! Errors as the [Connect protocol](https://connectrpc.com/docs/protocol#error-end-stream) has them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use http_body_util::Full;
use prost::Message;
use serde::Serialize;
use serde_json::{Value, json};
use simshard_proto::{Reason, Violations};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt, pb};

/// The code of HTTP, of no standard, for a request that its client gave up.
const CLOSED_BY_CLIENT: u16 = 499;

/// A request that failed, and how HTTP says that.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    code: StatusCode,
    header: Option<(HeaderName, HeaderValue)>,
    /// Whether the connection ends, as the body of the request is not read.
    closes: bool,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let code = match Reason::of(&status) {
            Some(Reason::MessageTooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Some(_) | None => code_of_http(status.code()),
        };
        Self::by(code, status)
    }
}

impl Refusal {
    /// A refusal by another code than that of its status.
    pub(crate) const fn by(code: StatusCode, status: Status) -> Self {
        Self {
            status,
            code,
            header: None,
            closes: false,
        }
    }

    /// A refusal of a request whose body has not been read. Over HTTP/1.1 the connection ends by that.
    pub(crate) fn without_body(self, version: Version) -> Self {
        let closes = version < Version::HTTP_2;
        Self { closes, ..self }
    }

    /// A refusal of another method of HTTP than POST.
    pub(crate) fn of_method(method: &Method) -> Self {
        let status = Violations::of("method", format!("is {method}, not POST"));
        Self {
            header: Some((ALLOW, HeaderValue::from_static("POST"))),
            ..Self::by(StatusCode::METHOD_NOT_ALLOWED, status)
        }
    }

    pub(crate) fn into_http(self) -> Response<Body> {
        let details = self.status.get_error_details();
        let error = Shown {
            code: name(self.status.code()),
            message: self.status.message(),
            details: shown(&details),
        };
        // It is made of texts alone, which no writing fails for.
        let json = serde_json::to_vec(&error).unwrap_or_default();
        let mut response = Response::new(Body::new(Full::from(json)));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        let content_type = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, content_type);
        headers.extend(self.header);
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let retry = details.retry_info().and_then(|retry| retry.retry_delay);
        if let Some(delay) = retry {
            let seconds = delay.as_secs_f64().ceil() as u64;
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// An error, in the order in which people read it.
#[derive(Serialize)]
struct Shown<'a> {
    code: &'a str,
    message: &'a str,
    details: Vec<Detail>,
}

/// A detail, readable and encoded.
#[derive(Serialize)]
struct Detail {
    r#type: &'static str,
    debug: Value,
    value: String,
}

/// The code of HTTP that the Connect protocol has for one of gRPC.
fn code_of_http(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Cancelled => {
            StatusCode::from_u16(CLOSED_BY_CLIENT).unwrap_or(StatusCode::BAD_REQUEST)
        }
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What the Connect protocol calls a code.
pub(super) const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "canceled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

/// The details of an error.
fn shown(details: &ErrorDetails) -> Vec<Detail> {
    let mut shown = Vec::new();
    if let Some(info) = details.error_info() {
        let readable = json!({
            "reason": info.reason,
            "domain": info.domain,
            "metadata": info.metadata,
        });
        let encoded = pb::ErrorInfo::from(info.clone());
        shown.push(detail("google.rpc.ErrorInfo", &encoded, readable));
    }
    if let Some(bad) = details.bad_request() {
        let fields = bad.field_violations.iter();
        let fields = fields.map(|one| json!({"field": one.field, "description": one.description}));
        let readable = json!({ "fieldViolations": fields.collect::<Vec<Value>>() });
        let encoded = pb::BadRequest::from(bad.clone());
        shown.push(detail("google.rpc.BadRequest", &encoded, readable));
    }
    if let Some(retry) = details.retry_info() {
        let delay = retry.retry_delay.unwrap_or_default();
        let readable = json!({ "retryDelay": format!("{}s", delay.as_secs_f64()) });
        let encoded = pb::RetryInfo::from(retry.clone());
        shown.push(detail("google.rpc.RetryInfo", &encoded, readable));
    }
    shown
}

fn detail(kind: &'static str, encoded: &impl Message, readable: Value) -> Detail {
    Detail {
        r#type: kind,
        debug: readable,
        value: BASE64_STANDARD_NO_PAD.encode(encoded.encode_to_vec()),
    }
}
