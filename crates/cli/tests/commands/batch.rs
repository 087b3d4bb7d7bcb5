//! `find-pairs` and `find-clusters` as whole processes: what they print, in every format.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use simshard_simhash::{Fingerprint, synthetic::Data};
use simshard_testkit::run;

use crate::{BINARY, log, said};

/// What a command prints, which must succeed and say nothing but its recipe.
fn printed(args: &[&str], input: &str) -> String {
    let output = run(BINARY, args, input);
    assert_eq!(said(&output), "", "{args:?}");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn jsonl(ids: &[&str]) -> String {
    let line = |id: &&str| format!("{{\"id\": {id}, \"text\": \"the same text for all\"}}\n");
    ids.iter().map(line).collect()
}

#[test]
fn the_ancestors_commands_print_the_ancestors_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, output) = (path("hashes"), path("found"));
    fs::write(&input, "4095\n7\n4\n5\n18446744073709551615\n").unwrap();
    for (verb, expected) in [
        ("find-pairs", "[4, 5]\n[4, 7]\n[5, 7]\n"),
        ("find-clusters", "[4, 5, 7]\n"),
    ] {
        for [i, o, b, d] in [
            ["--input", "--output", "--blocks", "--distance"],
            ["-i", "-o", "-b", "-d"],
        ] {
            let args = [verb, b, "6", d, "3", i, &input, o, &output];
            assert_eq!(printed(&args, ""), "");
            assert_eq!(
                sorted_lines(&fs::read_to_string(&output).unwrap()),
                expected
            );
        }
        let text = fs::read_to_string(&input).unwrap();
        let stdin = [verb, "--blocks", "6", "-d", "3", "-i", "-", "-o", "-"];
        assert_eq!(sorted_lines(&printed(&stdin, &text)), expected);
        assert_eq!(sorted_lines(&printed(&[verb], &text)), expected);
        assert_eq!(sorted_lines(&printed(&[verb, &input], "")), expected);
    }
}

fn sorted_lines(text: &str) -> String {
    let lines: BTreeSet<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), text.lines().count(), "a line twice: {text}");
    lines.into_iter().collect()
}

#[test]
fn a_repeated_hash_is_a_repeated_document() {
    let input = "5\n4\n5\n5\n";
    let pairs = printed(&["find-pairs"], input);
    assert_eq!(pairs, "[5, 5]\n[5, 5]\n[5, 5]\n[4, 5]\n[4, 5]\n[4, 5]\n");
    assert_eq!(printed(&["find-clusters"], input), "[4, 5, 5, 5]\n");
    let tsv = ["find-pairs", "--output-format", "tsv"];
    let expected = "id_a\tid_b\tdistance\n1\t3\t0\n1\t4\t0\n3\t4\t0\n2\t1\t1\n2\t3\t1\n2\t4\t1\n";
    assert_eq!(printed(&tsv, input), expected);
}

#[test]
fn distance_zero_finds_equal_fingerprints() {
    let input = "5\n4\n5\n0\n18446744073709551615\n0\n";
    for blocks in ["auto", "1", "6"] {
        let args = ["-d", "0", "-b", blocks];
        let pairs = printed(&[&["find-pairs"], &args[..]].concat(), input);
        assert_eq!(pairs, "[0, 0]\n[5, 5]\n");
        let clusters = printed(&[&["find-clusters"], &args[..]].concat(), input);
        assert_eq!(clusters, "[0, 0]\n[5, 5]\n");
    }
}

#[test]
fn loners_are_clusters_where_they_are_asked_for() {
    let input = "900\n5\n4\n900\n0\n";
    let clusters = ["find-clusters", "-d", "1"];
    assert_eq!(printed(&clusters, input), "[0, 4, 5]\n[900, 900]\n");
    let input = "900\n5\n4\n18446744073709551615\n";
    let all = [&clusters[..], &["--singletons"]].concat();
    assert_eq!(
        printed(&all, input),
        "[4, 5]\n[900]\n[18446744073709551615]\n"
    );
}

