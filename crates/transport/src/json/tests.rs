//! Requests in JSON to a service of gRPC that tells what it was sent.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bytes::Bytes;
use futures_util::future::ready;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor};
use serde_json::{Value, json};
use simshard_proto::v1::{FindFirstRequest, FindFirstResponse, Match};
use simshard_proto::{CORPUS_SERVICE_DESCRIPTORS, ROUTER_DESCRIPTORS, Reason};
use simshard_runtime::observed::Observed;
use tonic::server::Grpc;
use tonic::{Code, Request as Call, Response as Answer, Status};
use tonic_prost::ProstCodec;
use tonic_types::pb;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::metrics::Requests;

/// A value of any kind, in JSON as it is.
const ANY_VALUE: &str = "google.protobuf.Struct";

const FIND: &str = "/simshard.v1.CorpusService/FindFirst";

/// Answers a search with its queries, as rows of as many ids as it allows; without queries with an error.
async fn found(call: Call<FindFirstRequest>) -> Result<Answer<FindFirstResponse>, Status> {
    assert!(call.extensions().get::<InJson>().is_some());
    let timeout = call.metadata().get("grpc-timeout").cloned();
    let queries = call.into_inner();
    if queries.fingerprints.is_empty() {
        return Err(Reason::Overloaded.status("wait", [("nodes", "n1".to_owned())]));
    }
    let mut ids = vec!["an id".to_owned(); queries.max_ids as usize];
    ids.extend(timeout.map(|timeout| timeout.to_str().unwrap().to_owned()));
    let row = |(query, &fingerprint): (usize, &u64)| Match {
        query: query as u32,
        fingerprint,
        ids: ids.clone(),
        ..Match::default()
    };
    let rows = queries.fingerprints.iter().enumerate().map(row).collect();
    Ok(Answer::new(FindFirstResponse {
        rows,
        queries: queries.fingerprints,
        ..FindFirstResponse::default()
    }))
}

/// Asks such a service within a budget.
async fn ask(budget: &Budget, request: Request<Body>) -> Response<Body> {
    let requests: Requests = Observed::default().metrics();
    let metrics = requests.of_server("test", CORPUS_SERVICE_DESCRIPTORS, budget);
    let layer = JsonLayer::new(CORPUS_SERVICE_DESCRIPTORS, budget, &metrics).unwrap();
    let service = service_fn(|request: Request<Body>| async {
        assert_eq!(request.headers()[CONTENT_TYPE], "application/grpc");
        let codec = ProstCodec::<FindFirstResponse, FindFirstRequest>::default();
        Ok::<_, Infallible>(Grpc::new(codec).unary(service_fn(found), request).await)
    });
    layer.layer(service).oneshot(request).await.unwrap()
}

fn post(path: &str, json: impl Into<Bytes>) -> Request<Body> {
    let request = Request::post(path).version(Version::HTTP_11);
    let request = request.header(CONTENT_TYPE, "application/json");
    request.body(Body::new(Full::new(json.into()))).unwrap()
}

async fn read(response: Response<Body>) -> (StatusCode, HeaderMap, Value) {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let json = serde_json::from_slice(&body).unwrap();
    assert_eq!(head.headers[CONTENT_TYPE], "application/json");
    (head.status, head.headers, json)
}

async fn answer(request: Request<Body>) -> (StatusCode, HeaderMap, Value) {
    read(ask(&Budget::new(64 << 20), request).await).await
}

/// The code, and the reason that the readable details name.
async fn refused(request: Request<Body>) -> (u16, String, String) {
    let (status, _, json) = answer(request).await;
    let reason = &json["details"][0]["debug"]["reason"];
    let message = json["message"].as_str().unwrap().to_owned();
    (
        status.as_u16(),
        reason.as_str().unwrap().to_owned(),
        message,
    )
}

#[tokio::test]
async fn numbers_of_64_bits_are_strings_and_may_be_numbers_when_asked() {
    let asked = r#"{"corpus": "c", "fingerprints": ["18446744073709551615", 7], "maxIds": 1, "allow_partial": true}"#;
    for charset in ["application/json", "Application/JSON; charset=\"UTF-8\";"] {
        let mut request = post(FIND, asked);
        let charset = charset.parse().unwrap();
        request.headers_mut().insert(CONTENT_TYPE, charset);
        let (status, _, json) = answer(request).await;
        assert_eq!(status, StatusCode::OK, "{json}");
        assert_eq!(json["queries"], json!(["18446744073709551615", "7"]));
        let row = &json["rows"][0];
        // What is zero is said too.
        assert_eq!((&row["query"], &row["distance"]), (&json!(0), &json!(0)));
        assert_eq!(row["ids"], json!(["an id"]));
    }
}

