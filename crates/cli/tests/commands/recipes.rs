//! Which recipe commands take and name, and what they do with texts that it gives no fingerprint.

use simshard_testkit::run;

use crate::{BINARY, embedded, log, simshard};

const PAGES: &str = concat!(
    "{\"id\": \"a\", \"text\": \"one two three\"}\n",
    "{\"id\": \"empty\", \"text\": \"\"}\n",
    "{\"id\": \"b\", \"text\": \"One Two Three\"}\n",
    "{\"id\": \"none\", \"text\": \"?! … 🙂\"}\n",
);

/// What a command prints, and what it says.
fn both(args: &[&str]) -> (String, String) {
    let output = run(BINARY, args, PAGES);
    assert!(output.status.success(), "{args:?}: {}", log(&output));
    (
        String::from_utf8(output.stdout.clone()).unwrap(),
        log(&output),
    )
}

#[test]
fn file_commands_leave_out_texts_without_fingerprint_and_count_them() {
    for (recipe, skipped, rows) in [
        ("words-v3", "skipped 2 unhashable texts\n", 3),
        ("words-v2", "skipped 2 unhashable texts\n", 3),
        ("words-v2-3", "skipped 2 unhashable texts\n", 3),
        ("textdedup-3", "skipped 1 unhashable text\n", 4),
        ("words-v1", "", 5),
    ] {
        let few = rows - 1;
        let said =
            format!("recipe {recipe}\n{skipped}degenerate texts: {few} of few distinct runs\n");
        let with = ["--format", "jsonl", "--recipe", recipe];
        let (table, log) = both(&[&["hash"][..], &with].concat());
        assert_eq!(
            (table.lines().count(), log),
            (rows, said.clone()),
            "{table}"
        );
        for verb in ["find-pairs", "find-clusters"] {
            let (found, log) = both(&[&[verb], &with[..]].concat());
            assert!(found.contains("[\"a\", \"b\"]\n"), "{found}");
            assert_eq!(log, said, "{verb}");
        }
    }
}

#[test]
fn a_misspelt_recipe_is_answered_with_the_nearest_one() {
    for (args, misspelt, nearest) in [
        ("hash --recipe", "words-v-3", "words-v3"),
        ("hash --recipe", "word-v3", "words-v3"),
        ("evaluate --recipes", "words-v2,leonsim4", "leonsim-4"),
        ("corpus create pages --recipe", "featurs", "features"),
        ("recipes", "moz-shingel-4", "moz-shingle-4"),
    ] {
        let args = args.split(' ').chain([misspelt]);
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{misspelt}");
        let said = log(&output);
        assert!(said.contains(": unknown recipe "), "{said}");
        let tip = format!("\n  tip: a similar value exists: '{nearest}'\n");
        assert!(said.contains(&tip), "{said}");
    }
    // None of them takes texts, or none is near.
    for (args, unknown) in [
        ("evaluate --recipes", "featurs"),
        ("hash --recipe", "sha-256"),
    ] {
        let output = run(BINARY, args.split(' ').chain([unknown]), "");
        assert_eq!(output.status.code(), Some(2), "{unknown}");
        assert!(!log(&output).contains("tip: "), "{}", log(&output));
    }
}

#[test]
fn the_report_says_what_texts_without_fingerprint_lack() {
    let folder = tempfile::tempdir().unwrap();
    let [pages, report] = ["pages.jsonl", "report.html"].map(|name| folder.path().join(name));
    std::fs::write(&pages, PAGES).unwrap();
    for (recipe, said) in [
        ("words-v3", "</data> texts have no words."),
        ("words-v1", "</data> texts have no words."),
        (
            "textdedup-3",
            "</data> text has fewer than 5 characters, which is too short for textdedup-3.",
        ),
    ] {
        let [pages, report] = [&pages, &report].map(|path| path.to_str().unwrap());
        both(&["find-pairs", pages, "--recipe", recipe, "--report", report]);
        let page = std::fs::read_to_string(report).unwrap();
        assert!(page.contains(said), "{recipe}");
        assert!(page.contains("read again for the excerpts"), "{recipe}");
    }
}

#[test]
fn a_sample_counts_its_own_texts() {
    for (most, said) in [("1", ""), ("2", "skipped 1 unhashable text\n")] {
        let args = ["hash", "--format", "jsonl", "--sample", most];
        let expected =
            format!("recipe words-v3\n{said}degenerate texts: {most} of few distinct runs\n");
        assert_eq!(both(&args).1, expected);
    }
}

