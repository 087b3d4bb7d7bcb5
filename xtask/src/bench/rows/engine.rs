//! The promised figures of the engine: a corpus in memory, searched and changed.

use super::{Case, MILLION, Target, Unit, row};
use crate::bench::figures::{Figure, Programs};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = search_cases();
    cases.extend(compared_cases());
    cases.extend(large_cases());
    cases.extend(change_cases());
    cases
}

fn search_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::{Millions, Times};
    vec![
        Case::light(
            &[
                row(
                    "find-all",
                    "find_all bulk, n = 1M, (5, 3), half with matches, queries a second",
                    AtLeast(5.0),
                    Millions,
                ),
                row(
                    "find-all-two-threads",
                    "the same on two threads, against one",
                    AtLeast(1.85),
                    Times,
                ),
            ],
            |programs| {
                let one = find_all(programs, MILLION, "random", "1")?;
                let two = find_all(programs, MILLION, "random", "2")?;
                Ok(vec![one, two / one])
            },
        ),
        Case::light(
            &[row(
                "faiss",
                "find_all bulk against FAISS `IndexBinaryMultiHash(64, 4, 16)`, one thread, n = 1M",
                AtLeast(32.0),
                Times,
            )
            .at_levels(&[
                ("avx512bw", AtLeast(38.0)),
                ("avx512vpopcntdq", AtLeast(42.0)),
            ])],
            |programs| Ok(vec![programs.times_faiss()?]),
        ),
    ]
}

/// Searches against those of random fingerprints, at the level of the section.
fn compared_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::{Millions, Times};
    vec![
        Case::light(
            &[
                row(
                    "find-all-skewed",
                    "find_all bulk, n = 1M, skewed, queries a second",
                    AtLeast(2.5),
                    Millions,
                ),
                row(
                    "find-all-skewed-random",
                    "the same, against random fingerprints in the same run",
                    AtLeast(0.7),
                    Times,
                ),
            ],
            |programs| {
                let skewed = find_all(programs, MILLION, "skewed", "1")?;
                let random = find_all(programs, MILLION, "random", "1")?;
                Ok(vec![skewed, skewed / random])
            },
        ),
        Case::light(
            &[row(
                "find-all-scalar",
                "find_all bulk, n = 1M, plain code alone, against the level of this section; no promise",
                AtLeast(0.0),
                Times,
            )],
            |programs| {
                let best = find_all(programs, MILLION, "random", "1")?;
                Ok(vec![programs.find_all_in_plain_code()? / best / 1e6])
            },
        ),
    ]
}

/// Searches of sets that no cache holds.
fn large_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::{Millions, Times};
    vec![
        Case::heavy(
            &[
                row(
                    "find-all-50m",
                    "find_all bulk, n = 50M, queries a second",
                    AtLeast(2.0),
                    Millions,
                ),
                row(
                    "find-all-50m-1m",
                    "the same, against n = 1M in the same run",
                    AtLeast(0.5),
                    Times,
                ),
            ],
            |programs| {
                let large = find_all(programs, "50000000", "random", "1")?;
                let small = find_all(programs, MILLION, "random", "1")?;
                Ok(vec![large, large / small])
            },
        ),
        Case::heavy(
            &[row(
                "find-all-distance-6",
                "find_all bulk, n = 10M, (8, 6), half with matches, queries a second",
                AtLeast(1.1),
                Millions,
            )],
            |programs| {
                let layout = [
                    "--n",
                    "10000000",
                    "--blocks",
                    "8",
                    "--distance",
                    "6",
                    "--threads",
                    "1",
                ];
                let figure = programs.bench("engine", &layout, "find_all_bulk")?;
                Ok(vec![millions(&figure)?])
            },
        ),
    ]
}

fn change_cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    use Unit::{Bytes, Millions};
    vec![
        Case::heavy(
            &[row(
                "interleaved",
                "insert one by one, a single query after each, n = 10M, of each a second",
                AtLeast(0.25),
                Millions,
            )],
            |programs| {
                let arguments = ["--n", "10000000", "--queries", MILLION];
                let figure = programs.bench("engine", &arguments, "interleaved")?;
                Ok(vec![millions(&figure)?])
            },
        ),
        Case::light(
            &[row(
                "remove",
                "remove bulk, half of n = 1M, a second",
                AtLeast(2.0),
                Millions,
            )],
            |programs| {
                let figure = programs.bench("engine", &["--n", MILLION], "remove_bulk")?;
                Ok(vec![millions(&figure)?])
            },
        ),
        Case::heavy(
            &[row(
                "memory",
                "resident memory, (5, 3), n = 10M, engine only, bytes a fingerprint",
                AtMost(70.0),
                Bytes,
            )],
            |programs| {
                let figure = programs.bench("engine", &["--n", "10000000"], "insert_bulk")?;
                Ok(vec![figure.number("bytes_per_fingerprint")?])
            },
        ),
    ]
}

fn find_all(programs: &Programs, n: &str, data: &str, threads: &str) -> anyhow::Result<f64> {
    let arguments = ["--n", n, "--data", data, "--threads", threads];
    millions(&programs.bench("engine", &arguments, "find_all_bulk")?)
}

fn millions(figure: &Figure) -> anyhow::Result<f64> {
    Ok(figure.number("per_second")? / 1e6)
}
