//! `simshard backup`: what comes back, what is stored, what damage does, and what is refused.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use simshard_testkit::{Process, Running, run, until};
use tempfile::TempDir;

use crate::{BINARY, embedded, log};

/// Documents: they are in a few segments.
const DOCUMENTS: u64 = 400_000;

/// A server with a corpus, and a place for backups.
struct Scene {
    server: Process,
    folder: TempDir,
}

impl Scene {
    /// A server whose corpus `pages` has some documents.
    fn with(documents: u64) -> Self {
        let scene = Self {
            server: embedded(),
            folder: tempfile::tempdir().unwrap(),
        };
        scene.expect(&["corpus", "create", "pages", "--distance", "2"]);
        scene.insert(0..documents);
        scene
    }

    fn insert(&self, numbers: std::ops::Range<u64>) {
        let mut tsv = String::new();
        for number in numbers {
            // Every tenth has the fingerprint of the one before.
            let place = number - u64::from(number % 10 == 9);
            let spread = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            writeln!(tsv, "page {number}\t{spread}").unwrap();
        }
        let args = [
            "insert",
            "--corpus",
            "pages",
            "--format",
            "tsv",
            "--router",
            self.server.url(),
        ];
        let output = run(BINARY, args, tsv);
        assert!(output.status.success(), "{}", log(&output));
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    /// What `backup VERB PLACE …` does. `args` has the verb first.
    fn backup(&self, args: &[&str]) -> Output {
        let place = self.place();
        let mut all = vec!["backup", args[0], place.to_str().unwrap()];
        all.extend(&args[1..]);
        if ["create", "restore"].contains(&args[0]) {
            all.extend(["--router", self.server.url()]);
        }
        run(BINARY, all, "")
    }

    /// What it prints as JSON.
    fn done(&self, args: &[&str]) -> Value {
        let output = self.backup(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", log(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The exit code, and what it says.
    fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.backup(args);
        (output.status.code().unwrap(), log(&output))
    }

    /// What another command prints.
    fn expect(&self, args: &[&str]) -> String {
        crate::simshard(&self.server, args, "")
    }

    fn documents(&self, corpus: &str) -> String {
        self.expect(&["corpus", "scan", corpus])
    }

    /// The files of segments, by their names.
    fn segments(&self) -> Vec<PathBuf> {
        let mut segments = files(&self.place().join("segments"));
        segments.retain(|path| path.extension().is_some_and(|ending| ending == "zst"));
        segments.sort();
        segments
    }

    fn bytes(&self) -> u64 {
        let sizes = files(&self.place()).into_iter();
        sizes.map(|path| fs::metadata(path).unwrap().len()).sum()
    }

    /// A command on backups that may be killed.
    fn start(&self, args: &[&str]) -> Running {
        let place = self.place();
        let all = [
            "backup",
            args[0],
            place.to_str().unwrap(),
            "--router",
            self.server.url(),
        ];
        Running::start(BINARY, [&all, &args[1..]].concat())
    }
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    paths.flat_map(below).collect()
}

/// BK1, BK4: what is restored is what was there, in the same cluster and in another one.
#[test]
fn a_corpus_comes_back_as_it_was() {
    let scene = Scene::with(DOCUMENTS);
    scene.expect(&["corpus", "create", "empty", "--blocks", "4"]);
    let made = scene.done(&["create"]);
    assert_eq!(made["documents"], DOCUMENTS);
    assert_eq!(
        made["corpora"],
        serde_json::json!(["default", "empty", "pages"])
    );
    assert!(scene.segments().len() > 1);
    let before = scene.documents("pages");
    assert_eq!(before.lines().count() as u64, DOCUMENTS + 1);
    assert_eq!(scene.done(&["verify"])["documents"], DOCUMENTS);

    let restored = scene.done(&["restore", "--corpus", "pages", "--as", "copy"]);
    assert_eq!(
        (&restored["inserted"], &restored["there"]),
        (&DOCUMENTS.into(), &0.into())
    );
    assert_eq!(restored["verified"], true);
    assert_eq!(scene.documents("copy"), before);

    let corpora = scene.expect(&["corpus", "list"]).replace("copy", "");
    let other = Scene {
        server: embedded(),
        folder: scene.folder,
    };
    let id = made["id"].as_str().unwrap();
    assert!(other.backup(&["restore", id]).status.success());
    assert_eq!(other.documents("pages"), before);
    for line in other.expect(&["corpus", "list"]).lines() {
        assert!(corpora.contains(line), "{line} of {corpora}");
    }
}

/// BK2: what has not changed is not stored again.
#[test]
fn a_backup_stores_what_has_changed() {
    let scene = Scene::with(DOCUMENTS);
    let first = scene.done(&["create"]);
    assert_eq!(first["new_segments"], scene.segments().len());
    let bytes = scene.bytes();
    let second = scene.done(&["create"]);
    assert_eq!(
        (&second["new_segments"], &second["new_bytes"]),
        (&0.into(), &0.into())
    );
    assert!(scene.bytes() - bytes < bytes / 100);

    scene.insert(DOCUMENTS..DOCUMENTS + 1);
    let third = scene.done(&["create", "--corpus", "pages"]);
    assert_eq!(third["documents"], DOCUMENTS + 1);
    let new = third["new_segments"].as_u64().unwrap();
    assert!((1..=2).contains(&new), "{new}");
    let listed = String::from_utf8(scene.backup(&["list"]).stdout).unwrap();
    let ids: Vec<_> = listed
        .lines()
        .skip(1)
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(ids.len(), 3);
    for (id, documents) in [(ids[0], DOCUMENTS), (ids[2], DOCUMENTS + 1)] {
        assert_eq!(scene.done(&["verify", id])["documents"], documents);
    }
}

/// BK3: whatever ends a backup or a restore, the next one completes it.
#[tokio::test]
async fn what_is_cut_short_is_completed_by_the_next() {
    let scene = Scene::with(DOCUMENTS);
    let before = scene.documents("pages");
    // It waits for a second after each megabyte, and is killed meanwhile.
    let mut creating = scene.start(&["create", "--rate", "1"]);
    until("a segment is stored", async || !scene.segments().is_empty()).await;
    assert!(!creating.has_ended());
    drop(creating);
    assert_eq!(scene.refused(&["verify"]).0, 2);
    let kept = scene.segments().len() as u64;
    let made = scene.done(&["create"]);
    assert_eq!(
        made["new_segments"].as_u64().unwrap() + kept,
        scene.segments().len() as u64
    );
    scene.done(&["verify"]);

    scene.expect(&["corpus", "delete", "pages"]);
    let mut restoring = scene.start(&["restore", "--corpus", "pages", "--rate", "1"]);
    until("some documents are restored", async || {
        let shown = run(
            BINARY,
            [
                "corpus",
                "show",
                "pages",
                "--json",
                "--router",
                scene.server.url(),
            ],
            "",
        );
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        shown["document_count"].as_u64() > Some(0)
    })
    .await;
    assert!(!restoring.has_ended());
    drop(restoring);
    let (code, says) = scene.refused(&["restore", "--corpus", "pages"]);
    assert_eq!(code, 2);
    assert!(says.contains("give --continue"), "{says}");
    let restored = scene.done(&["restore", "--corpus", "pages", "--continue"]);
    let inserted = restored["inserted"].as_u64().unwrap();
    assert!(inserted < DOCUMENTS, "{inserted}");
    assert_eq!(inserted + restored["there"].as_u64().unwrap(), DOCUMENTS);
    assert_eq!(scene.documents("pages"), before);
}

/// BK2, BK3: several operators may back up into one place at once.
#[test]
fn backups_that_are_made_at_once_are_all_whole() {
    let scene = Scene::with(DOCUMENTS / 4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| scene.done(&["create"]));
        }
    });
    let listed = String::from_utf8(scene.backup(&["list"]).stdout).unwrap();
    let ids: Vec<_> = listed
        .lines()
        .skip(1)
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(ids.len(), 3, "{listed}");
    for id in ids {
        assert_eq!(scene.done(&["verify", id])["documents"], DOCUMENTS / 4);
    }
}