#[test]
fn degenerate_texts_are_counted_and_short_ones_left_out_where_that_is_asked_for() {
    let prose = "the quick brown fox jumps over the lazy dog and runs home";
    let digits: String = (100..140).map(|number| format!("{number} ")).collect();
    let texts = [
        prose,
        "a few words",
        &format!("{prose}{}", " tick".repeat(9)),
        &digits,
    ];
    let lines: String = texts.iter().map(|text| format!("{text}\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html");
    let report = ["--report", report.to_str().unwrap()];
    let all = "degenerate texts: 1 of few distinct runs, 1 of one run over and over, 1 of mostly digits\n";
    let kept =
        "skipped 1 short text\ndegenerate texts: 1 of one run over and over, 1 of mostly digits\n";
    for (min_words, rows, said) in [("0", 4, all), ("3", 4, all), ("4", 3, kept)] {
        let with = ["--format", "lines", "--min-words", min_words];
        let hashed = run(BINARY, [&["hash"][..], &with].concat(), &lines);
        assert_eq!(log(&hashed), format!("recipe words-v3\n{said}"));
        assert_eq!(
            String::from_utf8_lossy(&hashed.stdout).lines().count(),
            rows + 1
        );
        let found = run(
            BINARY,
            [&["find-clusters"][..], &with, &report].concat(),
            &lines,
        );
        assert_eq!(log(&found), format!("recipe words-v3\n{said}"));
        let page = std::fs::read_to_string(report[1]).unwrap();
        assert!(page.contains("mostly digits") && page.contains("Degenerate texts"));
    }
}

#[test]
fn a_corpus_gets_the_blocks_that_suit_its_distance_and_documents_and_says_why() {
    let router = embedded();
    for (name, args, reason, created, chance) in [
        (
            "usual",
            &[][..],
            "5 blocks: for distance 3 and 10000000 documents, of which a search compares about 2\n",
            "5 blocks, distance 3, 10 tables",
            "less than 1 pair within distance 3 by chance among 10000000",
        ),
        (
            "far",
            &["--distance", "6", "--documents", "1e8"],
            "9 blocks: for distance 6 and 100000000 documents, of which a search compares about 3180\n",
            "9 blocks, distance 6, 84 tables",
            "about 22573 pairs within distance 6 by chance among 100000000",
        ),
        (
            "fixed",
            &["--distance", "6", "--blocks", "8", "--documents", "1e8"],
            "",
            "8 blocks, distance 6, 28 tables",
            "about 22573 pairs within distance 6 by chance among 100000000",
        ),
    ] {
        let create = ["corpus", "create", name, "--router", router.url()];
        let output = run(BINARY, [&create[..], args].concat(), "");
        let said = format!(
            "{reason}created corpus {name}: {created}, recipe words-v3\nexpect {chance} documents\n"
        );
        assert_eq!(log(&output), said);
    }
}

#[test]
fn texts_are_hashed_by_words_v3_unless_told_otherwise() {
    let by = |recipe: &[&str]| both(&[&["hash", "--format", "jsonl"], recipe].concat());
    assert_eq!(by(&[]), by(&["--recipe", "words-v3"]));
    for old in ["words-v2", "words-v1"] {
        assert_ne!(by(&[]), by(&["--recipe", old]), "{old}");
    }

    let router = embedded();
    simshard(&router, &["corpus", "create", "new"], "");
    let listed = simshard(&router, &["corpus", "list"], "");
    assert_eq!(listed.matches("\twords-v3\t").count(), 2, "{listed}");
}

#[test]
fn commands_keep_texts_without_fingerprint_from_corpora_that_give_none() {
    let router = embedded();
    let old = ["corpus", "create", "old", "--recipe", "words-v1"];
    simshard(&router, &old, "");
    for (corpus, kept, said) in [
        ("default", 2, "skipped 2 unhashable texts\n"),
        ("old", 4, ""),
    ] {
        let to = ["--corpus", corpus, "--format", "jsonl"];
        let to = [&to[..], &["--router", router.url()]].concat();
        let documents = format!("{kept} documents");
        let insert = both(&[&["insert"], &to[..]].concat()).1;
        assert_eq!(
            insert,
            format!("inserted {documents}, 0 there already\n{said}")
        );
        let (found, log) = both(&[&["find"], &to[..]].concat());
        assert_eq!(
            (found.lines().count(), log.as_str()),
            (kept, said),
            "{found}"
        );
        assert_eq!(found.contains("\"similarity\":1.0"), kept == 2, "{found}");
        let remove = both(&[&["remove"], &to[..]].concat()).1;
        assert_eq!(remove, format!("removed {documents}, 0 not there\n{said}"));
    }
    for (texts, named) in [
        (&["--text", "?"][..], "the text"),
        (&["--text", "a", "--text", "?"][..], "text 2 of 2"),
    ] {
        let find = ["find", "--router", router.url()];
        let output = run(BINARY, [&find[..], texts].concat(), "");
        assert_eq!(output.status.code(), Some(2));
        let expected = format!(
            "error: {named} has no words, and so no fingerprint by recipe words-v3: search for another one\n"
        );
        assert_eq!(log(&output), expected);
    }
}
