//! The commands as whole processes: arguments, input, output, errors and what they look like on a terminal.
//!
//! One binary for all of them, for each binary takes as long to link as its tests take to run. Clusters of several
//! processes are tested in `tests/`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Output;

use simshard_testkit::{Process, run};

mod backup;
mod bad_input;
mod batch;
mod batch_output;
mod bench_cluster;
mod checkpoint;
mod config;
mod corpus_streams;
mod dedup;
mod demo;
mod evaluate;
mod exposure;
mod find;
mod formats;
mod fuzz;
mod help;
mod levels;
mod ready;
mod recipes;
mod scripts;
mod storage;
mod terminal;
mod tokens;

const BINARY: &str = env!("CARGO_BIN_EXE_simshard");

/// A router and its nodes in one process, with nothing stored.
fn embedded() -> Process {
    Process::serve(BINARY, ["serve", "--listen", "127.0.0.1:0"])
}

/// Runs a client command, which must succeed, and returns what it prints.
fn simshard(router: &Process, args: &[&str], input: &str) -> String {
    let output = run(BINARY, [args, &["--router", router.url()]].concat(), input);
    assert!(output.status.success(), "{args:?}: {}", log(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What a command wrote to standard error.
fn log(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command wrote there besides its recipe.
fn said(output: &Output) -> String {
    let log = log(output);
    let lines = log.split_inclusive('\n');
    let expected = ["recipe ", "degenerate texts: "];
    let is_news = |line: &&str| !expected.iter().any(|&start| line.starts_with(start));
    lines.filter(is_news).collect()
}
