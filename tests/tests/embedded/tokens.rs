//! A router with tokens: what each of them opens.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use simshard_client::{
    Access, Client, ClientError, Documents, Fingerprint, Queries, SearchSpec, v1,
};
use simshard_proto::Reason;
use simshard_router::{Limits, Principal, Role, token_entry};
use simshard_testkit::{TestCluster, until};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

/// The entries of tokens that are called like their roles.
fn entries(roles: &[Role]) -> String {
    let entry = |role: &Role| entry(role.name(), *role, &[]);
    roles.iter().map(entry).collect()
}

/// The entry of a token that is called like its owner. Without corpora, it is for all of them.
fn entry(name: &str, role: Role, corpora: &[&str]) -> String {
    let corpora = corpora.iter().map(|name| (*name).to_owned());
    let principal = Principal {
        name: name.into(),
        role,
        corpora: (corpora.len() > 0).then(|| Arc::new(corpora.collect())),
        limits: Limits::default(),
    };
    token_entry(&principal, name.as_bytes(), None).unwrap()
}

/// A cluster whose file of tokens can be changed.
struct Guarded {
    cluster: TestCluster,
    folder: tempfile::TempDir,
}

impl Guarded {
    async fn start(entries: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        fs::write(&file, entries).unwrap();
        let cluster = TestCluster::with_tokens(&file).await;
        Self { cluster, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("tokens.toml")
    }

    fn client(&self, token: &str) -> Client {
        let access = Access {
            token: Some(token.to_owned()),
            ..Access::default()
        };
        Client::with_access(&self.cluster.url(), &access).unwrap()
    }

    async fn stub(&self) -> CorpusServiceClient<Channel> {
        let channel = Channel::from_shared(self.cluster.url()).unwrap();
        CorpusServiceClient::new(channel.connect().await.unwrap())
    }
}

/// A request with a token.
fn request<T>(token: &str, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

fn create(name: &str) -> v1::CreateCorpusRequest {
    v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..v1::CreateCorpusRequest::default()
    }
}

fn keys() -> Queries {
    Queries::Fingerprints(vec![Fingerprint(7)])
}

fn documents() -> Documents {
    Documents {
        keys: keys(),
        ids: vec!["seven".to_owned()],
    }
}

fn reason<T: std::fmt::Debug>(refused: Result<T, ClientError>) -> Option<Reason> {
    refused.unwrap_err().reason()
}

/// AU1.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_what_its_role_is_for() {
    let guarded = Guarded::start(&entries(&[Role::Read, Role::Write, Role::Admin])).await;
    let [read, write, admin] = ["read", "write", "admin"].map(|token| guarded.client(token));
    let refused = write.create_corpus(create("c")).await;
    assert_eq!(reason(refused), Some(Reason::PermissionDenied));
    admin.create_corpus(create("c")).await.unwrap();
    let refused = read.insert("c", documents()).await;
    assert_eq!(reason(refused), Some(Reason::PermissionDenied));
    write.insert("c", documents()).await.unwrap();
    let found = read.find_all("c", keys(), SearchSpec::default()).await;
    assert_eq!(found.unwrap().queries[0].matches[0].ids, ["seven"]);
    for stranger in [&guarded.cluster.client, &guarded.client("none")] {
        let refused = stranger.find_all("c", keys(), SearchSpec::default()).await;
        assert_eq!(reason(refused), Some(Reason::Unauthenticated));
    }
}

/// What a request in JSON is answered.
async fn in_json(url: &str, method: &str, token: Option<&str>) -> StatusCode {
    let url = format!("{url}/simshard.v1.CorpusService/{method}");
    let mut request = Request::post(url).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = Full::new(Bytes::from_static(br#"{"name": "c"}"#));
    let http = Http::builder(TokioExecutor::new()).build(HttpConnector::new());
    let answer = http.request(request.body(body).unwrap()).await;
    answer.unwrap().status()
}

/// AU1.
#[tokio::test(flavor = "multi_thread")]
async fn in_json_a_token_opens_what_it_opens_by_grpc() {
    let guarded = Guarded::start(&entries(&[Role::Read, Role::Admin])).await;
    for (method, token, expected) in [
        ("CreateCorpus", None, StatusCode::UNAUTHORIZED),
        ("CreateCorpus", Some("none"), StatusCode::UNAUTHORIZED),
        ("CreateCorpus", Some("read"), StatusCode::FORBIDDEN),
        ("CreateCorpus", Some("admin"), StatusCode::OK),
        ("GetCorpus", Some("read"), StatusCode::OK),
    ] {
        let answer = in_json(&guarded.cluster.url(), method, token).await;
        assert_eq!(answer, expected, "{method} {token:?}");
    }
}

/// AU4.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_taken_out_opens_nothing_and_a_new_one_does() {
    let guarded = Guarded::start(&entries(&[Role::Read])).await;
    let [before, after] = ["read", "write"].map(|token| guarded.client(token));
    before.list_corpora().await.unwrap();
    let refused = after.list_corpora().await;
    assert_eq!(reason(refused), Some(Reason::Unauthenticated));
    fs::write(guarded.file(), entries(&[Role::Write])).unwrap();
    let is_known = async || after.list_corpora().await.is_ok();
    until("the new token is known", is_known).await;
    let refused = before.list_corpora().await;
    assert_eq!(reason(refused), Some(Reason::Unauthenticated));
}

/// A batch of a stream of searches.
fn batch(sequence: u64, corpus: &str) -> v1::FindAllStreamRequest {
    let batch = v1::FindAllRequest {
        corpus: corpus.to_owned(),
        fingerprints: vec![7],
        ..v1::FindAllRequest::default()
    };
    v1::FindAllStreamRequest {
        sequence,
        batch: Some(batch),
    }
}

fn is_denied(status: &Status) -> bool {
    Reason::of(status) == Some(Reason::PermissionDenied)
}

/// AU4.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_once_its_token_is_taken_out() {
    let both = entries(&[Role::Read, Role::Admin]);
    let guarded = Guarded::start(&both).await;
    let admin = guarded.client("admin");
    admin.create_corpus(create("c")).await.unwrap();
    let (send, batches) = mpsc::channel(1);
    let batches = request("read", ReceiverStream::new(batches));
    let mut stub = guarded.stub().await;
    send.send(batch(0, "c")).await.unwrap();
    let answers = stub.find_all_stream(batches).await.unwrap();
    let mut answers = answers.into_inner();
    answers.message().await.unwrap().unwrap();
    fs::write(guarded.file(), entries(&[Role::Admin])).unwrap();
    let read = guarded.client("read");
    until("the token is taken out", async || {
        read.list_corpora().await.is_err()
    })
    .await;
    send.send(batch(1, "c")).await.unwrap();
    let ended = answers.message().await.unwrap_err();
    assert_eq!(Reason::of(&ended), Some(Reason::Unauthenticated));
}

