//! The promised figures of a cluster of real processes.

use anyhow::Context;

use super::{Case, Measured, Programs, Promise, Target, Unit, row};
use crate::bench::figures::{Figure, Figures};

/// Milliseconds that a durable insert may take beyond two syncs of the disk.
const BEYOND_SYNCS: f64 = 0.5;

/// The row of a cluster that grows.
const GROWN: Promise = row(
    "cluster-insert-stream-50m",
    "3 nodes, `InsertStream` of 2M bare fingerprints, 50M stored then, against the 2M after the first million of the same run; \
     measured by `--scaling`",
    Target::AtLeast(0.8),
    Unit::Times,
);

/// Rows that are measured in the same run share a cluster.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = search_cases();
    cases.extend(relative_cases());
    cases.extend(change_cases());
    cases.extend(large_cases());
    cases.push(Case::of_scaling(&[GROWN], |programs| {
        Ok(vec![kept_speed(&programs.cluster(&["grown"])?)?])
    }));
    cases
}

/// The row of a cluster that grows, by the figures of one run.
pub(in crate::bench) fn grown(figures: &Figures, seconds: f64) -> anyhow::Result<Measured> {
    Ok(Measured {
        row: GROWN,
        values: vec![kept_speed(figures)?],
        seconds,
    })
}

/// The rate of the last inserts against that of the second ones, which are as many.
fn kept_speed(figures: &Figures) -> anyhow::Result<f64> {
    let cost = |figure: Option<&Figure>| {
        figure
            .context("the corpus did not grow")?
            .number("insert_ns")
    };
    let grown = || figures.all_of("grown");
    Ok(cost(grown().nth(1))? / cost(grown().last())?)
}

fn search_cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    use Unit::{Millions, Milliseconds, PerSecond};
    vec![Case::light(
        &[
            row(
                "cluster-insert-stream",
                "3 nodes, `InsertStream` of bare fingerprints, durable, documents a second",
                AtLeast(250_000.0),
                PerSecond,
            ),
            row(
                "cluster-find-all-stream",
                "3 nodes, `FindAllStream`, 1M stored, (5, 3), half with matches, queries a second",
                AtLeast(1.0),
                Millions,
            ),
            row(
                "cluster-find-all",
                "3 nodes, `FindAll` of one query each, 64 in flight, a second",
                AtLeast(30_000.0),
                PerSecond,
            ),
            row(
                "cluster-find-all-p99",
                "the same, 99 of 100 within",
                AtMost(6.0),
                Milliseconds,
            ),
            row(
                "cluster-find-all-alone",
                "3 nodes, `FindAll` of one query at a time, half of them within",
                AtMost(0.3),
                Milliseconds,
            ),
        ],
        |programs| {
            let [insert, stream, unary, alone] = [
                "insert_stream_bare",
                "find_all_stream",
                "find_all_unary",
                "find_all_alone",
            ];
            let figures = programs.cluster(&[insert, stream, unary, alone])?;
            Ok(vec![
                figures.of(insert)?.number("per_second")?,
                figures.of(stream)?.number("per_second")? / 1e6,
                figures.of(unary)?.number("per_second")?,
                figures.of(unary)?.number("p99_ms")?,
                figures.of(alone)?.number("p50_ms")?,
            ])
        },
    )]
}