/// JS2.
#[tokio::test]
async fn what_is_not_json_of_a_unary_method_is_refused_in_json() {
    let of_method = |method: &str| {
        let mut request = post(FIND, "{}");
        *request.method_mut() = method.parse().unwrap();
        request
    };
    let with = |name: &'static str, value: &str| {
        let mut request = post(FIND, "{}");
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    for (request, code, reason) in [
        (of_method("GET"), 405, "INVALID_REQUEST"),
        (of_method("OPTIONS"), 405, "INVALID_REQUEST"),
        (with("content-type", "text/plain"), 415, "INVALID_REQUEST"),
        (
            with("content-type", "application/grpc"),
            415,
            "INVALID_REQUEST",
        ),
        (
            with("content-encoding", "gzip"),
            415,
            "UNSUPPORTED_ENCODING",
        ),
        (with("connect-timeout-ms", "-1"), 400, "INVALID_REQUEST"),
        (with("grpc-timeout", "1S"), 400, "INVALID_REQUEST"),
        (post("/FindFirst", "{}"), 404, "UNKNOWN_METHOD"),
        (
            post("/simshard.v1.CorpusService/Scan", "{}"),
            501,
            "UNKNOWN_METHOD",
        ),
    ] {
        let told = format!("{request:?}");
        let (found, why, _) = refused(request).await;
        assert_eq!((found, &*why), (code, reason), "{told}");
    }
}

