//! Streams over a real connection with a slow reader: their writer is held back, and other streams go on.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response};
use simshard_proto::CORPUS_SERVICE_DESCRIPTORS;
use simshard_proto::endpoint::limited;
use simshard_proto::v1::corpus_service_client::CorpusServiceClient;
use simshard_proto::v1::{
    FindFirstRequest, FindFirstResponse, InsertRequest, InsertResponse, InsertStreamRequest,
    InsertStreamResponse,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic::server::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request as Call, Response as Answer, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::*;

type Client = CorpusServiceClient<Channel>;

/// More messages than are sent to a reader that does not read.
const ANSWERS_A_STREAM: usize = 100_000;

/// A writer that is not asked for a message for this long is held back.
const QUIET: Duration = Duration::from_millis(300);

/// Sends [`ANSWERS_A_STREAM`] answers to a stream, but reads it only once a search was answered; then tells how much it read.
#[derive(Clone)]
struct Slow {
    searched: watch::Sender<bool>,
    answered: watch::Sender<usize>,
}

impl NamedService for Slow {
    const NAME: &'static str = "simshard.v1.CorpusService";
}

impl Service<Request<Body>> for Slow {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let slow = self.clone();
        Box::pin(async move {
            if request.uri().path().ends_with("/InsertStream") {
                let codec = ProstCodec::<InsertStreamResponse, InsertStreamRequest>::default();
                let insert = service_fn(move |call| slow.clone().insert(call));
                return Ok(Grpc::new(codec).streaming(insert, request).await);
            }
            let codec = ProstCodec::<FindFirstResponse, FindFirstRequest>::default();
            let find = service_fn(move |_: Call<_>| slow.clone().find());
            Ok(Grpc::new(codec).unary(find, request).await)
        })
    }
}

impl Slow {
    async fn insert(
        self,
        call: Call<Streaming<InsertStreamRequest>>,
    ) -> Result<Answer<impl Stream<Item = Result<InsertStreamResponse, Status>>>, Status> {
        let mut messages = call.into_inner();
        let answers = one_by_one(self.answered, inserted);
        let mut searched = self.searched.subscribe();
        let read = async move {
            let _ = searched.wait_for(|searched| *searched).await;
            let mut read = 0;
            while messages.message().await?.is_some() {
                read += 1;
            }
            Ok(inserted(read))
        };
        Ok(Answer::new(answers.map(Ok).chain(stream::once(read))))
    }

    async fn find(self) -> Result<Answer<FindFirstResponse>, Status> {
        self.searched.send_replace(true);
        Ok(Answer::new(FindFirstResponse::default()))
    }
}

/// Messages of which each has a frame of its own, as the next is not there yet; how many were asked for is counted.
fn one_by_one<T>(asked: watch::Sender<usize>, message: impl Fn(u64) -> T) -> impl Stream<Item = T> {
    stream::iter(0..ANSWERS_A_STREAM as u64).then(move |number| {
        asked.send_modify(|asked| *asked += 1);
        let message = message(number);
        async {
            yield_now().await;
            message
        }
    })
}

/// The smallest batch there is.
fn document(sequence: u64) -> InsertStreamRequest {
    InsertStreamRequest {
        sequence,
        batch: Some(InsertRequest {
            corpus: "c".to_owned(),
            fingerprints: vec![sequence],
            ..Default::default()
        }),
    }
}

/// The answer to it.
fn inserted(sequence: u64) -> InsertStreamResponse {
    let inserted_count = 1;
    InsertStreamResponse {
        sequence,
        result: Some(InsertResponse { inserted_count }),
    }
}

/// A server that stops when dropped.
type Serving = AbortOnDropHandle<Result<(), ServeError>>;

/// A client of a server with that service.
async fn start() -> (Client, Slow, Serving) {
    let (address, slow, serving) = listen().await;
    let url = format!("http://{address}");
    let endpoint = limited(Endpoint::from_shared(url).unwrap());
    let client = Client::new(endpoint.connect_lazy());
    (client, slow, serving)
}

/// A server with that service.
async fn listen() -> (SocketAddr, Slow, Serving) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let slow = Slow {
        searched: watch::Sender::default(),
        answered: watch::Sender::default(),
    };
    let service = slow.clone();
    let serving = tokio::spawn(async move {
        let budget = Budget::new(usize::MAX);
        let never = CancellationToken::new();
        let interface = Interface {
            web: Some(Web::default()),
            ..Interface::new(CORPUS_SERVICE_DESCRIPTORS, Observed::default())
        };
        let ready = watch::channel(true).1;
        serve(service, interface, listener, budget, ready, &never, QUIET).await
    });
    (address, slow, AbortOnDropHandle::new(serving))
}

/// How many messages were asked for when no more are.
async fn held_back_after(asked: &watch::Sender<usize>) -> usize {
    let mut asked = asked.subscribe();
    while let Ok(Ok(())) = timeout(QUIET, asked.changed()).await {}
    *asked.borrow()
}

/// Sends documents one by one on some streams; neither side reads before both are held back.
async fn hold_back(streams: usize) {
    let (client, slow, _serving) = start().await;
    let sent = watch::Sender::default();
    let mut opened = Vec::new();
    for _ in 0..streams {
        let mut client = client.clone();
        let documents = one_by_one(sent.clone(), document);
        opened.push(client.insert_stream(documents).await.unwrap().into_inner());
    }
    for asked in [&sent, &slow.answered] {
        let asked = held_back_after(asked).await;
        assert!(
            asked > 0 && asked < streams * ANSWERS_A_STREAM,
            "{asked} were sent"
        );
    }
    let found = client.clone().find_first(FindFirstRequest::default()).await;
    found.unwrap();
    // A writer that was held back goes on once its stream is read.
    let mut last = None;
    while let Some(answer) = opened[0].message().await.unwrap() {
        last = Some(answer.sequence);
    }
    assert_eq!(last, Some(ANSWERS_A_STREAM as u64));
}

/// TR1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_small_messages_is_held_back_by_a_slow_reader_and_never_cut_off() {
    hold_back(1).await;
}

/// TR1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_are_many_streams_on_one_connection() {
    hold_back(32).await;
}

/// TR2.
#[tokio::test]
async fn calls_that_are_given_up_at_once_do_not_end_the_connection() {
    let (address, _, _serving) = listen().await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let find = || {
        let find = Request::post(format!("http://{address}/{}/FindFirst", Slow::NAME));
        find.header("content-type", "application/grpc")
            .body(())
            .unwrap()
    };
    for _ in 0..10 {
        for _ in 0..100 {
            let mut requests = requests.clone().ready().await.unwrap();
            // Both frames leave together, as this task does not wait in between.
            drop(requests.send_request(find(), true).unwrap());
        }
        let mut requests = requests.clone().ready().await.unwrap();
        let (answer, _) = requests.send_request(find(), true).unwrap();
        assert!(answer.await.unwrap().status().is_success());
    }
}

/// A client that never ends the head of its request keeps no connection.
#[tokio::test(start_paused = true)]
async fn a_head_of_http_1_that_does_not_arrive_is_given_up() {
    let (address, _, _serving) = listen().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = b"POST /simshard.v1.CorpusService/FindAll HTTP/1.1\r\nhost:";
    stream.write_all(head).await.unwrap();
    let begun = Instant::now();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    let waited = begun.elapsed().as_secs();
    assert!((29..=31).contains(&waited), "{waited} s");
}
