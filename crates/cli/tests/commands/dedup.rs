//! `dedup` as a whole process: what it keeps against the slow, obvious way, and that it writes all or nothing.

mod against;
mod bad_lines;
mod csv;
mod outputs;
#[cfg(feature = "parquet")]
mod parquet;
mod warc;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use simshard_testkit::{block_until, run};
use tempfile::TempDir;

use crate::{BINARY, log};

/// A record as the tests make it.
#[derive(Clone)]
struct Made {
    id: String,
    fingerprint: u64,
    date: Option<u32>,
    score: Option<i32>,
    line: String,
}

/// A folder that holds one test's files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of outputs that are being written.
    fn unfinished(&self) -> Vec<String> {
        let names = self.names().into_iter();
        names
            .filter(|name| name.starts_with(".simshard-"))
            .collect()
    }

    /// Removes what a killed process left of its outputs. Returns how many these were.
    fn remove_unfinished(&self) -> usize {
        let unfinished = self.unfinished();
        for name in &unfinished {
            let path = self.0.path().join(name);
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
        unfinished.len()
    }

    /// What is in it, hidden files too.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Runs `dedup`, which must succeed, and returns its last words.
fn dedup(args: &[&str], input: &str) -> String {
    let output = run(BINARY, [&["dedup"], args].concat(), input);
    let log = log(&output);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {log}");
    log.lines().last().unwrap().to_owned()
}

/// Runs `dedup`, which must refuse what it is given, and returns its complaint.
fn refuse(args: &[&str], input: &str) -> String {
    let output = run(BINARY, [&["dedup"], args].concat(), input);
    let log = log(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {log}");
    log
}

/// Records with random fingerprints: the shape says how dense they are.
fn made(seed: u64, count: usize, shape: &str) -> Vec<Made> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut chain = 0_u64;
    let mut records = Vec::new();
    for number in 0..count {
        let fingerprint = match shape {
            "random" => random() & 0xFFFF_0000_0000_FFFF & random() & random(),
            "dense" => random() & 0x0103_0001_0020_0401,
            _ => {
                chain ^= 1 << (random() % 64) | 1 << (random() % 64);
                chain
            }
        };
        let date = (!random().is_multiple_of(4)).then(|| (random() % 28) as u32 + 1);
        let score = (!random().is_multiple_of(4)).then(|| (random() % 7) as i32 - 3);
        let mut line = format!("{{\"f\":\"{fingerprint}\",  \"id\":\"d{number}\"");
        if let Some(date) = date {
            line += &format!(",\"at\":\"2024-02-{date:02}T12:00:00+01:00\"");
        }
        if let Some(score) = score {
            line += &format!(",\"s\":{score}.50");
        }
        line += if number % 3 == 0 { "}\r\n" } else { " }\n" };
        let id = format!("d{number}");
        records.push(Made {
            id,
            fingerprint,
            date,
            score,
            line,
        });
    }
    records
}

/// The numbers of records in the order in which they are preferred.
fn preferred(records: &[Made], keep: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    match keep {
        "newest:at" => order.sort_by_key(|&at| std::cmp::Reverse(records[at].date)),
        "highest:s" => order.sort_by_key(|&at| std::cmp::Reverse(records[at].score)),
        _ => {}
    }
    order
}

fn distance(a: &Made, b: &Made) -> u32 {
    (a.fingerprint ^ b.fingerprint).count_ones()
}

/// By record, the one because of which it is dropped.
fn reference(records: &[Made], keep: &str, by: &str) -> BTreeMap<usize, usize> {
    let order = preferred(records, keep);
    let mut causes = BTreeMap::new();
    if by == "pairs" {
        let mut kept: Vec<usize> = Vec::new();
        for &at in &order {
            let near = |&&other: &&usize| distance(&records[other], &records[at]) <= 3;
            match kept.iter().find(near) {
                Some(&cause) => drop(causes.insert(at, cause)),
                None => kept.push(at),
            }
        }
        return causes;
    }
    let mut cluster: Vec<usize> = (0..records.len()).collect();
    for a in 0..records.len() {
        for b in 0..a {
            if distance(&records[a], &records[b]) <= 3 && cluster[a] != cluster[b] {
                let (from, to) = (cluster[a], cluster[b]);
                for of in &mut cluster {
                    if *of == from {
                        *of = to;
                    }
                }
            }
        }
    }
    for at in 0..records.len() {
        let best = order.iter().find(|&&other| cluster[other] == cluster[at]);
        if *best.unwrap() != at {
            causes.insert(at, *best.unwrap());
        }
    }
    causes
}

/// DD1, DD2.
#[test]
fn what_is_kept_and_dropped_is_what_a_linear_scan_says() {
    let folder = Folder::new();
    for (seed, shape) in [(1, "random"), (2, "chained"), (3, "dense"), (4, "chained")] {
        let records = made(seed, 300, shape);
        let lines: String = records.iter().map(|record| &*record.line).collect();
        let input = folder.write("in.jsonl", &lines);
        let (out, dropped) = (folder.path("out.jsonl"), folder.path("dropped.tsv"));
        for by in ["cluster", "pairs"] {
            for keep in ["first", "newest:at", "highest:s"] {
                let what = format!("seed {seed}, {shape}, {by}, {keep}");
                let causes = reference(&records, keep, by);
                assert!(!causes.is_empty(), "{what}");
                let said = dedup(
                    &[
                        &input,
                        "-o",
                        &out,
                        "--dropped",
                        &dropped,
                        "--by",
                        by,
                        "--keep",
                        keep,
                        "--fingerprint-field",
                        "f",
                    ],
                    "",
                );
                let how = match by {
                    "pairs" => "no two within 3 bits",
                    _ => "one of each cluster",
                };
                let kept = records.len() - causes.len();
                assert_eq!(
                    said,
                    format!("kept {kept} of 300 documents, {how}"),
                    "{what}"
                );
                let expected: String = (0..records.len())
                    .filter(|at| !causes.contains_key(at))
                    .map(|at| &*records[at].line)
                    .collect();
                assert_eq!(folder.read("out.jsonl"), expected, "{what}");
                let row = |(&at, &cause): (&usize, &usize)| {
                    let (one, other) = (&records[at], &records[cause]);
                    let (id, kept, distance) = (&one.id, &other.id, distance(one, other));
                    format!("{id}\t{kept}\t{distance}\t{}\t{}\n", at + 1, cause + 1)
                };
                let rows: String = causes.iter().map(row).collect();
                let expected = format!("id\tkept\tdistance\tnumber\tkept_number\n{rows}");
                assert_eq!(folder.read("dropped.tsv"), expected, "{what}");
            }
        }
    }
}

const TEXTS: &str = "\
{\"id\":\"a\",\"text\":\"one two three four five six seven eight\"}\n\
\n\
{\"id\":\"b\",\"text\":\"!!\"}\r\n\
{\"id\":\"c\",\"x\":[1.50],\"text\":\"one two three four five six seven eight!?\"}\n\
{\"id\":\"d\",\"text\":\"!!\"}\n\
{\"id\":\"e\",\"text\":\"a wholly other text about nothing that was said before\"}";

#[test]
fn kept_lines_stay_byte_for_byte_and_the_longest_of_texts_is_chosen() {
    let folder = Folder::new();
    let input = folder.write("in.jsonl", TEXTS);
    let out = folder.path("out.jsonl");
    let lines: Vec<&str> = TEXTS.split_inclusive('\n').collect();
    for (keep, without) in [("first", 3), ("longest", 0)] {
        let said = dedup(&[&input, "-o", &out, "--keep", keep], "");
        assert_eq!(said, "kept 4 of 5 documents, one of each cluster");
        let mut expected = lines.clone();
        expected.remove(without);
        assert_eq!(folder.read("out.jsonl"), expected.concat(), "{keep}");
    }
    let output = run(BINARY, ["dedup", &input, "-o", &out], "");
    let expected = "kept 2 texts without words, which have no fingerprint\n";
    assert!(log(&output).contains(expected), "{}", log(&output));
    let output = run(
        BINARY,
        ["dedup", &input, "-o", &out, "--recipe", "textdedup-3"],
        "",
    );
    let expected = "kept 2 texts of fewer than 5 characters, too short for textdedup-3, which have no fingerprint\n";
    assert!(log(&output).contains(expected), "{}", log(&output));
}

#[test]
fn a_line_that_is_too_long_ends_the_command_or_is_counted() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let long = format!(
        "{{\"id\":\"long\",\"text\":\"{}\"}}\n",
        "x ".repeat(5 << 20)
    );
    let lines: Vec<&str> = TEXTS.split_inclusive('\n').collect();
    let with_long = [&lines[..3], &[&long], &lines[3..]].concat().concat();
    let input = folder.write("in.jsonl", &with_long);
    for (input, text) in [(&*input, ""), ("-", &*with_long)] {
        let said = refuse(&[input, "-f", "jsonl", "-o", &out], text);
        assert!(said.contains(":4: the line takes more than"), "{said}");
        assert!(!fs::exists(&out).unwrap());
        let skipping = [
            "dedup",
            input,
            "-f",
            "jsonl",
            "-o",
            &out,
            "--skip-bad-lines",
        ];
        let output = run(BINARY, skipping, text);
        assert!(
            log(&output).contains("skipped 1 bad line\n"),
            "{}",
            log(&output)
        );
        assert!(
            log(&output).contains("kept 4 of 5 documents"),
            "{}",
            log(&output)
        );
        let expected = [&lines[..3], &lines[4..]].concat().concat();
        assert_eq!(folder.read("out.jsonl"), expected);
        fs::remove_file(&out).unwrap();
    }
}

