//! A node's data directory: it outlives the node, and can be looked into.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use simshard_testkit::{Process, free_addresses, run, write_layout_file};

use crate::{BINARY, simshard};

/// One node with a data directory, and a router.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_layout_file(&folder.path().join("cluster.toml"), &free_addresses(1));
        Self { folder }
    }

    fn layout(&self) -> String {
        let path = self.folder.path().join("cluster.toml");
        path.to_str().unwrap().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn node(&self) -> Vec<String> {
        let (layout, data) = (self.layout(), self.data());
        let data = data.to_str().unwrap();
        let node = ["serve", "node", "--cluster", &layout, "--name", "n1"];
        let storage = ["--data", data, "--memtable-mib", "1"];
        let args = node.iter().chain(&storage);
        args.map(|&arg| arg.to_owned()).collect()
    }

    fn start(&self) -> (Process, Process) {
        let layout = self.layout();
        let node = Process::serve(BINARY, self.node());
        let router = ["serve", "router", "--cluster", &layout];
        let listen = ["--listen", "127.0.0.1:0"];
        let router = Process::serve(BINARY, [&router[..], &listen].concat());
        (node, router)
    }

    /// A node that has documents in segments, and has stopped.
    fn stopped() -> Self {
        let scene = Self::new();
        let (node, router) = scene.start();
        simshard(&router, &["corpus", "create", "default"], "");
        simshard(&router, &["insert", "--format", "tsv"], &documents());
        assert_eq!(node.terminate(), Some(0));
        scene
    }

    fn storage(&self, verb: &str) -> (Option<i32>, String, String) {
        let data = self.data();
        let output = run(BINARY, ["storage", verb, data.to_str().unwrap()], "");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

/// Enough to be written to segments.
fn documents() -> String {
    let lines = (1..8000_u64).map(|number| {
        let fingerprint = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("page-{number}\t{fingerprint}\n")
    });
    lines.collect()
}

fn segment(data: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(data.join("segments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.remove(0)
}

#[test]
fn documents_outlive_their_node_and_its_directory_can_be_looked_into() {
    let scene = Scene::new();
    let (node, router) = scene.start();
    simshard(&router, &["corpus", "create", "default"], "");
    let tsv = ["--format", "tsv"];
    simshard(&router, &[&["insert"], &tsv[..]].concat(), &documents());
    let (code, _, log) = scene.storage("inspect");
    assert_eq!(code, Some(1));
    assert!(log.contains("is in use by another process"), "{log}");

    assert_eq!(node.terminate(), Some(0));
    drop(router);
    let (code, shown, log) = scene.storage("inspect");
    assert_eq!(code, Some(0), "{log}");
    assert!(shown.contains("5 blocks, distance 3"), "{shown}");
    assert!(shown.contains("shards      00-ff"), "{shown}");
    let (code, shown, log) = scene.storage("verify");
    assert_eq!(code, Some(0), "{log}");
    assert!(shown.starts_with("sound: "), "{shown}");

    let (node, router) = scene.start();
    let found = simshard(&router, &[&["find"], &tsv[..]].concat(), &documents());
    for (number, line) in (1..).zip(found.lines()) {
        let id = format!(r#""page-{number}""#);
        assert!(line.contains(&id), "{line}");
    }
    assert_eq!(found.lines().count(), 7999);
    node.kill();
    drop(router);

    let damaged = segment(&scene.data());
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[100] ^= 4;
    fs::write(&damaged, bytes).unwrap();
    let (code, _, log) = scene.storage("verify");
    assert_eq!(code, Some(1));
    // The block that the byte is in.
    let named = format!("{} is damaged at byte 64", damaged.display());
    assert!(log.contains(&named), "{log}");
    let (code, _, _) = scene.storage("inspect");
    assert_eq!(code, Some(0), "only verify reads everything");
}

/// What stands in a folder, and when each of it was changed last.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Option<Vec<u8>>)> {
    let changed = fs::metadata(folder).unwrap().modified().unwrap();
    let mut all = BTreeMap::from([(folder.to_owned(), (changed, None))]);
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.is_dir() {
            all.extend(snapshot(&path));
        } else {
            let contents = fs::read(&path).unwrap();
            all.insert(path, (metadata.modified().unwrap(), Some(contents)));
        }
    }
    all
}

#[test]
fn who_looks_into_a_directory_leaves_everything_as_it_was() {
    let scene = Scene::stopped();
    let lock = scene.data().join("lock");
    for has_lock in [true, false] {
        if !has_lock {
            fs::remove_file(&lock).unwrap();
        }
        let before = snapshot(&scene.data());
        assert_eq!(before.contains_key(&lock), has_lock);
        for verb in ["inspect", "verify"] {
            let (code, _, remarks) = scene.storage(verb);
            assert_eq!(code, Some(0), "{remarks}");
            let unlocked = "the directory has no file to lock";
            assert_eq!(remarks.contains(unlocked), !has_lock, "{remarks}");
            assert!(snapshot(&scene.data()) == before, "{verb}, {has_lock}");
        }
    }
}

/// The directory is the right one, and may be whole again.
#[test]
fn a_file_that_is_missing_is_damage_and_no_wrong_argument() {
    let scene = Scene::stopped();
    let log = scene.data().join("log");
    for missing in [segment(&scene.data()), log] {
        let aside = scene.data().join("aside");
        fs::rename(&missing, &aside).unwrap();
        let started = run(BINARY, scene.node(), "");
        let text = String::from_utf8(started.stderr).unwrap();
        let (code, _, verified) = scene.storage("verify");
        for (code, text) in [(started.status.code(), text), (code, verified)] {
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains(missing.to_str().unwrap()), "{text}");
        }
        fs::rename(&aside, &missing).unwrap();
    }
    let (code, _, log) = scene.storage("verify");
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn what_is_no_damage_is_remarked_upon() {
    let scene = Scene::new();
    let (node, router) = scene.start();
    simshard(&router, &["corpus", "create", "default"], "");
    let insert = ["insert", "--format", "tsv"];
    simshard(&router, &insert, "a\t17\n");
    assert_eq!(node.terminate(), Some(0));
    let log = scene.data().join("log/00000000000000000001.log");
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(100).unwrap();
    fs::write(scene.data().join("FAILED"), "a reason\n").unwrap();
    for verb in ["inspect", "verify"] {
        let (code, _, remarks) = scene.storage(verb);
        let log = log.display();
        let cut = format!(
            "{log} ends with a write that is not whole: the next start cuts it off at byte 64"
        );
        let short = format!("{log} ends at byte 100 without space allocated ahead");
        let failed = "FAILED says that the store failed when it was last used: a reason";
        for remark in [&cut, &short, failed] {
            assert!(remarks.contains(remark), "{remarks}");
        }
        assert_eq!(code, Some(0), "{remarks}");
    }
}

#[test]
fn a_directory_without_a_store_is_a_wrong_argument() {
    let scene = Scene::new();
    fs::create_dir(scene.data()).unwrap();
    for verb in ["inspect", "verify"] {
        let (code, _, log) = scene.storage(verb);
        assert_eq!(code, Some(2));
        assert!(log.contains("is no data directory"), "{log}");
    }
    assert_eq!(fs::read_dir(scene.data()).unwrap().count(), 0);

    fs::write(scene.data().join("manifest"), "of another program").unwrap();
    for verb in ["inspect", "verify"] {
        let (code, _, log) = scene.storage(verb);
        assert_eq!(code, Some(2));
        assert!(log.contains("manifest is no "), "{log}");
    }

    fs::remove_dir_all(scene.data()).unwrap();
    fs::write(scene.data(), "no directory").unwrap();
    for verb in ["inspect", "verify"] {
        let (code, _, log) = scene.storage(verb);
        assert_eq!(code, Some(2));
        assert!(log.contains(scene.data().to_str().unwrap()), "{log}");
    }
}

#[test]
fn a_server_without_a_role_keeps_corpora_and_documents_too() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data.to_str().unwrap(),
    ];
    let server = Process::serve(BINARY, serve);
    simshard(&server, &["corpus", "create", "other"], "");
    for (corpus, id) in [("default", "a"), ("other", "b")] {
        let insert = ["insert", "--format", "tsv", "--corpus", corpus];
        simshard(&server, &insert, &format!("{id}\t17\n"));
    }
    // The directory is in use.
    let second = run(BINARY, serve, "");
    let log = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success());
    assert!(log.contains("another process"), "{log}");

    server.kill();
    let server = Process::serve(BINARY, serve);
    for (corpus, id) in [("default", "a"), ("other", "b")] {
        let find = ["find", "--fingerprint", "17", "--corpus", corpus];
        let found = simshard(&server, &find, "");
        assert!(found.contains(&format!("\"{id}\"")), "{found}");
    }
    assert_eq!(server.terminate(), Some(0));
    // The directory that it was given is the one to look into.
    let verified = run(BINARY, ["storage", "verify", data.to_str().unwrap()], "");
    let text = String::from_utf8(verified.stdout).unwrap();
    assert!(
        verified.status.success() && text.starts_with("sound: "),
        "{text}"
    );
}

