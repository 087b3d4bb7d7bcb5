//! `simshard bench cluster` measures every case with few documents, and leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use simshard_testkit::{block_until, did_nothing, etcd_program, run};

use crate::BINARY;

/// A folder on the disk that the program was built on: others may be in memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn every_case_is_measured_and_all_answers_are_right() {
    let folder = folder();
    let few = "bench cluster --n 3000 --queries 2000 --requests 300 --alone 20 --batch 100 --check --json";
    let arguments = few
        .split(' ')
        .chain(["--folder", folder.path().to_str().unwrap()]);
    let output = run(BINARY, arguments, "");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let cases: Vec<&str> = figures
        .iter()
        .map(|figure| figure["case"].as_str().unwrap())
        .collect();
    assert_eq!(
        cases,
        [
            "insert_stream_bare",
            "find_all_stream",
            "find_all_unary",
            "find_all_alone",
            "echo",
            "insert_alone",
            "mixed",
            "insert_stream_ids",
            "served_memory",
            "restart",
            "memory",
            "disk",
        ]
    );
    let has = |case: &str, field: &str| {
        let place = cases.iter().position(|one| *one == case).unwrap();
        let number = figures[place][field].as_f64();
        assert!(number.is_some_and(|it| it > 0.0), "{case} has no {field}");
    };
    for case in &cases[..8] {
        has(case, "per_second");
    }
    for case in ["find_all_unary", "find_all_alone", "insert_alone", "mixed"] {
        has(case, "p99_ms");
    }
    has("echo", "alone_p50_ms");
    has("echo", "stream_per_second");
    has("insert_alone", "sync_p50_ms");
    has("served_memory", "bytes_per_document");
    has("restart", "seconds_after_kill");
    has("memory", "bytes_per_document");
    has("disk", "bytes_per_document");
    assert_eq!(
        figures[1]["matches"], 1000,
        "half of the queries have a match"
    );
    assert!(is_empty(folder.path()));
}

/// They are measured if they are asked for: each takes long.
#[test]
fn failures_are_measured_while_requests_go_on() {
    let folder = folder();
    let few = "bench cluster --n 2000 --queries 500 --batch 100 --rounds 1 --in-flight 4 --json --case node_killed \
               --case node_stopped --case full_copy --case cold_to_hot";
    let arguments = few
        .split_whitespace()
        .chain(["--folder", folder.path().to_str().unwrap()]);
    let output = run(BINARY, arguments, "");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let has = |case: usize, name: &str, fields: &[&str]| {
        assert_eq!(figures[case]["case"], name);
        for field in fields {
            let number = figures[case][field].as_f64();
            assert!(
                number.is_some_and(|number| number > 0.0),
                "{field}: {lines}"
            );
        }
    };
    let of_nodes = [
        "reads_p99_ms",
        "writes_p99_ms",
        "evicted_p99_ms",
        "requests",
    ];
    has(0, "node_killed", &of_nodes);
    has(1, "node_stopped", &of_nodes);
    has(2, "full_copy", &["seconds"]);
    has(3, "cold_to_hot", &["seconds", "times"]);
    assert_eq!(figures.len(), 4);
    assert!(is_empty(folder.path()));
}

/// The only figure of a case of a few documents.
fn figure_of(case: &str) -> Value {
    let figures = figures_of(case);
    assert_eq!(figures.len(), 1);
    figures[0].clone()
}

/// The figures of a case of a few documents.
fn figures_of(case: &str) -> Vec<Value> {
    let folder = folder();
    let few = "bench cluster --n 2500 --batch 100 --json --case";
    let place = ["--folder", folder.path().to_str().unwrap()];
    let arguments = few.split_whitespace().chain([case]).chain(place);
    let output = run(BINARY, arguments, "");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(is_empty(folder.path()));
    let lines = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(figures.iter().all(|figure| figure["case"] == case));
    figures
}

#[test]
fn costs_are_measured_as_a_corpus_grows() {
    let figures = figures_of("grown");
    let sizes: Vec<_> = figures.iter().map(|figure| figure["n"].as_u64()).collect();
    assert_eq!(sizes, [50, 150, 500, 1500, 2400, 2500].map(Some));
    for figure in figures {
        for field in ["insert_ns", "find_ns", "restart_ns"] {
            assert!(figure[field].as_f64().unwrap() > 0.0, "{figure}");
        }
    }
}

#[test]
fn comparisons_are_measured() {
    let figure = figure_of("replicas_compared");
    // Each document is in up to four shards.
    let elements = figure["elements"].as_u64().unwrap();
    assert!((7500..=10_000).contains(&elements), "{figure}");
    for field in ["seconds", "sent", "seconds_of_shards"] {
        assert!(figure[field].as_f64().unwrap() > 0.0, "{figure}");
    }
}

#[test]
fn the_rebuilding_of_a_lost_shard_is_measured() {
    let figure = figure_of("shard_rebuilt");
    assert!(figure["seconds"].as_f64().unwrap() > 0.0, "{figure}");
}

/// Only root may cut links.
#[test]
fn lost_packets_are_measured_or_refused() {
    let folder = folder();
    let etcd = etcd_program();
    let few = "bench cluster --n 2000 --queries 500 --batch 100 --rounds 1 --in-flight 4 --json \
               --case node_incoming_lost --etcd";
    let arguments = few.split_whitespace().chain([
        etcd.to_str().unwrap(),
        "--folder",
        folder.path().to_str().unwrap(),
    ]);
    let output = run(BINARY, arguments, "");
    let log = String::from_utf8_lossy(&output.stderr);
    if log.contains("only root") {
        assert_eq!(output.status.code(), Some(1));
        return did_nothing(&format!("no network of its own can be made: {log}"));
    }
    assert!(output.status.success(), "{log}");
    let figure: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figure["case"], "node_incoming_lost");
    // Nodes find out by a second of silence, never at once. The last sign of life is up to 200 ms older than the cut.
    assert!(figure["evicted_p99_ms"].as_f64() > Some(780.0), "{figure}");
    assert_eq!(figure["failed"], 0, "{figure}");
    assert!(is_empty(folder.path()));
}

#[test]
fn a_folder_that_cannot_be_used_is_refused() {
    let output = run(
        BINARY,
        ["bench", "cluster", "--folder", "there/is/no/such/folder"],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("cannot use there/is/no/such/folder"), "{log}");
}

#[test]
fn a_signal_ends_it_with_its_processes_and_its_folder() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let mut bench = start(&["bench", "cluster", "--case", "mixed", "--folder", path]);
    block_until("the bench, nodes and router run", || {
        processes_in(path).len() == 5
    });
    let kill = ["-s", "TERM", &bench.id().to_string()];
    assert!(Command::new("kill").args(kill).status().unwrap().success());
    assert_eq!(bench.wait().unwrap().code(), Some(1));
    assert_eq!(processes_in(path), Vec::<String>::new());
    assert!(is_empty(folder.path()));
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The processes whose arguments name this folder.
fn processes_in(folder: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.flat_map(|process| fs::read_to_string(process.path().join("cmdline")));
    commands
        .filter(|command| command.contains(folder))
        .collect()
}
