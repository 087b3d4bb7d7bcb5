//! gRPC-Web, as pages in browsers speak it over HTTP/1.1.

use http::Uri;
use hyper_util::client::legacy::Client as Http;
use hyper_util::rt::TokioExecutor;
use simshard_client::{Reason, v1};
use simshard_testkit::TestCluster;

use tonic_web::GrpcWebClientLayer;
use tower::Layer;
use v1::corpus_service_client::CorpusServiceClient;

#[tokio::test]
async fn a_client_of_grpc_web_inserts_and_finds_and_reads_streams() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let http = Http::builder(TokioExecutor::new()).build_http();
    let web = GrpcWebClientLayer::new();
    let url: Uri = cluster.url().parse().unwrap();
    let service = web.layer(http);
    let mut stub = CorpusServiceClient::with_origin(service, url);
    let insert = v1::InsertRequest {
        corpus: "c".to_owned(),
        fingerprints: vec![1, 3, u64::MAX],
        ids: ["a", "b", "c"].map(str::to_owned).to_vec(),
        ..v1::InsertRequest::default()
    };
    let inserted = stub.insert(insert).await.unwrap().into_inner();
    assert_eq!(inserted.inserted_count, 3);
    let find = v1::FindAllRequest {
        corpus: "c".to_owned(),
        fingerprints: vec![0],
        result_form: v1::ResultForm::Rows.into(),
        ..v1::FindAllRequest::default()
    };
    let found = stub.find_all(find.clone()).await.unwrap().into_inner();
    let found: Vec<(u64, u32)> = found
        .rows
        .iter()
        .map(|row| (row.fingerprint, row.distance))
        .collect();
    assert_eq!(found, [(1, 1), (3, 2)]);
    let pairs = v1::FindPairsRequest {
        corpus: "c".to_owned(),
        ..v1::FindPairsRequest::default()
    };
    let mut pairs = stub.find_pairs(pairs).await.unwrap().into_inner();
    let mut messages = 0;
    while pairs.message().await.unwrap().is_some() {
        messages += 1;
    }
    assert!(messages > 0);
    let nowhere = v1::FindAllRequest {
        corpus: "nowhere".to_owned(),
        ..find
    };
    let refused = stub.find_all(nowhere).await.unwrap_err();
    assert_eq!(Reason::of(&refused), Some(Reason::CorpusNotFound));
    cluster.stop().await;
}
