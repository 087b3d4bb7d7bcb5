//! Nodes with certificates, and what reaches them.

use std::sync::LazyLock;
use std::time::Duration;

use simshard_proto::shard::v1::{PingRequest, PingResponse};
use simshard_proto::{Reason, SHARD_SERVICE_DESCRIPTORS};
use simshard_runtime::observed::Observed;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::server::{Grpc as Server, NamedService};
use tonic::{Code, Request as Call, Response as Answer};
use tonic_prost::ProstCodec;
use tower::Service;

use super::*;
use crate::test_authority::{Authority, Folder};
use crate::{Budget, Interface, Security, serve};

static TRUSTED: LazyLock<Authority> = LazyLock::new(Authority::new);

/// Answers each method as if it were a ping.
#[derive(Clone)]
struct Answering;

impl NamedService for Answering {
    const NAME: &'static str = "simshard.shard.v1.ShardService";
}

impl Service<Request<Body>> for Answering {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async {
            let codec = ProstCodec::<PingResponse, PingRequest>::default();
            let answer = service_fn(async |_: Call<PingRequest>| {
                Ok::<_, Status>(Answer::new(PingResponse::default()))
            });
            Ok(Server::new(codec).unary(answer, request).await)
        })
    }
}

/// A node that is served until it is dropped.
struct Node {
    address: String,
    _served: AbortOnDropHandle<()>,
}

impl Node {
    async fn start(tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = Dialer::new(tls.clone()).scheme();
        let address = format!("{scheme}://{}", listener.local_addr().unwrap());
        let interface = Interface {
            security: Security { tls, tokens: None },
            ..Interface::new(SHARD_SERVICE_DESCRIPTORS, Observed::default())
        };
        let served = tokio::spawn(async move {
            let (_ready, ready) = watch::channel(true);
            let (budget, never) = (Budget::new(1 << 20), CancellationToken::new());
            let served = serve(
                Answering,
                interface,
                listener,
                budget,
                ready,
                &never,
                Duration::ZERO,
            );
            served.await.unwrap();
        });
        Self {
            address,
            _served: AbortOnDropHandle::new(served),
        }
    }

    /// Calls a method.
    async fn ask(&self, dialer: &Dialer, method: &str) -> Result<(), Status> {
        let mut grpc = Grpc::new(dialer.channel_to(&self.address)?);
        grpc.ready()
            .await
            .map_err(|error| Status::from_error(error.into()))?;
        let path = format!("/{}/{method}", Answering::NAME);
        let path = PathAndQuery::try_from(path).unwrap();
        let codec = ProstCodec::<PingRequest, PingResponse>::default();
        let call = Call::new(PingRequest::default());
        grpc.unary(call, path, codec).await.map(drop)
    }
}

/// What a process uses that has such a certificate.
fn mutual(pair: &[String; 2]) -> Tls {
    Folder::new(pair, &TRUSTED).mutual()
}

async fn node() -> Node {
    Node::start(Some(mutual(&TRUSTED.signs_for("simshard:node")))).await
}

fn dialer_of(pair: &[String; 2]) -> Dialer {
    Dialer::new(Some(mutual(pair)))
}

/// The whole chain of errors.
fn told(error: &Status) -> String {
    simshard_runtime::causes::with_causes(error)
}

/// CT1, AU5.
#[tokio::test]
async fn a_certificate_says_what_a_node_does_for_a_process() {
    let node = node().await;
    for (uri, works, copies, scrubs) in [
        ("simshard:router", true, false, false),
        ("simshard:node/n2", true, true, false),
        ("simshard:admin", false, false, true),
        ("simshard:write", false, false, false),
        ("other:node", false, false, false),
    ] {
        let dialer = dialer_of(&TRUSTED.signs_for(uri));
        for (method, may) in [
            ("Work", works),
            ("CopyShard", copies),
            ("ScrubShard", scrubs),
        ] {
            let asked = node.ask(&dialer, method).await;
            let reason = asked.as_ref().err().and_then(Reason::of);
            assert_eq!(asked.is_ok(), may, "{uri} {method}");
            assert_eq!(reason, (!may).then_some(Reason::PermissionDenied));
        }
    }
}

/// CT1: no request leaves for it, though an authority signed its certificate.
#[tokio::test]
async fn a_server_without_a_certificate_of_a_node_is_none() {
    let dialer = dialer_of(&TRUSTED.signs_for("simshard:router"));
    for (pair, why) in [
        (TRUSTED.signs_for("simshard:router"), "simshard:node"),
        (TRUSTED.signs_for("simshard:admin"), "simshard:node"),
        (TRUSTED.signs(), "simshard:node"),
        (TRUSTED.signed_once("simshard:node"), "expired"),
        (
            Authority::new().signs_for("simshard:node"),
            "invalid peer certificate",
        ),
    ] {
        let server = Node::start(Some(mutual(&pair))).await;
        let refused = server.ask(&dialer, "Ping").await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert!(told(&refused).contains(why), "{}", told(&refused));
    }
}

#[tokio::test]
async fn a_process_without_a_certificate_of_the_authorities_gets_no_connection() {
    let node = node().await;
    for pair in [
        Authority::new().signs_for("simshard:router"),
        TRUSTED.signed_once("simshard:router"),
    ] {
        let refused = node.ask(&dialer_of(&pair), "Ping").await.unwrap_err();
        assert!(told(&refused).contains("fatal alert"), "{}", told(&refused));
    }
}

/// CT1.
#[tokio::test]
async fn an_address_with_tls_needs_certificates_and_one_without_is_refused_with_them() {
    let (plain, with_tls) = (Node::start(None).await, node().await);
    let certified = dialer_of(&TRUSTED.signs_for("simshard:node"));
    plain.ask(&Dialer::PLAIN, "CopyShard").await.unwrap();
    with_tls.ask(&certified, "CopyShard").await.unwrap();
    for (node, dialer) in [(&plain, &certified), (&with_tls, &Dialer::PLAIN)] {
        let refused = node.ask(dialer, "Ping").await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("--cluster-cert"), "{refused}");
    }
    for none in ["", "127.0.0.1:7470", "ftp://x", "http://two words"] {
        let refused = Dialer::PLAIN.endpoint(none).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
}

/// Both sides go on while certificates, and then their authority, are replaced.
#[tokio::test(start_paused = true)]
async fn the_next_connection_uses_the_certificates_that_the_files_hold_then() {
    let folder = Folder::new(&TRUSTED.signs_for("simshard:node"), &TRUSTED);
    let dialer = Dialer::new(Some(folder.mutual()));
    let next = Authority::new();
    let node = Node::start(Some(
        Folder::new(&next.signs_for("simshard:node"), &next).mutual(),
    ))
    .await;
    assert!(node.ask(&dialer, "Ping").await.is_err());
    folder.write_pair(&next.signs_for("simshard:router"));
    std::fs::write(folder.path("peers.pem"), &next.pem).unwrap();
    let follow = dialer.clone();
    let _followed = AbortOnDropHandle::new(tokio::spawn(async move { follow.follow().await }));
    tokio::time::sleep(4 * crate::followed::LOOK).await;
    node.ask(&dialer, "Work").await.unwrap();
}
