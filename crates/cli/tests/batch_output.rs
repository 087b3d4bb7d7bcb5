//! `find-all` and `find-clusters` as whole processes: the output is whole or as it was before,
//! nothing that is read is written, and memory does not grow with the pairs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use simshard_testkit::run;

const BINARY: &str = env!("CARGO_BIN_EXE_simshard");

/// A condition that does not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

fn log(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "it never happened");
        std::thread::yield_now();
    }
}

fn start(args: &[&str]) -> Child {
    Command::new(BINARY)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let args = ["find-all", "-o", path.to_str().unwrap()];
    assert!(run(BINARY, args, "4\n5\n").status.success());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&path), mode(&plain), "that of any new file");

    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    fs::write(&path, "much longer than what comes now").unwrap();
    let old = File::open(&path).unwrap();
    assert!(run(BINARY, args, "6\n7\n").status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "[6, 7]\n");
    assert_eq!(mode(&path), 0o640);
    let mut text = String::new();
    (&old).read_to_string(&mut text).unwrap();
    assert_eq!(
        text, "much longer than what comes now",
        "who reads the old one goes on"
    );
    assert_eq!(names(folder.path()), ["out.json", "plain"]);
}

#[test]
fn through_a_link_the_file_behind_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("file");
    let link = folder.path().join("link");
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    assert!(
        run(BINARY, ["find-all", "-o", link.to_str().unwrap()], "4\n5\n")
            .status
            .success()
    );
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "[4, 5]\n");
}

#[test]
fn through_a_dangling_link_the_file_is_made_where_it_points() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("sub")).unwrap();
    symlink("sub/file", path("link")).unwrap();
    let output = run(BINARY, ["find-all", "-o", &path("link")], "4\n5\n");
    assert!(output.status.success(), "{}", log(&output));
    assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(path("sub/file")).unwrap(), "[4, 5]\n");
    symlink("missing/file", path("nowhere")).unwrap();
    let output = run(BINARY, ["find-all", "-o", &path("nowhere")], "no hash\n");
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    assert!(
        log(&output).contains("there is no folder "),
        "{}",
        log(&output)
    );
}

#[test]
fn an_open_descriptor_is_written_to_by_any_name_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (name, redirection) in [
        ("/dev/stdout", ">>"),
        ("/dev/stdout", "1<>"),
        ("/dev/fd/1", ">>"),
        ("/proc/self/fd/1", ">>"),
        ("/dev/stderr", "2>>"),
        ("/dev/fd/3", "3>>"),
        ("/proc/self/fd/3", "3>"),
    ] {
        fs::write(&path, "old\n").unwrap();
        let script = format!(
            "cd '{}' && '{BINARY}' find-all -o {name} {redirection} file",
            folder.path().display()
        );
        let begin = File::open(&path).unwrap();
        let output = run("bash", ["-c", &script], "4\n5\n");
        assert_eq!(output.status.code(), Some(0), "{name}: {}", log(&output));
        let expected = match redirection {
            "1<>" | "3>" => "[4, 5]\n",
            _ => "old\n[4, 5]\n",
        };
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{name}");
        let mut same = String::new();
        (&begin).read_to_string(&mut same).unwrap();
        assert_eq!(same, expected, "{name} was replaced");
        assert_eq!(names(folder.path()), ["file"]);
    }
    let script = format!(
        "cd '{}' && {{ echo a; '{BINARY}' find-all -o /dev/stdout; echo b; }} > file",
        folder.path().display()
    );
    assert!(run("bash", ["-c", &script], "4\n5\n").status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n[4, 5]\nb\n");
}

/// W1 and W2
#[test]
fn an_error_leaves_the_old_output_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    for old in [None, Some("old")] {
        if let Some(old) = old {
            fs::write(&path, old).unwrap();
        }
        for (verb, format) in [
            ("find-all", "hashes"),
            ("find-clusters", "hashes"),
            ("hash", "jsonl"),
        ] {
            let args = [verb, "--format", format, "-o", path.to_str().unwrap()];
            let good = match verb {
                "hash" => "{\"id\": 1, \"text\": \"a text\"}\n".repeat(2),
                _ => "4\n5\n".to_owned(),
            };
            let output = run(BINARY, args, good + "12abc\n");
            assert_eq!(output.status.code(), Some(2), "{}", log(&output));
            assert!(log(&output).contains("<stdin>:3: "), "{}", log(&output));
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
            assert_eq!(names(folder.path()).len(), usize::from(old.is_some()));
        }
    }
}