/// JS3.
#[tokio::test]
async fn what_is_no_message_is_refused_with_its_place() {
    for (json, told) in [
        ("", "EOF"),
        ("{} {}", "trailing characters"),
        ("[]", "column 0"),
        (
            r#"{"fingerprint": []}"#,
            "unrecognized field name 'fingerprint'",
        ),
        (r#"{"fingerprints": [-1]}"#, "column"),
        (r#"{"fingerprints": ["18446744073709551616"]}"#, "column"),
        (r#"{"fingerprints": [1.5]}"#, "column"),
        (
            r#"{"fingerprints": [18446744073709551616]}"#,
            "18446744073709551616 is not a whole number below 2^53",
        ),
        (
            r#"{"fingerprints": [9007199254740992]}"#,
            "9007199254740992 is not",
        ),
        (r#"{"fingerprints": [1e3]}"#, "1e3 is not"),
        (r#"{"corpus": 7}"#, "column"),
    ] {
        let (code, reason, message) = refused(post(FIND, json)).await;
        assert_eq!((code, &*reason), (400, "INVALID_REQUEST"), "{json}");
        assert!(
            message.starts_with("body is no FindFirstRequest"),
            "{message}"
        );
        assert!(message.contains(told), "{json}: {message}");
    }
}

/// The parser repeats names and texts in what it says.
#[tokio::test]
async fn an_error_is_short_however_long_the_request_is() {
    let long = "ä".repeat(1 << 20);
    for json in [
        format!(r#"{{"{long}": 1}}"#),
        format!(r#"{{"resultForm": "{long}"}}"#),
        format!(r#"{{"fingerprints": ["{long}"]}}"#),
        format!(r#"{{"fingerprints": [{}]}}"#, "7".repeat(1 << 20)),
    ] {
        let response = ask(&Budget::new(64 << 20), post(FIND, json)).await;
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.len() < 2048, "{} bytes", bytes.len());
    }
}

#[test]
fn each_code_has_that_of_the_connect_protocol() {
    for (code, name, http) in [
        (Code::Cancelled, "canceled", 499),
        (Code::Unknown, "unknown", 500),
        (Code::InvalidArgument, "invalid_argument", 400),
        (Code::DeadlineExceeded, "deadline_exceeded", 504),
        (Code::NotFound, "not_found", 404),
        (Code::AlreadyExists, "already_exists", 409),
        (Code::PermissionDenied, "permission_denied", 403),
        (Code::ResourceExhausted, "resource_exhausted", 429),
        (Code::FailedPrecondition, "failed_precondition", 400),
        (Code::Aborted, "aborted", 409),
        (Code::OutOfRange, "out_of_range", 400),
        (Code::Unimplemented, "unimplemented", 501),
        (Code::Internal, "internal", 500),
        (Code::Unavailable, "unavailable", 503),
        (Code::DataLoss, "data_loss", 500),
        (Code::Unauthenticated, "unauthenticated", 401),
    ] {
        let refusal = Refusal::from(Status::new(code, "")).into_http();
        assert_eq!(refusal.status().as_u16(), http, "{name}");
        assert_eq!(errors::name(code), name);
    }
}

#[tokio::test]
async fn an_error_has_its_details_encoded_and_readable() {
    let (status, headers, json) = answer(post(FIND, "{}")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers["retry-after"], "1");
    assert_eq!(json["code"], "resource_exhausted");
    assert_eq!(json["message"], "wait");
    let [info, retry] = &json["details"].as_array().unwrap()[..] else {
        panic!("other details: {json}");
    };
    let readable =
        json!({"reason": "OVERLOADED", "domain": "simshard", "metadata": {"nodes": "n1"}});
    assert_eq!(info["debug"], readable);
    assert_eq!(info["type"], "google.rpc.ErrorInfo");
    let encoded = BASE64_STANDARD_NO_PAD.decode(info["value"].as_str().unwrap());
    let encoded = pb::ErrorInfo::decode(&encoded.unwrap()[..]).unwrap();
    assert_eq!(
        (&*encoded.reason, &*encoded.domain),
        ("OVERLOADED", "simshard")
    );
    assert_eq!(retry["debug"], json!({"retryDelay": "0.1s"}));
}

#[tokio::test]
async fn a_timeout_of_the_connect_protocol_is_one_of_grpc() {
    for (asked, expected) in [("1500", "1500m"), ("9999999999", "9999999S")] {
        let mut request = post(FIND, r#"{"fingerprints": ["1"]}"#);
        let asked = asked.parse().unwrap();
        request.headers_mut().insert("connect-timeout-ms", asked);
        let (_, _, json) = answer(request).await;
        assert_eq!(json["rows"][0]["ids"], json!([expected]));
    }
}

fn used(budget: &Budget) -> usize {
    budget.watched().used_and_limit().unwrap().0
}

/// JS1.
#[tokio::test]
async fn what_is_in_json_counts_in_the_budget_until_it_has_left() {
    let asked = r#"{"fingerprints": ["1"], "maxIds": 10000}"#;
    let budget = Budget::new(64 << 20);
    let mut unread = ask(&budget, post(FIND, asked)).await;
    let all = used(&budget);
    assert!((80_000..200_000).contains(&all), "{all}");
    let frame = unread.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap().len(), 64 << 10);
    assert_eq!(used(&budget), all);
    drop(unread);
    assert_eq!(used(&budget), 0);
}

/// JS1. What a request takes while it is read, and a large answer while it is written, may have no room. What a small answer
/// tells may have been done.
#[tokio::test]
async fn what_has_no_room_is_refused_but_for_small_answers() {
    let budget = Budget::new(16 << 20);
    let others = budget.take(11 << 20);
    let many = format!(r#"{{"fingerprints": [{}1]}}"#, "1,".repeat(100_000));
    for asked in [r#"{"fingerprints": ["1"], "maxIds": 10000}"#, &many] {
        let response = ask(&budget, post(FIND, asked.to_owned())).await;
        let (code, headers, json) = read(response).await;
        assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(headers["retry-after"], "1");
        assert_eq!(json["details"][0]["debug"]["reason"], "OVERLOADED");
        assert_eq!(used(&budget), 11 << 20);
    }
    drop(others);
    let _others = budget.take((15 << 20) - 4096);
    let asked = r#"{"fingerprints": ["1"], "maxIds": 100}"#;
    let (code, _, json) = read(ask(&budget, post(FIND, asked)).await).await;
    assert_eq!(code, StatusCode::OK, "{json}");
}

#[tokio::test]
async fn what_is_too_large_for_json_is_refused() {
    let budget = Budget::new(1 << 30);
    let texts = format!(r#"{{"texts": ["{}"]}}"#, "a".repeat(4 << 20));
    let (code, _, json) = read(ask(&budget, post(FIND, texts.clone())).await).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(json["details"][0]["debug"]["reason"], "MESSAGE_TOO_LARGE");
    // One whose length is not said.
    let of_unknown_length = post(FIND, texts).map(|body| {
        let frames = body.into_data_stream();
        Body::new(StreamBody::new(frames.map_ok(Frame::data)))
    });
    let (code, _, json) = read(ask(&budget, of_unknown_length).await).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(json["details"][0]["debug"]["reason"], "MESSAGE_TOO_LARGE");
    // There would never be memory for it.
    let objects = "{".repeat(1 << 20);
    let (code, headers, _) = read(ask(&budget, post(FIND, objects)).await).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(!headers.contains_key("retry-after"));
    let many_ids = r#"{"fingerprints": ["1"], "maxIds": 200000}"#;
    let (_, _, json) = read(ask(&budget, post(FIND, many_ids)).await).await;
    assert_eq!(json["details"][0]["debug"]["reason"], "ANSWER_TOO_LARGE");
}

/// A connection of HTTP/1.1 ends if the body of a request is not read, and the client is to know.
#[tokio::test]
async fn a_connection_ends_where_a_body_is_not_read() {
    let budget = Budget::new(1 << 20);
    let closes = |response: &Response<Body>| response.headers().contains_key("connection");
    let unknown = ask(&budget, post("/FindFirst", "{}")).await;
    assert!(closes(&unknown));
    assert!(!closes(&ask(&budget, post(FIND, "{}")).await));
    assert!(!closes(&ask(&budget, post(FIND, "[")).await));
    let mut of_http_2 = post("/FindFirst", "{}");
    *of_http_2.version_mut() = Version::HTTP_2;
    assert!(!closes(&ask(&budget, of_http_2).await));
    let broken = post(FIND, "").map(|_| {
        let error = Status::unknown("cut");
        Body::new(StreamBody::new(stream::once(ready(
            Err::<Frame<Bytes>, _>(error),
        ))))
    });
    let response = ask(&budget, broken).await;
    assert!(closes(&response));
    let (code, _, json) = read(response).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert_eq!(json["message"], "body ends early, or is malformed: cut");
}

/// A connection whose peer is gone has no other end.
#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_given_up() {
    let budget = Budget::new(1 << 20);
    let stalled = post(FIND, "").map(|_| {
        let first = Ok::<_, Status>(Frame::data(Bytes::from_static(b"{")));
        let stalled = stream::once(ready(first)).chain(stream::pending());
        Body::new(StreamBody::new(stalled))
    });
    let (code, _, json) = read(ask(&budget, stalled).await).await;
    assert_eq!(code, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(json["message"], "the body has not arrived within 30 s");
    assert_eq!(used(&budget), 0);
}

#[test]
fn an_answer_is_one_whole_message() {
    let methods = Methods::of(CORPUS_SERVICE_DESCRIPTORS).unwrap();
    let method = methods.of_path(FIND).unwrap();
    let answer = FindFirstResponse {
        queries: vec![u64::MAX],
        ..FindFirstResponse::default()
    };
    let message = answer.encode_to_vec();
    let length = message.len() as u8;
    let framed = |compressed, length| [&[compressed, 0, 0, 0, length], &message[..]].concat();
    let json = method.json(&framed(0, length)).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["queries"], json!(["18446744073709551615"]));
    for wrong in [
        framed(1, length),
        framed(0, length - 1),
        framed(0, length + 1),
        vec![0; 4],
    ] {
        assert!(method.json(&wrong).is_err(), "{wrong:?}");
    }
}

/// Whichever is added later.
#[test]
fn each_message_of_a_unary_method_is_read_from_json_and_written() {
    let pool = DescriptorPool::decode(ROUTER_DESCRIPTORS).unwrap();
    let mut kinds = 0;
    for method in pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
    {
        for kind in [method.input(), method.output()] {
            let full = full(&kind, 3);
            let json = serde_json::to_vec(&full).unwrap();
            let read = messages::read(kind.clone(), &json).unwrap();
            assert!(read == full, "{}", kind.full_name());
            kinds += 1;
        }
    }
    assert!(kinds > 60, "{kinds}");
}

/// A message with something in each field, and in those of messages in it, down to a depth.
fn full(kind: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(kind.clone());
    for field in kind.fields() {
        let value = match field.kind() {
            // What is in a value of any kind has no fields of ours.
            Kind::Message(inner) if depth == 0 || inner.full_name() == ANY_VALUE => continue,
            Kind::Message(inner) => prost_reflect::Value::Message(full(&inner, depth - 1)),
            Kind::Fixed64 | Kind::Uint64 => prost_reflect::Value::U64(u64::MAX),
            Kind::Uint32 => prost_reflect::Value::U32(u32::MAX),
            Kind::Sint32 => prost_reflect::Value::I32(-1),
            Kind::Int32 => prost_reflect::Value::I32(1),
            Kind::Int64 => prost_reflect::Value::I64(1),
            Kind::String => prost_reflect::Value::String("ä\"".to_owned()),
            Kind::Bytes => prost_reflect::Value::Bytes(Bytes::from_static(&[0, 255])),
            Kind::Double => prost_reflect::Value::F64(1.5),
            Kind::Bool => prost_reflect::Value::Bool(true),
            Kind::Enum(one) => {
                prost_reflect::Value::EnumNumber(one.values().last().unwrap().number())
            }
            other @ (Kind::Float
            | Kind::Sint64
            | Kind::Fixed32
            | Kind::Sfixed32
            | Kind::Sfixed64) => panic!("{other:?} is new: give it a value"),
        };
        let value = if field.is_list() {
            prost_reflect::Value::List(vec![value.clone(), value])
        } else {
            value
        };
        message.set_field(&field, value);
    }
    message
}
