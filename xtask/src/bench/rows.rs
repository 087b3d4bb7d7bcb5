//! What is promised, a row each, and how each is measured.
//!
//! A promise stays as it was made, whether it is met or not.

mod cluster;

use anyhow::{Context, ensure};

use super::figures::{Cost, Figure, Programs};

/// Fingerprints of the large sets.
const MILLION: &str = "1000000";

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub(crate) fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Millions a second.
    Millions,
    /// So many a second.
    PerSecond,
    Seconds,
    Milliseconds,
    Gigabytes,
    Bytes,
    MegabytesASecond,
    /// One figure divided by another of the same runs.
    Times,
}

/// One promise.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) target: Target,
    pub(crate) unit: Unit,
}

/// A row and what each run gave.
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) values: Vec<f64>,
}

impl Measured {
    /// The middle value, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            return f64::midpoint(values[middle - 1], values[middle]);
        }
        values[middle]
    }
}

/// The rows that a run gives a value each.
pub(crate) struct Case {
    pub(crate) rows: Vec<Row>,
    /// Heavy cases run fewer times.
    is_heavy: bool,
    measure: fn(&Programs) -> anyhow::Result<Vec<f64>>,
}

impl Case {
    fn light(rows: &[Row], measure: fn(&Programs) -> anyhow::Result<Vec<f64>>) -> Self {
        Self {
            rows: rows.to_vec(),
            is_heavy: false,
            measure,
        }
    }

    fn heavy(rows: &[Row], measure: fn(&Programs) -> anyhow::Result<Vec<f64>>) -> Self {
        Self {
            is_heavy: true,
            ..Self::light(rows, measure)
        }
    }

    /// Measures `runs` times, a heavy case half as many.
    pub(crate) fn measure(self, programs: &Programs, runs: usize) -> anyhow::Result<Vec<Measured>> {
        let runs = if self.is_heavy {
            runs.div_ceil(2)
        } else {
            runs
        };
        ensure!(runs > 0, "a benchmark needs a run");
        let measured = |&row| Measured {
            row,
            values: Vec::new(),
        };
        let mut measured: Vec<Measured> = self.rows.iter().map(measured).collect();
        for _ in 0..runs {
            let values = (self.measure)(programs).with_context(|| self.names())?;
            ensure!(values.len() == measured.len(), "not a value for each row");
            for (one, value) in measured.iter_mut().zip(values) {
                one.values.push(value);
            }
        }
        Ok(measured)
    }

    /// The names of its rows.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.rows.iter().map(|row| row.name).collect();
        names.join(", ")
    }
}

/// Every promise, in the order of the page.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = search_cases();
    cases.extend(change_cases());
    cases.extend(pair_cases());
    cases.extend(dense_cases());
    cases.extend(recipe_cases());
    cases.extend(cluster::cases());
    cases
}

const fn row(name: &'static str, what: &'static str, target: Target, unit: Unit) -> Row {
    Row {
        name,
        what,
        target,
        unit,
    }
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
                    AtLeast(1.8),
                    Times,
                ),
            ],
            |programs| {
                let one = find_all(programs, MILLION, "random", "1")?;
                let two = find_all(programs, MILLION, "random", "2")?;
                Ok(vec![one, two / one])
            },
        ),
        Case::heavy(
            &[row(
                "find-all-50m",
                "find_all bulk, n = 50M, queries a second",
                AtLeast(2.0),
                Millions,
            )],
            |programs| Ok(vec![find_all(programs, "50000000", "random", "1")?]),
        ),
        Case::light(
            &[row(
                "find-all-skewed",
                "find_all bulk, n = 1M, skewed, queries a second",
                AtLeast(2.5),
                Millions,
            )],
            |programs| Ok(vec![find_all(programs, MILLION, "skewed", "1")?]),
        ),
        Case::light(
            &[row(
                "faiss",
                "find_all bulk against FAISS `IndexBinaryMultiHash(64, 4, 16)`, one thread, n = 1M",
                AtLeast(25.0),
                Times,
            )],
            |programs| Ok(vec![programs.times_faiss()?]),
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
                let figure = programs.engine(&arguments, "interleaved")?;
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
                let figure = programs.engine(&["--n", MILLION], "remove_bulk")?;
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
                let figure = programs.engine(&["--n", "10000000"], "insert_bulk")?;
                Ok(vec![figure.number("bytes_per_fingerprint")?])
            },
        ),
    ]
}

fn pair_cases() -> Vec<Case> {
    use Target::AtMost;
    use Unit::{Gigabytes, Seconds};
    vec![
        Case::light(
            &[row(
                "pairs",
                "all pairs of 1M random, k = 3, from memory, one thread",
                AtMost(0.045),
                Seconds,
            )],
            |programs| Ok(vec![all_pairs(programs, MILLION, "1")?.seconds]),
        ),
        Case::light(
            &[row(
                "pairs-two-threads",
                "the same on two threads",
                AtMost(0.028),
                Seconds,
            )],
            |programs| Ok(vec![all_pairs(programs, MILLION, "2")?.seconds]),
        ),
        Case::light(
            &[row(
                "pairs-file",
                "`find-all` of 1M decimal numbers, file to file, whole process, two threads",
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

fn recipe_cases() -> Vec<Case> {
    use Target::AtLeast;
    use Unit::MegabytesASecond;
    vec![
        Case::light(
            &[row(
                "words-v1",
                "`words-v1` over real text, one thread, JSONL parsing included",
                AtLeast(400.0),
                MegabytesASecond,
            )],
            |programs| Ok(vec![programs.hash("words-v1")?]),
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
    ]
}

fn find_all(programs: &Programs, n: &str, data: &str, threads: &str) -> anyhow::Result<f64> {
    let arguments = ["--n", n, "--data", data, "--threads", threads];
    millions(&programs.engine(&arguments, "find_all_bulk")?)
}

fn all_pairs(programs: &Programs, n: &str, threads: &str) -> anyhow::Result<Cost> {
    let arguments = ["--n", n, "--data", "random", "--threads", threads];
    let figure = programs.batch(&arguments, "all_pairs")?;
    Ok(Cost {
        seconds: figure.number("seconds")?,
        peak_bytes: figure.number("peak_bytes")?,
    })
}

fn millions(figure: &Figure) -> anyhow::Result<f64> {
    Ok(figure.number("per_second")? / 1e6)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let rows: Vec<Row> = cases().into_iter().flat_map(|case| case.rows).collect();
        let names: HashSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn bounds_include_themselves() {
        assert!(Target::AtLeast(2.0).is_met_by(2.0));
        assert!(!Target::AtLeast(2.0).is_met_by(1.9));
        assert!(Target::AtMost(2.0).is_met_by(2.0));
        assert!(!Target::AtMost(2.0).is_met_by(2.1));
    }

    #[test]
    fn the_median_is_the_middle_of_what_was_measured() {
        let row = cases()[0].rows[0];
        let median = |values: &[f64]| {
            Measured {
                row,
                values: values.to_vec(),
            }
            .median()
        };
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