/// Each would start empty beside what is stored, and so would be found wanting too late.
/// The arguments of a server that keeps its documents here.
fn serve(data: &Path) -> [String; 5] {
    let data = data.to_str().unwrap();
    ["serve", "--listen", "127.0.0.1:0", "--data", data].map(str::to_owned)
}

#[test]
fn a_server_does_not_start_empty_beside_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Process::serve(BINARY, serve(&data));
    assert_eq!(server.terminate(), Some(0));
    let refusal = |args: &[String]| {
        let output = run(BINARY, args, "");
        let log = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), log)
    };

    let (code, log) = refusal(&serve(&data.join("local")));
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("is the data directory of a node"), "{log}");

    let layout = folder.path().join("cluster.toml");
    fs::write(
        &layout,
        "[[nodes]]\nname = \"n1\"\naddress = \"http://127.0.0.1:1\"\n",
    )
    .unwrap();
    let node = ["serve", "node", "--name", "n1", "--listen", "127.0.0.1:0"];
    let mut node = node.map(str::to_owned).to_vec();
    for (flag, path) in [("--cluster", &layout), ("--data", &data)] {
        node.extend([flag.to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let (code, log) = refusal(&node);
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("is not empty"), "{log}");
}

/// It serves all the same, so that the records can be restored, and refuses whatever needs them until then.
#[test]
fn a_server_without_its_file_of_corpora_is_not_empty_and_can_be_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Process::serve(BINARY, serve(&data));
    let client = |server: &Process, args: &[&str]| {
        let args = [args, &["--router", server.url()]].concat();
        run(BINARY, args, "a document of four words\n")
    };
    assert!(client(&server, &["insert"]).status.success());
    assert_eq!(server.terminate(), Some(0));
    let names = data.join("cluster.corpora.toml");
    let aside = folder.path().join("aside");
    fs::rename(&names, &aside).unwrap();

    let server = Process::serve(BINARY, serve(&data));
    for args in [&["corpus", "list"][..], &["find"]] {
        let output = client(&server, args);
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(
            log.contains("restore each record with `simshard corpus recover`"),
            "{log}"
        );
    }
    let stored = client(&server, &["corpus", "recover"]).stdout;
    let stored = String::from_utf8(stored).unwrap();
    let uid = stored.lines().nth(1).unwrap().split('\t').next().unwrap();
    let named = ["--name", "default", "--recipe", "words-v3"];
    let recover = [&["corpus", "recover", uid], &named[..]].concat();
    assert!(client(&server, &recover).status.success());
    let found = String::from_utf8(client(&server, &["find"]).stdout).unwrap();
    assert!(found.contains(r#""distance":0"#), "{found}");
    assert_eq!(server.terminate(), Some(0));

    fs::rename(&aside, &names).unwrap();
    let server = Process::serve(BINARY, serve(&data));
    let again = String::from_utf8(client(&server, &["find"]).stdout).unwrap();
    assert_eq!(again, found, "the file that was put back serves as well");
    assert_eq!(server.terminate(), Some(0));
}