/// Ratios to what the same machine does without a search, or without a cluster, one after the other.
fn relative_cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    use Unit::Times;
    vec![
        Case::light(
            &[
                row(
                    "cluster-find-all-echo",
                    "3 nodes, `FindAll` of one query each, 64 in flight, against a server that only answers, by the same \
                     client and transport in the same run",
                    AtLeast(0.5),
                    Times,
                ),
                row(
                    "cluster-find-all-alone-echo",
                    "the same, one query at a time, half of them within",
                    AtMost(3.0),
                    Times,
                ),
            ],
            |programs| {
                let cases = ["find_all_unary", "find_all_alone", "echo"];
                let figures = programs.cluster(&cases)?;
                let [unary, alone, echo] = cases.map(|case| figures.of(case));
                let echo = echo?;
                Ok(vec![
                    unary?.number("per_second")? / echo.number("per_second")?,
                    alone?.number("p50_ms")? / echo.number("alone_p50_ms")?,
                ])
            },
        ),
        Case::light(
            &[row(
                "cluster-find-all-stream-memory",
                "3 nodes, `FindAllStream`, 1M stored, (5, 3), half with matches, queries a second, against the same \
                 queries in memory on one thread, right after it",
                AtLeast(0.35),
                Times,
            )],
            |programs| {
                let case = "find_all_stream";
                let cluster = programs.cluster(&[case])?;
                let engine =
                    programs.bench("engine", &["--queries", "2000000"], "find_all_bulk")?;
                let stream = cluster.of(case)?.number("per_second")?;
                Ok(vec![stream / engine.number("per_second")?])
            },
        ),
    ]
}

fn change_cases() -> Vec<Case> {
    use Target::{AtLeast, AtMost};
    use Unit::{Milliseconds, PerSecond, Times};
    vec![
        Case::light(
            &[row(
                "cluster-insert-stream-ids",
                "3 nodes, `InsertStream` with ids of 64 bytes, durable, documents a second",
                AtLeast(120_000.0),
                PerSecond,
            )],
            |programs| one(programs, "insert_stream_ids", "per_second"),
        ),
        Case::light(
            &[row(
                "cluster-insert-alone",
                "3 nodes, `Insert` of one document at a time, durable, half of them within, \
                 against two `fdatasync` of this disk in the same run and 0.5 ms",
                AtMost(1.0),
                Times,
            )],
            |programs| {
                let figures = programs.cluster(&["insert_alone"])?;
                let figure = figures.of("insert_alone")?;
                let allowed = 2.0 * figure.number("sync_p50_ms")? + BEYOND_SYNCS;
                Ok(vec![figure.number("p50_ms")? / allowed])
            },
        ),
        Case::light(
            &[
                row(
                    "cluster-mixed",
                    "3 nodes, an `Insert` or a `FindAll` of one each by turns, 64 in flight, a second",
                    AtLeast(10_000.0),
                    PerSecond,
                ),
                row(
                    "cluster-mixed-p99",
                    "the same, 99 of 100 within",
                    AtMost(25.0),
                    Milliseconds,
                ),
            ],
            |programs| {
                let figures = programs.cluster(&["mixed"])?;
                let figure = figures.of("mixed")?;
                Ok(vec![figure.number("per_second")?, figure.number("p99_ms")?])
            },
        ),
    ]
}

fn large_cases() -> Vec<Case> {
    use Target::AtMost;
    use Unit::{Bytes, Seconds};
    vec![
        Case::heavy(
            &[row(
                "cluster-restart",
                "start of a node that holds 10M bare documents alone, (5, 3), to its first answer, \
                 the longer of after a stop and after a kill",
                AtMost(6.0),
                Seconds,
            )],
            |programs| one(programs, "restart", "seconds"),
        ),
        Case::light(
            &[row(
                "served-memory",
                "`serve` without a data directory, 1M documents with ids of 29 bytes, (5, 3), \
                 anonymous resident memory a document",
                AtMost(230.0),
                Bytes,
            )],
            |programs| one(programs, "served_memory", "bytes_per_document"),
        ),
        Case::heavy(
            &[
                row(
                    "cluster-memory",
                    "3 nodes together, 10M bare documents, (5, 3), anonymous resident memory a document, \
                     the larger of as loaded and after a restart",
                    AtMost(100.0),
                    Bytes,
                ),
                row(
                    "cluster-disk",
                    "the same, data directories a document, after compaction",
                    AtMost(90.0),
                    Bytes,
                ),
            ],
            |programs| {
                let figures = programs.cluster(&["memory", "disk"])?;
                let of = |case| figures.of(case)?.number("bytes_per_document");
                Ok(vec![of("memory")?, of("disk")?])
            },
        ),
    ]
}

