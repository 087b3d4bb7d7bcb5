//! A store that may open no more files, in a process of its own.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Fixture, change, fingerprint, insert, owned};
use crate::element::{ChangeKind, Operation};
use crate::shortage::Shortage;
use crate::tests::alone;
use crate::writer::Refusal;

const PATIENCE: Duration = Duration::from_secs(60);

/// Lets this process open no more files than it has; how many it might before.
fn no_more_files() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    // The lowest number that is free.
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let current = Some(u64::try_from(next).unwrap());
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
    let error = File::open("/dev/null").unwrap_err();
    assert_eq!(Shortage::of(&error), Some(Shortage::Files));
    before
}

/// Inserts documents of a version, unless that is refused.
fn try_insert(fixture: &Fixture, version: u64) -> Result<(), Refusal> {
    let ids: Vec<String> = (0..50)
        .map(|number| format!("{version}-{number}"))
        .collect();
    let documents = (0..).map(|number| fingerprint(50 * version + number));
    let documents: Vec<(u64, &str)> = documents.zip(ids.iter().map(String::as_str)).collect();
    let (ticket, outcome) = channel();
    let insert = Operation::Change(change(ChangeKind::Insert, version, &documents));
    fixture.writer.append(insert, ticket)?;
    let outcome = outcome.recv_timeout(PATIENCE);
    outcome.expect("an answer").map(drop)
}

/// ST1, ST4.
#[test]
fn a_store_out_of_file_descriptors_refuses_inserts_and_goes_on_once_there_are_some() {
    let name = "store::tests::shortage::\
                a_store_out_of_file_descriptors_refuses_inserts_and_goes_on_once_there_are_some";
    let output = alone(name, || {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Fixture::open(directory.path());
        fixture.create();
        insert(&fixture, 1, &[(7, "before")]);
        let before = no_more_files();
        let mut versions = 2..10_000;
        let refused = versions.find_map(|version| try_insert(&fixture, version).err());
        assert_eq!(refused, Some(Refusal::Shortage(Shortage::Files)));
        let contents = fixture.contents();
        assert!(contents.len() > 50, "{}", contents.len());

        setrlimit(Resource::Nofile, before).unwrap();
        let start = Instant::now();
        while let Err(refusal) = try_insert(&fixture, 10_000) {
            assert_eq!(refusal, Refusal::Shortage(Shortage::Files));
            assert!(start.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        let contents = fixture.contents();
        drop(fixture);
        assert!(!directory.path().join("FAILED").exists());
        assert_eq!(Fixture::open(directory.path()).contents(), contents);
        println!("the store of {} went on", owned());
    });
    if let Some(output) = output {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(text.contains("went on"), "{text}");
    }
}
