//! What is promised, a row each, and how each is measured.
//!
//! A promise stays as it was made, whether it is met or not.

use anyhow::{Context, ensure};

use super::figures::{Figure, Programs};

/// Fingerprints of the large sets.
const MILLION: &str = "1000000";

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Must {
    AtLeast(f64),
    AtMost(f64),
}

impl Must {
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
    Seconds,
    Gigabytes,
    BytesAFingerprint,
    MegabytesASecond,
    /// One figure divided by another of the same runs.
    Times,
}

/// One promise.
pub(crate) struct Row {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) must: Must,
    pub(crate) unit: Unit,
    /// Heavy rows run fewer times.
    pub(crate) is_heavy: bool,
    measure: fn(&Programs) -> anyhow::Result<f64>,
}

/// A row and what each of its runs gave.
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) values: Vec<f64>,
}

impl Measured {
    /// The middle value.
    pub(crate) fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

impl Row {
    /// Measures `runs` times.
    pub(crate) fn measure(self, programs: &Programs, runs: usize) -> anyhow::Result<Measured> {
        ensure!(runs > 0, "a benchmark needs a run");
        let mut values = Vec::new();
        for _ in 0..runs {
            let value = (self.measure)(programs).with_context(|| format!("row {}", self.name))?;
            values.push(value);
        }
        Ok(Measured { row: self, values })
    }

    const fn light(
        name: &'static str,
        what: &'static str,
        must: Must,
        unit: Unit,
        measure: fn(&Programs) -> anyhow::Result<f64>,
    ) -> Self {
        Self {
            name,
            what,
            must,
            unit,
            is_heavy: false,
            measure,
        }
    }

    const fn heavy(self) -> Self {
        Self {
            is_heavy: true,
            ..self
        }
    }
}

/// Every promise, in the order of the page.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = search_rows();
    rows.extend(change_rows());
    rows.extend(pair_rows());
    rows.extend(dense_rows());
    rows.extend(recipe_rows());
    rows
}

fn search_rows() -> Vec<Row> {
    use Must::AtLeast;
    use Unit::{Millions, Times};
    vec![
        Row::light(
            "find-all",
            "find_all bulk, n = 1M, (5, 3), half with matches, queries a second",
            AtLeast(5.0),
            Millions,
            |programs| find_all(programs, MILLION, "random", "1"),
        ),
        Row::light(
            "find-all-two-threads",
            "the same on two threads, against one",
            AtLeast(1.8),
            Times,
            |programs| {
                let one = find_all(programs, MILLION, "random", "1")?;
                Ok(find_all(programs, MILLION, "random", "2")? / one)
            },
        ),
        Row::light(
            "find-all-50m",
            "find_all bulk, n = 50M, queries a second",
            AtLeast(2.0),
            Millions,
            |programs| find_all(programs, "50000000", "random", "1"),
        )
        .heavy(),
        Row::light(
            "find-all-skewed",
            "find_all bulk, n = 1M, skewed, queries a second",
            AtLeast(2.5),
            Millions,
            |programs| find_all(programs, MILLION, "skewed", "1"),
        ),
        Row::light(
            "faiss",
            "find_all bulk against FAISS `IndexBinaryMultiHash(64, 4, 16)`, one thread, n = 1M",
            AtLeast(25.0),
            Times,
            |programs| programs.times_faiss(),
        ),
    ]
}

fn change_rows() -> Vec<Row> {
    use Must::{AtLeast, AtMost};
    use Unit::{BytesAFingerprint, Millions};
    vec![
        Row::light(
            "interleaved",
            "insert one by one, a single query after each, n = 10M, of each a second",
            AtLeast(0.25),
            Millions,
            |programs| {
                let arguments = [
                    "--n",
                    "10000000",
                    "--queries",
                    MILLION,
                    "--case",
                    "interleaved",
                ];
                millions(&programs.engine(&arguments, "interleaved")?)
            },
        )
        .heavy(),
        Row::light(
            "remove",
            "remove bulk, half of n = 1M, a second",
            AtLeast(2.0),
            Millions,
            |programs| {
                let arguments = ["--n", MILLION, "--case", "remove_bulk"];
                millions(&programs.engine(&arguments, "remove_bulk")?)
            },
        ),
        Row::light(
            "memory",
            "resident memory, (5, 3), n = 10M, engine only, bytes a fingerprint",
            AtMost(70.0),
            BytesAFingerprint,
            |programs| {
                let arguments = ["--n", "10000000", "--case", "insert_bulk"];
                let figure = programs.engine(&arguments, "insert_bulk")?;
                figure.number("bytes_per_fingerprint")
            },
        )
        .heavy(),
    ]
}

