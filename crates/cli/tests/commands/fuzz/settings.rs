//! The TOML files: settings of the roles, the layout of a cluster, and its corpora.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize;
use simshard_cluster::{FileStore, MetadataError, MetadataStore};
use simshard_runtime::config::{self, ConfigError};
use tokio::runtime::{Builder, Runtime};

use super::splice::{Bytes, spliced};
use super::{assert_printable, cases};

/// Makes some bytes the content of a file. A file system takes its time over one that is emptied
/// first, or made anew, a million times.
fn rewrite(mut file: &File, bytes: &[u8]) {
    file.rewind().unwrap();
    file.write_all(bytes).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
}

/// Settings of every type that the roles have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only read")]
struct Settings {
    cluster: Option<PathBuf>,
    name: Option<String>,
    listen: Option<SocketAddr>,
    threads: Option<u16>,
    drain_seconds: Option<u32>,
    http: Option<SocketAddr>,
}

/// What TOML is made of.
const TOML: [&str; 34] = [
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "=",
    " = ",
    ".",
    ",",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "\\",
    "\\u00",
    "\"\\ud800\"",
    "# é\n",
    "\u{FEFF}",
    "\0",
    "é",
    "true",
    "nan",
    "1_0",
    "0x7F",
    "1979-05-27T07:32:00Z",
    "-0",
    "😀",
];

const SETTINGS: [&str; 12] = [
    "cluster = \"cluster.toml\"\n",
    "name = 'n1'\n",
    "listen = \"127.0.0.1:7470\"\n",
    "threads = 8\n",
    "threads = 65536\n",
    "drain_seconds = 10\n",
    "http = \"127.0.0.1:7471\"\n",
    "http = 7471\n",
    "drain_seconds = -1\n",
    "listen = ",
    "name",
    "lisen = 1\n",
];

const LAYOUT: [&str; 16] = [
    "[[nodes]]\nname = \"n1\"\naddress = \"http://127.0.0.1:7470\"\n",
    "[[nodes]]\nname = \"n2\"\naddress = \"http://n2.lan:7472\"\n",
    "[[nodes]]\nname = \"n3\"\naddress = \"http://[::1]:7474\"\n",
    "[[nodes]]\n",
    "[nodes]\n",
    "nodes = []\n",
    "name = \"n4\"\n",
    "name = \"\"\n",
    "address = \"http://h:1\"\n",
    "address = \"http://h:65536\"\n",
    "address = \"https://h:1\"\n",
    "http://",
    "@",
    ":",
    "[::",
    "%",
];

const CORPORA: [&str; 17] = [
    "# The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.\n\n",
    "version = 2\nchecksum = \"",
    "revision = 1\n",
    "state = \"creating\"\n",
    "state = \"deleting\"\n",
    "version = 1\ncorpus_count = 1\n\n[[corpora]]\nname = \"default\"\n\
     uid = \"67e55044-10b1-426f-9247-bb680e5fe0c8\"\nblocks = 5\ndistance = 3\n\
     recipe = \"words-v1\"\ncreate_time_seconds = 1700000000\ncreate_time_nanos = 123456789\n",
    "version = 1\ncorpus_count = 0\n",
    "version = 1\n",
    "version = 2\n",
    "corpus_count = 1\n",
    "corpus_count = 2\n",
    "[[corpora]]\n",
    "name = \"b\"\n",
    "uid = \"0\"\n",
    "blocks = 4294967296\n",
    "create_time_seconds = -9223372036854775808\n",
    "create_time_nanos = 1000000000\n",
];

/// The most pieces of a file.
const MOST_PIECES: usize = 8;

fn pieces(own: &[&str]) -> Vec<Vec<u8>> {
    let texts = [own, own, own, &TOML].concat();
    let mut pieces: Vec<_> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    pieces.push(b"\xFF".to_vec());
    pieces
}

/// Does `examine` with what a file holds, rewritten for each case.
fn each_file(path: &Path, own: &[&str], examine: impl Fn(&[u8])) {
    let file = File::create(path).unwrap();
    proptest!(cases(), |(Bytes(bytes) in spliced(pieces(own), MOST_PIECES))| {
        rewrite(&file, &bytes);
        examine(&bytes);
    });
}

