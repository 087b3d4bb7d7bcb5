//! What the commands say to bad input: file, line and value, exit code 2, and
//! nothing half done.

use std::fs;
use std::process::Command;

use simshard_testkit::{run, run_with_open_input};

use crate::{BINARY, embedded, log, said};

#[test]
fn bad_fingerprints_are_named_and_nothing_is_inserted() {
    let router = embedded();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hashes.tsv");
    for (value, shown) in [
        ("", "\"\""),
        ("-1", "\"-1\""),
        ("12abc", "\"12abc\""),
        ("18446744073709551616", "\"18446744073709551616\""),
        ("1.5", "\"1.5\""),
        (" 1", "\" 1\""),
    ] {
        fs::write(&path, format!("a\t1\nb\t{value}\nc\t3\n")).unwrap();
        let path = path.to_str().unwrap();
        for verb in ["insert", "remove", "find", "find-first"] {
            let output = run(BINARY, [verb, path, "--router", router.url()], "");
            assert_eq!(
                output.status.code(),
                Some(2),
                "{verb} {value:?}: {}",
                log(&output)
            );
            assert!(
                log(&output).contains("hashes.tsv:2"),
                "{value:?}: {}",
                log(&output)
            );
            assert!(log(&output).contains(shown), "{value:?}: {}", log(&output));
            assert!(output.stdout.is_empty(), "{verb} printed half an answer");
        }
    }
    let shown = run(
        BINARY,
        ["corpus", "show", "default", "--router", router.url()],
        "",
    );
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("documents     0\n"), "{shown}");
}

#[test]
fn bad_lines_are_counted_when_they_may_be_skipped() {
    let router = embedded();
    let input = "a\t1\nb\t12abc\n\nc\t3\n";
    let args = [
        "insert",
        "--format",
        "tsv",
        "--skip-bad-lines",
        "--router",
        router.url(),
    ];
    let output = run(BINARY, args, input);
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    assert!(
        log(&output).contains("inserted 2 documents"),
        "{}",
        log(&output)
    );
    let told = "skipped 2 bad lines\n  <stdin>:2: \"12abc\" is no fingerprint";
    assert!(log(&output).contains(told), "{}", log(&output));
    assert!(log(&output).contains("\n  <stdin>:3: "), "{}", log(&output));
}

#[test]
fn binary_and_broken_files_are_skipped_and_counted() {
    let router = embedded();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text.txt"), "some words in a text file").unwrap();
    fs::write(folder.path().join("latin1.txt"), b"caf\xe9 au lait").unwrap();
    fs::write(folder.path().join("binary"), b"\x7fELF\0\0\0").unwrap();
    let folder = folder.path().to_str().unwrap();
    let output = run(BINARY, ["insert", folder, "--router", router.url()], "");
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    assert!(
        log(&output).contains("inserted 1 document,"),
        "{}",
        log(&output)
    );
    assert!(log(&output).contains("1 binary file"), "{}", log(&output));
    assert!(log(&output).contains("UTF-8"), "{}", log(&output));
}

#[test]
fn bad_arguments_exit_with_two() {
    for args in [
        &["distance", "1", "12abc"][..],
        &["distance", "1", "-1"],
        &["distance", "1", ""],
        &["distance", "1", "18446744073709551616"],
        &["hash", "--recipe", "words-v9"],
        &["find", "--fingerprint", "-1"],
        &["serve", "node", "--name", "n1"],
        &[
            "serve",
            "node",
            "--cluster",
            "/nonexistent/cluster.toml",
            "--name",
            "No Name",
        ],
        &["serve", "router", "--cluster", "/nonexistent/cluster.toml"],
        &["bench", "engine", "--blocks", "3", "--distance", "3"],
        &["no-such-command"],
    ] {
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{args:?}"
        );
    }
}

#[test]
fn what_the_router_finds_wrong_exits_with_two_as_well() {
    let router = embedded();
    for args in [
        &["corpus", "create", "x", "--blocks", "3"][..],
        &["corpus", "create", "x", "--blocks", "65"],
        &["corpus", "create", "No Name"],
        &["corpus", "create", "default"],
        &["find", "--fingerprint", "1", "--max-distance", "9"],
        &["find", "--fingerprint", "1", "--corpus", "nope"],
        &["insert", "--corpus", "nope"],
    ] {
        let output = run(BINARY, [args, &["--router", router.url()]].concat(), "");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
    }
}

