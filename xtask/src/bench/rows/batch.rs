//! The promised figures of the commands that work on whole files: pairs, clusters, fingerprints.

use super::{Case, MILLION, Target, Unit, row};
use crate::bench::figures::{Cost, Programs};

/// The arguments for `words-v1` on one thread.
const WORDS_V1: [&str; 4] = ["--recipe", "words-v1", "--threads", "1"];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = pair_cases();
    cases.push(published_case());
    cases.extend(dense_cases());
    cases.extend(recipe_cases());
    cases.extend(words_cases());
    cases.push(evaluate_case());
    cases.extend(dedup_cases());
    cases
}

fn dedup_cases() -> Vec<Case> {
    use Target::AtMost;
    vec![
        Case::light(
            &[row(
                "dedup",
                "`dedup` of 512 MiB of JSON lines of real texts, zstd 3, two threads, against `hash`, one more \
                 decompression, and compressing what is kept",
                AtMost(1.25),
                Unit::Times,
            )],
            |programs| Ok(vec![programs.in_folder("dedup")?.number("against_sum")?]),
        ),
        Case::light(
            &[row(
                "dedup-memory",
                "`dedup` of 1M short JSON lines, peak resident memory beyond that of `find-clusters`, a document",
                AtMost(60.0),
                Unit::Bytes,
            )],
            |programs| {
                let figure = programs.in_folder("dedup_memory")?;
                Ok(vec![figure.number("more_bytes_per_document")?])
            },
        ),
    ]
}

fn pair_cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    use Unit::{Gigabytes, Seconds, Times};
    vec![
        Case::light(
            &[
                row(
                    "pairs",
                    "all pairs of 1M random, k = 3, from memory, one thread",
                    AtMost(0.045),
                    Seconds,
                ),
                row(
                    "pairs-two-threads",
                    "the same on two threads",
                    AtMost(0.028),
                    Seconds,
                ),
                row(
                    "pairs-threads",
                    "the same, two threads against one",
                    AtLeast(1.85),
                    Times,
                ),
            ],
            |programs| {
                let one = all_pairs(programs, MILLION, "1")?.seconds;
                let two = all_pairs(programs, MILLION, "2")?.seconds;
                Ok(vec![one, two, one / two])
            },
        ),
        Case::light(
            &[row(
                "pairs-file",
                "`find-pairs` of 1M decimal numbers, file to file, whole process, two threads",
                AtMost(0.15),
                Seconds,
            )],
            |programs| Ok(vec![programs.find_all_of_a_file()?.seconds]),
        ),
        Case::heavy(
            &[
                row(
                    "pairs-100m",
                    "all pairs of 100M random, k = 3, two threads",
                    AtMost(12.0),
                    Seconds,
                ),
                row(
                    "pairs-100m-memory",
                    "the same, peak resident memory",
                    AtMost(2.6),
                    Gigabytes,
                ),
            ],
            |programs| Ok(all_pairs(programs, "100000000", "2")?.seconds_and_gigabytes()),
        ),
    ]
}

/// All pairs against what is published.
fn published_case() -> Case {
    Case::light(
        &[row(
            "pairs-published",
            "all pairs of 1M random, k = 3, one thread, against the multi-sort of the crate `all-pairs-hamming` 0.1.0",
            Target::AtLeast(3.0),
            Unit::Times,
        )
        .at_levels(&[
            ("avx512bw", Target::AtLeast(4.0)),
            ("avx512vpopcntdq", Target::AtLeast(4.0)),
        ])],
        |programs| {
            let figure = programs.bench("batch", &["--threads", "1"], "published")?;
            Ok(vec![figure.number("against_published")?])
        },
    )
}

fn dense_cases() -> Vec<Case> {
    use Target::AtMost;
    use Unit::{Gigabytes, Seconds};
    vec![
        Case::light(
            &[
                row(
                    "clusters-one-fingerprint",
                    "`find-clusters` of 100,000 documents behind one fingerprint, whole process",
                    AtMost(10.0),
                    Seconds,
                ),
                row(
                    "clusters-one-fingerprint-memory",
                    "the same, peak resident memory",
                    AtMost(1.0),
                    Gigabytes,
                ),
            ],
            |programs| Ok(programs.find_clusters_of_equals()?.seconds_and_gigabytes()),
        ),
        Case::light(
            &[
                row(
                    "clusters-one-prefix",
                    "`find-clusters` of 100,000 fingerprints that differ in their last 17 bits only",
                    AtMost(10.0),
                    Seconds,
                ),
                row(
                    "clusters-one-prefix-memory",
                    "the same, peak resident memory",
                    AtMost(1.0),
                    Gigabytes,
                ),
            ],
            |programs| {
                Ok(programs
                    .find_clusters_of_one_prefix()?
                    .seconds_and_gigabytes())
            },
        ),
    ]
}

