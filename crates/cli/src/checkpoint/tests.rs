//! What checkpoints say, what they match, and what becomes of their file.

use std::fs;
use std::path::{Path, PathBuf};

use simshard_input::{Format, InputOptions, Needs};
use tempfile::TempDir;

use super::*;

/// A folder with an input and the place for a checkpoint.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.tsv"), "a\t1\nb\t2\n").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn subject(&self) -> Subject {
        let args = InputOptions {
            format: Some(Format::Tsv),
            ..InputOptions::walking(vec![self.path("a.tsv")])
        };
        Subject {
            corpus: CorpusIdentity {
                name: "default".to_owned(),
                create_time: "2026-01-01T00:00:00.000000001Z".to_owned(),
            },
            input: InputIdentity::of(&args, Needs::CLIENT).unwrap(),
        }
    }

    fn open(&self, subject: Subject) -> Result<CheckpointFile, CheckpointError> {
        CheckpointFile::open(&self.path("c"), subject, &[self.path("a.tsv")])
    }
}

fn position(documents: u64) -> Position {
    let mut digest = Digest::default();
    digest.add(&documents.to_le_bytes());
    Position { documents, digest }
}

/// What the file says; nothing if there is none.
fn on_disk(path: &Path) -> Option<Checkpoint> {
    let bytes = fs::read(path).ok()?;
    Some(Checkpoint::parse(&bytes).unwrap())
}

#[test]
fn a_checkpoint_is_json_that_is_read_back() {
    let checkpoint = Checkpoint {
        position: position(7),
        complete: true,
        ..Checkpoint::new(Scene::new().subject())
    };
    let bytes = checkpoint.to_json().unwrap();
    assert_eq!(Checkpoint::parse(&bytes).unwrap(), checkpoint);
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["documents"], 7);
    assert_eq!(json["corpus"]["name"], "default");
    assert_eq!(json["input"]["format"], "tsv");
}

/// CP3
#[test]
fn what_is_no_checkpoint_is_refused_and_not_touched() {
    let scene = Scene::new();
    let whole = Checkpoint::new(scene.subject()).to_json().unwrap();
    let mut bad: Vec<(Vec<u8>, &str)> = Vec::new();
    // Its last byte is the end of the last line.
    for length in 0..whole.len() - 1 {
        bad.push((whole[..length].to_vec(), "damaged"));
    }
    let text = String::from_utf8(whole).unwrap();
    for (this, that, reason) in [
        ("\"version\": 1", "\"version\": 2", "of version 2"),
        ("\"documents\": 0", "\"documents\": -1", "damaged"),
        ("\"complete\"", "\"finished\"", "damaged"),
        ("\"version\"", "\"future\": 0, \"version\"", "damaged"),
    ] {
        assert!(text.contains(this));
        bad.push((text.replace(this, that).into_bytes(), reason));
    }
    for (bytes, reason) in bad {
        fs::write(scene.path("c"), &bytes).unwrap();
        let error = scene.open(scene.subject()).unwrap_err();
        assert!(error.is_bad_argument());
        let message = error.to_string();
        assert!(
            message.contains(reason) && message.contains("delete it"),
            "{message}"
        );
        assert_eq!(fs::read(scene.path("c")).unwrap(), bytes);
    }
}

/// CP2
#[test]
fn a_checkpoint_of_another_load_is_refused_by_what_differs() {
    let scene = Scene::new();
    scene.open(scene.subject()).unwrap().write().unwrap();
    let with_corpus = |name: &str, create_time: &str| Subject {
        corpus: CorpusIdentity {
            name: name.to_owned(),
            create_time: create_time.to_owned(),
        },
        ..scene.subject()
    };
    let time = scene.subject().corpus.create_time;
    let later = time.replace("01Z", "02Z");
    for (subject, shown) in [
        (
            with_corpus("other", &time),
            "corpus default then, other now".to_owned(),
        ),
        (
            with_corpus("default", &later),
            format!("corpus default of {time} then, created anew at {later}"),
        ),
    ] {
        let message = scene.open(subject).unwrap_err().to_string();
        assert!(
            message.contains(&shown) && message.contains("delete it"),
            "{message}"
        );
    }
    fs::write(scene.path("a.tsv"), "a\t1\nb\t2\nc\t3\n").unwrap();
    let message = scene.open(scene.subject()).unwrap_err().to_string();
    assert!(message.contains("bytes 8 then, 12 now"), "{message}");
}