#[test]
fn a_corpus_that_is_not_there_is_a_wrong_argument_and_the_list_is_named() {
    let router = embedded();
    for verb in [
        &["show", "nope"][..],
        &["delete", "nope"],
        &["shards", "nope", "1"],
    ] {
        let args = [&["corpus"], verb, &["--router", router.url()]].concat();
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{}", log(&output));
        let expected =
            "error: there is no corpus nope: `simshard corpus list` lists those that exist\n";
        assert_eq!(log(&output), expected);
    }
}

#[test]
fn an_address_that_cannot_be_is_a_wrong_argument_and_a_taken_one_is_not() {
    let taken = embedded();
    let taken = taken.url().trim_start_matches("http://");
    // The other one is for documentation: no machine has it.
    for (listen, code) in [("192.0.2.1:0", 2), (taken, 1)] {
        let output = run(BINARY, ["serve", "--insecure", "--listen", listen], "");
        assert_eq!(output.status.code(), Some(code), "{}", log(&output));
        let text = log(&output);
        assert!(text.contains("choose another with --listen: "), "{text}");
        assert_eq!(text.matches("(os error").count(), 1, "{text}");
    }
}

#[test]
fn a_data_directory_that_cannot_be_is_a_wrong_argument() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no directory").unwrap();
    for data in [file.clone(), file.join("below")] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data"];
        let data = data.to_str().unwrap();
        let output = run(BINARY, [&serve[..], &[data]].concat(), "");
        let text = log(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(file.to_str().unwrap()), "{text}");
        assert_eq!(text.matches("(os error").count(), 1, "{text}");
    }
}

/// An error is reported when it happens, not when the input ends.
#[test]
fn an_error_does_not_wait_for_the_end_of_the_input() {
    let router = embedded();
    let lines: String = (1..=5000).map(|line| format!("text {line}\n")).collect();
    for verb in ["find", "insert"] {
        let bad = match verb {
            "find" => &["--max-distance", "9"][..],
            _ => &["--corpus", "nowhere"],
        };
        let args = [&[verb, "--skip-bad-lines", "--router", router.url()], bad].concat();
        let output = run_with_open_input(BINARY, args, &lines);
        assert_eq!(output.status.code(), Some(2), "{}", log(&output));
        assert!(log(&output).starts_with("error: "), "{}", log(&output));
    }
}

#[test]
fn hash_refuses_ids_that_it_cannot_print_before_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.jsonl");
    let line = |id: &str| format!("{{\"id\": \"{id}\", \"text\": \"some text\"}}\n");
    fs::write(&path, line("good") + &line("a\\tb") + &line("fine")).unwrap();
    let path = path.to_str().unwrap();
    let output = run(BINARY, ["hash", path], "");
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    assert!(output.stdout.is_empty());
    let expected = "pages.jsonl:2: the id \"a\\tb\" has a tab, a line break or a NUL byte";
    assert!(log(&output).contains(expected), "{}", log(&output));

    let output = run(BINARY, ["hash", "--skip-bad-lines", path], "");
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    assert_eq!(
        said(&output),
        format!(
            "skipped 1 bad line\n  {path}:2: the id \"a\\tb\" has a tab, a line break or a NUL byte, which TSV cannot hold\n"
        )
    );
}