/// BK5: damage is seen, and a new backup mends it.
#[test]
fn a_damaged_segment_is_named_and_written_anew() {
    let scene = Scene::with(DOCUMENTS);
    scene.done(&["create"]);
    let whole = scene.segments();
    for damage in [
        |bytes: &mut Vec<u8>| bytes[100] ^= 1,
        |bytes: &mut Vec<u8>| bytes.truncate(50),
        Vec::clear,
    ] {
        let segment = &whole[0];
        let mut bytes = fs::read(segment).unwrap();
        damage(&mut bytes);
        fs::write(segment, bytes).unwrap();
        let (code, says) = scene.refused(&["verify"]);
        let name = segment.file_name().unwrap().to_str().unwrap();
        assert_eq!(code, 1);
        assert!(
            says.contains("is damaged: remove segments/") && says.contains(name),
            "{says}"
        );
        assert_eq!(
            scene
                .refused(&["restore", "--corpus", "pages", "--as", "copy"])
                .0,
            1
        );
        fs::remove_file(segment).unwrap();
        let (code, says) = scene.refused(&["verify"]);
        assert_eq!(code, 1);
        assert!(says.contains("cannot read a segment"), "{says}");
        assert_eq!(scene.done(&["create"])["new_segments"], 1);
        scene.done(&["verify"]);
        scene.expect(&["corpus", "delete", "copy"]);
    }
}

