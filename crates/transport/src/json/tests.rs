//! Requests in JSON to a service of gRPC that tells what it was sent.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use prost::Message;
use serde_json::{Value, json};
use simshard_proto::v1::{FindFirstRequest, FindFirstResponse, Match, ScanRequest, ScanResponse};
use simshard_proto::{CORPUS_SERVICE_DESCRIPTORS, Reason};
use simshard_runtime::observed::Observed;
use tonic::server::Grpc;
use tonic::{Request as Call, Response as Answer};
use tonic_prost::ProstCodec;
use tonic_types::pb;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::metrics::Requests;

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
    for charset in ["application/json", "Application/JSON; charset=UTF-8"] {
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
        (r#"{"corpus": 7}"#, "column"),
    ] {
        let (code, reason, message) = refused(post(FIND, json)).await;
        assert_eq!((code, &*reason), (400, "INVALID_REQUEST"), "{json}");
        assert!(
            message.starts_with("the body is no FindFirstRequest"),
            "{message}"
        );
        assert!(message.contains(told), "{json}: {message}");
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

/// JS1.
#[tokio::test]
async fn what_is_in_json_counts_in_the_budget_until_it_has_left() {
    let used = |budget: &Budget| budget.watched().used_and_limit().unwrap().0;
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
    // What it takes while it is written has no room.
    let small = Budget::new(1 << 20);
    let (code, _, json) = read(ask(&small, post(FIND, asked)).await).await;
    assert_eq!(
        (code.as_u16(), &json["code"]),
        (429, &json!("resource_exhausted"))
    );
    assert_eq!(used(&small), 0);
    // Nor what many values take while they are read.
    let many = format!(r#"{{"fingerprints": [{}1]}}"#, "1,".repeat(20_000));
    let (code, reason, _) = {
        let response = ask(&small, post(FIND, many)).await;
        let (status, _, json) = read(response).await;
        (
            status.as_u16(),
            json["details"][0]["debug"]["reason"].clone(),
            (),
        )
    };
    assert_eq!((code, reason), (429, json!("OVERLOADED")));
    assert_eq!(used(&small), 0);
}

#[tokio::test]
async fn what_is_too_large_for_json_is_refused() {
    let budget = Budget::new(1 << 30);
    let texts = format!(r#"{{"texts": ["{}"]}}"#, "a".repeat(4 << 20));
    let (_, _, json) = read(ask(&budget, post(FIND, texts)).await).await;
    assert_eq!(json["details"][0]["debug"]["reason"], "MESSAGE_TOO_LARGE");
    let many_ids = r#"{"fingerprints": ["1"], "maxIds": 200000}"#;
    let (_, _, json) = read(ask(&budget, post(FIND, many_ids)).await).await;
    assert_eq!(json["details"][0]["debug"]["reason"], "ANSWER_TOO_LARGE");
}

/// Each message of the interface, with what each kind of field can have.
#[test]
fn a_message_is_the_same_after_json() {
    let methods = Methods::of(CORPUS_SERVICE_DESCRIPTORS).unwrap();
    let scan = methods.of_path("/simshard.v1.CorpusService/Scan").unwrap();
    assert!(scan.is_stream());
    let request = ScanRequest {
        corpus: "c".to_owned(),
        ..ScanRequest::default()
    };
    let json = scan.message(br#"{"corpus": "c"}"#).unwrap();
    assert_eq!(ScanRequest::decode(&json[5..]).unwrap(), request);
    let answer = ScanResponse::default().encode_to_vec();
    let framed = [&[0; 5], &answer[..]].concat();
    assert!(scan.json(&framed).is_ok() && scan.json(&[0; 4]).is_err());
}