/// W2: before the first byte is read, and while the output is being written.
#[test]
fn a_signal_leaves_the_old_output_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    fs::write(&path, "old").unwrap();
    let args = ["find-all", "-o", path.to_str().unwrap()];
    let unfinished_bytes = || {
        let unfinished = |name: &String| name.starts_with(".simshard-");
        let name = names(folder.path()).into_iter().find(unfinished)?;
        Some(fs::metadata(folder.path().join(name)).ok()?.len())
    };
    for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
        for input in ["", &"5\n".repeat(100_000)] {
            let mut child = start(&args);
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(input.as_bytes()).unwrap();
            let stdin = input.is_empty().then_some(stdin);
            let least = if input.is_empty() { 0 } else { 1 << 20 };
            wait_until(|| unfinished_bytes().is_some_and(|bytes| bytes >= least));
            signal(&child, name);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(number), "{}", log(&output));
            drop(stdin);
            assert_eq!(names(folder.path()), ["out.json"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        }
    }
}

/// W2: as under `nohup`.
#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let script = format!(
        "trap '' HUP INT; exec '{BINARY}' find-all -o '{}'",
        path.display()
    );
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| !names(folder.path()).is_empty());
    signal(&child, "HUP");
    signal(&child, "INT");
    child.stdin.take().unwrap().write_all(b"4\n5\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    assert_eq!(fs::read_to_string(&path).unwrap(), "[4, 5]\n");
}

#[test]
fn an_output_that_is_an_input_is_refused_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("hashes"), "4\n5\n").unwrap();
    symlink(path("hashes"), path("symlink")).unwrap();
    fs::hard_link(path("hashes"), path("hardlink")).unwrap();
    fs::create_dir(path("sub")).unwrap();
    for other in ["hashes", "symlink", "hardlink", "sub/../hashes", "./hashes"] {
        for (input, output) in [("hashes", other), (other, "hashes")] {
            for verb in ["find-all", "find-clusters"] {
                let args = [verb, "-i", &path(input), "-o", &path(output)];
                let output = run(BINARY, args, "");
                assert_eq!(output.status.code(), Some(2), "{other}: {}", log(&output));
                assert!(
                    log(&output).contains("choose another output"),
                    "{}",
                    log(&output)
                );
                assert_eq!(fs::read_to_string(path("hashes")).unwrap(), "4\n5\n");
            }
        }
    }
    for redirection in [
        "-o hashes < hashes",
        "-o symlink - < hashes",
        "hashes >> hashes",
    ] {
        let script = format!("cd '{}' && '{BINARY}' find-all {redirection}", path(""));
        let output = run("bash", ["-c", &script], "");
        assert_eq!(
            output.status.code(),
            Some(2),
            "{redirection}: {}",
            log(&output)
        );
        assert_eq!(fs::read_to_string(path("hashes")).unwrap(), "4\n5\n");
    }
}

/// Whether it is there already or not, and by whatever name.
#[test]
fn an_output_in_a_folder_that_is_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(path("read/sub")).unwrap();
    fs::create_dir(path("other")).unwrap();
    fs::write(path("read/there.json"), "old").unwrap();
    symlink(path("read"), path("link")).unwrap();
    symlink(path("read/sub/new.json"), path("other/dangling.json")).unwrap();
    for (input, output) in [
        ("read", "read/there.json"),
        ("read", "read/new.json"),
        ("read", "read/sub/new.json"),
        ("read", "other/../read/new.json"),
        ("read", "link/new.json"),
        ("link", "read/new.json"),
        ("read", "other/dangling.json"),
    ] {
        for args in [
            &["find-all", &path(input), "-o", &path(output)][..],
            &["hash", &path(input), "-o", &path(output)],
            &["find-clusters", &path(input), "--report", &path(output)],
        ] {
            let output = run(BINARY, args, "");
            assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
            assert!(log(&output).contains("that is read"), "{}", log(&output));
        }
    }
    assert_eq!(names(&folder.path().join("read")), ["sub", "there.json"]);
    let beside = ["find-all", &path("read"), "-o", &path("read.json")];
    let output = run(BINARY, beside, "");
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("file"), "").unwrap();
    for (output, reason) in [
        ("missing/out.json", "there is no folder "),
        (".", "s a directory"),
        ("file/out.json", "ot a directory"),
    ] {
        let ended = run(BINARY, ["find-all", "-o", &path(output)], "no hash\n");
        assert_eq!(ended.status.code(), Some(2), "{output}: {}", log(&ended));
        let log = log(&ended);
        assert!(log.contains(reason) && log.contains(output), "{log}");
        assert!(!log.contains("no hash"), "{log}");
    }
    // The superuser may write everywhere.
    let read_only = folder.path().join("read-only");
    fs::create_dir(&read_only).unwrap();
    fs::set_permissions(&read_only, PermissionsExt::from_mode(0o555)).unwrap();
    if File::create(read_only.join("probe")).is_err() {
        let ended = run(
            BINARY,
            ["find-all", "-o", &path("read-only/out")],
            "no hash\n",
        );
        assert_eq!(ended.status.code(), Some(2), "{}", log(&ended));
        assert!(log(&ended).contains("ermission denied"), "{}", log(&ended));
    }
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    let output = run(BINARY, ["find-all", "-o", "/dev/null"], "4\n5\n");
    assert_eq!(
        (output.status.code(), log(&output)),
        (Some(0), String::new())
    );
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let pipe = pipe.to_str().unwrap();
    let script = format!("mkfifo '{pipe}'; cat '{pipe}' & '{BINARY}' find-all -o '{pipe}'; wait");
    let output = run("bash", ["-c", &script], "4\n5\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "[4, 5]\n",
        "{}",
        log(&output)
    );
}

