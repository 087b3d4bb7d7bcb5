//! `dedup --against`: what a corpus has is dropped first, and what is kept may be added.

use std::collections::BTreeMap;

use simshard_testkit::{Process, run};

use super::{Folder, Made, TEXTS, dedup, distance, made, reference, refuse};
use crate::{BINARY, embedded, log, simshard};

/// The lines of TSV of records, without a header.
fn tsv(records: &[Made]) -> String {
    let line = |record: &Made| format!("{}\t{}\n", record.id, record.fingerprint);
    records.iter().map(line).collect()
}

/// By record that a stored one is near, the distance of the nearest.
fn known(records: &[Made], stored: &[Made]) -> BTreeMap<usize, u32> {
    let nearest = |record| stored.iter().map(|other| distance(record, other)).min();
    let near = |record| nearest(record).filter(|distance| *distance <= 3);
    let all = records.iter().enumerate();
    all.filter_map(|(at, record)| Some((at, near(record)?)))
        .collect()
}

fn dedup_against(router: &Process, args: &[&str], input: &str) -> String {
    let against = ["--against", "default", "--router", router.url()];
    dedup(&[args, &against].concat(), input)
}

/// DD1, DD2.
#[test]
fn what_a_corpus_has_is_dropped_before_the_rest_is_compared() {
    let folder = Folder::new();
    for (seed, shape, count, by) in [
        (6, "random", 40, "cluster"),
        (7, "chained", 40, "pairs"),
        (8, "dense", 2, "cluster"),
    ] {
        let router = embedded();
        let stored = made(seed + 100, count, shape);
        let mut records = made(seed, 200, shape);
        // Some of the corpus again, and some near it.
        for (place, other) in stored.iter().enumerate() {
            records[5 * place].fingerprint = other.fingerprint ^ (place as u64 % 6);
        }
        simshard(&router, &["insert", "--format", "tsv"], &tsv(&stored));
        let known = known(&records, &stored);
        assert!(known.len() > 9 && known.len() < 200, "{shape}");
        let (old, new): (Vec<_>, Vec<_>) =
            (0..records.len()).partition(|at| known.contains_key(at));
        assert_eq!(old.len(), known.len());
        let rest: Vec<Made> = new.iter().map(|&at| records[at].clone()).collect();
        let causes = reference(&rest, "first", by);

        let (out, dropped) = (folder.path("out.tsv"), folder.path("dropped.tsv"));
        let args = ["-f", "tsv", "-o", &out, "--dropped", &dropped, "--by", by];
        dedup_against(&router, &args, &tsv(&records));
        let kept: Vec<Made> = (0..rest.len())
            .filter(|at| !causes.contains_key(at))
            .map(|at| rest[at].clone())
            .collect();
        assert_eq!(folder.read("out.tsv"), tsv(&kept), "{shape}, {by}");
        let rows = folder.read("dropped.tsv");
        let rows = rows
            .lines()
            .skip(1)
            .map(|row| row.split('\t').collect::<Vec<_>>());
        let mut seen = 0;
        for row in rows {
            let at: usize = row[0][1..].parse().unwrap();
            seen += 1;
            if let Some(nearest) = known.get(&at) {
                assert_eq!(row[2], nearest.to_string(), "{row:?}");
                let cause = stored.iter().find(|other| other.id == row[1]).unwrap();
                assert_eq!(distance(&records[at], cause), *nearest, "{row:?}");
            }
        }
        assert_eq!(seen, records.len() - kept.len(), "{shape}, {by}");
    }
}

#[test]
fn what_is_kept_is_inserted_where_that_is_asked_for() {
    let folder = Folder::new();
    let router = embedded();
    let (input, out) = (folder.write("in.jsonl", TEXTS), folder.path("out.jsonl"));
    let against = ["--against", "default", "--router", router.url()];
    let insert = [&["dedup", &*input, "-o", &out, "--insert"], &against[..]].concat();
    let said = log(&run(BINARY, &insert, ""));
    assert!(
        said.ends_with("inserted 2 documents into corpus default\n"),
        "{said}"
    );
    assert_eq!(
        simshard(&router, &["corpus", "scan", "default"], "")
            .lines()
            .count(),
        3
    );
    // Then all is known but the texts without words.
    let said = dedup_against(&router, &[&input, "-o", &out], "");
    assert_eq!(said, "kept 2 of 5 documents, one of each cluster");
    // Fingerprints say nothing of their recipe; texts must be of the recipe of the corpus.
    let table = folder.path("out.tsv");
    let said = dedup_against(
        &router,
        &["-f", "tsv", "-o", &table, "--recipe", "words-v1"],
        "a\t1\n",
    );
    assert_eq!(said, "kept 1 of 1 document, one of each cluster");
    for (args, problem) in [
        (vec!["--recipe", "words-v1"], "corpus default has recipe"),
        (vec!["--against", "none"], "none"),
        (vec!["--distance", "9"], "distance"),
    ] {
        let before = folder.read("out.jsonl");
        let mut all = vec!["dedup", &*input, "-o", &*out, "--router", router.url()];
        if !args.contains(&"--against") {
            all.extend(["--against", "default"]);
        }
        all.extend(args);
        let output = run(BINARY, &all, "");
        assert_eq!(output.status.code(), Some(2), "{}", log(&output));
        assert!(log(&output).contains(problem), "{}", log(&output));
        assert_eq!(folder.read("out.jsonl"), before);
    }
    let said = refuse(&[&input, "-o", &out, "--insert"], "");
    assert!(said.contains("--against"), "{said}");
}