/// What `words-v1` does, against other work in one run.
fn words_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::Times;
    vec![
        Case::light(
            &[row(
                "words-v1-json",
                "`words-v1` over real text, one thread, against reading the same JSON lines with `serde_json` alone",
                AtLeast(0.6),
                Times,
            )
            .at_levels(&[
                ("avx512bw", AtLeast(0.8)),
                ("avx512vpopcntdq", AtLeast(0.8)),
            ])],
            |programs| {
                let figure = programs.bench("batch", &WORDS_V1, "hash_json")?;
                Ok(vec![figure.number("against_reading")?])
            },
        ),
        Case::light(
            &[row(
                "words-v1-threads",
                "`words-v1` over real text, two threads against one",
                AtLeast(1.85),
                Times,
            )],
            |programs| {
                let two = programs.hash_on("words-v1", "2")?;
                Ok(vec![two / programs.hash("words-v1")?])
            },
        ),
        Case::light(
            &[
                row(
                    "words-v1-cyrillic",
                    "`words-v1` over made-up Cyrillic text, bytes a second against those of ASCII",
                    AtLeast(0.25),
                    Times,
                ),
                row(
                    "words-v1-chinese",
                    "the same of Chinese text",
                    AtLeast(0.25),
                    Times,
                ),
            ],
            |programs| {
                let figure = programs.bench("batch", &WORDS_V1, "scripts")?;
                let fields = ["cyrillic_against_ascii", "chinese_against_ascii"];
                fields.iter().map(|field| figure.number(field)).collect()
            },
        ),
    ]
}

fn recipe_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::{MegabytesASecond, Times};
    vec![
        Case::light(
            &[
                row(
                    "words-v1",
                    "`words-v1` over real text, one thread, JSONL parsing included",
                    AtLeast(400.0),
                    MegabytesASecond,
                ),
                row(
                    "words-v3",
                    "`words-v3` over the same text, against `words-v1`",
                    AtLeast(0.75),
                    Times,
                ),
                row(
                    "words-v2",
                    "`words-v2` over the same text, against `words-v1`",
                    AtLeast(0.75),
                    Times,
                ),
            ],
            |programs| {
                let first = programs.hash("words-v1")?;
                let newer = [programs.hash("words-v3")?, programs.hash("words-v2")?];
                Ok(vec![first, newer[0] / first, newer[1] / first])
            },
        ),
        Case::light(
            &[row(
                "leonsim-3",
                "`leonsim-3` over real text, one thread, JSONL parsing included",
                AtLeast(30.0),
                MegabytesASecond,
            )],
            |programs| Ok(vec![programs.hash("leonsim-3")?]),
        ),
        Case::light(
            &[row(
                "html-main",
                "the main text of pages, one thread, against parsing them alone",
                AtLeast(0.5),
                Times,
            )],
            |programs| {
                let figure = programs.bench("batch", &[], "html")?;
                Ok(vec![figure.number("against_parsing")?])
            },
        ),
    ]
}

fn evaluate_case() -> Case {
    Case::light(
        &[row(
            "evaluate",
            "`evaluate` of 20,000 documents of real text, all recipes, whole process, two threads",
            Target::AtMost(60.0),
            Unit::Seconds,
        )],
        |programs| Ok(vec![programs.in_folder("evaluate")?.number("seconds")?]),
    )
}

fn all_pairs(programs: &Programs, n: &str, threads: &str) -> anyhow::Result<Cost> {
    let arguments = ["--n", n, "--data", "random", "--threads", threads];
    let figure = programs.bench("batch", &arguments, "all_pairs")?;
    Ok(Cost {
        seconds: figure.number("seconds")?,
        peak_bytes: figure.number("peak_bytes")?,
    })
}
