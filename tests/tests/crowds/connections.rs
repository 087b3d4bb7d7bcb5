//! Peers that take and give nothing, in numbers: what they cost a router is bounded, and others are served.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use simshard_client::{Client, Documents, Fingerprint, Queries, Reason, SearchSpec, v1};
use simshard_runtime::system::raise_open_files;
use simshard_testkit::{
    ForgetfulCluster, PATIENCE, Process, binary, free_addresses, write_layout_file,
};
use tokio::net::TcpSocket;
use tonic::Streaming;
use v1::corpus_service_client::CorpusServiceClient;

use crate::MANY_CONNECTIONS;

/// The memory that requests may use, in MiB.
const IN_FLIGHT: u64 = 64;

/// Addresses that the connections come from: enough for each to stay within its share.
const PEERS: u64 = 4;

/// A node and a router with little memory for requests, and little patience.
struct Cluster {
    processes: ForgetfulCluster,
    client: Client,
}

impl Cluster {
    async fn start() -> Self {
        let in_flight = ["--in-flight-mib", &IN_FLIGHT.to_string()];
        let router = [&in_flight[..], &["--timeout-seconds", "2"]].concat();
        let processes = ForgetfulCluster::start_with(1, &in_flight, &router);
        let client = Client::new(processes.router.url()).unwrap();
        let corpus = v1::CreateCorpusRequest {
            name: "c".to_owned(),
            ..Default::default()
        };
        client.create_corpus(corpus).await.unwrap();
        Self { processes, client }
    }

    fn router(&self) -> &Process {
        &self.processes.router
    }

    /// Resident memory of the router in MiB.
    fn memory(&self) -> u64 {
        memory(self.router().id())
    }

    /// Whether a small request is answered.
    async fn serves(&self) -> Result<(), simshard_client::ClientError> {
        let queries = Queries::Fingerprints(vec![Fingerprint(1 << 40)]);
        let options = SearchSpec::default();
        self.client.find_all("c", queries, options).await.map(drop)
    }
}

fn memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() >> 10
}

/// A connection of one of several addresses that begins HTTP/2, and says nothing more.
async fn idle_connection(router: &Process, number: u64) -> TcpStream {
    let peer = u8::try_from(2 + number % PEERS).unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, peer], 0).into()).unwrap();
    let address = router.url().trim_start_matches("http://").parse();
    let connection = socket.connect(address.unwrap()).await.unwrap();
    let mut connection = connection.into_std().unwrap();
    connection.set_nonblocking(false).unwrap();
    let empty_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    connection
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    connection.write_all(&empty_settings).unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_connections_cost_little_each() {
    let _alone = MANY_CONNECTIONS.lock().await;
    let files = raise_open_files().unwrap_or(u64::MAX);
    let count = files.saturating_sub(500).min(10_000);
    eprintln!("{count} connections");
    let cluster = Cluster::start().await;
    cluster.serves().await.unwrap();
    let before = cluster.memory();
    let mut connections = Vec::new();
    for number in 0..count {
        connections.push(idle_connection(cluster.router(), number).await);
    }
    // Accepted in order: once a later one is served, so were these.
    let client = Client::new(cluster.router().url()).unwrap();
    client.with_timeout(PATIENCE).list_corpora().await.unwrap();
    let grown = cluster.memory().saturating_sub(before);
    eprintln!("{grown} MiB more for {count} connections");
    assert!(grown << 20 <= count * (32 << 10), "{grown} MiB for {count}");
    cluster.serves().await.unwrap();
    drop(connections);
}

/// Many ids behind one fingerprint: an answer about it has 12 MB.
async fn insert_heavy(client: &Client) {
    for part in 0..12_u32 {
        let ids = (0..1000).map(|id| format!("{part}-{id}-{}", "x".repeat(1000)));
        let documents = Documents {
            keys: Queries::Fingerprints(vec![Fingerprint(9); 1000]),
            ids: ids.collect(),
        };
        client.insert("c", documents).await.unwrap();
    }
}

/// A stream of searches for it, of whose answers none is read.
async fn stalled(router: &Process) -> Streaming<v1::FindAllStreamResponse> {
    let channel = tonic::transport::Channel::from_shared(router.url().to_owned()).unwrap();
    let mut stub =
        CorpusServiceClient::new(channel.connect_lazy()).max_decoding_message_size(32 << 20);
    let batches = (0..100).map(|sequence| v1::FindAllStreamRequest {
        sequence,
        batch: Some(v1::FindAllRequest {
            corpus: "c".to_owned(),
            fingerprints: vec![9],
            ..Default::default()
        }),
    });
    let batches: Vec<_> = batches.collect();
    stub.find_all_stream(tokio_stream::iter(batches))
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stall_leave_memory_bounded_and_others_served() {
    let cluster = Cluster::start().await;
    insert_heavy(&cluster.client).await;
    let before = cluster.memory();
    let mut readers = Vec::new();
    for _ in 0..40 {
        readers.push(stalled(cluster.router()).await);
    }
    // Without a limit they would hold 40 windows of 48 MB, 1.9 GB. What is being decoded, merged or sent counts late.
    let start = Instant::now();
    let mut most = 0;
    loop {
        most = most.max(cluster.memory());
        match cluster.serves().await {
            // All who do not read have been told, and hold nothing but what is on its way.
            Ok(()) if start.elapsed() > Duration::from_secs(6) => break,
            Ok(()) => {}
            Err(error) => {
                let busy = [Reason::Overloaded, Reason::DeadlineTooShort].map(Some);
                assert!(busy.contains(&error.reason()), "{error}");
            }
        }
        assert!(start.elapsed() < PATIENCE, "others are never served");
    }
    eprintln!(
        "{before} MiB before, {most} MiB at most, {:?}",
        start.elapsed()
    );
    assert!(
        most <= before + 8 * IN_FLIGHT,
        "{before} MiB before, {most} at most"
    );
}

/// IN3: where no more files may be open, the router goes on with those connections that it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_out_of_file_descriptors_serves_again_when_some_are_free() {
    let folder = tempfile::tempdir().unwrap();
    let layout = folder.path().join("cluster.toml");
    write_layout_file(&layout, &free_addresses(1));
    let command = format!(
        "ulimit -n 64; exec {} serve router --listen 127.0.0.1:0 --cluster {}",
        binary(),
        layout.display()
    );
    let layout = layout.to_str().unwrap();
    let _node = Process::serve(
        binary(),
        ["serve", "node", "--cluster", layout, "--name", "n1"],
    );
    let router = Process::serve("sh", ["-c", &command]);
    let mut connections = Vec::new();
    for number in 0..100 {
        connections.push(idle_connection(&router, number).await);
    }
    drop(connections);
    let client = Client::new(router.url()).unwrap().with_timeout(PATIENCE);
    assert!(client.list_corpora().await.unwrap().is_empty());
}
