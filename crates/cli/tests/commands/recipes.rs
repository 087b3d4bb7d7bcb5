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
        ("words-v2", "skipped 2 unhashable texts\n", 3),
        ("words-v2-3", "skipped 2 unhashable texts\n", 3),
        ("textdedup-3", "skipped 1 unhashable text\n", 4),
        ("words-v1", "", 5),
    ] {
        let said = format!("recipe {recipe}\n{skipped}");
        let with = ["--format", "jsonl", "--recipe", recipe];
        let (table, log) = both(&[&["hash"][..], &with].concat());
        assert_eq!(
            (table.lines().count(), log),
            (rows, said.clone()),
            "{table}"
        );
        for verb in ["find-all", "find-clusters"] {
            let (found, log) = both(&[&[verb], &with[..]].concat());
            assert!(found.contains("[\"a\", \"b\"]\n"), "{found}");
            assert_eq!(log, said, "{verb}");
        }
    }
}

#[test]
fn texts_are_hashed_by_words_v2_unless_told_otherwise() {
    let by = |recipe: &[&str]| both(&[&["hash", "--format", "jsonl"], recipe].concat());
    assert_eq!(by(&[]), by(&["--recipe", "words-v2"]));
    assert_ne!(by(&[]), by(&["--recipe", "words-v1"]));

    let router = embedded();
    simshard(&router, &["corpus", "create", "new"], "");
    let listed = simshard(&router, &["corpus", "list"], "");
    assert_eq!(listed.matches("\twords-v2\t").count(), 2, "{listed}");
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
    let output = run(
        BINARY,
        ["find", "--text", "?", "--router", router.url()],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(log(&output).contains("texts[0] has no fingerprint by recipe words-v2"));
}
