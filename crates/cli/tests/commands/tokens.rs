//! Tokens, and what commands may do with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use simshard_client::{Access, Client, Documents, Fingerprint, Queries, Reason, v1};
use simshard_testkit::{Process, run};

use crate::{BINARY, log};

/// A folder for a file of tokens, and for the tokens.
struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn text(&self, file: &str) -> String {
        self.path(file).to_str().unwrap().to_owned()
    }

    /// Makes a token; its file is called like its owner.
    fn make(&self, name: &str, more: &[&str]) -> Output {
        let (token, tokens) = (self.text(name), self.text("tokens.toml"));
        let files = ["--token-file", &token, "--tokens", &tokens];
        run(
            BINARY,
            [&["token", "new", name], &files[..], more].concat(),
            "",
        )
    }
}

/// Each adds its entry, whatever the others do at the same time.
#[test]
fn tokens_that_are_made_at_once_are_all_in_the_file() {
    let folder = Folder(tempfile::tempdir().unwrap());
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let folder = &folder;
            scope.spawn(move || assert!(folder.make(name, &["--role", "read"]).status.success()));
        }
    });
    let entries = fs::read_to_string(folder.path("tokens.toml")).unwrap();
    assert_eq!(entries.matches("[[tokens]]").count(), 4, "{entries}");
    let again = ["token", "new", "a", "--role", "read", "--token-file"];
    let (other, tokens) = (folder.text("other"), folder.text("tokens.toml"));
    let refused = run(
        BINARY,
        [&again[..], &[&other, "--tokens", &tokens]].concat(),
        "",
    );
    assert!(
        log(&refused).contains("needs a name of its own"),
        "{}",
        log(&refused)
    );
    assert!(!folder.path("other").exists());
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_token_is_in_its_own_file_alone_and_only_its_owner_reads_it() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let made = folder.make(
        "crawler",
        &[
            "--role",
            "write",
            "--corpora",
            "news,blogs",
            "--expires-days",
            "9",
        ],
    );
    assert!(made.status.success(), "{}", log(&made));
    let token = fs::read_to_string(folder.path("crawler")).unwrap();
    let token = token.trim();
    assert!(
        token.starts_with("simshard_") && token.len() > 50,
        "{token}"
    );
    assert_eq!(mode(&folder.path("crawler")), 0o600);
    let entries = fs::read_to_string(folder.path("tokens.toml")).unwrap();
    for text in [
        &entries,
        &log(&made),
        &String::from_utf8(made.stdout).unwrap(),
    ] {
        assert!(!text.contains(token), "{text}");
    }
    assert!(
        entries.contains("corpora = [\"blogs\", \"news\"]"),
        "{entries}"
    );
    // What is there already stays, and no token is left that no server knows.
    for (name, role, said) in [
        ("crawler", "read", "cannot write"),
        ("tokens.toml", "read", "cannot write"),
        ("two words", "read", "a name has"),
        ("other", "owner", "invalid value"),
    ] {
        let refused = folder.make(name, &["--role", role]);
        assert!(
            !refused.status.success() && log(&refused).contains(said),
            "{}",
            log(&refused)
        );
    }
    assert_eq!(
        fs::read_to_string(folder.path("tokens.toml")).unwrap(),
        entries
    );
    assert_eq!(
        fs::read_to_string(folder.path("crawler")).unwrap().trim(),
        token
    );
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 2);
}