/// I6.
#[test]
fn standard_input_and_every_compression_give_the_same() {
    let folder = Folder::new();
    let input = folder.write("in.jsonl", TEXTS);
    let out = folder.path("out.jsonl");
    dedup(&[&input, "-o", &out], "");
    let expected = folder.read("out.jsonl");
    let printed = run(BINARY, ["dedup", "--format", "jsonl", "-o", "-"], TEXTS);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);

    let (gz, zst) = (folder.path("out.jsonl.gz"), folder.path("out.jsonl.zst"));
    dedup(&["--format", "jsonl", "-o", &gz], TEXTS);
    let mut content = String::new();
    let file = fs::File::open(&gz).unwrap();
    GzDecoder::new(file).read_to_string(&mut content).unwrap();
    assert_eq!(content, expected);
    // From gzip to zstd and back to plain: nothing is near anything any more.
    dedup(&[&gz, "-o", &zst], "");
    assert_eq!(fs::read(&zst).unwrap()[..4], [0x28, 0xB5, 0x2F, 0xFD]);
    let said = dedup(&[&zst, "-o", &out], "");
    assert_eq!(said, "kept 4 of 4 documents, one of each cluster");
    assert_eq!(folder.read("out.jsonl"), expected);
}

#[test]
fn headers_and_bare_lines_are_written_again() {
    let folder = Folder::new();
    for (name, format, content, expected) in [
        (
            "in.tsv",
            "tsv",
            "id\thash\na\t4\nb\t5\nc\t4095\n",
            "id\thash\na\t4\nc\t4095\n",
        ),
        ("in.hashes", "hashes", "4\n5\n4095\n4\n", "4\n4095\n"),
        (
            "in.lines",
            "lines",
            "one two three\n\nfour\none two three\n",
            "one two three\n\nfour\n",
        ),
    ] {
        let (input, out) = (folder.write(name, content), folder.path("out"));
        dedup(&[&input, "--format", format, "-o", &out], "");
        assert_eq!(folder.read("out"), expected, "{format}");
    }
}