#[test]
fn a_full_disk_is_an_error_and_a_reader_who_left_is_none() {
    let output = run(BINARY, ["find-all", "-o", "/dev/full"], "4\n5\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        log(&output).starts_with("error: cannot write /dev/full: "),
        "{}",
        log(&output)
    );
    let dense = "5\n".repeat(10_000);
    for verb in ["find-all", "find-clusters"] {
        let script = format!("set -o pipefail; '{BINARY}' {verb} | head -c 9");
        let output = run("bash", ["-c", &script], &dense);
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
        assert_eq!(log(&output), "");
    }
}

/// The most memory that a process has held so far, in bytes.
fn peak_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

/// 100,000 documents behind one fingerprint are five thousand million pairs: they stream.
#[test]
fn pairs_of_one_crowded_fingerprint_stream_in_little_memory() {
    for extra in [&[][..], &["--format", "tsv"]] {
        let mut child = start(&[&["find-all"], extra].concat());
        let line = |number: usize| match extra.is_empty() {
            true => "12345678901234567890\n".to_owned(),
            false => format!("document {number}\t12345678901234567890\n"),
        };
        let input: String = (0..100_000).map(line).collect();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let read = std::io::copy(&mut (&mut stdout).take(200 << 20), &mut std::io::sink());
        assert_eq!(read.unwrap(), 200 << 20);
        let peak = peak_memory(&child);
        assert!(peak < 64 << 20, "{peak} bytes");
        drop(stdout);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn the_cluster_of_one_crowded_fingerprint_needs_no_pairs() {
    let begin = Instant::now();
    let mut child = start(&["find-clusters"]);
    let input = "12345678901234567890\n".repeat(100_000);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0];
    stdout.read_exact(&mut first).unwrap();
    let peak = peak_memory(&child);
    assert!(peak < 64 << 20, "{peak} bytes");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
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

#[test]
fn the_cluster_of_one_prefix_is_found_in_little_time_and_memory() {
    let begin = Instant::now();
    let mut child = start(&["find-clusters"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(of_one_prefix().as_bytes()).unwrap();
    drop(stdin);
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0];
    stdout.read_exact(&mut first).unwrap();
    let peak = peak_memory(&child);
    assert!(peak < 64 << 20, "{peak} bytes");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.lines().count(), 1);
    assert_eq!(rest.split(", ").count(), 100_000);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn pairs_of_one_prefix_stream_in_little_memory() {
    let mut child = start(&["find-all"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(of_one_prefix().as_bytes()).unwrap();
    drop(stdin);
    let mut stdout = child.stdout.take().unwrap();
    let read = std::io::copy(&mut (&mut stdout).take(200 << 20), &mut std::io::sink());
    assert_eq!(read.unwrap(), 200 << 20);
    let peak = peak_memory(&child);
    assert!(peak < 64 << 20, "{peak} bytes");
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_report_is_written_beside_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (verb, found) in [
        ("find-all", "[4, 5]\n[0, 4]\n"),
        ("find-clusters", "[0, 4, 5]\n"),
    ] {
        let args = [
            verb,
            "-d",
            "1",
            "-o",
            &path("out"),
            "--report",
            &path("page.html"),
        ];
        let output = run(BINARY, args, "5\n0\n4\n");
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
        let mut lines: Vec<String> = fs::read_to_string(path("out"))
            .unwrap()
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect();
        lines.sort_by(|a, b| b.cmp(a));
        assert_eq!(lines.concat(), found);
        let page = fs::read_to_string(path("page.html")).unwrap();
        assert!(
            page.starts_with("<!DOCTYPE html>") && page.contains(verb),
            "{page}"
        );
    }
    fs::write(path("page.html"), "old").unwrap();
    let output = run(
        BINARY,
        ["find-all", "--report", &path("page.html")],
        "no hash\n",
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(path("page.html")).unwrap(), "old");
    let same = ["find-all", "-o", &path("same"), "--report", &path("./same")];
    let output = run(BINARY, same, "5\n");
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    assert!(log(&output).contains("the same file"), "{}", log(&output));
    assert_eq!(names(folder.path()), ["out", "page.html"]);
}

#[test]
fn a_compressed_output_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.tsv.gz", "x.json.zst", "x.parquet.GZ", "x.jsonl.xz"] {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        for args in [
            &["find-all", "-o", path][..],
            &["find-clusters", "--output-format", "tsv", "-o", path],
            &["find-all", "--report", path],
        ] {
            let output = run(BINARY, args, "no hash\n");
            assert_eq!(output.status.code(), Some(2), "{}", log(&output));
            let log = log(&output);
            assert!(log.contains("outputs are not compressed"), "{log}");
            assert!(log.contains("gzip"), "{log}");
        }
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_report_never_mixes_with_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    for (arguments, reason) in [
        ("--report -", "name a file"),
        ("--report /dev/stdout", "name a file"),
        ("--report /dev/fd/1 -o out", "name a file"),
        ("--report /dev/fd/3 3>&1", "the same file"),
        ("--report page > page", "the same file"),
        ("--report page -o /dev/fd/3 3> page", "the same file"),
    ] {
        let script = format!("cd '{at}' && '{BINARY}' find-all {arguments}");
        let output = run("bash", ["-c", &script], "no hash\n");
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments}: {}",
            log(&output)
        );
        assert!(
            log(&output).contains(reason),
            "{arguments}: {}",
            log(&output)
        );
        assert_eq!(output.stdout, b"", "{arguments}");
    }
    let args = ["find-all", "-o", "/dev/null", "--report", "/dev/null"];
    assert!(run(BINARY, args, "4\n5\n").status.success());
}

#[test]
fn threads_are_1_to_256() {
    for (threads, code) in [("0", 2), ("1", 0), ("256", 0), ("257", 2), ("100000", 2)] {
        let output = run(BINARY, ["find-all", "--threads", threads], "4\n5\n");
        assert_eq!(output.status.code(), Some(code), "{}", log(&output));
        assert_eq!(log(&output).contains("1..=256"), code == 2);
    }
}

#[test]
fn a_parquet_file_is_written_where_the_program_can() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["find-all", "find-clusters"] {
        let path = folder.path().join(verb).with_extension("parquet");
        let output = run(BINARY, [verb, "-o", path.to_str().unwrap()], "5\n4\n");
        if cfg!(feature = "parquet") {
            assert_eq!(output.status.code(), Some(0), "{}", log(&output));
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        } else {
            assert_eq!(output.status.code(), Some(2), "{}", log(&output));
            assert!(
                log(&output).contains("--features parquet"),
                "{}",
                log(&output)
            );
            assert!(!path.exists());
        }
    }
}

/// A pattern that matches the output is refused as the file itself is.
#[test]
fn an_output_that_a_pattern_matches_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("a.txt"), "4\n").unwrap();
    fs::write(path("b.txt"), "5\n").unwrap();
    let output = run(
        BINARY,
        ["find-all", "-i", &path("*.txt"), "-o", &path("b.txt")],
        "",
    );
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    assert_eq!(fs::read_to_string(path("b.txt")).unwrap(), "5\n");
    let output = run(BINARY, ["find-all", "-i", &path("*.txt")], "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[4, 5]\n");
    let tsv = ["find-all", &path("*.txt"), "--output-format", "tsv"];
    let output = run(BINARY, tsv, "");
    let expected = format!("{}:1\t{}:1\t1\n", path("a.txt"), path("b.txt"));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(&expected));
}
