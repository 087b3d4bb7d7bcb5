//! The batch commands as whole processes: the output is whole or as it was before, nothing that is
//! read is written, and memory does not grow with the pairs.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use simshard_testkit::{block_until, run};
use tempfile::TempDir;

use crate::{BINARY, log, said};

/// Runs a command that must end well and say nothing but its recipe, and returns what it printed.
fn succeed(args: &[&str], input: &str) -> String {
    succeeded(&run(BINARY, args, input), args)
}

fn succeeded(output: &Output, what: impl Debug) -> String {
    assert_eq!(said(output), "", "{what:?}");
    assert_eq!(output.status.code(), Some(0), "{what:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that must refuse what it is given, and returns its complaint.
fn refuse(args: &[&str], input: &str) -> String {
    refused(&run(BINARY, args, input), args)
}

fn refused(output: &Output, what: impl Debug) -> String {
    let log = log(output);
    assert_eq!(output.status.code(), Some(2), "{what:?}: {log}");
    assert_eq!(output.stdout, b"", "{what:?}");
    log
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

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Makes `link`, a link to another file of the folder.
    fn link(&self, link: &str, target: &str) {
        symlink(self.path(target), self.path(link)).unwrap();
    }

    /// What is in it, or in a folder of it.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Runs a script in it, which calls this program `$simshard`.
    fn bash(&self, script: &str, input: &str) -> Output {
        let script = format!("cd '{}'; simshard='{BINARY}'; {script}", self.path(""));
        run("bash", ["-c", &script], input)
    }
}

/// Starts a command that heeds every signal, whatever is ignored where the tests run.
fn start(args: &[&str]) -> Child {
    Command::new("env")
        .args(["--default-signal", BINARY])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts a command with all of its input.
fn start_with(args: &[&str], input: &str) -> Child {
    let mut child = start(args);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    child
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// W1
#[test]
fn an_old_output_is_replaced_whole_with_its_permissions() {
    let folder = Folder::new();
    let path = folder.path("out.json");
    let args = ["find-pairs", "-o", &path];
    succeed(&args, "4\n5\n");
    let mode = |name: &str| {
        fs::metadata(folder.path(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    folder.write("plain", "");
    assert_eq!(mode("out.json"), mode("plain"), "that of any new file");

    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    folder.write("out.json", "much longer than what comes now");
    let old = File::open(&path).unwrap();
    succeed(&args, "6\n7\n");
    assert_eq!(folder.read("out.json"), "[6, 7]\n");
    assert_eq!(mode("out.json"), 0o640);
    assert_eq!(
        io::read_to_string(old).unwrap(),
        "much longer than what comes now",
        "who reads the old one goes on"
    );
    assert_eq!(folder.names(""), ["out.json", "plain"]);
}

#[test]
fn through_a_link_the_file_behind_it_is_replaced() {
    let folder = Folder::new();
    fs::create_dir(folder.path("other")).unwrap();
    folder.write("other/file", "old");
    folder.link("link", "other/file");
    succeed(&["find-pairs", "-o", &folder.path("link")], "4\n5\n");
    assert!(
        fs::symlink_metadata(folder.path("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(folder.read("other/file"), "[4, 5]\n");
}

#[test]
fn through_a_dangling_link_the_file_is_made_where_it_points() {
    let folder = Folder::new();
    fs::create_dir(folder.path("sub")).unwrap();
    symlink("sub/file", folder.path("link")).unwrap();
    succeed(&["find-pairs", "-o", &folder.path("link")], "4\n5\n");
    assert!(
        fs::symlink_metadata(folder.path("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(folder.read("sub/file"), "[4, 5]\n");
    symlink("missing/file", folder.path("nowhere")).unwrap();
    let log = refuse(&["find-pairs", "-o", &folder.path("nowhere")], "no hash\n");
    assert!(log.contains("there is no folder "), "{log}");
}

#[test]
fn an_open_descriptor_is_written_to_by_any_name_and_never_replaced() {
    let folder = Folder::new();
    for (name, redirection) in [
        ("/dev/stdout", ">>"),
        ("/dev/stdout", "1<>"),
        ("/dev/fd/1", ">>"),
        ("/proc/self/fd/1", ">>"),
        ("/dev/stderr", "2>>"),
        ("/dev/fd/3", "3>>"),
        ("/proc/self/fd/3", "3>"),
    ] {
        folder.write("file", "old\n");
        let begin = File::open(folder.path("file")).unwrap();
        let script = format!("$simshard find-pairs -o {name} {redirection} file");
        succeeded(&folder.bash(&script, "4\n5\n"), name);
        let expected = match redirection {
            "1<>" | "3>" => "[4, 5]\n",
            _ => "old\n[4, 5]\n",
        };
        assert_eq!(folder.read("file"), expected, "{name}");
        let same = io::read_to_string(begin).unwrap();
        assert_eq!(same, expected, "{name} was replaced");
        assert_eq!(folder.names(""), ["file"]);
    }
    let script = "{ echo a; $simshard find-pairs -o /dev/stdout; echo b; } > file";
    succeeded(&folder.bash(script, "4\n5\n"), script);
    assert_eq!(folder.read("file"), "a\n[4, 5]\nb\n");
}

/// W1 and W2
#[test]
fn an_error_leaves_the_old_output_and_nothing_else() {
    let folder = Folder::new();
    let path = folder.path("out.json");
    for old in [None, Some("old")] {
        if let Some(old) = old {
            folder.write("out.json", old);
        }
        for (verb, format, good) in [
            ("find-pairs", "hashes", "4\n"),
            ("find-clusters", "hashes", "4\n"),
            ("hash", "jsonl", "{\"id\": 1, \"text\": \"a text\"}\n"),
        ] {
            let input = format!("{good}{good}12abc\n");
            let log = refuse(&[verb, "--format", format, "-o", &path], &input);
            assert!(log.contains("<stdin>:3: "), "{log}");
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
            assert_eq!(folder.names("").len(), usize::from(old.is_some()));
        }
    }
}

/// W2: before the first byte is read, and while the output is being written.
#[test]
fn a_signal_leaves_the_old_output_and_nothing_else() {
    let folder = Folder::new();
    folder.write("out.json", "old");
    let path = folder.path("out.json");
    let args = ["find-pairs", "-o", &path];
    let unfinished_bytes = || {
        let unfinished = |name: &String| name.starts_with(".simshard-");
        let name = folder.names("").into_iter().find(unfinished)?;
        Some(fs::metadata(folder.path(&name)).ok()?.len())
    };
    for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
        for input in ["", &"5\n".repeat(100_000)] {
            let mut child = start(&args);
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(input.as_bytes()).unwrap();
            let stdin = input.is_empty().then_some(stdin);
            let least = if input.is_empty() { 0 } else { 1 << 20 };
            block_until("the output grows", || {
                unfinished_bytes().is_some_and(|bytes| bytes >= least)
            });
            signal(&child, name);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(number), "{}", log(&output));
            drop(stdin);
            assert_eq!(folder.names(""), ["out.json"]);
            assert_eq!(folder.read("out.json"), "old");
        }
    }
}

/// W2: as under `nohup`.
#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let folder = Folder::new();
    let script = format!(
        "trap '' HUP INT; exec '{BINARY}' find-pairs -o '{}'",
        folder.path("out.json")
    );
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    block_until("the output begins", || !folder.names("").is_empty());
    signal(&child, "HUP");
    signal(&child, "INT");
    child.stdin.take().unwrap().write_all(b"4\n5\n").unwrap();
    succeeded(&child.wait_with_output().unwrap(), script);
    assert_eq!(folder.read("out.json"), "[4, 5]\n");
}

#[test]
fn an_output_that_is_an_input_is_refused_by_any_name() {
    let folder = Folder::new();
    folder.write("hashes", "4\n5\n");
    folder.link("symlink", "hashes");
    fs::hard_link(folder.path("hashes"), folder.path("hardlink")).unwrap();
    fs::create_dir(folder.path("sub")).unwrap();
    for other in ["hashes", "symlink", "hardlink", "sub/../hashes", "./hashes"] {
        for (input, output) in [("hashes", other), (other, "hashes")] {
            for verb in ["find-pairs", "find-clusters", "hash"] {
                let (input, output) = (folder.path(input), folder.path(output));
                let log = refuse(&[verb, "-i", &input, "-o", &output], "");
                assert!(log.contains("choose another output"), "{log}");
                assert_eq!(folder.read("hashes"), "4\n5\n");
            }
        }
    }
    for redirection in [
        "-o hashes < hashes",
        "-o symlink - < hashes",
        "hashes >> hashes",
    ] {
        let script = format!("$simshard find-pairs {redirection}");
        refused(&folder.bash(&script, ""), redirection);
        assert_eq!(folder.read("hashes"), "4\n5\n");
    }
}

/// Whether it is there already or not, and by whatever name.
#[test]
fn an_output_in_a_folder_that_is_read_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("read/sub")).unwrap();
    fs::create_dir(folder.path("other")).unwrap();
    folder.write("read/there.json", "old");
    folder.link("link", "read");
    folder.link("other/dangling.json", "read/sub/new.json");
    for (input, output) in [
        ("read", "read/there.json"),
        ("read", "read/new.json"),
        ("read", "read/sub/new.json"),
        ("read", "other/../read/new.json"),
        ("read", "link/new.json"),
        ("link", "read/new.json"),
        ("read", "other/dangling.json"),
    ] {
        let (input, output) = (&folder.path(input), &folder.path(output));
        for args in [
            ["find-pairs", input, "-o", output],
            ["hash", input, "-o", output],
            ["find-clusters", input, "--report", output],
        ] {
            let log = refuse(&args, "");
            assert!(log.contains("that is read"), "{log}");
        }
    }
    assert_eq!(folder.names("read"), ["sub", "there.json"]);
    let (read, beside) = (folder.path("read"), folder.path("read.json"));
    succeed(&["find-pairs", &read, "-o", &beside], "");
}

/// The shell has made the file before the folder is walked: it would be one of the documents.
#[test]
fn standard_output_in_a_folder_that_is_read_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("read/sub")).unwrap();
    folder.write("read/a.txt", "a text");
    for redirection in [
        "> read/x",
        ">> read/sub/x",
        "-o - > read/x",
        "1<> read/a.txt",
    ] {
        for verb in ["find-pairs", "find-clusters", "hash"] {
            let script = format!("$simshard {verb} read {redirection}");
            let log = refused(&folder.bash(&script, ""), &script);
            let expected = "error: <stdout> is in the folder read that is read";
            assert!(log.starts_with(expected), "{script}: {log}");
        }
    }
    assert_eq!(folder.read("read/a.txt"), "a text");
    let script = "rm read/x read/sub/x; $simshard hash read > beside; $simshard hash read | cat";
    let printed = succeeded(&folder.bash(script, ""), script);
    assert_eq!(printed.lines().count(), 2);
    assert_eq!(folder.read("beside"), printed);
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    folder.write("file", "");
    for (output, reason) in [
        ("missing/out.json", "there is no folder "),
        (".", "s a directory"),
        ("new/", "that of a folder"),
        ("o.tsv/", "that of a folder"),
        ("new/.", "that of a folder"),
        ("file/", "that of a folder"),
        ("file/out.json", "ot a directory"),
    ] {
        let log = refuse(&["find-pairs", "-o", &folder.path(output)], "no hash\n");
        assert!(log.contains(reason) && log.contains(output), "{log}");
        assert!(!log.contains("no hash"), "{log}");
        let log = refuse(
            &["find-pairs", "--report", &folder.path(output)],
            "no hash\n",
        );
        assert!(log.contains(reason), "{log}");
    }
    assert_eq!(folder.names(""), ["file"]);
    // The superuser may write everywhere.
    let read_only = folder.path("read-only");
    fs::create_dir(&read_only).unwrap();
    fs::set_permissions(&read_only, PermissionsExt::from_mode(0o555)).unwrap();
    if File::create(folder.path("read-only/probe")).is_err() {
        let path = folder.path("read-only/out");
        let log = refuse(&["find-pairs", "-o", &path], "no hash\n");
        assert!(log.contains("ermission denied"), "{log}");
    }
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    succeed(&["find-pairs", "-o", "/dev/null"], "4\n5\n");
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let script = "mkfifo pipe; cat pipe & $simshard find-pairs -o pipe; wait";
    let output = Folder::new().bash(script, "4\n5\n");
    assert_eq!(succeeded(&output, script), "[4, 5]\n");
}

#[test]
fn a_full_disk_is_an_error_and_a_reader_who_left_is_none() {
    for verb in ["find-pairs", "hash"] {
        let output = run(BINARY, [verb, "-o", "/dev/full"], "4\n5\n");
        assert_eq!(output.status.code(), Some(1));
        let log = log(&output);
        assert!(log.starts_with("error: cannot write /dev/full: "), "{log}");
    }
    for asked in ["--version", "--help", "recipes"] {
        let script = format!("$simshard {asked} > /dev/full");
        let output = Folder::new().bash(&script, "");
        assert_eq!(output.status.code(), Some(1), "{asked}");
        assert!(log(&output).contains("No space left on device"), "{asked}");
    }
    let dense = "5\n".repeat(100_000);
    for verb in ["find-pairs", "find-clusters", "hash"] {
        let script = format!("set -o pipefail; $simshard {verb} | head -c 9");
        succeeded(&Folder::new().bash(&script, &dense), verb);
    }
}

/// The most memory that a process has held so far, in bytes.
fn peak_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

const LITTLE_MEMORY: u64 = 64 << 20;

/// Runs `find-pairs` on what has far too many pairs for little memory, and reads some of them.
fn pairs_stream_in_little_memory(options: &[&str], input: &str) {
    let mut child = start_with(&[&["find-pairs"], options].concat(), input);
    let mut stdout = child.stdout.take().unwrap();
    let read = io::copy(&mut (&mut stdout).take(200 << 20), &mut io::sink());
    assert_eq!(read.unwrap(), 200 << 20);
    let peak = peak_memory(&child);
    assert!(peak < LITTLE_MEMORY, "{peak} bytes");
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Runs `find-clusters` on 100,000 documents that are one cluster.
fn one_cluster_in_little_time_and_memory(input: &str) {
    let begin = Instant::now();
    let mut child = start_with(&["find-clusters"], input);
    let mut stdout = child.stdout.take().unwrap();
    // Once it writes, it has done its work.
    stdout.read_exact(&mut [0]).unwrap();
    let peak = peak_memory(&child);
    assert!(peak < LITTLE_MEMORY, "{peak} bytes");
    let rest = io::read_to_string(stdout).unwrap();
    assert_eq!(rest.lines().count(), 1);
    assert_eq!(rest.split(", ").count(), 100_000);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

/// 100,000 different fingerprints that share their first 47 bits, so that no table parts them.
fn of_one_prefix() -> String {
    let prefix = 0x0123_4567_89ab_0000_u64 & !0x1ffff;
    // An odd factor visits every residue once.
    let value = |number: u64| prefix | ((number * 40_503) & 0x1ffff);
    let lines = (0..100_000).map(|number| format!("{}\n", value(number)));
    lines.collect()
}

/// 100,000 documents behind one fingerprint are five thousand million pairs: they stream.
#[test]
fn pairs_of_one_crowded_fingerprint_stream_in_little_memory() {
    let bare = "12345678901234567890\n".repeat(100_000);
    pairs_stream_in_little_memory(&[], &bare);
    let named = |number: u32| format!("document {number}\t12345678901234567890\n");
    let named: String = (0..100_000).map(named).collect();
    pairs_stream_in_little_memory(&["--format", "tsv"], &named);
}

#[test]
fn the_cluster_of_one_crowded_fingerprint_needs_no_pairs() {
    one_cluster_in_little_time_and_memory(&"12345678901234567890\n".repeat(100_000));
}

#[test]
fn pairs_of_one_prefix_stream_in_little_memory() {
    pairs_stream_in_little_memory(&[], &of_one_prefix());
}

#[test]
fn the_cluster_of_one_prefix_is_found_in_little_time_and_memory() {
    one_cluster_in_little_time_and_memory(&of_one_prefix());
}

#[test]
fn a_report_is_written_beside_the_result() {
    let folder = Folder::new();
    let (out, report) = (folder.path("out"), folder.path("page.html"));
    for (verb, found) in [
        ("find-pairs", "[4, 5]\n[0, 4]\n"),
        ("find-clusters", "[0, 4, 5]\n"),
    ] {
        let args = [verb, "-d", "1", "-o", &out, "--report", &report];
        succeed(&args, "5\n0\n4\n");
        let written = folder.read("out");
        let mut lines: Vec<&str> = written.split_inclusive('\n').collect();
        lines.sort_by(|a, b| b.cmp(a));
        assert_eq!(lines.concat(), found);
        let page = folder.read("page.html");
        assert!(
            page.starts_with("<!DOCTYPE html>") && page.contains(verb),
            "{page}"
        );
    }
    folder.write("page.html", "old");
    refuse(&["find-pairs", "--report", &report], "no hash\n");
    assert_eq!(folder.read("page.html"), "old");
    let (same, again) = (folder.path("same"), folder.path("./same"));
    let log = refuse(&["find-pairs", "-o", &same, "--report", &again], "5\n");
    assert!(log.contains("the same file"), "{log}");
    assert_eq!(folder.names(""), ["out", "page.html"]);
}

/// W3
#[test]
fn a_report_that_cannot_be_written_leaves_the_old_output() {
    let folder = Folder::new();
    let path = folder.path("out.json");
    for old in [None, Some("old")] {
        if let Some(old) = old {
            folder.write("out.json", old);
        }
        for verb in ["find-pairs", "find-clusters"] {
            let args = [verb, "-o", &path, "--report", "/dev/full"];
            let output = run(BINARY, args, "4\n5\n");
            assert_eq!(output.status.code(), Some(1));
            let log = log(&output);
            assert!(log.starts_with("error: cannot write /dev/full: "), "{log}");
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
            assert_eq!(folder.names("").len(), usize::from(old.is_some()));
        }
    }
}

#[test]
fn a_compressed_output_is_refused() {
    let folder = Folder::new();
    for name in [
        "x.tsv.gz",
        "x.json.zst",
        "x.tsv.zstd",
        "x.parquet.GZ",
        "x.jsonl.xz",
        "x.tsv.ZIP",
    ] {
        let path = folder.path(name);
        for args in [
            &["find-pairs", "-o", &path][..],
            &["find-clusters", "--output-format", "tsv", "-o", &path],
            &["hash", "-o", &path],
            &["find-pairs", "--report", &path],
        ] {
            let log = refuse(args, "no hash\n");
            assert!(log.contains("outputs are not compressed"), "{log}");
            assert!(log.contains("gzip"), "{log}");
        }
    }
    assert!(folder.names("").is_empty());
}

/// Where nothing says the format, JSON in a file that is called otherwise would be a surprise.
#[test]
fn an_extension_that_names_no_format_is_refused() {
    let folder = Folder::new();
    for name in ["out.csv", "out.txt", "a.tsv.bak", "out.HTML"] {
        let path = folder.path(name);
        for verb in ["find-pairs", "find-clusters", "hash"] {
            let log = refuse(&[verb, "-o", &path], "no hash\n");
            for part in [name, "--output-format", ".json, .jsonl, .ndjson, .tsv"] {
                assert!(log.contains(part), "{log}");
            }
            assert!(!Path::new(&path).exists());
            succeed(&[verb, "-o", &path, "--output-format", "tsv"], "5\n");
            assert!(folder.read(name).starts_with("id"), "{name}");
            fs::remove_file(&path).unwrap();
        }
    }
    for name in ["out", ".tsv", "a.b/out"] {
        fs::create_dir_all(folder.path("a.b")).unwrap();
        succeed(&["find-pairs", "-o", &folder.path(name)], "4\n5\n");
        assert_eq!(folder.read(name), "[4, 5]\n");
    }
}

#[test]
fn a_report_never_mixes_with_the_result() {
    let folder = Folder::new();
    for (arguments, reason) in [
        ("--report -", "name a file"),
        ("--report /dev/stdout", "name a file"),
        ("--report /dev/fd/1 -o out", "name a file"),
        ("--report /dev/fd/3 3>&1", "the same file"),
        ("--report page > page", "the same file"),
        ("--report page -o /dev/fd/3 3> page", "the same file"),
    ] {
        let script = format!("$simshard find-pairs {arguments}");
        let log = refused(&folder.bash(&script, "no hash\n"), arguments);
        assert!(log.contains(reason), "{arguments}: {log}");
    }
    let args = ["find-pairs", "-o", "/dev/null", "--report", "/dev/null"];
    succeed(&args, "4\n5\n");
}

#[test]
fn threads_are_1_to_256() {
    for threads in ["1", "256"] {
        succeed(&["find-pairs", "--threads", threads], "4\n5\n");
    }
    for threads in ["0", "257", "100000"] {
        let log = refuse(&["find-pairs", "--threads", threads], "4\n5\n");
        assert!(log.contains("1..=256"), "{log}");
    }
}

#[test]
fn a_parquet_file_is_written_where_the_program_can() {
    let folder = Folder::new();
    for verb in ["find-pairs", "find-clusters", "hash"] {
        let path = folder.path(&format!("{verb}.parquet"));
        let args = [verb, "-o", &path];
        if cfg!(feature = "parquet") {
            succeed(&args, "5\n4\n");
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        } else {
            let log = refuse(&args, "5\n4\n");
            assert!(log.contains("--features parquet"), "{log}");
            assert!(!Path::new(&path).exists());
        }
    }
}

/// A pattern that matches the output is refused as the file itself is.
#[test]
fn an_output_that_a_pattern_matches_is_refused() {
    let folder = Folder::new();
    folder.write("a.txt", "4\n");
    folder.write("b.txt", "5\n");
    let (pattern, output) = (folder.path("*.txt"), folder.path("b.txt"));
    let named = ["--output-format", "json", "-o", &output];
    refuse(&[&["find-pairs", "-i", &pattern], &named[..]].concat(), "");
    assert_eq!(folder.read("b.txt"), "5\n");
    assert_eq!(succeed(&["find-pairs", "-i", &pattern], ""), "[4, 5]\n");
    let printed = succeed(&["find-pairs", &pattern, "--output-format", "tsv"], "");
    let expected = format!("{}:1\t{output}:1\t1\n", folder.path("a.txt"));
    assert!(printed.ends_with(&expected), "{printed}");
}
