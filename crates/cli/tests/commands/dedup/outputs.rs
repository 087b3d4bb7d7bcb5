//! Where `dedup` writes: files and folders, and the list of what was dropped.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use simshard_testkit::{block_until, run};

use super::{Folder, TEXTS, dedup, refuse};
use crate::{BINARY, log};

const FOX: &str = "{\"id\":\"fox\",\"text\":\"one two three four\"}\n";

/// Compresses with a program of Python, which has all codecs.
fn compressed(codec: &str, content: &str) -> Vec<u8> {
    let program = format!(
        "import sys,{codec}; sys.stdout.buffer.write({codec}.compress(sys.stdin.buffer.read()))"
    );
    let output = run("python3", ["-c", &program], content);
    assert!(output.status.success(), "{}", log(&output));
    output.stdout
}

/// A file, and a folder as the library `datasets` saves it.
#[test]
fn what_is_no_parquet_yet_is_refused_with_the_way_to_it() {
    let folder = Folder::new();
    let file = folder.write("in.feather", "ARROW1");
    for (name, content) in [
        ("saved/dataset_info.json", "{}"),
        (
            "saved/state.json",
            r#"{"_data_files": [{"filename": "data-1.arrow"}]}"#,
        ),
        ("saved/data-1.arrow", "ARROW1"),
    ] {
        folder.write(name, content);
    }
    let out = folder.path("out.arrow");
    for input in [file, folder.path("saved")] {
        let said = refuse(&[&input, "-o", &out], "");
        for part in ["write_table", "to_parquet", "--format parquet"] {
            assert!(said.contains(part), "{said}");
        }
    }
    assert_eq!(folder.names(), ["in.feather", "saved"]);
}

#[test]
fn what_is_only_read_is_recompressed_in_a_folder_where_that_is_asked_for() {
    let folder = Folder::new();
    let plain = folder.write("in/a.jsonl", FOX);
    let second = "{\"id\":\"dog\",\"text\":\"five six seven\"}\n";
    let bzip2 = folder.write(
        "in/b.jsonl.bz2",
        compressed("bz2", &(FOX.to_owned() + second)),
    );
    let xz = folder.write("in/c.jsonl.xz", compressed("lzma", second));
    let out = folder.path("out");
    let inputs = [&*plain, &bzip2, &xz, "-o", &out];
    let said = refuse(&inputs, "");
    assert!(said.contains("b.jsonl.bz2 would be bzip2: "), "{said}");
    assert!(
        said.contains("add --recompress gz or --recompress zst"),
        "{said}"
    );
    dedup(&[&inputs[..], &["--recompress", "zst"]].concat(), "");
    assert_eq!(folder.read("out/a.jsonl"), FOX);
    let again = folder.path("again.jsonl");
    for (name, expected) in [("b", second), ("c", "")] {
        dedup(
            &[&folder.path(&format!("out/{name}.jsonl.zst")), "-o", &again],
            "",
        );
        assert_eq!(folder.read("again.jsonl"), expected);
    }
    let gz = folder.write("in/b.jsonl.gz", "");
    let out = folder.path("other");
    let said = refuse(&[&bzip2, &gz, "-o", &out, "--recompress", "gz"], "");
    assert!(said.contains("would both be b.jsonl.gz"), "{said}");
    let said = refuse(&[&plain, "-o", &again, "--recompress", "gz"], "");
    assert!(said.contains("--recompress is for a folder"), "{said}");
}

#[test]
fn a_folder_gives_a_folder_whatever_it_holds() {
    let folder = Folder::new();
    folder.write("in/sub/a.jsonl", TEXTS);
    let (input, out) = (folder.path("in"), folder.path("out"));
    dedup(&[&input, "--format", "jsonl", "-o", &out], "");
    assert!(folder.read("out/sub/a.jsonl").contains("\"a\""));
    folder.write("in/sub/b.jsonl", TEXTS);
    let out = folder.path("two");
    dedup(&[&input, "--format", "jsonl", "-o", &out], "");
    assert_eq!(
        folder.read("two/sub/a.jsonl"),
        folder.read("out/sub/a.jsonl")
    );
    for out in ["-", &folder.path("out.jsonl"), &folder.write("file", "")] {
        let said = refuse(&[&input, "--format", "jsonl", "-o", out], "");
        assert!(said.contains("need a folder to go to"), "{said}");
    }
    assert_eq!(folder.names(), ["file", "in", "out", "two"]);
}

#[test]
fn the_list_and_a_folder_need_places_of_their_own() {
    let folder = Folder::new();
    let input = folder.write("in/a.jsonl", FOX);
    for (out, dropped) in [("out/", "out"), ("out", "in/../out")] {
        let (out, dropped) = (folder.path(out), folder.path(dropped));
        for input in [&*input, &folder.path("in")] {
            let args = [input, "-f", "jsonl", "-o", &out, "--dropped", &dropped];
            let said = refuse(&args, "");
            assert!(
                said.contains("--dropped and --output name the same file"),
                "{said}"
            );
            assert_eq!(folder.names(), ["in"]);
        }
    }
}

#[test]
fn the_list_tells_records_of_one_address_apart() {
    let folder = Folder::new();
    let record = |text: &str| {
        let length = text.len();
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: u\r\nContent-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
    };
    let records = ["one two three", "x y z", "one two three", "x y z"].map(record);
    let input = folder.write("in.warc", records.concat());
    let (out, dropped) = (folder.path("out.warc"), folder.path("dropped.tsv"));
    dedup(&[&input, "-o", &out, "--dropped", &dropped], "");
    let expected = "id\tkept\tdistance\tnumber\tkept_number\nu\tu\t0\t3\t1\nu\tu\t0\t4\t2\n";
    assert_eq!(folder.read("dropped.tsv"), expected);
}

