//! The promised figures of the Python package, most of them against the program itself.

use super::{Case, MILLION, Target, Unit, row};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = engine_cases();
    cases.extend(text_cases());
    cases.push(client_case());
    cases.extend(package_cases());
    cases
}

fn engine_cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    use Unit::Times;
    vec![
        Case::light(
            &[row(
                "python-find-pairs",
                "Python's `find_pairs` of 1M random, k = 3, two threads, against the time of `pairs-two-threads`",
                AtMost(1.2),
                Times,
            )],
            |programs| {
                let ours = programs.python(&["find_pairs"], "2")?.number("seconds")?;
                let arguments = ["--n", MILLION, "--threads", "2"];
                let theirs = programs.bench("batch", &arguments, "all_pairs")?;
                Ok(vec![ours / theirs.number("seconds")?])
            },
        ),
        Case::light(
            &[row(
                "python-find-all",
                "Python's `Corpus.find_all_bulk`, n = 1M, 1M queries, one thread, against `find-all`",
                AtLeast(0.8),
                Times,
            )],
            |programs| Ok(vec![programs.times_python_finds()?]),
        ),
    ]
}

fn text_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::Times;
    vec![
        Case::light(
            &[
                row(
                    "python-fingerprint",
                    "Python's `fingerprint` of a list of real texts, words-v1, one thread, against `words-v1`",
                    AtLeast(0.5),
                    Times,
                ),
                row(
                    "python-fingerprint-arrow",
                    "the same of a column of Arrow data",
                    AtLeast(0.8),
                    Times,
                ),
            ],
            |programs| {
                let figure = programs.python(&["fingerprint", "--recipe", "words-v1"], "1")?;
                let rate = programs.hash("words-v1")?;
                let ratio = |field| anyhow::Ok(figure.number(field)? / rate);
                Ok(vec![
                    ratio("list_megabytes_per_second")?,
                    ratio("column_megabytes_per_second")?,
                ])
            },
        ),
        Case::light(
            &[row(
                "python-compat",
                "`simshard.compat.simhash` against the package simhash, 10,000 real texts, one thread",
                AtLeast(20.0),
                Times,
            )],
            |programs| Ok(vec![programs.python(&["compat"], "1")?.number("times")?]),
        ),
    ]
}

fn client_case() -> Case {
    use Target::AtLeast;
    use Unit::Times;
    Case::light(
        &[
            row(
                "python-client-insert",
                "Python's `Client`, 1M bare fingerprints by a stream, against the Rust client with the same server",
                AtLeast(0.6),
                Times,
            ),
            row(
                "python-client-insert-ids",
                "the same with ids",
                AtLeast(0.6),
                Times,
            ),
            row(
                "python-client-find",
                "the same, 1M queries by a stream, half with matches, as an Arrow table",
                AtLeast(0.6),
                Times,
            ),
        ],
        |programs| {
            let figure = programs.python_client()?;
            let times = |kind| figure.number(kind);
            Ok(vec![
                times("bare_times")?,
                times("ids_times")?,
                times("find_times")?,
            ])
        },
    )
}

fn package_cases() -> Vec<Case> {
    use Target::AtMost;
    use Unit::{Bytes, Milliseconds};
    vec![
        Case::light(
            &[row(
                "python-import",
                "the import of the Python package, beyond that of NumPy",
                AtMost(50.0),
                Milliseconds,
            )],
            |programs| {
                let seconds = programs.python(&["import"], "1")?.number("seconds")?;
                Ok(vec![seconds * 1e3])
            },
        ),
        Case::light(
            &[row(
                "python-wheel",
                "the wheel of the Python package",
                AtMost(6e6),
                Bytes,
            )],
            |programs| Ok(vec![programs.wheel_bytes()?]),
        ),
    ]
}
