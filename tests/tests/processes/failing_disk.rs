//! A node whose disk fails to sync: the kernel itself answers `fdatasync` with EIO, by a seccomp filter that this
//! test binary puts around the node that it becomes.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use simshard_testkit::{Process, binary, free_addresses, run, write_layout_file};

/// Set for the child: the binary and the arguments of the node, a line each.
const CHILD_VARIABLE: &str = "FAILING_DISK_CHILD";

/// The name of the test below.
const CHILD: &str = "failing_disk::child_that_becomes_a_node_without_fdatasync";

/// The child's side; does nothing when run by hand.
#[test]
fn child_that_becomes_a_node_without_fdatasync() {
    let Ok(command) = std::env::var(CHILD_VARIABLE) else {
        return;
    };
    let (binary, args) = command.split_once('\n').unwrap();
    let eio = SeccompAction::Errno(libc::EIO.unsigned_abs());
    let rules = BTreeMap::from([(libc::SYS_fdatasync, Vec::new())]);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, eio, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
    let error = Command::new(binary).args(args.lines()).exec();
    panic!("{error}");
}

/// A node with a data directory, as a layout file has it.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_layout_file(&folder.path().join("cluster.toml"), &free_addresses(1));
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn node(&self) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (layout, data) = (text(&self.path("cluster.toml")), text(&self.path("data")));
        let args = ["serve", "node", "--name", "n1", "--cluster", &layout];
        let args = [&args[..], &["--data", &data]].concat();
        args.into_iter().map(str::to_owned).collect()
    }

    fn router(&self) -> Process {
        let layout = self.path("cluster.toml");
        let router = ["serve", "router", "--cluster", layout.to_str().unwrap()];
        Process::serve(
            binary(),
            [&router[..], &["--listen", "127.0.0.1:0"]].concat(),
        )
    }

    /// The node with a disk that fails to sync, once it listens.
    fn failing_node(&self) -> Child {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD, "--nocapture"])
            .env(
                CHILD_VARIABLE,
                [&[binary().to_owned()], &self.node()[..]]
                    .concat()
                    .join("\n"),
            )
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listens = |line: std::io::Result<String>| line.unwrap().starts_with("listening on ");
        assert!(lines.any(listens), "it ended before it listened");
        child
    }
}

/// Runs a client command: whether it succeeded, and what it printed.
fn simshard(router: &Process, args: &[&str], input: &str) -> (bool, String) {
    let output = run(
        binary(),
        [args, &["--router", router.url()]].concat(),
        input,
    );
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn a_node_whose_disk_fails_to_sync_acknowledges_nothing_ends_and_waits_for_its_operator() {
    let scene = Scene::new();
    let node = Process::serve(binary(), scene.node());
    let router = scene.router();
    let insert = ["insert", "--format", "tsv"];
    assert!(simshard(&router, &["corpus", "create", "default"], "").0);
    assert!(simshard(&router, &insert, "before\t77\n").0);
    assert_eq!(node.terminate(), Some(0));

    let mut failing = scene.failing_node();
    let find = ["find", "--fingerprint", "77"];
    let (found, text) = simshard(&router, &find, "");
    assert!(
        found && text.contains(r#""ids":["before"]"#),
        "reads go on: {text}"
    );
    let at_once = [&insert[..], &["--patience-seconds", "0"]].concat();
    let (inserted, text) = simshard(&router, &at_once, "after\t77\n");
    assert!(!inserted, "{text}");
    assert_eq!(failing.wait().unwrap().code(), Some(1));

    let word = scene.path("data/FAILED");
    assert!(word.exists());
    let refused = run(binary(), scene.node(), "");
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains(word.to_str().unwrap()), "{text}");
    assert_eq!(refused.status.code(), Some(1));
    let verified = ["storage", "verify", scene.path("data").to_str().unwrap()].map(str::to_owned);
    let verified = run(binary(), verified, "");
    let text = String::from_utf8(verified.stderr).unwrap();
    assert!(verified.status.success(), "{text}");
    let remark = format!("{} says that the store failed", word.display());
    assert!(text.contains(&remark), "{text}");
    fs::remove_file(word).unwrap();

    let node = Process::serve(binary(), scene.node());
    let (found, text) = simshard(&router, &find, "");
    assert!(found && text.contains("\"before\""), "{text}");
    let (inserted, text) = simshard(&router, &insert, "later\t77\n");
    assert!(inserted, "{text}");
    assert_eq!(node.terminate(), Some(0));
}

#[test]
fn a_node_whose_disk_fails_to_sync_at_the_end_says_so_and_waits_for_its_operator() {
    let scene = Scene::new();
    let mut failing = scene.failing_node();
    kill_process(Pid::from_child(&failing), Signal::TERM).unwrap();
    assert_eq!(failing.wait().unwrap().code(), Some(1));
    assert!(scene.path("data/FAILED").exists());
}
