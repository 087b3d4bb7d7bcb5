//! One address takes all the connections, or opens all the streams, that it can get, or reads no answers: another is
//! answered all the same, and at once.

#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_runtime::system::raise_open_files;
use simshard_testkit::{ForgetfulCluster, Process};
use tokio::net::TcpSocket;
use tokio::sync::MutexGuard;
use tokio::time::timeout;
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

use crate::MANY_CONNECTIONS;

/// More connections than a process serves, if as many may be open.
const CONNECTIONS: u64 = 17_000;

/// Connections that one address may have.
const SHARE: u64 = 8160;

/// Connections with streams on them, as many on each as there may be.
const WITH_STREAMS: usize = 20;
const STREAMS: usize = 1000;

/// By then all other clients are answered.
const PROMPT: Duration = Duration::from_secs(1);

/// A client that must be answered.
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A stream of batches that a router has, and one of work that a node has.
const OF_BATCHES: &str = "/simshard.v1.CorpusService/InsertStream";
const OF_WORK: &str = "/simshard.shard.v1.ShardService/Work";

/// A node, a router, and an empty corpus, for one attack at a time.
async fn start() -> (MutexGuard<'static, ()>, ForgetfulCluster, Client) {
    let alone = MANY_CONNECTIONS.lock().await;
    let cluster = ForgetfulCluster::start(1);
    let client = Client::new(cluster.router.url()).unwrap();
    let corpus = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..Default::default()
    };
    client.create_corpus(corpus).await.unwrap();
    (alone, cluster, client)
}

/// An attacker with an address of its own.
struct Attacker {
    address: IpAddr,
    /// The system would look for a free one for long, if there are many connections.
    port: u16,
}

impl Attacker {
    fn new() -> Self {
        let [.., high, low] = std::process::id().to_be_bytes();
        Self {
            address: [127, high, low, 3].into(),
            port: 10_000,
        }
    }

    /// Takes the next port that is free.
    fn bind(&mut self) -> TcpSocket {
        loop {
            let socket = TcpSocket::new_v4().unwrap();
            self.port += 1;
            match socket.bind(SocketAddr::new(self.address, self.port)) {
                Ok(()) => return socket,
                Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}"),
            }
        }
    }

    /// A connection that begins HTTP/2; or none, if the process does not accept it.
    async fn connect(&mut self, process: &Process) -> Option<TcpStream> {
        let address = process.url().trim_start_matches("http://").parse();
        let connection = self.bind().connect(address.unwrap());
        let connection = timeout(PROMPT, connection).await.ok()?;
        let mut connection = connection.unwrap().into_std().unwrap();
        connection.set_nonblocking(false).unwrap();
        let greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let settings = frame(SETTINGS, 0, 0, &[]);
        connection
            .write_all(&[&greeting[..], &settings].concat())
            .unwrap();
        Some(connection)
    }

    /// As many connections as the process accepts, up to a limit.
    async fn connect_to(&mut self, process: &Process) -> Vec<TcpStream> {
        let files = raise_open_files().unwrap_or(u64::MAX);
        let count = files.saturating_sub(500).min(CONNECTIONS);
        assert!(
            count > SHARE,
            "too few files may be open: raise the hard limit, `ulimit -Hn`"
        );
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.extend(self.connect(process).await);
        }
        eprintln!("{} of {count} connections", connections.len());
        connections
    }

    /// A connection with many streams on which nothing is sent. The server has answered each, if only by refusing it.
    async fn open_streams(&mut self, process: &Process, path: &str) -> TcpStream {
        let mut connection = self.connect(process).await.unwrap();
        let headers = headers(path);
        for number in 0..u32::try_from(STREAMS).unwrap() {
            let frame = frame(HEADERS, END_HEADERS, 2 * number + 1, &headers);
            connection.write_all(&frame).unwrap();
        }
        let mut answered = 0;
        while answered < STREAMS {
            let mut head = [0; 9];
            connection.read_exact(&mut head).unwrap();
            let [high, middle, low, kind, ..] = head;
            let length = u32::from_be_bytes([0, high, middle, low]);
            let mut payload = vec![0; length as usize];
            connection.read_exact(&mut payload).unwrap();
            answered += usize::from(kind == HEADERS);
        }
        connection
    }

    async fn open_all_streams(&mut self, process: &Process, path: &str) -> Vec<TcpStream> {
        let mut connections = Vec::new();
        for _ in 0..WITH_STREAMS {
            connections.push(self.open_streams(process, path).await);
        }
        connections
    }
}

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_HEADERS: u8 = 4;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The headers with which a stream begins, each a name of the static table and a value.
fn headers(path: &str) -> Vec<u8> {
    let post_over_http = [0x83, 0x86];
    let mut headers = post_over_http.to_vec();
    for (name, value) in [
        (&[4][..], path),
        (&[1], "x"),
        (&[15, 16], "application/grpc"),
    ] {
        headers.extend(name);
        headers.push(u8::try_from(value.len()).unwrap());
        headers.extend(value.as_bytes());
    }
    headers
}