#[test]
fn hash_skips_files_whose_paths_it_cannot_print() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a\tb", "c\nd", "good"] {
        fs::write(folder.path().join(name), "some text").unwrap();
    }
    let output = run(BINARY, ["hash", folder.path().to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    let log = log(&output);
    assert_eq!(log.matches("WARN").count(), 2, "{log}");
    assert!(log.contains("\nskipped 2 unnameable files\n"), "{log}");
}

/// By one warning each, without what would break the line.
#[test]
fn a_file_that_is_named_and_cannot_be_printed_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, reason) in [
        ("a\tb", "some text", "its path cannot be an id: the id"),
        ("c\nd", "some text", "its path cannot be an id: the id"),
        ("binary", "\0", "skipped: binary"),
        ("cut.gz", "\x1F", "the gzip data ends too early"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let args = ["hash", "--format", "files", path.to_str().unwrap()];
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{name:?}: {}", log(&output));
        let log = log(&output);
        let [warning, error] = log.lines().collect::<Vec<_>>()[..] else {
            panic!("{log}");
        };
        assert!(
            warning.contains("WARN") && warning.contains(reason),
            "{log}"
        );
        let shown = name.escape_debug().to_string();
        assert!(warning.contains(&shown) && !log.contains('\t'), "{log}");
        assert!(error.starts_with("error: none of the files"), "{log}");
    }
}

#[test]
fn paths_of_several_kinds_are_refused_without_a_format() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "b.txt"] {
        fs::write(folder.path().join(name), "{\"id\": 1, \"text\": \"x\"}\n").unwrap();
    }
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let output = run(BINARY, ["hash", &path("a.jsonl"), &path("b.txt")], "");
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    assert!(log(&output).contains("--format"), "{}", log(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn hash_takes_no_file_for_lines_of_text_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    for (name, hint) in [
        ("a.json", "--format jsonl"),
        ("a.csv", "looks like JSON"),
        ("a.txt", "--format jsonl"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, "{\"id\": 1, \"text\": \"x\"}\n").unwrap();
        let path = path.to_str().unwrap();
        let output = run(BINARY, ["hash", path], "");
        assert_eq!(output.status.code(), Some(2), "{}", log(&output));
        assert!(log(&output).contains(hint), "{}", log(&output));
        assert!(output.stdout.is_empty());
        let output = run(BINARY, ["hash", "--format", "lines", path], "");
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    }
}

#[test]
fn a_role_with_a_bad_layout_fails_before_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let node = "[[nodes]]\nname = \"n1\"\naddress = \"http://127.0.0.1:1\"\n";
    for (text, name, expected) in [
        (node, "nope", "the layout has no node nope: it lists n1"),
        ("[[nodes]]\nname = ", "n1", "cluster.toml line 2"),
        (&node.repeat(2), "n1", "cluster.toml: "),
        ("", "n1", "cluster.toml"),
    ] {
        let path = folder.path().join("cluster.toml");
        fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let node = ["serve", "node", "--cluster", path, "--name", name];
        let listening = [&node[..], &["--listen", "127.0.0.1:0"]].concat();
        let router = [
            "serve",
            "router",
            "--cluster",
            path,
            "--listen",
            "127.0.0.1:0",
        ];
        let router = (name == "n1").then_some(&router[..]);
        for args in [&node[..], &listening].into_iter().chain(router) {
            let output = run(BINARY, args, "");
            assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
            assert!(output.stdout.is_empty(), "{args:?} listened");
            assert!(log(&output).contains(expected), "{}", log(&output));
            assert_eq!(log(&output).lines().count(), 1, "{}", log(&output));
        }
    }
}

#[test]
fn a_bad_log_filter_exits_with_two() {
    for args in [
        &["distance", "1", "2"][..],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let mut command = Command::new(BINARY);
        let output = command.args(args).env("SIMSHARD_LOG", "a=b=c").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", log(&output));
        assert!(log(&output).contains("SIMSHARD_LOG"), "{}", log(&output));
        assert!(output.stdout.is_empty());
    }
}

/// Where standard error is no terminal, nothing but messages is written to it.
#[test]
fn checking_is_silent_without_a_terminal() {
    let output = run(BINARY, ["hash"], "a text\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(said(&output), "");
}

#[test]
fn without_a_router_the_error_says_how_to_start_one() {
    let output = run(
        BINARY,
        ["find", "--text", "x", "--router", "http://127.0.0.1:1"],
        "",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(log(&output).contains("simshard serve"), "{}", log(&output));
}

#[test]
fn local_commands_print_the_published_values() {
    let input = "hello world\nthe cat sat on the mat\n";
    let output = run(BINARY, ["hash", "--recipe", "leonsim-3"], input);
    let expected = "id\thash\n1\t13548364882372308181\n2\t1021727997314947874\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);

    let output = run(
        BINARY,
        ["distance", "5456993838078482869", "5457064206285785525"],
        "",
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "3\n");
    let output = run(BINARY, ["distance", "0", "18446744073709551615"], "");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "64\n");

    let output = run(BINARY, ["completions", "bash"], "");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("_clap_complete_simshard")
    );
}