#[test]
fn a_text_that_is_null_is_kept_as_an_empty_one_is() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let kept = "{\"id\":1,\"text\":null}\n{\"id\":2,\"text\":\"a b\"}\n{\"id\":3,\"text\":null}\n";
    let input = format!("{kept}{{\"id\":4,\"text\":\"a b\"}}\n");
    for skipping in [&[][..], &["--skip-bad-lines"]] {
        let output = run(
            BINARY,
            [&["dedup", "-f", "jsonl", "-o", &out], skipping].concat(),
            &input,
        );
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
        assert_eq!(folder.read("out.jsonl"), kept);
        let expected = "kept 2 texts without words, which have no fingerprint\n";
        assert!(log(&output).contains(expected), "{}", log(&output));
    }
}

#[test]
fn several_inputs_go_to_a_folder_by_their_names() {
    let folder = Folder::new();
    let one = folder.write("in/a/x.jsonl", TEXTS);
    let two = folder.write("in/b/x.jsonl", TEXTS);
    let empty = folder.write("in/z.jsonl", "");
    let out = folder.path("out");
    let said = dedup(&[&one, &two, &empty, "-o", &out], "");
    assert_eq!(said, "kept 6 of 10 documents, one of each cluster");
    assert!(folder.read("out/a/x.jsonl").contains("\"a\""));
    let second = "\n{\"id\":\"b\",\"text\":\"!!\"}\r\n{\"id\":\"d\",\"text\":\"!!\"}\n";
    assert_eq!(folder.read("out/b/x.jsonl"), second);
    assert_eq!(folder.read("out/z.jsonl"), "");
    assert_eq!(folder.names(), ["in", "out"]);
    let said = refuse(&[&one, &two, "-o", &out], "");
    assert!(said.contains("the folder is not empty"), "{said}");
    let said = refuse(&[&one, &one, "-o", &folder.path("new")], "");
    assert!(said.contains("named more than once"), "{said}");
    let other = folder.write("in/y.jsonl.bz2", "");
    let said = refuse(&[&one, &other, "-o", &folder.path("new")], "");
    assert!(said.contains("bzip2 is read, not written"), "{said}");
    let file = folder.write("file", "");
    let said = refuse(&[&one, &two, "-o", &file], "");
    assert!(said.contains("need a folder to go to"), "{said}");
    assert_eq!(folder.names(), ["file", "in", "out"]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = Folder::new();
    let input = folder.write("in.jsonl", TEXTS);
    let out = folder.path("out.jsonl");
    let name = folder.0.path().file_name().unwrap().to_str().unwrap();
    let same = folder.path(&format!("../{name}/out.jsonl"));
    for (args, problem) in [
        (vec!["-o", &*input], "is the input"),
        (vec!["-o", &*out, "--dropped", &*same], "name the same file"),
        (vec!["-o", "-", "--dropped", "-"], "name the same file"),
        (vec!["-o", "out.parquet"], "looks like parquet"),
        (vec!["-o", "out.jsonl.xz"], "xz is read, not written"),
        (vec!["-o", &*out, "--dropped", &*out], "name the same file"),
        (
            vec!["-o", &*out, "--keep", "newest"],
            "expected first, longest",
        ),
        (
            vec![
                "-o",
                &*out,
                "--keep",
                "longest",
                "--fingerprint-field",
                "id",
            ],
            "needs texts",
        ),
        (
            vec!["-o", &*out, "--format", "lines", "--keep", "highest:s"],
            "needs fields",
        ),
        (
            vec!["-o", &*out, "--format", "arrow"],
            "write the input as Parquet first",
        ),
        (
            vec!["-o", &*out, "--format", "files"],
            "`simshard find-clusters` lists them by cluster",
        ),
        (
            vec!["-o", &*out, "--format", "tsv", "--keep", "newest:s"],
            "--keep newest:s needs fields, which jsonl, csv, parquet and warc have, and the format is tsv",
        ),
        (vec![], "--output"),
    ] {
        let said = refuse(&[&[&*input], &args[..]].concat(), "");
        assert!(said.contains(problem), "{args:?}: {said}");
        assert_eq!(folder.names(), ["in.jsonl"], "{args:?}");
    }
    assert_eq!(folder.read("in.jsonl"), TEXTS);
}

#[test]
fn a_folder_without_files_is_said_to_have_none() {
    let folder = Folder::new();
    let [input, out] = ["in", "out"].map(|name| folder.path(name));
    fs::create_dir(&input).unwrap();
    let said = refuse(&[&*input, "-o", &*out], "");
    assert!(said.contains("there is no file to read in"), "{said}");
}

/// DD3: the process is killed as it reads what does not end, and at times while it writes.
#[test]
fn whenever_it_is_killed_the_output_is_whole_or_as_it_was() {
    let folder = Folder::new();
    let records = made(5, 20_000, "random");
    let lines: String = records.iter().map(|record| &*record.line).collect();
    let jsonl = folder.write("in.jsonl", &lines);
    killed_at_times(&folder, &[&jsonl, "--fingerprint-field", "f"], "out.jsonl");
    let archive = warc::gzip(&warc::Archive::new(5, 2_000, 3).records);
    let archive = folder.write("in.warc.gz", archive);
    killed_at_times(&folder, &[&archive], "out.warc.gz");
    #[cfg(feature = "parquet")]
    {
        let table = parquet::table(&records, &vec![None; records.len()], 3000);
        let table = folder.write("in.parquet", table);
        killed_at_times(
            &folder,
            &[&table, "--fingerprint-field", "f"],
            "out.parquet",
        );
    }
}

fn killed_at_times(folder: &Folder, input: &[&str], name: &str) {
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    let (out, dropped) = (folder.path(name), folder.path("dropped.tsv"));
    let outputs = ["-o", &out, "--dropped", &dropped];
    let args = [&["dedup"], input, &outputs].concat();
    assert!(run(BINARY, &args, "").status.success());
    let (whole, list) = (read(name), read("dropped.tsv"));
    let start = std::time::Instant::now();
    assert!(run(BINARY, &args, "").status.success());
    let usual = start.elapsed();
    let mut interrupted = 0;
    for step in 0..24 {
        fs::write(&out, "old").unwrap();
        fs::write(&dropped, "old").unwrap();
        let mut process = Command::new(BINARY)
            .args(&args)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = std::time::Instant::now() + usual * step / 20;
        while std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        interrupted += usize::from(folder.remove_unfinished() > 0);
        let (out, dropped) = (read(name), read("dropped.tsv"));
        assert!(out == b"old" || out == whole, "{name}, step {step}");
        assert!(dropped == b"old" || dropped == list, "{name}, step {step}");
        assert!(
            out == b"old" || dropped == list,
            "{name}, step {step}: OUT before DROPPED"
        );
    }
    assert!(interrupted > 0, "{name}");
}

#[test]
fn a_signal_that_can_be_caught_leaves_nothing_behind() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let mut waiting = Command::new(BINARY)
        .args(["dedup", "-f", "jsonl", "-o", &out])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    waiting
        .stdin
        .as_mut()
        .unwrap()
        .write_all(TEXTS.as_bytes())
        .unwrap();
    block_until("the output begins", || !folder.unfinished().is_empty());
    let id = waiting.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    waiting.wait().unwrap();
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn what_is_preferred_may_stand_inside_objects() {
    let lines = "{\"id\":1,\"doc\":{\"n\":\"7\",\"score\":1}}\n\
                 {\"id\":2,\"doc\":{\"n\":\"7\",\"score\":9.5}}\n{\"id\":3,\"doc\":{\"n\":\"7\"}}\n";
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let input = folder.write("in.jsonl", lines);
    let args = [
        "--fingerprint-field",
        "doc.n",
        "--keep",
        "highest:doc.score",
    ];
    dedup(&[&args[..], &[&input, "-o", &out]].concat(), "");
    assert_eq!(
        folder.read("out.jsonl"),
        lines.lines().nth(1).unwrap().to_owned() + "\n"
    );
}

/// DD3, of a folder.
#[test]
fn a_folder_is_not_there_before_all_of_it_is() {
    let folder = Folder::new();
    let records = made(9, 20_000, "random");
    let lines: String = records.iter().map(|record| &*record.line).collect();
    let inputs = ["in/a.jsonl", "in/b/a.jsonl.gz"].map(|name| folder.write(name, &lines));
    let (out, dropped) = (folder.path("out"), folder.path("dropped.tsv"));
    let args = [
        "dedup",
        &inputs[0],
        &inputs[1],
        "-o",
        &out,
        "--dropped",
        &dropped,
        "--fingerprint-field",
        "f",
    ];
    let start = std::time::Instant::now();
    assert!(run(BINARY, args, "").status.success());
    let usual = start.elapsed();
    let (whole, list) = (folder.read("out/a.jsonl"), folder.read("dropped.tsv"));
    let mut interrupted = 0;
    for step in 0..12 {
        let _ = fs::remove_dir_all(&out);
        fs::write(&dropped, "old").unwrap();
        let mut process = Command::new(BINARY)
            .args(args)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = std::time::Instant::now() + usual * step / 10;
        while std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        interrupted += usize::from(folder.remove_unfinished() > 0);
        let dropped = folder.read("dropped.tsv");
        assert!(dropped == "old" || dropped == list, "step {step}");
        if Path::new(&out).exists() {
            assert_eq!(folder.read("out/a.jsonl"), whole, "step {step}");
            assert!(folder.0.path().join("out/b/a.jsonl.gz").exists());
            assert_eq!(dropped, list, "step {step}: OUT before DROPPED");
        }
    }
    assert!(interrupted > 0);
}

/// By the number of characters, which is not that of bytes.
#[test]
fn the_longest_text_is_kept_in_every_shape() {
    let folder = Folder::new();
    let base = "one two three four five six seven eight nine ten eleven twelve thirteen";
    let mut lines = Vec::new();
    for number in 0..60_u64 {
        // Blanks and signs make a text longer, and change none of its words.
        let more = (number * 7919) % 13;
        let sign = if number % 2 == 0 { "¡" } else { "." };
        let text = format!("{base} {}{}", number % 5, sign.repeat(more as usize));
        lines.push((number, text));
    }
    let line =
        |(number, text): &(u64, String)| format!("{{\"id\":{number},\"text\":\"{text}\"}}\n");
    let input = folder.write("in.jsonl", lines.iter().map(line).collect::<String>());
    let out = folder.path("out.jsonl");
    let hashes = run(BINARY, ["hash", &input], "");
    let hashes = String::from_utf8(hashes.stdout).unwrap();
    let hash = |row: &str| row.split('\t').nth(1).unwrap().parse::<u64>().unwrap();
    let fingerprints: Vec<u64> = hashes.lines().skip(1).map(hash).collect();
    for by in ["cluster", "pairs"] {
        let records: Vec<Made> = lines
            .iter()
            .zip(&fingerprints)
            .map(|((number, text), fingerprint)| Made {
                id: number.to_string(),
                fingerprint: *fingerprint,
                date: None,
                score: Some(text.chars().count() as i32),
                line: line(&(*number, text.clone())),
            })
            .collect();
        let causes = reference(&records, "highest:s", by);
        assert!(causes.len() > 20, "{by}");
        dedup(&[&input, "-o", &out, "--keep", "longest", "--by", by], "");
        let expected: String = (0..records.len())
            .filter(|at| !causes.contains_key(at))
            .map(|at| &*records[at].line)
            .collect();
        assert_eq!(folder.read("out.jsonl"), expected, "{by}");
    }
}