/// Figures with one replica of each shard, and those with the replicas that a cluster has by default, in one run.
fn with_replicas(programs: &Programs, cases: &[&str]) -> anyhow::Result<[Figures; 2]> {
    Ok([
        programs.cluster_with(&["--replicas", "1"], cases)?,
        programs.cluster_with(&["--replicas", "3", "--hot", "2"], cases)?,
    ])
}

pub(super) fn replica_cases() -> Vec<Case> {
    vec![replica_requests(), replica_memory(), replica_copies()]
}

fn replica_requests() -> Case {
    use Target::{AtLeast, AtMost};
    use Unit::Times;
    Case::light(
        &[
            row(
                "replicas-insert-stream",
                "3 nodes, 3 replicas of which 2 are hot, `InsertStream` of bare fingerprints, \
                     against 1 replica in the same run",
                AtLeast(0.35),
                Times,
            ),
            row(
                "replicas-find-all-stream",
                "the same, `FindAllStream`",
                AtLeast(0.85),
                Times,
            ),
            row(
                "replicas-find-all",
                "the same, `FindAll` of one query each, 64 in flight",
                AtLeast(0.85),
                Times,
            ),
            row(
                "replicas-find-all-alone",
                "the same, `FindAll` of one query at a time, half of them within",
                AtMost(1.3),
                Times,
            ),
        ],
        |programs| {
            let of = [
                ("insert_stream_bare", "per_second"),
                ("find_all_stream", "per_second"),
                ("find_all_unary", "per_second"),
                ("find_all_alone", "p50_ms"),
            ];
            let [one, three] = with_replicas(programs, &of.map(|(case, _)| case))?;
            let ratio = |(case, field)| {
                let [one, three] = [&one, &three].map(|figures| figures.of(case)?.number(field));
                Ok(three? / one?)
            };
            of.into_iter().map(ratio).collect()
        },
    )
}

fn replica_memory() -> Case {
    Case::heavy(
        &[row(
            "replicas-memory",
            "3 nodes together, 10M bare documents, (5, 3), 3 replicas of which 2 are hot, \
                 against 1 replica in the same run",
            Target::AtMost(2.3),
            Unit::Times,
        )],
        |programs| {
            let [one, three] = with_replicas(programs, &["memory"])?;
            let of = |figures: &Figures| figures.of("memory")?.number("bytes_per_document");
            Ok(vec![of(&three)? / of(&one)?])
        },
    )
}

fn replica_copies() -> Case {
    use Target::AtMost;
    use Unit::{Seconds, Times};
    Case::heavy(
        &[
            row(
                "replicas-rejoin",
                "3 nodes, 3 hot replicas of 10M bare documents, (5, 3): start of a node that was away for a minute, \
                 with 100,000 inserts meanwhile, until it holds all shards in sync",
                AtMost(10.0),
                Seconds,
            ),
            row(
                "replicas-rejoin-bytes",
                "the same, bytes that are copied, against a copy of all",
                AtMost(0.05),
                Times,
            ),
            row(
                "replicas-rejoin-removes",
                "the same with 100,000 removes",
                AtMost(10.0),
                Seconds,
            ),
            row(
                "replicas-copy",
                "the same with an empty directory",
                AtMost(15.0),
                Seconds,
            ),
        ],
        |programs| {
            let figures = programs.cluster(&["copies"])?;
            let figure = figures.of("copies")?;
            let of = |field| figure.number(field);
            Ok(vec![
                of("seconds_after_inserts")?,
                of("bytes_after_inserts")? / of("bytes_of_all")?,
                of("seconds_after_removes")?,
                of("seconds_of_all")?,
            ])
        },
    )
}

/// One number of one case.
fn one(programs: &Programs, case: &str, field: &str) -> anyhow::Result<Vec<f64>> {
    let figures = programs.cluster(&[case])?;
    Ok(vec![figures.of(case)?.number(field)?])
}