/// AU3.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_some_corpora_opens_no_other() {
    let entries = entries(&[Role::Admin]) + &entry("news", Role::Admin, &["news"]);
    let guarded = Guarded::start(&entries).await;
    let [all, news] = ["admin", "news"].map(|token| guarded.client(token));
    all.create_corpus(create("other")).await.unwrap();
    news.create_corpus(create("news")).await.unwrap();
    let listed = news.list_corpora().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, "news");
    news.insert("news", documents()).await.unwrap();
    // Whether there is one of this name is not told.
    for name in ["other", "nowhere"] {
        let spec = SearchSpec::default();
        let changes = || tokio_stream::iter([documents()]);
        let inserted: Vec<_> = news.insert_stream(name, changes()).collect().await;
        let removed: Vec<_> = news.remove_stream(name, changes()).collect().await;
        let refused = [
            reason(news.create_corpus(create(name)).await),
            reason(news.get_corpus(name).await),
            reason(news.delete_corpus(name).await),
            reason(news.insert(name, documents()).await),
            reason(news.remove(name, documents()).await),
            reason(news.find_all(name, keys(), spec).await),
            reason(news.find_first(name, keys(), spec).await),
            reason(news.recipe(name).await),
            reason(news.scan(name).await.map(|_| ())),
            reason(news.find_pairs(name, None).await.map(|_| ())),
            reason(news.find_clusters(name, None).await.map(|_| ())),
            reason(inserted.into_iter().next().unwrap()),
            reason(removed.into_iter().next().unwrap()),
        ];
        assert_eq!(refused, [Some(Reason::PermissionDenied); 13], "{name}");
    }
    let stored = news.list_stored_corpora().await;
    assert_eq!(reason(stored), Some(Reason::PermissionDenied));
    news.delete_corpus("news").await.unwrap();
}

/// AU3: what the first message of a stream may, the next one may not.
#[tokio::test(flavor = "multi_thread")]
async fn each_message_of_a_stream_is_about_a_corpus_of_the_token() {
    let entries = entries(&[Role::Admin]) + &entry("news", Role::Read, &["news"]);
    let guarded = Guarded::start(&entries).await;
    let admin = guarded.client("admin");
    for name in ["news", "other"] {
        admin.create_corpus(create(name)).await.unwrap();
    }
    let mut stub = guarded.stub().await;
    let batches = tokio_stream::iter([batch(0, "news"), batch(1, "other")]);
    let answers = stub.find_all_stream(request("news", batches)).await;
    let mut answers = answers.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    assert!(is_denied(&answers.message().await.unwrap_err()));
    let batch = v1::FindFirstStreamRequest {
        sequence: 0,
        batch: Some(v1::FindFirstRequest {
            corpus: "other".to_owned(),
            fingerprints: vec![7],
            ..v1::FindFirstRequest::default()
        }),
    };
    let batches = request("news", tokio_stream::iter([batch]));
    let answers = stub.find_first_stream(batches).await.unwrap();
    assert!(is_denied(
        &answers.into_inner().message().await.unwrap_err()
    ));
    // Pages name corpora of the token alone, and none is skipped.
    let page = v1::ListCorporaRequest {
        page_size: 1,
        ..v1::ListCorporaRequest::default()
    };
    let listed = stub.list_corpora(request("news", page)).await.unwrap();
    let listed = listed.into_inner();
    assert_eq!((listed.corpora.len(), &*listed.next_page_token), (1, ""));
}
