//! `simshard config check`.

use std::fs;

use simshard_testkit::run;

use crate::{BINARY, log};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

fn check(args: &[&str]) -> (Option<i32>, String) {
    let output = run(BINARY, [&["config", "check"], args].concat(), "");
    (output.status.code(), log(&output))
}

#[test]
fn the_files_that_are_deployed_are_right() {
    for (role, of) in [
        ("node", "node n1"),
        ("router", "the router at 127.0.0.1:7460"),
    ] {
        let file = format!("{DEPLOY}/{role}.toml");
        let (code, said) = check(&[role, "--config", &file]);
        assert_eq!(
            (code, &*said),
            (Some(0), &*format!("the settings of {of} are right\n"))
        );
    }
}

#[test]
fn what_serve_refuses_is_refused_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let unknown = file("unknown.toml", "nmae = \"n1\"\n");
    let zero = file("zero.toml", "timeout_seconds = 0\n");
    let keys = format!("file:{}", folder.path().join("keys").display());
    let layout = format!("{DEPLOY}/cluster.toml");
    let of_node = "node --name n1";
    for (args, part) in [
        (format!("node --config {unknown}"), "nmae"),
        (
            format!("router --config {zero} --metadata {keys}"),
            "timeout_seconds",
        ),
        (format!("node --metadata {keys}"), "--name is missing"),
        (
            format!("{of_node} --metadata {keys}"),
            "--listen is missing",
        ),
        (of_node.to_owned(), "--cluster, or --metadata, is missing"),
        (
            format!("{of_node} --cluster {layout} --address http://a:1"),
            "--address is for nodes that register themselves",
        ),
        (
            format!("{of_node} --cluster {layout} --accept-lost-changes"),
            "--accept-lost-changes is for nodes",
        ),
        (
            format!("router --metadata {keys} --tokens /nothing/here"),
            "/nothing/here",
        ),
        (
            format!("router --metadata {keys} --listen 192.0.2.1:7460"),
            "--insecure",
        ),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let (code, said) = check(&args);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(part), "{said}");
        let served = run(BINARY, [&["serve"], &*args].concat(), "");
        let of_serve = log(&served);
        // The log of a process that serves may have more.
        assert!(of_serve.contains(&said), "{of_serve} and {said}");
    }
}
