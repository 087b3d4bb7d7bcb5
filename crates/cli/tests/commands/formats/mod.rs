//! Documents in the formats that others keep them in, through whole processes: WET and WARC, real
//! documents in JSONL, and Parquet, in and out; what `hash` and `text` write, read again; and the names
//! of columns.

mod columns;
mod hash;
mod html;
#[cfg(feature = "parquet")]
mod parquet;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use simshard_simhash::{Fingerprint, TextRecipe};
use simshard_testkit::run;
use tempfile::TempDir;

use crate::{BINARY, log, said};

/// A document's id, its fingerprint, and the cluster that it belongs to.
type Member = (String, u64, u64);

/// Runs a command that must end well, and returns what it printed.
fn succeed(args: &[&str], input: &[u8]) -> String {
    let output = run(BINARY, args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", log(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A folder that holds one test's files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of a file, which need not be there.
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Runs `find-clusters` on bad input: it must say so, and leave no output. That is elsewhere, for
    /// the folder itself may be read.
    fn refuse(&self, args: &[&str], stdin: &[u8], expected: &str) {
        let elsewhere = Self::new();
        let out = elsewhere.path("refused.tsv");
        let output = run(
            BINARY,
            [&["find-clusters", "-o", &out], args].concat(),
            stdin,
        );
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
        assert!(
            log(&output).contains(expected),
            "{expected}: {}",
            log(&output)
        );
        assert_eq!(log(&output).lines().count(), 1, "{}", log(&output));
        assert!(output.stdout.is_empty() && !Path::new(&out).exists());
    }
}

/// The members in TSV, in their order.
fn members(tsv: &str) -> Vec<Member> {
    let mut lines = tsv.lines();
    assert_eq!(lines.next(), Some("id\thash\tcluster"));
    let member = |line: &str| {
        let [id, hash, cluster] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        (
            id.to_owned(),
            hash.parse().unwrap(),
            cluster.parse().unwrap(),
        )
    };
    lines.map(member).collect()
}

fn record(kind: &str, uri: &str, content_type: &str, block: impl AsRef<[u8]>) -> Vec<u8> {
    let block = block.as_ref();
    let header = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        block.len()
    );
    [header.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// A text as WET files have it.
fn page(uri: &str, text: &str) -> Vec<u8> {
    record("conversion", uri, "text/plain", text)
}

/// A page as WARC files have it.
fn response(uri: &str, media_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let header = format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n\r\n");
    let http = [header.as_bytes(), body.as_ref()].concat();
    record("response", uri, "application/http; msgtype=response", http)
}

/// Each record in a gzip member of its own, as crawls have it.
fn gzip(records: &[Vec<u8>]) -> Vec<u8> {
    let members = records.iter().flat_map(|record| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(record).unwrap();
        encoder.finish().unwrap()
    });
    members.collect()
}

const FOX: &str = "the quick brown fox jumps over the lazy dog and runs off into the wood";

/// The fingerprint of a text by the usual recipe.
fn fingerprint(text: &str) -> u64 {
    TextRecipe::default().fingerprint(text).unwrap().0
}

#[test]
fn a_crawls_texts_are_clustered_into_a_table() {
    let folder = Folder::new();
    let records = [
        record(
            "warcinfo",
            "x",
            "application/warc-fields",
            "software: none\r\n",
        ),
        page("http://b/", FOX),
        page("http://c/", "something else altogether, of other words"),
        page("http://a/?q=å", FOX),
    ];
    let wet = folder.write("CC-MAIN-2024-00000.warc.wet.gz", &gzip(&records));
    let out = folder.path("clusters.tsv");
    assert_eq!(succeed(&["find-clusters", &wet, "-o", &out], b""), "");
    let fox = fingerprint(FOX);
    let expected = [
        ("http://b/".to_owned(), fox, fox),
        ("http://a/?q=å".to_owned(), fox, fox),
    ];
    assert_eq!(members(&fs::read_to_string(out).unwrap()), expected);
}

#[test]
fn the_plain_texts_of_a_crawl_are_hashed_and_the_rest_is_counted() {
    let warc = [
        response("http://a/", "text/plain; charset=utf-8", FOX),
        response("http://b/", "image/png", "PNG"),
        response("http://c/", "text/plain", "a dog"),
    ];
    for args in [["--format", "warc"], ["--format", "wet"]] {
        let output = run(BINARY, [&["hash"], &args[..]].concat(), warc.concat());
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
        let expected = format!(
            "id\thash\nhttp://a/\t{}\nhttp://c/\t{}\n",
            fingerprint(FOX),
            fingerprint("a dog")
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert_eq!(said(&output), "skipped 1 other record (image/png: 1)\n");
    }
}

#[test]
fn a_folder_of_a_crawl_is_refused_with_the_pattern_that_reads_it() {
    let folder = Folder::new();
    let line = json!({"id": "a", "text": FOX}).to_string() + "\n";
    folder.write("a.txt", FOX.as_bytes());
    folder.write("crawl.jsonl.gz", &gzip(&[line.clone().into_bytes()]));
    let path = folder.path("");
    let pattern = folder.path("*.jsonl.gz");
    let expected = format!(
        "crawl.jsonl.gz looks like jsonl, and of a folder each file is read as one document: name '{pattern}'"
    );
    folder.refuse(&[&path], b"", &expected);
    let found = succeed(&["find-clusters", "--singletons", &pattern], b"");
    assert_eq!(found, "[\"a\"]\n");

    let large = line.repeat((8 << 20) / line.len() + 1);
    folder.write("crawl.jsonl.gz", large.as_bytes());
    let files = ["find-clusters", "--format", "files", "--singletons", &path];
    let output = run(BINARY, files, b"");
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    assert_eq!(said(&output), "skipped 1 too large file\n");
    fs::remove_file(folder.path("a.txt")).unwrap();
    let expected = "none of the files is a document, a text of at most 8388608 bytes: \
                    skipped 1 too large file";
    folder.refuse(&["--format", "files", &path], b"", expected);
}

#[test]
fn a_crawl_that_cannot_be_used_is_told_by_file_and_record() {
    let folder = Folder::new();
    let records = [page("http://a/", FOX), page("http://b/", FOX)];
    let zipped = gzip(&records);
    let image = response("http://a/", "image/png", "PNG");
    let plain = records.concat();
    let second = plain.len() / 2;
    let cut = format!("cut.wet: record 2 at byte {second}: the file ends within it");
    let long = page(&"x".repeat(2000), FOX);
    for (name, content, expected) in [
        (
            "cut.warc.wet.gz",
            &zipped[..zipped.len() - 40],
            "cut.warc.wet.gz: record 2 at byte 183: cannot read on: the gzip data ends too early",
        ),
        ("cut.wet", &plain[..plain.len() - 10], &cut),
        (
            "image.warc",
            &image,
            "no record of the input holds a text: image/png: 1;",
        ),
        ("long.wet", &long, "long.wet: record 1 at byte 0: the id "),
        (
            "none.warc",
            b"none\n",
            "none.warc: record 1 at byte 0: \"none\" is no beginning",
        ),
    ] {
        folder.refuse(&[&folder.write(name, content)], b"", expected);
    }
    folder.refuse(
        &["--format", "warc"],
        &image,
        "no record of the input holds a text: image/png: 1;",
    );
    let good = folder.write("good.wet", &plain);
    let field = ["--text-field", "body", &good];
    folder.refuse(
        &field,
        b"",
        "--text-field belongs to --format jsonl, csv, parquet or arrow",
    );
    let tsv = folder.write("good.tsv", b"a\t1\n");
    folder.refuse(&[&good, &tsv], b"", "say with --format what they all are");
}

/// The project's own documents by their paths.
fn own_documents() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut waiting: Vec<PathBuf> = ["README.md", "crates", "docs", "tests", "xtask"]
        .map(|name| root.join(name))
        .to_vec();
    let mut documents = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            waiting.extend(entries.map(|entry| entry.unwrap().path()));
            continue;
        }
        if path
            .extension()
            .is_some_and(|name| name == "rs" || name == "md")
        {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            documents.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
    documents
}

/// Those documents and an edited copy of each, one a line.
fn own_documents_in_jsonl() -> (Vec<u8>, BTreeMap<String, u64>) {
    let mut lines = Vec::new();
    let mut fingerprints = BTreeMap::new();
    for (name, text) in own_documents() {
        let copy = format!("{text}\nOne line more.\n");
        for (path, body) in [(name.clone(), text), (format!("copy/{name}"), copy)] {
            writeln!(lines, "{}", json!({"path": path, "body": body})).unwrap();
            fingerprints.insert(path, fingerprint(&body));
        }
    }
    (lines, fingerprints)
}

/// The cluster of every document that has a near-duplicate, the slow and obvious way: each takes
/// the smallest label of those near it until nothing changes.
fn clusters(fingerprints: &BTreeMap<String, u64>, distance: u32) -> BTreeSet<Member> {
    let all: Vec<(&String, u64)> = fingerprints
        .iter()
        .map(|(id, print)| (id, *print))
        .collect();
    let near = |a: u64, b: u64| Fingerprint(a).distance(Fingerprint(b)) <= distance;
    let mut labels: Vec<u64> = all.iter().map(|document| document.1).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (place, document) in all.iter().enumerate() {
            let others = all.iter().zip(&labels);
            let close = others.filter(|(other, _)| near(document.1, other.1));
            let least = close.map(|(_, label)| *label).min().unwrap();
            changed |= least != labels[place];
            labels[place] = least;
        }
    }
    let has_company = |place: usize| {
        let document = all[place].1;
        all.iter().filter(|other| near(document, other.1)).count() > 1
    };
    let found = (0..all.len()).filter(|place| has_company(*place));
    found
        .map(|place| (all[place].0.clone(), all[place].1, labels[place]))
        .collect()
}

