//! Real signals to a real process: this test binary starts itself again as the
//! child, which waits for signals as a server would.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use simshard_runtime::shutdown;

const CHILD_VARIABLE: &str = "SIMSHARD_SIGNALS_CHILD";

/// The child's side; does nothing when run by hand.
#[test]
fn child_that_never_finishes_draining() {
    if env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let shutdown = shutdown::on_signals().unwrap();
        println!("\nready");
        shutdown.cancelled().await;
        println!("\ndraining");
        std::future::pending::<()>().await;
    });
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child_that_never_finishes_draining"])
            .arg("--nocapture")
            .env(CHILD_VARIABLE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn wait_for_line(&mut self, wanted: &str) {
        let found = self.lines.any(|line| line.unwrap() == wanted);
        assert!(found, "the child ended without printing {wanted}");
    }

    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A failed assertion must not leave the child behind.
        let _gone_already = self.child.kill();
        let _reaped_already = self.child.wait();
    }
}

fn exit_code_after(first: &str, second: &str) -> Option<i32> {
    let mut process = Process::start();
    process.wait_for_line("ready");
    process.signal(first);
    process.wait_for_line("draining");
    process.signal(second);
    process.child.wait().unwrap().code()
}

#[test]
fn a_second_sigterm_exits_with_143() {
    assert_eq!(exit_code_after("TERM", "TERM"), Some(143));
}

#[test]
fn a_second_sigint_exits_with_130() {
    assert_eq!(exit_code_after("TERM", "INT"), Some(130));
}
