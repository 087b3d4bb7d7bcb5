//! The promised figures of jobs on distributed engines, on this machine alone.

use super::{Case, MILLION, Target, Unit, row};

/// Fingerprints of the set whose time is promised.
const TEN_MILLION: &str = "10000000";

pub(super) fn cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    vec![
        Case::heavy(
            &[
                row(
                    "spark-pairs",
                    "Spark on two cores, pairs of 10M random, k = 3, by `simshard.spark`",
                    AtMost(300.0),
                    Unit::Seconds,
                ),
                row(
                    "spark-pairs-memory",
                    "the same, memory of Java and all workers together",
                    AtMost(8.0),
                    Unit::Gigabytes,
                ),
            ],
            |programs| {
                let figure = programs.spark(&["pairs", "--n", TEN_MILLION])?;
                Ok(vec![
                    figure.number("seconds")?,
                    figure.number("bytes")? / 1e9,
                ])
            },
        ),
        Case::heavy(
            &[row(
                "spark-sql",
                "the same of 1M, against a join of Spark SQL on four blocks",
                AtLeast(20.0),
                Unit::Times,
            )],
            |programs| {
                let figure = programs.spark(&["sql", "--n", MILLION])?;
                Ok(vec![figure.number("times")?])
            },
        ),
    ]
}