#[test]
fn documents_with_ids_are_named_by_them() {
    let input = "id\thash\nz\t5\na\t4\nm\t5\n";
    let tsv = ["--format", "hash"];
    let find = |verb: &str, format: &str| {
        let output = ["--output-format", format];
        printed(&[&[verb], &tsv[..], &output[..]].concat(), input)
    };
    let pairs = "[\"z\", \"m\"]\n[\"a\", \"z\"]\n[\"a\", \"m\"]\n";
    assert_eq!(find("find-pairs", "json"), pairs);
    let pairs = "id_a\tid_b\tdistance\nz\tm\t0\na\tz\t1\na\tm\t1\n";
    assert_eq!(find("find-pairs", "tsv"), pairs);
    let first = r#"{"id_a":"z","id_b":"m","fingerprint_a":"5","fingerprint_b":"5","distance":0}"#;
    assert!(find("find-pairs", "jsonl").starts_with(first));

    assert_eq!(find("find-clusters", "json"), "[\"a\", \"z\", \"m\"]\n");
    let clusters = "id\thash\tcluster\na\t4\t4\nz\t5\t4\nm\t5\t4\n";
    assert_eq!(find("find-clusters", "tsv"), clusters);
    let clusters = "\
        {\"id\":\"a\",\"fingerprint\":\"4\",\"cluster\":\"4\"}\n\
        {\"id\":\"z\",\"fingerprint\":\"5\",\"cluster\":\"4\"}\n\
        {\"id\":\"m\",\"fingerprint\":\"5\",\"cluster\":\"4\"}\n";
    assert_eq!(find("find-clusters", "jsonl"), clusters);
}

#[test]
fn json_lines_are_read_with_the_ancestors_options() {
    let input = "{\"key\": 7, \"body\": \"the same words in both of these\"}\n\
                 {\"key\": 9, \"body\": \"the same words in both of these\"}\n\
                 {\"key\": 11, \"body\": \"the same words in both of these\"}\n";
    let columns = ["--text_column", "body", "--id_column=key"];
    let common = [
        "find-clusters",
        "--format",
        "json",
        "--output-format",
        "tsv",
    ];
    let args = [&common[..], &columns, &["--sample", "2"]].concat();
    let clusters = printed(&args, input);
    let ids: Vec<&str> = clusters
        .lines()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(ids, ["id", "7", "9"]);
    let all = [&common[..], &columns, &["--sample", "0"]].concat();
    assert_eq!(printed(&all, input).lines().count(), 4);
}

#[test]
fn the_extension_names_the_format() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in [
        ("a.tsv", "id_a\tid_b\tdistance\n2\t1\t1\n"),
        ("a.json", "[4, 5]\n"),
        ("a", "[4, 5]\n"),
        (
            "a.ndjson",
            "{\"id_a\":\"2\",\"id_b\":\"1\",\"fingerprint_a\":\"4\",\"fingerprint_b\":\"5\",\"distance\":1}\n",
        ),
    ] {
        let path = folder.path().join(name);
        printed(&["find-pairs", "-o", path.to_str().unwrap()], "5\n4\n");
        assert_eq!(fs::read_to_string(path).unwrap(), expected, "{name}");
    }
}

#[test]
fn any_id_survives_json_and_tsv_refuses_what_it_cannot_hold() {
    let ids = [
        r#""a\"b""#,
        r#""tab\there""#,
        r#""line\nbreak""#,
        r#""üñï \\ 💡""#,
        r#""""#,
    ];
    let input = jsonl(&ids);
    let json = printed(&["find-clusters", "--format", "jsonl"], &input);
    let read: Vec<String> = serde_json::from_str(&json).unwrap();
    let expected = ["a\"b", "tab\there", "line\nbreak", "üñï \\ 💡", ""];
    assert_eq!(read, expected);
    let jsonl = [
        "find-clusters",
        "--format",
        "jsonl",
        "--output-format",
        "jsonl",
    ];
    let lines = printed(&jsonl, &input);
    let read = lines.lines().map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["id"].as_str().unwrap().to_owned()
    });
    assert_eq!(read.collect::<Vec<_>>(), expected);

    let args = ["find-pairs", "--format", "jsonl", "--output-format", "tsv"];
    let output = run(BINARY, args, &input);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        log(&output).contains("<stdin>:2: the id"),
        "{}",
        log(&output)
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn nothing_in_gives_nothing_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    for verb in ["find-pairs", "find-clusters"] {
        assert_eq!(printed(&[verb], ""), "");
        assert_eq!(printed(&[verb], "7\n"), "");
        printed(&[verb, "-o", path.to_str().unwrap()], "");
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
    let tsv = ["find-clusters", "--output-format", "tsv"];
    assert_eq!(printed(&tsv, ""), "id\thash\tcluster\n");
}

