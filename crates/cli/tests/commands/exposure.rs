//! Where a process may listen.

use std::fs;
use std::path::Path;

use simshard_testkit::{Process, run};

use crate::{BINARY, log, simshard};

/// An address of no machine here, kept for documentation: a process that goes on to bind it fails with another error.
const ELSEWHERE: &str = "192.0.2.1:7460";

/// Starts a process that is to be refused; returns why.
fn refused(args: &[&str], folder: &Path) -> String {
    let mut serve = vec!["serve"];
    serve.extend(args);
    let keys = format!("file:{}", folder.join("keys").display());
    if ["node", "router"].contains(&args[0]) && !args.contains(&"--cluster") {
        serve.extend(["--metadata", &keys]);
    }
    let output = run(BINARY, serve, "");
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    log(&output)
}

#[test]
fn a_process_that_lacks_protection_listens_on_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let listen = ["--listen", ELSEWHERE];
    let router =
        "give --tls-cert and --tls-key, and --tokens or --tls-client-ca, listen on 127.0.0.1";
    let node = "give --cluster-cert, --cluster-key and --cluster-ca, listen on 127.0.0.1";
    let config = file("config.toml", &format!("listen = \"{ELSEWHERE}\"\n"));
    let layout = file(
        "layout.toml",
        &format!("[[nodes]]\nname = \"n1\"\naddress = \"http://{ELSEWHERE}\"\n"),
    );
    for (args, lacks) in [
        (&[][..], router),
        (&["router"], router),
        (&["node", "--name", "n1"], node),
    ] {
        let said = refused(&[args, &listen].concat(), folder.path());
        assert!(said.contains(ELSEWHERE) && said.contains(lacks), "{said}");
    }
    for (args, lacks) in [
        (["router", "--config", &config].as_slice(), router),
        (&["node", "--name", "n1", "--config", &config], node),
        (&["node", "--name", "n1", "--cluster", &layout], node),
    ] {
        let said = refused(args, folder.path());
        assert!(said.contains(ELSEWHERE) && said.contains(lacks), "{said}");
    }
}

#[test]
fn tokens_alone_are_not_enough_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (token, tokens) = (file("token"), file("tokens.toml"));
    let files = ["--token-file", &token, "--tokens", &tokens];
    let made = run(
        BINARY,
        [&["token", "new", "a", "--role", "read"], &files[..]].concat(),
        "",
    );
    assert!(made.status.success(), "{}", log(&made));
    let said = refused(&["--listen", ELSEWHERE, "--tokens", &tokens], folder.path());
    assert!(
        said.contains("give --tls-cert and --tls-key, listen on 127.0.0.1"),
        "{said}"
    );
}

#[test]
fn an_operator_may_allow_it() {
    let router = Process::serve(BINARY, ["serve", "--listen", "0.0.0.0:0", "--insecure"]);
    assert!(
        router.url().starts_with("http://0.0.0.0:"),
        "{}",
        router.url()
    );
    assert!(simshard(&router, &["corpus", "list"], "").contains("default"));
}
