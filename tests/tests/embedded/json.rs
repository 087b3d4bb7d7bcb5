//! JSON over HTTP/1.1, as `curl` and `fetch` send it, to a router on its port for gRPC.

use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use prost_types::FileDescriptorSet;
use serde_json::{Value, json};
use simshard_client::{Documents, Fingerprint, Queries, QueryMatches, v1};
use simshard_proto::ROUTER_DESCRIPTORS;
use simshard_simhash::synthetic::{Data, queries};
use simshard_testkit::{Oracle, PATIENCE, TestCluster};
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

const DISTANCE: u32 = 3;

/// A router, and a client that speaks HTTP/1.1 to it.
struct Scene {
    cluster: TestCluster,
    http: Http<HttpConnector, Full<Bytes>>,
}

impl Scene {
    async fn start() -> Self {
        let cluster = TestCluster::start(3).await;
        cluster.create_corpus("c", 5, DISTANCE).await;
        let http = Http::builder(TokioExecutor::new()).build_http();
        Self { cluster, http }
    }

    async fn post(&self, path: &str, json: &Value) -> (StatusCode, Value) {
        let request = Request::post(format!("{}{path}", self.cluster.url()));
        let request = request.header("content-type", "application/json");
        let request = request.body(Full::from(json.to_string())).unwrap();
        let answer = self.http.request(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// The answer of a method of corpora, which succeeds.
    async fn ask(&self, method: &str, json: &Value) -> Value {
        let path = format!("/simshard.v1.CorpusService/{method}");
        let (status, answer) = self.post(&path, json).await;
        assert_eq!(status, StatusCode::OK, "{method}: {answer}");
        answer
    }
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

/// The rows of one query, as a search tells its matches.
fn of_query(rows: &[Value], place: usize) -> Vec<(Fingerprint, u64, Vec<Value>)> {
    let rows = rows.iter().filter(|row| row["query"] == place);
    let rows = rows.map(|row| {
        let fingerprint = Fingerprint(number(&row["fingerprint"]));
        let distance = row["distance"].as_u64().unwrap();
        (
            fingerprint,
            distance,
            row["ids"].as_array().unwrap().clone(),
        )
    });
    rows.collect()
}

fn expected(found: &QueryMatches) -> Vec<(Fingerprint, u64, Vec<Value>)> {
    let matches = found.matches.iter();
    let matches = matches.map(|one| {
        let ids = one.ids.iter().map(|id| json!(id));
        (one.fingerprint, u64::from(one.distance), ids.collect())
    });
    matches.collect()
}

#[tokio::test]
async fn searches_in_json_find_what_brute_force_finds() {
    let scene = Scene::start().await;
    let stored = Data::Clustered.fingerprints(2_000, 7);
    let mut oracle = Oracle::default();
    for (place, part) in stored.chunks(500).enumerate() {
        let ids = |at: usize| format!("{place}-{at}");
        let texts: Vec<String> = part.iter().map(|one| one.0.to_string()).collect();
        let ids: Vec<String> = (0..part.len()).map(ids).collect();
        let documents = json!({"corpus": "c", "fingerprints": texts, "ids": ids});
        let inserted = scene.ask("Insert", &documents).await;
        let new = part.iter().zip(&ids);
        let new = new.filter(|(one, id)| oracle.insert(**one, id)).count();
        assert_eq!(number(&inserted["insertedCount"]), new as u64);
    }
    let queries = queries(&stored, 300, DISTANCE, 8);
    let texts: Vec<String> = queries.iter().map(|one| one.0.to_string()).collect();
    let found = scene
        .ask("FindAll", &json!({"corpus": "c", "fingerprints": texts}))
        .await;
    let rows = found["rows"].as_array().unwrap();
    assert!(rows.len() > 100, "{} rows", rows.len());
    for (place, query) in queries.iter().enumerate() {
        let right = oracle.find_all(*query, DISTANCE);
        assert_eq!(of_query(rows, place), expected(&right), "{query:?}");
    }
    // Columns, if they are asked for.
    let asked = json!({"corpus": "c", "fingerprints": texts, "resultForm": "RESULT_FORM_COLUMNS"});
    let columns = scene.ask("FindFirst", &asked).await;
    let counts = columns["matches"]["matchCounts"].as_array().unwrap();
    assert_eq!(
        (counts.len(), &columns["rows"]),
        (queries.len(), &json!([]))
    );
    scene.cluster.stop().await;
}

/// Each method that is no stream is there, whichever is added later.
#[tokio::test]
async fn each_unary_method_takes_json() {
    let scene = Scene::start().await;
    let files = FileDescriptorSet::decode(ROUTER_DESCRIPTORS).unwrap().file;
    let (mut unary, mut streams) = (0, 0);
    for file in &files {
        for service in &file.service {
            for method in &service.method {
                let (service, name) = (service.name(), method.name());
                let path = format!("/{}.{service}/{name}", file.package());
                let (status, answer) = scene.post(&path, &json!({})).await;
                let is_unknown = answer["details"][0]["debug"]["reason"] == "UNKNOWN_METHOD";
                let is_stream = method.client_streaming() || method.server_streaming();
                assert_eq!(is_unknown, is_stream, "{path}: {status} {answer}");
                *(if is_stream { &mut streams } else { &mut unary }) += 1;
            }
        }
    }
    assert!(unary > 30 && streams > 5, "{unary} and {streams}");
    scene.cluster.stop().await;
}

/// What a client of gRPC is told, too.
#[tokio::test]
async fn an_error_in_json_is_that_of_grpc() {
    let scene = Scene::start().await;
    let path = "/simshard.v1.CorpusService/FindAll";
    let asked = json!({"corpus": "nowhere", "fingerprints": ["1"]});
    let (status, error) = scene.post(path, &asked).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(error["code"], "not_found");
    let channel = Channel::from_shared(scene.cluster.url()).unwrap();
    let mut stub = CorpusServiceClient::new(channel.connect_lazy());
    let request = v1::FindAllRequest {
        corpus: "nowhere".to_owned(),
        fingerprints: vec![1],
        ..v1::FindAllRequest::default()
    };
    let of_grpc = stub.find_all(request).await.unwrap_err();
    assert_eq!(error["message"], of_grpc.message());
    let asked = json!({"corpus": "c", "fingerprints": ["1"], "maxDistance": 9});
    let (status, error) = scene.post(path, &asked).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let violations = &error["details"][1]["debug"]["fieldViolations"];
    assert_eq!(violations[0]["field"], "max_distance", "{error}");
    scene.cluster.stop().await;
}

/// One that is stored by JSON is found by gRPC.
#[tokio::test]
async fn both_ways_lead_to_the_same_documents() {
    let scene = Scene::start().await;
    let documents = Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(u64::MAX)]),
        ids: vec!["by gRPC".to_owned()],
    };
    scene.cluster.client.insert("c", documents).await.unwrap();
    let find = json!({"corpus": "c", "fingerprints": ["18446744073709551614"]});
    let found = scene.ask("FindFirst", &find).await;
    assert_eq!(found["rows"][0]["fingerprint"], "18446744073709551615");
    let removed =
        json!({"corpus": "c", "fingerprints": ["18446744073709551615"], "ids": ["by gRPC"]});
    let removed = scene.ask("Remove", &removed).await;
    assert_eq!(removed, json!({"removedCount": "1"}));
    assert_eq!(scene.ask("FindFirst", &find).await["rows"], json!([]));
    scene.cluster.stop().await;
}