/// Every pair of a set, by comparing all.
fn all_pairs(set: &[Fingerprint], distance: u32) -> BTreeSet<(u64, u64)> {
    let mut pairs = BTreeSet::new();
    for (place, &a) in set.iter().enumerate() {
        for &b in &set[place + 1..] {
            if a.distance(b) <= distance {
                pairs.insert((a.min(b).0, a.max(b).0));
            }
        }
    }
    pairs
}

fn numbers(line: &str) -> Vec<u64> {
    serde_json::from_str(line).unwrap()
}

#[test]
fn pairs_and_clusters_equal_those_of_comparing_all() {
    for (data, seed) in Data::ALL.into_iter().zip([11, 12, 13]) {
        let mut set = data.fingerprints(3000, seed);
        set.sort_unstable();
        set.dedup();
        let input: String = set.iter().rev().map(|one| format!("{one}\n")).collect();
        for distance in [0, 1, 3, 5] {
            let expected = all_pairs(&set, distance);
            let places = |value: u64| set.binary_search(&Fingerprint(value)).unwrap();
            let mut clusters = simshard_simhash::Clusters::new(set.len());
            for &(a, b) in &expected {
                clusters.union(places(a), places(b));
            }
            let groups = clusters.groups();
            for blocks in [
                "auto".to_owned(),
                (distance + 1).to_string(),
                (distance + 3).to_string(),
            ] {
                let context = format!("{} {seed}, {distance} {blocks}", data.name());
                let args = ["-d", &distance.to_string(), "-b", &blocks, "--threads", "2"];
                let found = printed(&[&["find-pairs"], &args[..]].concat(), &input);
                let pairs: BTreeSet<(u64, u64)> = found
                    .lines()
                    .map(|line| (numbers(line)[0], numbers(line)[1]))
                    .collect();
                assert_eq!(pairs, expected, "{context}");
                assert_eq!(
                    found.lines().count(),
                    expected.len(),
                    "{context}: a pair twice"
                );

                let found = printed(&[&["find-clusters"], &args[..]].concat(), &input);
                let found: Vec<Vec<usize>> = found
                    .lines()
                    .map(|line| numbers(line).into_iter().map(places).collect())
                    .collect();
                assert_eq!(found, groups, "{context}");
            }
        }
    }
}

/// The cluster's id and the order of clusters do not depend on the order of the input.
#[test]
fn shuffled_input_gives_the_same_clusters() {
    let set = Data::Clustered.fingerprints(2000, 5);
    let line = |number: usize| format!("d{number}\t{}\n", set[number]);
    let forwards: String = (0..set.len()).map(line).collect();
    let backwards: String = (0..set.len()).rev().map(line).collect();
    let args = ["find-clusters", "--format", "tsv", "--output-format", "tsv"];
    let forwards = sorted_lines(&printed(&args, &forwards));
    let backwards = sorted_lines(&printed(&args, &backwards));
    assert!(forwards.lines().count() > 1500 && forwards == backwards);
}

#[test]
fn the_same_input_gives_the_same_bytes_on_any_number_of_threads() {
    let set = Data::Skewed.fingerprints(20_000, 6);
    let input: String = set.iter().map(|one| format!("{one}\n")).collect();
    let with = |threads: &str| printed(&["find-pairs", "--threads", threads], &input);
    let one = with("1");
    assert!(one.lines().count() > 100);
    for threads in ["2", "3", "2"] {
        assert!(with(threads) == one, "{threads} threads");
    }
}