/// CP2
#[test]
fn it_goes_on_only_from_the_documents_that_it_counts() {
    let scene = Scene::new();
    let mut checkpoint = scene.open(scene.subject()).unwrap();
    checkpoint.go_on_from(Position::default()).unwrap();
    checkpoint.advance(position(5)).unwrap();
    let checkpoint = scene.open(scene.subject()).unwrap();
    assert_eq!(checkpoint.documents(), 5);
    checkpoint.go_on_from(position(5)).unwrap();
    let others = Position {
        digest: position(6).digest,
        ..position(5)
    };
    for position in [position(4), others] {
        let error = checkpoint.go_on_from(position).unwrap_err();
        assert!(matches!(
            error,
            CheckpointError::OtherDocuments { documents: 5, .. }
        ));
    }
}

/// CP1: it counts what it was told and, at once or a moment later, no less.
#[test]
fn the_first_advance_is_written_at_once_and_the_last_when_asked_for() {
    let scene = Scene::new();
    let mut checkpoint = scene.open(scene.subject()).unwrap();
    assert_eq!(
        on_disk(&scene.path("c")),
        None,
        "nothing is written before it is checked"
    );
    checkpoint.go_on_from(Position::default()).unwrap();
    let documents = || on_disk(&scene.path("c")).unwrap().position.documents;
    assert_eq!(documents(), 0);
    checkpoint.advance(position(5)).unwrap();
    assert_eq!(documents(), 5);
    for count in 6..=60 {
        checkpoint.advance(position(count)).unwrap();
    }
    assert!(
        documents() < 60,
        "not each of them is worth a sync of the disk"
    );
    checkpoint.write().unwrap();
    assert_eq!(documents(), 60);
    assert!(!on_disk(&scene.path("c")).unwrap().complete);
    checkpoint.complete().unwrap();
    assert!(scene.open(scene.subject()).unwrap().is_complete());
}

/// CP4
#[test]
fn the_file_is_replaced_and_nothing_else_stays_beside_it() {
    let scene = Scene::new();
    let mut checkpoint = scene.open(scene.subject()).unwrap();
    checkpoint.write().unwrap();
    // A reader that has the old file open keeps its complete content.
    let mut reader = fs::File::open(scene.path("c")).unwrap();
    checkpoint.advance(position(9)).unwrap();
    let mut old = String::new();
    std::io::Read::read_to_string(&mut reader, &mut old).unwrap();
    assert!(old.contains("\"documents\": 0"), "{old}");
    assert_eq!(on_disk(&scene.path("c")).unwrap().position, position(9));
    assert_eq!(fs::read_dir(scene.folder.path()).unwrap().count(), 2);
}

#[test]
fn a_place_that_cannot_hold_it_is_refused_before_anything_is_done() {
    let scene = Scene::new();
    let folder = scene.folder.path().to_owned();
    for (path, inputs, shown) in [
        (scene.path("a.tsv"), scene.path("a.tsv"), "is the input"),
        (scene.path("c"), folder.clone(), "is in the folder"),
        (
            scene.path("none/c"),
            scene.path("a.tsv"),
            "there is no folder",
        ),
        (folder, scene.path("a.tsv"), "it is no file"),
        (
            PathBuf::from("/dev/stdout"),
            scene.path("a.tsv"),
            "it is no file",
        ),
    ] {
        let error = CheckpointFile::open(&path, scene.subject(), &[inputs]).unwrap_err();
        let error = anyhow::Error::from(error);
        assert_eq!(crate::exit::code(&error), Some(crate::exit::BAD_INPUT));
        let message = format!("{error:#}");
        assert!(message.contains(shown), "{message}");
    }
}