/// Checks that a place from 1 lies in a text, or at its end.
fn assert_inside(bytes: &[u8], line: usize, column: usize) {
    // What is no UTF-8 is as many characters here, from its place on.
    let text = String::from_utf8_lossy(bytes);
    let line = text.split('\n').nth(line.checked_sub(1).unwrap()).unwrap();
    assert!(
        (1..=line.chars().count() + 1).contains(&column),
        "column {column}"
    );
}

#[test]
fn settings_of_roles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.toml");
    each_file(&path, &SETTINGS, |bytes| {
        match config::load::<Settings>(&path) {
            Ok(_) => {}
            Err(ConfigError::Malformed { mistake, .. }) => {
                assert_inside(bytes, mistake.line, mistake.column);
                assert_printable(&mistake.message);
            }
            Err(ConfigError::Unreadable { .. }) => assert!(std::str::from_utf8(bytes).is_err()),
        }
    });
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn examine(bytes: &[u8], error: &MetadataError) {
    match error {
        MetadataError::MalformedLayout { mistake, .. }
        | MetadataError::CorruptCorpora {
            damage: mistake, ..
        } => {
            assert_inside(bytes, mistake.line, mistake.column);
            assert_printable(&mistake.message);
        }
        MetadataError::UnusableLayout { problem, .. } => assert_printable(&problem.to_string()),
        MetadataError::UnknownCorporaVersion { found, .. } => assert!(!(1..=2).contains(found)),
        MetadataError::Unreadable { .. } => assert!(std::str::from_utf8(bytes).is_err()),
        MetadataError::AlreadyExists { .. }
        | MetadataError::UidTaken { .. }
        | MetadataError::TooMany { .. }
        | MetadataError::NotFound { .. }
        | MetadataError::NotDeleting { .. }
        | MetadataError::Unwritable { .. }
        | MetadataError::NotDurable { .. }
        | MetadataError::KeyValues(_)
        | MetadataError::BadRecord { .. }
        | MetadataError::NoCluster
        | MetadataError::EmptiedStore { .. }
        | MetadataError::NotHeld { .. }
        | MetadataError::NoneBegins { .. }
        | MetadataError::PartnersAbsent { .. }
        | MetadataError::OtherStore { .. }
        | MetadataError::StoreHolds { .. }
        | MetadataError::AlreadyInitialized
        | MetadataError::BadTarget { .. }
        | MetadataError::StillHolds { .. }
        | MetadataError::NotRegistered { .. }
        | MetadataError::UnknownLevel { .. }
        | MetadataError::LevelTooLow { .. }
        | MetadataError::LevelNotKnown { .. }
        | MetadataError::Raced
        | MetadataError::OtherCorpora
        | MetadataError::OtherName { .. }
        | MetadataError::UnusableRecords(_)
        | MetadataError::Stopping => panic!("nothing was changed: {error}"),
    }
}

#[test]
fn cluster_layouts() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.toml");
    each_file(&path, &LAYOUT, |bytes| {
        match runtime.block_on(FileStore::open(&path)) {
            Ok(store) => {
                let layout = runtime.block_on(store.layout()).unwrap();
                assert!(!layout.nodes().is_empty());
            }
            Err(error) => examine(bytes, &error),
        }
    });
}

#[test]
fn cluster_corpora() {
    let runtime = runtime();
    let beside = tempfile::tempdir().unwrap();
    let layout = beside.path().join("cluster.toml");
    fs::write(&layout, LAYOUT[0]).unwrap();
    // It reads the corpora, which are beside the layout, whenever it is asked for them.
    let store = runtime.block_on(FileStore::open(layout)).unwrap();
    let corpora = beside.path().join("cluster.corpora.toml");
    each_file(&corpora, &CORPORA, |bytes| {
        match runtime.block_on(store.corpora()) {
            Ok(corpora) => assert!(corpora.len() <= MOST_PIECES),
            Err(error) => examine(bytes, &error),
        }
    });
}