#[test]
fn what_hash_prints_can_be_inserted_and_found() {
    let router = embedded();
    let texts = "one text to be stored by its hash\nanother text, also by its hash\n";
    let hashed = run(BINARY, ["hash"], texts).stdout;
    let args = ["insert", "--format", "tsv", "--router", router.url()];
    assert!(run(BINARY, args, &hashed).status.success());
    let found = run(BINARY, ["find", "--router", router.url()], texts);
    let found = String::from_utf8(found.stdout).unwrap();
    let ids: Vec<bool> = (1..)
        .zip(found.lines())
        .map(|(id, line)| line.contains(&format!(r#""ids":["{id}"]"#)))
        .collect();
    assert_eq!(ids, [true, true], "{found}");
}

#[test]
fn the_demo_verifies_itself() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..40 {
        let text = format!(
            "a text of some length that is the same but for its end {}",
            number / 4
        );
        fs::write(folder.path().join(format!("{number}.txt")), text).unwrap();
    }
    let output = run(
        BINARY,
        ["demo", "--verify", folder.path().to_str().unwrap()],
        "",
    );
    let shown = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{shown}{}", log(&output));
    let last = shown.lines().last().unwrap();
    assert!(
        last.starts_with("verified: ") && last.ends_with(" pairs, 0 missed, 0 extra"),
        "{last}"
    );
}

#[test]
fn fields_are_refused_where_there_are_none() {
    let router = embedded();
    for field in ["--id-field", "--text-field", "--fingerprint-field"] {
        let args = ["insert", field, "body", "--router", router.url()];
        let output = run(BINARY, args, "{\"id\":1,\"body\":\"some words\"}\n");
        assert_eq!(output.status.code(), Some(2), "{field}: {}", log(&output));
        assert!(log(&output).contains(field), "{}", log(&output));
    }
}

/// The reader of standard output or error may close it early.
#[test]
fn a_reader_who_leaves_ends_nothing_with_a_panic() {
    let router = embedded();
    let big: String = (0..200_000)
        .map(|number| format!("{number}\t{number}\n"))
        .collect();
    let find = format!(
        "'{BINARY}' find --format tsv --router {} | head -1",
        router.url()
    );
    let insert = format!("'{BINARY}' insert --router {} 2>&-", router.url());
    let completions = format!("'{BINARY}' completions bash | true");
    for (script, input) in [
        (&find, &*big),
        (&insert, "a text of a few words\n"),
        (&completions, ""),
    ] {
        let script = format!("set -o pipefail; {script}");
        let output = run("bash", ["-c", &script], input);
        assert_eq!(output.status.code(), Some(0), "{script}: {}", log(&output));
        assert!(!log(&output).contains("panicked"), "{}", log(&output));
    }
    let shown = run(
        BINARY,
        [
            "find",
            "--text",
            "a text of a few words",
            "--router",
            router.url(),
        ],
        "",
    );
    assert!(
        String::from_utf8(shown.stdout)
            .unwrap()
            .contains(r#""ids":["1"]"#)
    );
}

#[test]
fn overlapping_paths_of_a_demo_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let path = folder.path().join(format!("{number}.txt"));
        fs::write(path, "the same text in each of these files").unwrap();
    }
    let all = folder.path().to_str().unwrap();
    let one = folder.path().join("1.txt");
    let args = ["demo", "--verify", one.to_str().unwrap(), all, all];
    let output = run(BINARY, args, "");
    let shown = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        shown.contains("     0  ~100 %  2.txt\n")
            && shown.ends_with("verified: 3 pairs, 0 missed, 0 extra\n"),
        "{shown}{}",
        log(&output)
    );
}

