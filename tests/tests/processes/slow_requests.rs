//! What the log of a process says of requests that take long.

use std::num::NonZero;
use std::time::Duration;

use simshard_client::{Client, Documents, Queries, SearchSpec};
use simshard_simhash::Fingerprint;
use simshard_testkit::{Process, binary, until};

use crate::older_directories::create;

/// More than can be stored, or searched for, within a millisecond.
const DOCUMENTS: u64 = 20_000;

/// What a router says, what it says of a node, and what a node says.
const LINES: [&str; 3] = [
    "a request was slow",
    "this router waited long for a node",
    "this node took long for what a router asked",
];

/// A process with this setting, after an insert and a search.
async fn after_requests(slow_request_ms: &str) -> Process {
    let args = ["serve", "--listen", "127.0.0.1:0", "--slow-request-ms"];
    let serving = Process::serve(binary(), [&args[..], &[slow_request_ms]].concat());
    let client = Client::new(serving.url()).unwrap();
    let client = client.with_timeout(Duration::from_secs(60));
    create(&client, "crawl").await;
    let fingerprints = (0..DOCUMENTS).map(|number| Fingerprint(number << 40));
    let fingerprints: Vec<Fingerprint> = fingerprints.collect();
    let documents = Documents {
        keys: Queries::Fingerprints(fingerprints.clone()),
        ids: Vec::new(),
    };
    client.insert("crawl", documents).await.unwrap();
    let queries = Queries::Fingerprints(fingerprints);
    let spec = SearchSpec {
        limit: NonZero::new(1),
        ..SearchSpec::default()
    };
    client.find_all("crawl", queries, spec).await.unwrap();
    serving
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_says_what_was_slow_and_which_node_was() {
    let serving = after_requests("1").await;
    let [request, router, node] = LINES;
    let expected = [
        format!("{request} service=\"simshard.v1.CorpusService\" method=\"Insert\" code=\"OK\""),
        format!("{request} service=\"simshard.v1.CorpusService\" method=\"FindAll\" code=\"OK\""),
        format!("{router} node=\"local\" work=\"change\" amount={DOCUMENTS}"),
        format!("{router} node=\"local\" work=\"search\" amount={DOCUMENTS}"),
        format!("{node} node=\"local\" work=\"change\" amount={DOCUMENTS}"),
        format!("{node} node=\"local\" work=\"search\" amount={DOCUMENTS}"),
    ];
    for line in expected {
        until(&line, async || serving.log().contains(&line)).await;
    }
    assert!(serving.log().contains("peer=127.0.0.1"));
    let log = after_requests("0").await.log();
    assert!(LINES.iter().all(|line| !log.contains(line)), "{log}");
}