#[test]
fn real_documents_go_through_to_tables_and_a_page_in_one_command_each() {
    let folder = Folder::new();
    let (lines, fingerprints) = own_documents_in_jsonl();
    let documents = folder.write("documents.jsonl", &lines);
    let expected = clusters(&fingerprints, 3);
    assert!(fingerprints.len() > 200 && expected.len() > 100, "too few");
    let find = |output: [&str; 2], stdout: &str| {
        let fields = ["--id-field", "path", "--text-field", "body"];
        let args = [&["find-clusters", &documents], &fields[..], &output].concat();
        assert_eq!(succeed(&args, b""), stdout);
    };

    let tsv = folder.path("clusters.tsv");
    find(["-o", &tsv], "");
    let found = members(&fs::read_to_string(tsv).unwrap());
    assert_eq!(found.len(), expected.len());
    assert_eq!(BTreeSet::from_iter(found.clone()), expected);

    #[cfg(feature = "parquet")]
    {
        let table = folder.path("clusters.parquet");
        find(["-o", &table], "");
        assert_eq!(parquet::cluster_table(&table), found);
    }

    let page = folder.path("page.html");
    let json = succeed(
        &[
            "find-clusters",
            &documents,
            "--id-field",
            "path",
            "--text-field",
            "body",
            "--report",
            &page,
        ],
        b"",
    );
    let clusters: BTreeSet<u64> = expected.iter().map(|member| member.2).collect();
    assert_eq!(json.lines().count(), clusters.len());
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("documents.jsonl"), "{page}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_the_error_says_how_to_build_it() {
    let folder = Folder::new();
    let lines = folder.write("a.txt", b"a text\n");
    let table = folder.write("a.parquet", b"PAR1");
    let out = folder.path("out.parquet");
    for args in [
        &["hash", &table][..],
        &["hash", "--format", "parquet"],
        &["hash", &lines, "-o", &out],
        &["find-clusters", &table],
        &["find-clusters", &lines, "-o", &out],
        &["find-pairs", &lines, "--output-format", "parquet"],
    ] {
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
        let expected = "build it with `cargo build --release --features parquet`\n";
        assert!(
            log(&output).ends_with(expected),
            "{args:?}: {}",
            log(&output)
        );
        assert!(output.stdout.is_empty() && !Path::new(&out).exists());
    }
}