#[test]
fn fingerprints_of_another_recipe_are_refused_where_it_is_named() {
    let router = embedded();
    for (recipe, code) in [("leonsim-3", 2), ("words-v3", 0)] {
        for command in [
            &["insert", "--format", "tsv"][..],
            &["find", "--fingerprint", "1"],
        ] {
            let to = ["--recipe", recipe, "--router", router.url()];
            let output = run(BINARY, [command, &to].concat(), "a\t1\n");
            let problem = format!("{command:?} {recipe}: {}", log(&output));
            assert_eq!(output.status.code(), Some(code), "{problem}");
        }
    }
}

/// A file of 1 GiB that takes no space: one line without an end.
fn endless_line(path: &std::path::Path) {
    let file = fs::File::create(path).unwrap();
    file.set_len(1 << 30).unwrap();
}

#[test]
fn every_format_names_file_and_line_of_what_is_bad() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let good = "{\"id\":1,\"text\":\"some words\"}\n";
    let bad = [
        (
            "field.jsonl",
            format!("{good}{{\"id\":2}}\n").into_bytes(),
            "2: {\"id\":2} has no field \"text\"",
        ),
        (
            "nul.jsonl",
            format!("{good}{{\"id\":2,\"text\":\"\0\"}}\n").into_bytes(),
            "2: {\"id\":2",
        ),
        (
            "utf8.jsonl",
            [good.as_bytes(), b"{\"id\":2,\"text\":\"\xFF\"}"].concat(),
            "2: \"{\"id\":2",
        ),
        (
            "gzip.jsonl",
            b"\x1F\x8B\x08\0\0\0\0\0\0\x03".to_vec(),
            "1: the gzip data ends too early",
        ),
        (
            "zstd.jsonl",
            b"\x28\xB5\x2F\xFD\x24".to_vec(),
            "1: the zstd data ends too early",
        ),
    ];
    for (name, content, expected) in bad {
        fs::write(path(name), content).unwrap();
        let output = run(BINARY, ["hash", path(name).to_str().unwrap()], "");
        assert_eq!(output.status.code(), Some(2), "{name}: {}", log(&output));
        let expected = format!("{name}:{expected}");
        assert!(log(&output).contains(&expected), "{name}: {}", log(&output));
        assert!(output.stdout.is_empty(), "{name}");
    }
    endless_line(&path("endless"));
    for format in ["lines", "jsonl"] {
        let endless = path("endless");
        let args = ["hash", "--format", format, endless.to_str().unwrap()];
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{format}: {}", log(&output));
        let expected = "endless:1: the line takes more than 8388608 bytes, which is the limit: add \
                        --skip-bad-lines to leave such lines out\n";
        assert!(
            log(&output).ends_with(expected),
            "{format}: {}",
            log(&output)
        );
    }
}

#[test]
fn a_line_that_is_too_long_can_be_left_out() {
    let long = "x".repeat((8 << 20) + 1);
    let args = ["hash", "--skip-bad-lines", "--recipe", "leonsim-3"];
    let output = run(BINARY, args, format!("{long}\nhello world\n"));
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let expected = "id\thash\n2\t13548364882372308181\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let expected = "skipped 1 bad line\n  \
                    <stdin>:1: the line takes more than 8388608 bytes, which is the limit\n";
    assert_eq!(said(&output), expected);
}

#[test]
fn bare_fingerprints_are_inserted_plain_and_compressed() {
    let router = embedded();
    let args = ["insert", "--format", "hashes", "--router", router.url()];
    // What `printf '17\n18\n' | gzip -n` prints.
    let zipped =
        b"\x1F\x8B\x08\0\0\0\0\0\0\x03\x33\x34\xE7\x32\xB4\xE0\x02\0\x1B\x2B\xBB\xD0\x06\0\0\0";
    let output = run(BINARY, args, &zipped[..]);
    assert!(
        log(&output).contains("inserted 2 documents"),
        "{}",
        log(&output)
    );
    let output = run(BINARY, args, "17\n18\n");
    assert!(log(&output).contains("2 there already"), "{}", log(&output));
}