#[test]
fn the_list_escapes_what_would_break_its_lines() {
    let folder = Folder::new();
    let ids = ["a\\tb", "c\\\\t\\nd", "e\\u0000\\r"];
    let line = |id| format!("{{\"id\":\"{id}\",\"text\":\"one two three\"}}\n");
    let input = folder.write("in.jsonl", ids.map(line).concat());
    let (out, dropped) = (folder.path("out.jsonl"), folder.path("dropped.tsv"));
    dedup(&[&input, "-o", &out, "--dropped", &dropped], "");
    assert_eq!(folder.read("out.jsonl"), line(ids[0]));
    let rows = "c\\\\t\\nd\ta\\tb\t0\t2\t1\ne\\0\\r\ta\\tb\t0\t3\t1\n";
    let expected = format!("id\tkept\tdistance\tnumber\tkept_number\n{rows}");
    assert_eq!(folder.read("dropped.tsv"), expected);
}

#[test]
fn the_list_names_the_files_where_there_are_several() {
    let folder = Folder::new();
    let none = folder.write("in/0.jsonl", "");
    let line = |text: &str| format!("{{\"id\":1,\"text\":\"{text}\"}}\n");
    let one = folder.write("in/a.jsonl", line("one two three") + &line("x y z"));
    let two = folder.write("in/b.jsonl", line("x y z") + &line("one two three"));
    let (out, dropped) = (folder.path("out"), folder.path("dropped.tsv"));
    dedup(&[&none, &one, &two, "-o", &out, "--dropped", &dropped], "");
    let row = format!("1\t1\t0\t{two}\t{one}\t");
    let expected =
        format!("id\tkept\tdistance\tfile\tkept_file\tnumber\tkept_number\n{row}1\t2\n{row}2\t1\n");
    assert_eq!(folder.read("dropped.tsv"), expected);
}

/// Two paths that are shown alike stay apart, and each can be told from what the list says.
#[test]
fn the_list_escapes_paths_without_loss() {
    let folder = Folder::new();
    let line = "{\"id\":1,\"text\":\"one two three\"}\n";
    let names: [&[u8]; 3] = [b"a\xFFb.jsonl", b"a\xFEb.jsonl", b"a\\xFFb\xC3\xA9.jsonl"];
    let paths = names.map(|name| folder.0.path().join(OsStr::from_bytes(name)));
    paths.iter().for_each(|path| fs::write(path, line).unwrap());
    let (out, dropped) = (folder.path("out"), folder.path("dropped.tsv"));
    let output = Command::new(BINARY)
        .arg("dedup")
        .args(&paths)
        .args(["-o", &out, "--dropped", &dropped])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", log(&output));
    let root = folder.0.path().display();
    let kept = format!("{root}/a\\xFFb.jsonl");
    let expected = format!(
        "id\tkept\tdistance\tfile\tkept_file\tnumber\tkept_number\n\
         1\t1\t0\t{root}/a\\xFEb.jsonl\t{kept}\t1\t1\n\
         1\t1\t0\t{root}/a\\\\xFFbé.jsonl\t{kept}\t1\t1\n"
    );
    assert_eq!(folder.read("dropped.tsv"), expected);
}

/// W2.
#[test]
fn a_limit_of_file_sizes_is_an_error_that_leaves_nothing() {
    let folder = Folder::new();
    let lines = (0..2000).map(|number| format!("{{\"id\":{number},\"text\":\"text {number}\"}}\n"));
    let input = folder.write("in.jsonl", lines.collect::<String>());
    let out = folder.path("out.jsonl");
    let script = "ulimit -f 8; exec \"$0\" dedup \"$1\" -o \"$2\"";
    let output = Command::new("sh")
        .args(["-c", script, BINARY, &input, &out])
        .output()
        .unwrap();
    let said = log(&output);
    assert!(
        said.contains("error: cannot write "),
        "{:?}: {said}",
        output.status
    );
    assert!(said.contains("File too large"), "{said}");
    assert_eq!(folder.names(), ["in.jsonl"]);
    assert!(fs::metadata(&input).is_ok());
}

/// DD3: one of the two cannot be put in its place, as a folder with something in it is there by then.
#[test]
fn what_is_kept_is_in_its_place_only_if_the_list_is() {
    for (blocked, other, is_there) in [
        ("out.jsonl", "dropped.tsv", true),
        ("dropped.tsv", "out.jsonl", false),
    ] {
        let folder = Folder::new();
        let (out, dropped) = (folder.path("out.jsonl"), folder.path("dropped.tsv"));
        let mut process = Command::new(BINARY)
            .args(["dedup", "-f", "jsonl", "-o", &out, "--dropped", &dropped])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(TEXTS.as_bytes()).unwrap();
        block_until("both outputs begin", || folder.unfinished().len() == 2);
        folder.write(&format!("{blocked}/file"), "");
        drop(stdin);
        let output = process.wait_with_output().unwrap();
        let said = log(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let place = folder.path(blocked);
        assert!(
            said.contains(&format!("error: cannot write {place}: ")),
            "{said}"
        );
        assert_eq!(folder.0.path().join(other).is_file(), is_there, "{blocked}");
        assert_eq!(folder.unfinished(), [""; 0]);
    }
}