/// Whether a client with another address is answered in time, more than once, on a new connection each time.
async fn assert_others_are_answered(router: &Process) {
    for attempt in 0..5 {
        let start = Instant::now();
        let endpoint = Channel::from_shared(router.url().to_owned()).unwrap();
        let channel = endpoint.local_address(Some(OTHER)).connect_lazy();
        let mut stub = CorpusServiceClient::new(channel);
        let answer = stub.find_all(v1::FindAllRequest {
            corpus: "c".to_owned(),
            fingerprints: vec![1 << 40],
            ..Default::default()
        });
        let answer = timeout(PROMPT, answer).await;
        let took = start.elapsed();
        let found = answer.expect("there is an answer in time").unwrap();
        assert_eq!(found.into_inner().queries, [1 << 40]);
        eprintln!("attempt {attempt} took {took:?}");
    }
}

/// Whether a router gets an answer of its node in time.
async fn assert_found(client: &Client) {
    let queries = Queries::Fingerprints(vec![Fingerprint(1 << 40)]);
    let find = client.find_all("c", queries, SearchSpec::default());
    let found = timeout(PROMPT, find).await;
    found.expect("there is an answer in time").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_address_do_not_keep_another_from_a_router() {
    let (_alone, cluster, _) = start().await;
    let mut attacker = Attacker::new();
    let mut connections = attacker.connect_to(&cluster.router).await;
    assert_others_are_answered(&cluster.router).await;
    // So it is while they go on.
    for _ in 0..5 {
        for _ in 0..100 {
            connections.extend(attacker.connect(&cluster.router).await);
        }
        assert_others_are_answered(&cluster.router).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_streams_of_one_address_do_not_keep_another_from_a_router() {
    let (_alone, cluster, _) = start().await;
    let _streams = Attacker::new()
        .open_all_streams(&cluster.router, OF_BATCHES)
        .await;
    assert_others_are_answered(&cluster.router).await;
}

/// Streams of one address whose answers, of 11 MB each, are not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_answers_of_one_address_do_not_hold_up_another() {
    let (_alone, cluster, client) = start().await;
    for part in 0..11 {
        let ids = (0..1000).map(|id| format!("{part}-{id:0990}"));
        let documents = Documents {
            keys: Queries::Fingerprints(vec![Fingerprint(u64::MAX); 1000]),
            ids: ids.collect(),
        };
        client.insert("c", documents).await.unwrap();
    }
    let mut unread = Vec::new();
    for _ in 0..100 {
        let batches = (0..6).map(|sequence| v1::FindAllStreamRequest {
            sequence,
            batch: Some(v1::FindAllRequest {
                corpus: "c".to_owned(),
                fingerprints: vec![u64::MAX],
                ..Default::default()
            }),
        });
        let batches: Vec<_> = batches.collect();
        let endpoint = Channel::from_shared(cluster.router.url().to_owned()).unwrap();
        let mut stub = CorpusServiceClient::new(endpoint.connect_lazy());
        let answers = stub.find_all_stream(tokio_stream::iter(batches));
        unread.push(answers.await.unwrap());
    }
    // The node takes some seconds for all these answers.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert_others_are_answered(&cluster.router).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_address_do_not_keep_routers_from_a_node() {
    let (_alone, mut cluster, client) = start().await;
    let _connections = Attacker::new().connect_to(&cluster.nodes[0]).await;
    assert_found(&client).await;
    cluster.restart_router();
    assert_found(&Client::new(cluster.router.url()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_streams_of_one_address_do_not_keep_routers_from_a_node() {
    let (_alone, mut cluster, client) = start().await;
    let _streams = Attacker::new()
        .open_all_streams(&cluster.nodes[0], OF_WORK)
        .await;
    assert_found(&client).await;
    cluster.restart_router();
    assert_found(&Client::new(cluster.router.url()).unwrap()).await;
}

/// IN3: an idle connection gives way where no more files may be open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_gives_way_where_file_descriptors_run_out() {
    let (_alone, cluster, _) = start().await;
    assert_others_are_answered(&cluster.router).await;
    let router = Pid::from_raw(i32::try_from(cluster.router.id()).unwrap());
    let few = Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    prlimit(router, Resource::Nofile, few).unwrap();
    let mut attacker = Attacker::new();
    let mut connections = Vec::new();
    for _ in 0..200 {
        connections.extend(attacker.connect(&cluster.router).await);
    }
    assert_others_are_answered(&cluster.router).await;
}