#[test]
fn bad_arguments_are_refused_before_anything_is_read() {
    for args in [
        &["-b", "3", "-d", "3"][..],
        &["-b", "65"],
        &["-b", "0"],
        &["-b", "six"],
        &["-d", "-1"],
        &["-d", "64"],
        &["-b", "46", "-d", "2"],
        &["--threads", "0"],
        &["--output-format", "xml"],
        &["--window", "4294967295"],
        &["--window", "5", "--recipe", "words-v1"],
        &["--compat"],
    ] {
        for verb in ["find-pairs", "find-clusters"] {
            let output = run(BINARY, [&[verb], args].concat(), "no hash\n");
            assert_eq!(output.status.code(), Some(2), "{args:?}: {}", log(&output));
            assert!(!log(&output).contains("no hash"), "{}", log(&output));
        }
    }
    assert!(!Path::new("no hash").exists());
}

/// The members that `find-clusters` prints as TSV, after nothing but their header.
fn cluster_members(args: &[&str], input: &str) -> Vec<[String; 3]> {
    let tsv = ["find-clusters", "--output-format", "tsv"];
    let table = printed(&[&tsv, args].concat(), input);
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("id\thash\tcluster"));
    let member = |line: &str| {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        columns.try_into().unwrap()
    };
    lines.map(member).collect()
}

/// ChenghaoMou's options, short and long, and where its results are others: each line of this
/// is in the table of `docs/migrating.md`.
#[test]
fn chenghaomous_options_are_taken_and_the_differences_are_those_told() {
    let input = "{\"key\": 7, \"body\": \"the same bytes in both of these\"}\n\
                 {\"key\": \"any string\", \"body\": \"the same bytes in both of these\"}\n\
                 {\"key\": \"any string\", \"body\": \"the same bytes in both of these\"}\n\
                 {\"key\": 9, \"body\": \"what the sample leaves out\"}\n";
    let short = ["-f", "json", "-tbody", "-xkey", "-n", "3"];
    let long = "--format json --text_column=body --id_column key --sample=3";
    let long: Vec<&str> = long.split(' ').collect();
    let with = |first: &[&str], more: &str| {
        let more: Vec<&str> = more.split_whitespace().collect();
        cluster_members(&[first, &more].concat(), input)
    };
    let compat = with(&short, "-w5 --compat -b 6 -d 3");
    assert_eq!(compat, with(&long, "--window 5 --compat"));

    let ids: Vec<&str> = compat.iter().map(|member| member[0].as_str()).collect();
    assert_eq!(ids, ["7", "any string", "any string"]);
    for [_, hash, cluster] in &compat {
        assert_eq!(hash, cluster, "the smallest fingerprint");
    }
    assert_eq!(compat, with(&short, "--recipe jenkins-window-5-compat"));
    assert_eq!(compat, with(&short, "--window 0 --compat"));
    let whole = with(&short, "--window 5");
    assert_eq!(whole, with(&short, "--recipe jenkins-window-5"));
    let words = with(&short, "");
    assert_eq!(words, with(&short, "--recipe words-v3"));
    assert!(compat != whole && compat != words && whole != words);

    let hashes = "a\t5\nb\t4\nc\t18446744073709551615\n";
    let expected = [["b", "4", "4"], ["a", "5", "4"]];
    assert_eq!(cluster_members(&["-f", "hash"], hashes), expected);
    let headed = format!("id\thash\n{hashes}");
    assert_eq!(cluster_members(&["-f", "hash"], &headed), expected);
}

#[test]
fn lines_that_the_ancestors_misread_are_refused_by_their_number() {
    for (line, shown) in [("", "\"\""), ("-1", "\"-1\""), ("12abc", "\"12abc\"")] {
        for verb in ["find-pairs", "find-clusters"] {
            let output = run(BINARY, [verb], format!("4\n{line}\n5\n"));
            assert_eq!(output.status.code(), Some(2), "{line}: {}", log(&output));
            let expected = format!("<stdin>:2: {shown} is no fingerprint");
            assert!(log(&output).contains(&expected), "{}", log(&output));
            assert!(output.stdout.is_empty());
        }
    }
}