/// A client that says how long the body is learns that it is too long before it has sent it, as `curl` does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_long_is_refused_before_it_is_sent() {
    let scene = Scene::start().await;
    let told = asked_by_hand(&scene, &format!("content-length: {}\r\n", (4 << 20) + 1)).await;
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");
    assert!(told.contains("MESSAGE_TOO_LARGE"), "{told}");
    let listed = scene.ask("ListCorpora", &json!({})).await;
    assert_eq!(listed["corpora"][0]["name"], "c");
    scene.cluster.stop().await;
}

/// As over HTTP/2: all that holds for the headers of gRPC holds for those of JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_checked_before_the_body_arrives() {
    let scene = Scene::start().await;
    for (header, named) in [
        (
            format!("x-more: {}\r\n", "x".repeat(17 << 10)),
            "metadata takes more than",
        ),
        ("grpc-timeout: 1S\r\n".to_owned(), "send connect-timeout-ms"),
        ("grpc-encoding: gzip\r\n".to_owned(), "UNSUPPORTED_ENCODING"),
    ] {
        let told = asked_by_hand(&scene, &format!("{header}content-length: 2\r\n")).await;
        assert!(told.contains(named), "{told}");
    }
    scene.cluster.stop().await;
}

/// What the server answers to the head of a request, whose body does not come.
async fn asked_by_hand(scene: &Scene, headers: &str) -> String {
    let address = scene.cluster.url().replace("http://", "");
    let head = format!(
        "POST /simshard.v1.CorpusService/Insert HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         {headers}\r\n"
    );
    let told = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut told = Vec::new();
        // The server closes what it does not read.
        let read = stream.read_to_end(&mut told);
        read.map(|_| String::from_utf8(told).unwrap())
    });
    told.await.unwrap().unwrap()
}
