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
    let few = "bench cluster --n 3000 --batch 100 --json --case replicas_compared --folder";
    let arguments = few
        .split_whitespace()
        .chain([folder.path().to_str().unwrap()]);
    let output = run(BINARY, arguments, "");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let figure: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figure["case"], "replicas_compared");
    // Each document is in up to four shards.
    let elements = figure["elements"].as_u64().unwrap();
    assert!((9000..=12_000).contains(&elements), "{figure}");
    for field in ["seconds", "sent", "seconds_of_shards"] {
        assert!(figure[field].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(is_empty(folder.path()));
}

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
    // Nodes find out by silence, never at once.
    assert!(figure["evicted_p99_ms"].as_f64() > Some(900.0), "{figure}");
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
