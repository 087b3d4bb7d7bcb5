//! Requests that no method of ours ever sees, for what their headers or their bytes are like: a router and a node
//! refuse them with a reason, as they do all others.

use std::future::poll_fn;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use simshard_client::Reason;
use simshard_testkit::TestCluster;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// A method of a router, and one of a node.
const OF_ROUTER: &str = "/simshard.v1.CorpusService/ListCorpora";
const OF_NODE: &str = "/simshard.shard.v1.ShardService/DescribeCorpus";

/// A method of both.
const OF_BOTH: &str = "/grpc.health.v1.Health/Check";

/// A message without fields.
const EMPTY: &[u8] = &[0, 0, 0, 0, 0];

/// A router and a node, each with a method that it has.
async fn servers() -> (TestCluster, [(Channel, &'static str); 2]) {
    let cluster = TestCluster::start(1).await;
    let connect = |url: String| Endpoint::from_shared(url).unwrap().connect_lazy();
    let node = cluster.layout().nodes()[0].address.clone();
    let router = connect(cluster.url());
    let servers = [(router, OF_ROUTER), (connect(node), OF_NODE)];
    (cluster, servers)
}

/// A request with these headers and bytes, besides what every request of gRPC has.
fn request(path: &str, headers: &[(&'static str, Vec<u8>)], bytes: &[u8]) -> Request<Body> {
    let body = Body::new(Full::new(Bytes::copy_from_slice(bytes)));
    let mut request = Request::post(path).body(body).unwrap();
    let content_type = HeaderValue::from_static("application/grpc");
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value).unwrap();
        if *name == CONTENT_TYPE {
            request.headers_mut().insert(*name, value).is_some()
        } else {
            request.headers_mut().append(*name, value)
        };
    }
    request
}

/// The HTTP status of the answer, and its status if it is an error.
async fn ask(channel: &Channel, request: Request<Body>) -> (StatusCode, Option<Status>) {
    let mut channel = channel.clone();
    poll_fn(|context| GrpcService::<Body>::poll_ready(&mut channel, context))
        .await
        .unwrap();
    let response = GrpcService::call(&mut channel, request).await.unwrap();
    let (head, body) = response.into_parts();
    let in_headers = Status::from_header_map(&head.headers);
    let trailers = body.collect().await.unwrap().trailers().cloned();
    let in_trailers = trailers.and_then(|trailers| Status::from_header_map(&trailers));
    let status = in_headers.or(in_trailers);
    let error = status.filter(|status| status.code() != Code::Ok);
    (head.status, error)
}

/// Holds an error against the reason, and the field that it must name.
fn check(what: &str, status: Option<Status>, reason: Reason, field: Option<&str>) {
    let status = status.unwrap_or_else(|| panic!("{what} is no error"));
    assert_eq!(Reason::of(&status), Some(reason), "{what}: {status:?}");
    assert_eq!(status.code(), reason.code(), "{what}");
    assert!(!status.message().is_empty(), "{what}");
    let wrong = status.get_details_bad_request();
    let named = wrong.map(|wrong| wrong.field_violations[0].field.clone());
    assert_eq!(named.as_deref(), field, "{what}");
}

/// HD1.
#[tokio::test]
async fn a_timeout_that_is_none_is_refused_by_name() {
    let (cluster, servers) = servers().await;
    let malformed: [&[&[u8]]; 8] = [
        &[b""],
        &[b"S"],
        &[b"soon"],
        &[b"5s"],
        &[b"-1S"],
        &[b"123456789S"],
        &[b"5\xff"],
        &[b"5S", b"5S"],
    ];
    for (server, path) in &servers {
        for values in malformed {
            let headers: Vec<_> = values
                .iter()
                .map(|value| ("grpc-timeout", value.to_vec()))
                .collect();
            for path in [*path, OF_BOTH] {
                let (_, status) = ask(server, request(path, &headers, EMPTY)).await;
                let what = format!("{values:?} for {path}");
                check(&what, status, Reason::InvalidRequest, Some("grpc-timeout"));
            }
        }
        let headers = [("grpc-timeout", b"99999999S".to_vec())];
        let (_, status) = ask(server, request(OF_BOTH, &headers, EMPTY)).await;
        assert!(status.is_none(), "{status:?}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn methods_that_are_not_there_are_refused_with_a_reason() {
    let (cluster, servers) = servers().await;
    for (server, path) in &servers {
        let service = path.rsplit_once('/').unwrap().0;
        for path in [
            &format!("{service}/Guess"),
            "/simshard.v0.CorpusService/Insert",
            "/grpc.health.v1.Health/Guess",
            "/grpc.reflection.v1alpha.ServerReflection/Guess",
            "/",
        ] {
            let (_, status) = ask(server, request(path, &[], EMPTY)).await;
            check(path, status, Reason::UnknownMethod, None);
        }
    }
    cluster.stop().await;
}

/// HD1.
#[tokio::test]
async fn compressed_messages_are_refused_with_a_reason() {
    let (cluster, servers) = servers().await;
    for (server, path) in &servers {
        for encoding in ["gzip", "zstd", "snappy"] {
            let headers = [("grpc-encoding", encoding.into())];
            let (_, status) = ask(server, request(path, &headers, EMPTY)).await;
            let accepted = status.as_ref().map(|status| {
                let metadata = status.metadata().get("grpc-accept-encoding");
                metadata.unwrap().to_str().unwrap().to_owned()
            });
            assert_eq!(accepted.as_deref(), Some("identity"));
            check(encoding, status, Reason::UnsupportedEncoding, None);
        }
    }
    cluster.stop().await;
}

/// HD1.
#[tokio::test]
async fn headers_over_the_limit_are_refused_by_name() {
    let (cluster, servers) = servers().await;
    for (server, path) in &servers {
        for kib in [17, 32, 60] {
            let headers = [("x-more", vec![b'x'; kib << 10])];
            let (_, status) = ask(server, request(path, &headers, EMPTY)).await;
            let what = format!("{kib} KiB");
            check(&what, status, Reason::InvalidRequest, Some("metadata"));
        }
        let headers = [("x-more", vec![b'x'; 15 << 10])];
        let (_, status) = ask(server, request(OF_BOTH, &headers, EMPTY)).await;
        assert!(status.is_none(), "{status:?}");
        // This is for HTTP/2 to say; others on the connection do not notice.
        let headers = [("x-more", vec![b'x'; 70 << 10])];
        let (code, _) = ask(server, request(path, &headers, EMPTY)).await;
        assert_eq!(code, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    cluster.stop().await;
}

/// HD1. Routers take JSON and gRPC-Web too, and nodes do not.
#[tokio::test]
async fn what_is_not_grpc_is_refused_as_http_does_it_too() {
    let (cluster, servers) = servers().await;
    for (server, path) in &servers {
        let types = ["text/plain", "application/json", "application/grpc-web"];
        let refused = if *path == OF_NODE { 3 } else { 1 };
        for content_type in &types[..refused] {
            let headers = [("content-type", (*content_type).into())];
            let (code, status) = ask(server, request(path, &headers, b"{}")).await;
            assert_eq!(code, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
            let field = Some("content-type");
            check(content_type, status, Reason::InvalidRequest, field);
        }
    }
    cluster.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused_with_a_reason() {
    let (cluster, servers) = servers().await;
    let of_length = |length: u32, bytes: &[u8]| {
        let mut message = BytesMut::new();
        message.put_u8(0);
        message.put_u32(length);
        message.put_slice(bytes);
        message.to_vec()
    };
    for (server, path) in &servers {
        for bytes in [
            of_length(3, b"\xff\xff\xff"),
            of_length(3, b"\xff"),
            Vec::new(),
            b"\x01\0\0\0\0".to_vec(),
            b"\x07\0\0\0\0".to_vec(),
        ] {
            let (_, status) = ask(server, request(path, &[], &bytes)).await;
            let what = format!("{bytes:?}");
            check(&what, status, Reason::InvalidRequest, Some("message"));
        }
        let (_, status) = ask(server, request(path, &[], &of_length(u32::MAX, b""))).await;
        check("far too large", status, Reason::MessageTooLarge, None);
    }
    let stream = "/simshard.v1.CorpusService/InsertStream";
    let bytes = of_length(3, b"\xff\xff\xff");
    let (_, status) = ask(&servers[0].0, request(stream, &[], &bytes)).await;
    let field = Some("message");
    check("in a stream", status, Reason::InvalidRequest, field);
    cluster.stop().await;
}
