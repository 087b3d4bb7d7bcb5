//! A server that answers searches without a search: what is left is the time of the transport.
//!
//! It has the transport, the settings and the messages of a router.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::Ipv4Addr;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use simshard_client::v1 as pb;
use simshard_proto::v1::corpus_service_server::SERVICE_NAME;
use simshard_proto::{CORPUS_SERVICE_DESCRIPTORS, MAX_MESSAGE_BYTES, MatchColumns};
use simshard_runtime::observed::Observed;
use simshard_runtime::shutdown;
use simshard_simhash::Fingerprint;
use simshard_transport::{Budget, Interface, serve};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

/// Bytes that requests in flight may use together: what a router has by default.
const IN_FLIGHT_BYTES: usize = 512 << 20;

/// How long requests in flight may take at the end.
const GRACE: Duration = Duration::from_secs(10);

/// The method that is a stream of batches.
const STREAM: &str = "/simshard.v1.CorpusService/FindAllStream";

/// Serves on any free port of this machine, and says which, until a signal.
///
/// # Errors
/// If it cannot listen.
pub async fn run() -> anyhow::Result<()> {
    let shutdown = shutdown::on_signals()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let interface = Interface::new(CORPUS_SERVICE_DESCRIPTORS, Observed::default());
    let (_ready, is_ready) = watch::channel(true);
    let budget = Budget::new(IN_FLIGHT_BYTES);
    serve(
        Echo, interface, listener, budget, is_ready, &shutdown, GRACE,
    )
    .await?;
    Ok(())
}

/// Answers `FindAll` and `FindAllStream`.
#[derive(Clone, Copy, Debug)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = SERVICE_NAME;
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let most = Some(MAX_MESSAGE_BYTES);
        Box::pin(async move {
            Ok(if request.uri().path() == STREAM {
                Grpc::new(ProstCodec::default())
                    .apply_max_message_size_config(most, most)
                    .streaming(Self, request)
                    .await
            } else {
                Grpc::new(ProstCodec::default())
                    .apply_max_message_size_config(most, most)
                    .unary(Self, request)
                    .await
            })
        })
    }
}

impl UnaryService<pb::FindAllRequest> for Echo {
    type Response = pb::FindAllResponse;
    type Future = Ready<Result<Response<Self::Response>, Status>>;

    fn call(&mut self, request: Request<pb::FindAllRequest>) -> Self::Future {
        ready(Ok(Response::new(answer(request.into_inner()))))
    }
}

impl StreamingService<pb::FindAllStreamRequest> for Echo {
    type Response = pb::FindAllStreamResponse;
    type ResponseStream = BoxStream<'static, Result<Self::Response, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, requests: Request<Streaming<pb::FindAllStreamRequest>>) -> Self::Future {
        let answer = |request: pb::FindAllStreamRequest| pb::FindAllStreamResponse {
            sequence: request.sequence,
            result: request.batch.map(answer),
        };
        let answers = requests
            .into_inner()
            .map(move |request| request.map(answer));
        ready(Ok(Response::new(answers.boxed())))
    }
}

/// An answer of the usual size: about half of the queries have a match, which is a bare document.
fn answer(request: pb::FindAllRequest) -> pb::FindAllResponse {
    let queries = request.fingerprints;
    let mut matches = MatchColumns::new(vec![false; queries.len()], None);
    for (place, &query) in (0..).zip(&queries) {
        if query.is_multiple_of(2) {
            matches.push(place, 1, Fingerprint(query), 1, [String::new()]);
        }
    }
    pb::FindAllResponse {
        queries,
        matches: Some(matches.finish()),
        ..pb::FindAllResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use simshard_proto::matches_into;

    use super::*;

    #[test]
    fn half_of_the_queries_have_a_match() {
        let request = pb::FindAllRequest {
            fingerprints: (10..20).collect(),
            ..pb::FindAllRequest::default()
        };
        let answer = answer(request);
        assert!(answer.queries.iter().copied().eq(10..20));
        let matches = matches_into(answer.matches.unwrap(), 10).unwrap();
        let queries = matches.iter().map(|found| found.query);
        assert!(queries.eq([0, 2, 4, 6, 8]));
    }
}