/// BK5: a manifest that is damaged, or of another version, is no backup.
#[test]
fn a_manifest_that_cannot_be_read_is_named() {
    let scene = Scene::with(10);
    let id = scene.done(&["create"])["id"].as_str().unwrap().to_owned();
    let manifest = scene.place().join("backups").join(format!("{id}.json"));
    let text = fs::read_to_string(&manifest).unwrap();
    for (wrong, code, part) in [
        (text[..text.len() / 2].to_owned(), 1, "is damaged"),
        (
            text.replace("\"format\": 1", "\"format\": 2"),
            2,
            "take a newer one",
        ),
        (
            text.replace("\"documents\": 10", "\"documents\": 9"),
            1,
            "not those that its manifest tells of",
        ),
        (text.replace("\"blocks\"", "\"block\""), 1, "is damaged"),
    ] {
        assert_ne!(wrong, text);
        fs::write(&manifest, wrong).unwrap();
        let (found, says) = scene.refused(&["verify", &id]);
        assert_eq!((found, says.contains(part)), (code, true), "{says}");
        assert!(says.contains(&id), "{says}");
    }
    // BK5: it hides no other one.
    let second = scene.done(&["create"])["id"].as_str().unwrap().to_owned();
    let listed = scene.backup(&["list"]);
    assert_eq!(listed.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(shown.contains(&second) && !shown.contains(&id), "{shown}");
    assert!(log(&listed).contains(&id), "{}", log(&listed));
}

/// BK4: a restore does not mix its documents with others.
#[test]
fn what_a_restore_would_spoil_is_refused() {
    let scene = Scene::with(10);
    scene.done(&["create"]);
    let refused = |args: &[&str], part: &str| {
        let (code, says) = scene.refused(args);
        assert_eq!((code, says.contains(part)), (2, true), "{args:?}: {says}");
    };
    refused(
        &["restore", "--corpus", "pages"],
        "corpus pages has 10 documents: give --continue",
    );
    refused(&["restore", "--corpus", "nowhere"], "has no corpus nowhere");
    refused(&["restore", "--as", "copy"], "--as names one corpus");
    refused(
        &["restore", "20261201T000000Z-abcd"],
        "there is no backup 20261201T000000Z-abcd",
    );
    refused(
        &["create", "--corpus", "nowhere"],
        "the cluster has no corpus nowhere",
    );
    scene.expect(&["corpus", "create", "other", "--distance", "3"]);
    refused(
        &["restore", "--corpus", "pages", "--as", "other"],
        "with other blocks",
    );

    scene.insert(10..11);
    let (code, says) = scene.refused(&["restore", "--corpus", "pages", "--continue"]);
    assert_eq!(code, 1);
    assert!(says.contains("1 of 1 segments differ"), "{says}");
}

#[test]
fn a_place_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (place, part) in [
        (
            "ftp://host/backups",
            "ftp:// is not known: give a folder, or s3://BUCKET/PREFIX",
        ),
        (file.to_str().unwrap(), "is no place for backups"),
        ("nowhere/at/all", "there is no such folder"),
    ] {
        let output = run(BINARY, ["backup", "list", place], "");
        let says = log(&output);
        assert_eq!(
            (output.status.code(), says.contains(part)),
            (Some(2), true),
            "{says}"
        );
    }
    let output = run(
        BINARY,
        ["backup", "verify", folder.path().to_str().unwrap()],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(log(&output).contains("there is no backup at "));
}
