//! What a process shows on its side port: whether it lives and is ready, and its metrics.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use simshard_testkit::{
    Certificates, End, EtcdServer, ProcessCluster, Shape, binary, free_addresses, run, until,
};
use tokio::task::block_in_place;

use crate::older_directories::{create, found, insert};

/// The status and the body that a side port answers; none while nothing listens there.
fn get(side_port: SocketAddr, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(side_port).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.lines().next()?.split(' ').nth(1)?;
    Some((status.to_owned(), body.to_owned()))
}

fn is_ready(side_port: SocketAddr) -> bool {
    get(side_port, "/readyz").is_some_and(|(status, _)| status == "200")
}

/// The value of a metric, by its name and all of its labels.
fn value(side_port: SocketAddr, metric: &str) -> f64 {
    let (_, metrics) = get(side_port, "/metrics").unwrap();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{metric} ")));
    line.unwrap_or_else(|| panic!("no {metric}:\n{metrics}"))
        .parse()
        .unwrap()
}

/// OB2. It lives as soon as it starts, and is ready once it holds all its shards in sync.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_shows_that_it_lives_is_ready_and_what_it_holds() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    let client = cluster.client();
    create(&client, "crawl").await;
    let side_port = with_side_port(&mut cluster).await;
    assert_eq!(get(side_port, "/livez").unwrap().0, "200");
    insert(&client, "crawl", 0..50).await;
    assert_eq!(found(&client, "crawl", 0..50).await, 50);
    let shards = |state: &str| {
        value(
            side_port,
            &format!(r#"simshard_node_shards{{node="n1",state="{state}"}}"#),
        )
    };
    for (state, expected) in [
        ("in_sync", 256.0),
        ("hot", 256.0),
        ("copying", 0.0),
        ("damaged", 0.0),
    ] {
        assert_eq!(shards(state), expected, "{state}");
    }
    assert!(value(side_port, r#"simshard_node_log_records_total{node="n1"}"#) > 0.0);
    check_samples(side_port);
    // It answers nothing once it has ended.
    block_in_place(|| cluster.end_node(0, End::Stopped));
    assert_eq!(get(side_port, "/livez"), None);
}

/// A node that holds documents on disk has each metric of the page but for those of routers and of certificates, and each
/// state by which alerts fire. Its routers ask it by one stream, so no request may have ended.
fn check_samples(side_port: SocketAddr) {
    let (_, metrics) = get(side_port, "/metrics").unwrap();
    let has = |start: &str| metrics.lines().any(|line| line.starts_with(start));
    let of_page = on_the_page().into_iter();
    let others = ["_request", "_router_", "_certificate_"];
    let is_another = |name: &str| others.iter().any(|other| name.contains(other));
    let missing = of_page.filter(|name| !has(name) && !is_another(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    let rules = include_str!("../../../deploy/prometheus/alerts.yml");
    let states = rules.split("{state=").skip(1);
    let states = states.flat_map(|rest| rest.split('"').nth(1).unwrap().split('|'));
    for state in states {
        let expected = format!(r#"simshard_node_shards{{node="n1",state="{state}"}}"#);
        assert!(has(&expected), "{state}");
    }
}

/// A router and a node in one process show what both do, in one text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_process_shows_what_its_router_and_its_node_do() {
    let [side_port, listen] = free_addresses(2)[..] else {
        panic!("two were asked for");
    };
    let args = [
        "serve",
        "--listen",
        &listen.to_string(),
        "--http",
        &side_port.to_string(),
    ];
    let serving = simshard_testkit::Process::serve(binary(), args);
    until("it is ready", async || is_ready(side_port)).await;
    let listed =
        block_in_place(|| run(binary(), ["corpus", "list", "--router", serving.url()], ""));
    assert!(listed.status.success(), "{listed:?}");
    let list = r#"simshard_transport_request_seconds_count{service="simshard.v1.CorpusService",method="ListCorpora",code="OK"}"#;
    assert!(value(side_port, list) >= 1.0);
    for service in [
        "simshard.v1.CorpusService",
        "simshard.shard.v1.ShardService",
    ] {
        let limit = format!(r#"simshard_transport_in_flight_limit_bytes{{service="{service}"}}"#);
        assert!(value(side_port, &limit) > 1e6, "{service}");
    }
    let find = [
        "find",
        "--corpus",
        "none",
        "--router",
        serving.url(),
        "--format",
        "hashes",
    ];
    let refused = block_in_place(|| run(binary(), find, "7\n"));
    assert!(!refused.status.success(), "{refused:?}");
    let (_, metrics) = get(side_port, "/metrics").unwrap();
    assert!(
        metrics.contains(r#"reason="CORPUS_NOT_FOUND"} 1"#),
        "{metrics}"
    );
    assert_eq!(shown(side_port), on_the_page());
    let taken = run(
        binary(),
        [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--http",
            &side_port.to_string(),
        ],
        "",
    );
    let told = String::from_utf8(taken.stderr).unwrap();
    assert!(told.contains("choose another with --http"), "{told}");
}

/// Starts the first node again, with a side port.
async fn with_side_port(cluster: &mut ProcessCluster) -> SocketAddr {
    let side_port = free_addresses(1)[0];
    block_in_place(|| {
        cluster.end_node(0, End::Stopped);
        cluster.start_node_with(0, &["--http", &side_port.to_string()]);
    });
    until("it is ready", async || is_ready(side_port)).await;
    side_port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_shows_for_how_long_the_metadata_is_away() {
    let mut etcd = block_in_place(EtcdServer::start);
    let mut cluster = ProcessCluster::start_at(Shape::of(1), &etcd.url());
    let side_port = with_side_port(&mut cluster).await;
    let away = || value(side_port, "simshard_cluster_metadata_away_seconds");
    assert_eq!(away(), 0.0);
    block_in_place(|| etcd.stop());
    until("it counts", async || away() > 1.0).await;
    block_in_place(|| etcd.restart());
    until("it ends", async || away() == 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_shows_when_its_certificates_end() {
    let certificates = Certificates::of_server(Ipv4Addr::LOCALHOST.into());
    let mut cluster = ProcessCluster::start_certified(Shape::of(1), certificates);
    let side_port = with_side_port(&mut cluster).await;
    let file = &cluster.certificates().cluster_args("server")[1];
    let name = "simshard_transport_certificate_end_timestamp_seconds";
    let end = value(side_port, &format!(r#"{name}{{file="{file}"}}"#));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert!(end > now.as_secs_f64(), "{end}");
}

#[test]
fn alerts_fire_by_metrics_of_the_page() {
    let of_page = on_the_page();
    let unknown: Vec<String> = of_alerts().difference(&of_page).cloned().collect();
    assert_eq!(unknown, [""; 0]);
}

/// The page says what to do about each alert, in the order of the rules.
#[test]
fn the_page_has_all_alerts() {
    let page = include_str!("../../../docs/operating.md");
    let rules = include_str!("../../../deploy/prometheus/alerts.yml");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `Simshard"));
    let on_the_page: Vec<&str> = rows.map(|row| row.split('`').next().unwrap()).collect();
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: Simshard"));
    assert_eq!(on_the_page, alerts.collect::<Vec<_>>());
}

/// The names of all metrics that a process shows.
fn shown(side_port: SocketAddr) -> BTreeSet<String> {
    let (_, metrics) = get(side_port, "/metrics").unwrap();
    let types = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.map(|line| line.split(' ').next().unwrap().to_owned());
    names.collect()
}

/// The names of all metrics on the page for operators. Those of counters end in `_total` there.
fn on_the_page() -> BTreeSet<String> {
    let page = include_str!("../../../docs/operating.md");
    let (_, section) = page.split_once("\n## Metrics\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let is_metric = |line: &&str| {
        ["| `simshard", "| `process"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let rows = section.lines().filter(is_metric);
    let firsts = rows.map(|row| row.split('|').nth(1).unwrap());
    let names = firsts.flat_map(|names| names.split('`').skip(1).step_by(2));
    let names = names.map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned());
    names.collect()
}

/// The names of all metrics by which alerts fire.
fn of_alerts() -> BTreeSet<String> {
    let rules = include_str!("../../../deploy/prometheus/alerts.yml");
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let words = rules.split(|letter| !is_of_name(letter));
    let names = words.filter(|word| word.starts_with("simshard_"));
    // A histogram has several series.
    let names = names.map(|name| name.trim_end_matches("_total").trim_end_matches("_count"));
    names.map(str::to_owned).collect()
}
