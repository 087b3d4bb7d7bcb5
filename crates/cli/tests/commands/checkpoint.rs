//! `simshard insert --checkpoint`: what goes on, what is refused, and what it says.

use std::fmt::Write as _;
use std::fs::{self, File, FileTimes};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use simshard_testkit::{Process, run};
use tempfile::TempDir;

use crate::BINARY;

/// Documents of the input, of which two batches of 4,096 can be read.
const DOCUMENTS: u64 = 10_000;

const BATCHES: u64 = 2 * 4096;

/// A router, and a folder with an input.
struct Scene {
    router: Process,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let router = Process::serve(BINARY, ["serve", "--listen", "127.0.0.1:0"]);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.tsv"), "a\t1\nb\t2\n").unwrap();
        Self { router, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn simshard(&self, args: &[&str], input: &str) -> (i32, String) {
        let args = [args, &["--router", self.router.url()]].concat();
        let output = run(BINARY, args, input);
        let log = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(log).unwrap(),
        )
    }

    /// Inserts with the checkpoint `c`: the exit code, and what it says.
    fn insert(&self, args: &[&str]) -> (i32, String) {
        let checkpoint = self.path("c");
        let checkpoint = ["--checkpoint", checkpoint.to_str().unwrap()];
        self.simshard(&[&["insert"], args, &checkpoint].concat(), "")
    }

    fn documents(&self) -> u64 {
        let (_, shown) = self.simshard(&["corpus", "show", "default"], "");
        let line = shown.lines().find(|line| line.starts_with("documents"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    /// The checkpoint: how many documents, and whether these are all.
    fn checkpoint(&self) -> (u64, bool) {
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(self.path("c")).unwrap()).unwrap();
        let documents = json["documents"].as_u64().unwrap();
        (documents, json["complete"].as_bool().unwrap())
    }

    /// An input whose end is lost: a load of it ends early, always at the same place.
    fn write_cut_off(&self, id: &str) -> PathBuf {
        let path = self.path("cut.tsv.gz");
        // Stored as it is: other documents of the same length take as many bytes.
        let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
        encoder.write_all(tsv(id, 0..DOCUMENTS).as_bytes()).unwrap();
        let bytes = encoder.finish().unwrap();
        fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
        path
    }
}

fn tsv(id: &str, numbers: std::ops::Range<u64>) -> String {
    let mut tsv = String::new();
    for number in numbers {
        writeln!(tsv, "{id}{number}\t{}", number << 20).unwrap();
    }
    tsv
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_load_that_is_done_stays_done_and_says_so() {
    let scene = Scene::new();
    let input = scene.path("a.tsv");
    let (code, log) = scene.insert(&[text(&input)]);
    assert_eq!(code, 0, "{log}");
    assert!(
        log.starts_with("inserted 2 documents, 0 there already\n"),
        "{log}"
    );
    assert!(log.contains("says that all is in"), "{log}");
    assert_eq!(scene.checkpoint(), (2, true));

    scene.simshard(&["remove", text(&input)], "");
    let (code, log) = scene.insert(&[text(&input)]);
    assert_eq!(code, 0, "{log}");
    assert!(log.starts_with("inserted nothing: "), "{log}");
    assert!(log.contains("all 2 documents are in"), "{log}");
    assert_eq!(scene.documents(), 0, "nothing is inserted again");
}

#[test]
fn a_load_that_failed_goes_on_after_what_is_in() {
    let scene = Scene::new();
    let input = scene.write_cut_off("p");
    let args = [text(&input), "--skip-bad-lines"];
    let (code, log) = scene.insert(&args);
    assert_eq!(code, 2, "{log}");
    assert!(
        log.contains("8192 documents are in: run this again"),
        "{log}"
    );
    assert_eq!(scene.checkpoint(), (BATCHES, false));
    assert_eq!(scene.documents(), BATCHES);

    // Were they sent again, they would be there again.
    scene.simshard(&["remove", "--format", "tsv"], &tsv("p", 0..100));
    let (code, log) = scene.insert(&args);
    assert_eq!(code, 2, "{log}");
    assert_eq!(scene.documents(), BATCHES - 100);
    assert_eq!(scene.checkpoint(), (BATCHES, false));
}

#[test]
fn documents_that_changed_behind_an_untouched_file_are_noticed() {
    let scene = Scene::new();
    let input = scene.write_cut_off("p");
    let modified = fs::metadata(&input).unwrap().modified().unwrap();
    let args = [text(&input), "--skip-bad-lines"];
    assert_eq!(scene.insert(&args).0, 2);
    scene.write_cut_off("q");
    let times = FileTimes::new().set_modified(modified);
    File::options()
        .write(true)
        .open(&input)
        .unwrap()
        .set_times(times)
        .unwrap();
    let (code, log) = scene.insert(&args);
    assert_eq!(code, 2, "{log}");
    assert!(
        log.contains("the first 8192 documents are not those"),
        "{log}"
    );
    assert_eq!(scene.documents(), BATCHES);
}

#[test]
fn another_load_is_refused_by_its_checkpoint() {
    let scene = Scene::new();
    let input = scene.path("a.tsv");
    assert_eq!(scene.insert(&[text(&input)]).0, 0);
    let before = fs::read(scene.path("c")).unwrap();
    let refused = |args: &[&str], shown: &str| {
        let (code, log) = scene.insert(args);
        assert_eq!(code, 2, "{log}");
        assert!(log.contains(shown), "{log}");
        assert!(log.contains("delete it to start anew"), "{log}");
        assert_eq!(fs::read(scene.path("c")).unwrap(), before);
    };
    refused(
        &[text(&input), "--skip-bad-lines"],
        "--skip-bad-lines false then, true now",
    );
    refused(&[text(&input), text(&input)], "files 1 then, 2 now");
    scene.simshard(&["corpus", "create", "other"], "");
    refused(
        &[text(&input), "--corpus", "other"],
        "corpus default then, other now",
    );

    scene.simshard(&["corpus", "delete", "default"], "");
    scene.simshard(&["corpus", "create", "default"], "");
    refused(&[text(&input)], "created anew");
    assert_eq!(scene.documents(), 0);
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_before_anything_is_done() {
    let scene = Scene::new();
    let checkpoint = scene.path("c");
    let checkpoint = ["--checkpoint", text(&checkpoint)];
    for input in [&["-"][..], &["/dev/stdin"], &[]] {
        let args = [&["insert", "--format", "tsv"], input, &checkpoint].concat();
        let (code, log) = scene.simshard(&args, "a\t1\n");
        assert_eq!(code, 2, "{log}");
        assert!(log.contains("read again"), "{log}");
    }
    let folder = text(scene.folder.path());
    let args = [&["insert", "--format", "files", folder], &checkpoint[..]].concat();
    let (code, log) = scene.simshard(&args, "");
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("is in the folder"), "{log}");
    let args = [&["remove", folder], &checkpoint[..]].concat();
    let (code, log) = scene.simshard(&args, "");
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("unexpected argument '--checkpoint'"), "{log}");

    fs::write(scene.path("a.tsv"), "a\t1\nb\tno number\n").unwrap();
    let (code, log) = scene.insert(&[text(&scene.path("a.tsv"))]);
    assert_eq!(code, 2, "{log}");
    assert!(!scene.path("c").exists(), "nothing has begun");
    assert_eq!(scene.documents(), 0);
}