fn pair_rows() -> Vec<Row> {
    use Must::AtMost;
    use Unit::{Gigabytes, Seconds};
    const HUNDRED_MILLION: &str = "100000000";
    vec![
        Row::light(
            "pairs",
            "all pairs of 1M random, k = 3, from memory, one thread",
            AtMost(0.045),
            Seconds,
            |programs| all_pairs(programs, MILLION, "random", "1", "seconds"),
        ),
        Row::light(
            "pairs-two-threads",
            "the same on two threads",
            AtMost(0.028),
            Seconds,
            |programs| all_pairs(programs, MILLION, "random", "2", "seconds"),
        ),
        Row::light(
            "pairs-file",
            "`find-all` of 1M decimal numbers, file to file, whole process, two threads",
            AtMost(0.15),
            Seconds,
            |programs| programs.find_all_of_a_file(),
        ),
        Row::light(
            "pairs-100m",
            "all pairs of 100M random, k = 3, two threads",
            AtMost(12.0),
            Seconds,
            |programs| all_pairs(programs, HUNDRED_MILLION, "random", "2", "seconds"),
        )
        .heavy(),
        Row::light(
            "pairs-100m-memory",
            "the same, peak resident memory",
            AtMost(2.6),
            Gigabytes,
            |programs| Ok(all_pairs(programs, HUNDRED_MILLION, "random", "2", "peak_bytes")? / 1e9),
        )
        .heavy(),
    ]
}

fn dense_rows() -> Vec<Row> {
    use Must::AtMost;
    use Unit::{Gigabytes, Seconds};
    vec![
        Row::light(
            "clusters-one-fingerprint",
            "`find-clusters` of 100,000 documents behind one fingerprint, whole process",
            AtMost(10.0),
            Seconds,
            |programs| Ok(programs.find_clusters_of_equals()?.seconds),
        ),
        Row::light(
            "clusters-one-fingerprint-memory",
            "the same, peak resident memory",
            AtMost(1.0),
            Gigabytes,
            |programs| Ok(programs.find_clusters_of_equals()?.peak_bytes / 1e9),
        ),
        Row::light(
            "clusters-one-prefix",
            "`find-clusters` of 100,000 fingerprints that differ in their last 17 bits only",
            AtMost(10.0),
            Seconds,
            |programs| Ok(programs.find_clusters_of_one_prefix()?.seconds),
        ),
        Row::light(
            "clusters-one-prefix-memory",
            "the same, peak resident memory",
            AtMost(1.0),
            Gigabytes,
            |programs| Ok(programs.find_clusters_of_one_prefix()?.peak_bytes / 1e9),
        ),
    ]
}

fn recipe_rows() -> Vec<Row> {
    use Must::AtLeast;
    use Unit::MegabytesASecond;
    vec![
        Row::light(
            "words-v1",
            "`words-v1` over real text, one thread, JSONL parsing included",
            AtLeast(400.0),
            MegabytesASecond,
            |programs| programs.hash("words-v1")?.number("megabytes_per_second"),
        ),
        Row::light(
            "leonsim-3",
            "`leonsim-3` over real text, one thread, JSONL parsing included",
            AtLeast(30.0),
            MegabytesASecond,
            |programs| programs.hash("leonsim-3")?.number("megabytes_per_second"),
        ),
    ]
}

fn find_all(programs: &Programs, n: &str, data: &str, threads: &str) -> anyhow::Result<f64> {
    let arguments = [
        "--n",
        n,
        "--data",
        data,
        "--threads",
        threads,
        "--case",
        "find_all_bulk",
    ];
    millions(&programs.engine(&arguments, "find_all_bulk")?)
}

fn all_pairs(
    programs: &Programs,
    n: &str,
    data: &str,
    threads: &str,
    field: &str,
) -> anyhow::Result<f64> {
    let arguments = [
        "--n",
        n,
        "--data",
        data,
        "--threads",
        threads,
        "--case",
        "all_pairs",
    ];
    programs.batch(&arguments, "all_pairs")?.number(field)
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
        let rows = rows();
        let names: HashSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn bounds_include_themselves() {
        assert!(Must::AtLeast(2.0).is_met_by(2.0));
        assert!(!Must::AtLeast(2.0).is_met_by(1.9));
        assert!(Must::AtMost(2.0).is_met_by(2.0));
        assert!(!Must::AtMost(2.0).is_met_by(2.1));
    }

    #[test]
    fn the_median_is_the_middle_of_what_was_measured() {
        let row = rows().remove(0);
        let values = vec![3.0, 1.0, 2.0];
        assert_eq!(Measured { row, values }.median(), 2.0);
    }
}