#[test]
fn commands_do_what_their_token_is_for() {
    let folder = Folder(tempfile::tempdir().unwrap());
    for (name, role) in [("reader", "read"), ("writer", "write")] {
        assert!(folder.make(name, &["--role", role]).status.success());
    }
    let tokens = folder.text("tokens.toml");
    let server = Process::serve_with_log(
        BINARY,
        ["serve", "--listen", "127.0.0.1:0", "--tokens", &tokens],
        &folder.path("log"),
    );
    let tell = |verb, access: &[&str]| {
        let command = [verb, "--format", "tsv", "--router", server.url()];
        run(BINARY, [&command, access].concat(), "a\t7\n")
    };
    let insert = |access: &[&str]| tell("insert", access);
    let (reader, writer) = (folder.text("reader"), folder.text("writer"));
    for (access, said) in [
        (&[][..], "this server asks for a token"),
        (&["--token-file", &tokens], "no token has"),
        (&["--token-file", &reader], "\"reader\" has the role read"),
    ] {
        let refused = insert(access);
        assert!(
            !refused.status.success() && log(&refused).contains(said),
            "{}",
            log(&refused)
        );
    }
    let inserted = insert(&["--token-file", &writer]);
    assert!(inserted.status.success(), "{}", log(&inserted));

    // AU6.
    assert!(!tell("remove", &["--token-file", &reader]).status.success());
    let removed = tell("remove", &["--token-file", &writer]);
    assert!(removed.status.success(), "{}", log(&removed));
    let told = fs::read_to_string(folder.path("log")).unwrap();
    let removals: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("removed"))
        .collect();
    let [removal] = removals[..] else {
        panic!("{told}")
    };
    assert!(
        removal.ends_with("documents are to be removed owner=writer corpus=default documents=1"),
        "{removal}"
    );
}

/// A server that knows a slow, a small and a free client by their tokens.
struct Limited {
    folder: Folder,
    server: Process,
}

impl Limited {
    fn new() -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, more) in [
            ("slow", &["--requests-per-second", "20"][..]),
            ("small", &["--in-flight-mib", "1"]),
            ("free", &[]),
        ] {
            let made = folder.make(name, &[&["--role", "write"], more].concat());
            assert!(made.status.success(), "{}", log(&made));
        }
        let tokens = folder.text("tokens.toml");
        let args = ["serve", "--listen", "127.0.0.1:0", "--tokens", &tokens];
        let server = Process::serve(BINARY, args);
        Self { folder, server }
    }

    fn client(&self, name: &str) -> Client {
        let token = fs::read_to_string(self.folder.path(name)).unwrap();
        let access = Access {
            token: Some(token),
            ..Access::default()
        };
        Client::with_access(self.server.url(), &access).unwrap()
    }

    /// How many of 200 requests are answered.
    async fn answered(&self, name: &str) -> usize {
        let stub = self.client(name).into_stub();
        let lists = stream::iter(0..200).map(|_| {
            let mut stub = stub.clone();
            async move { stub.list_corpora(v1::ListCorporaRequest::default()).await }
        });
        let answers: Vec<_> = lists.buffered(50).collect().await;
        for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert_eq!(Reason::of(refused), Some(Reason::Overloaded));
            let said = "\"slow\" may begin 20 requests a second";
            assert!(refused.message().contains(said), "{refused}");
        }
        answers.iter().filter(|answer| answer.is_ok()).count()
    }
}

/// A batch of about this many bytes.
fn batch(bytes: usize) -> Documents {
    let fingerprints = (0..bytes as u64 / 1000).map(Fingerprint);
    let ids = (0..bytes / 1000).map(|number| format!("{number:0>992}"));
    Documents {
        keys: Queries::Fingerprints(fingerprints.collect()),
        ids: ids.collect(),
    }
}

/// AU7, AU8.
#[tokio::test]
async fn a_token_has_no_more_than_its_limits() {
    let limited = Limited::new();
    let began = Instant::now();
    let slow = limited.answered("slow").await;
    let most = 22 + 20 * (began.elapsed().as_secs() as usize + 1);
    assert!((20..=200.min(most)).contains(&slow), "{slow}");
    assert_eq!(limited.answered("free").await, 200);

    let began = Instant::now();
    let batches = stream::iter((0..60).map(|_| batch(1000)));
    let slow = limited.client("slow").insert_stream("default", batches);
    let inserted: Vec<_> = slow.try_collect().await.unwrap();
    assert_eq!(inserted.len(), 60);
    assert!(
        began.elapsed() > Duration::from_secs(1),
        "60 at 20 a second"
    );

    let (small, free) = (limited.client("small"), limited.client("free"));
    let refused = small.insert("default", batch(2_000_000)).await;
    assert_eq!(refused.unwrap_err().reason(), Some(Reason::Overloaded));
    small.insert("default", batch(500_000)).await.unwrap();
    free.insert("default", batch(2_000_000)).await.unwrap();
}
