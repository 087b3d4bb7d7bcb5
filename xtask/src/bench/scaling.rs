//! What a query, an insert and a restarted document cost as a corpus grows: in one process, and in a cluster.

mod page;
mod plot;

use std::time::Instant;

use anyhow::Context;
use clap::ValueEnum;

use super::figures::{Figures, Programs};
use super::rows::{self, Measured};

pub(crate) use page::{PAGE, page, picture, with_kept};
pub(crate) use plot::svg;

/// Sizes of the corpora in one process. The first ones take less than a second each.
const SMALL: [&str; 3] = ["10000", "100000", "1000000"];
const LARGE: [&str; 2] = ["10000000", "100000000"];

/// The names of the curves: inserts and queries, in a cluster restarts as well.
const ONE_THREAD: [&str; 2] = ["engine insert, 1 thread", "engine query, 1 thread"];
const TWO_THREADS: [&str; 2] = ["engine insert, 2 threads", "engine query, 2 threads"];
const CLUSTER: [&str; 3] = [
    "cluster insert",
    "cluster query",
    "cluster restart, a document",
];

/// What one thing costs, by size.
#[derive(Debug, PartialEq)]
pub(crate) struct Curve {
    name: &'static str,
    points: Vec<Point>,
}

/// The cost of one thing at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    n: f64,
    nanoseconds: f64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Both others
    All,
    /// Corpora in one process
    Engine,
    /// A cluster that grows
    Cluster,
}

/// All that one run gave.
pub(crate) struct Scaling {
    pub(crate) curves: Vec<Curve>,
    /// The row that the cluster gave, if that was measured.
    pub(crate) row: Option<Measured>,
}

/// Measures small corpora as many times as told, large ones half as many, and a cluster once.
pub(crate) fn measure(programs: &Programs, runs: usize, part: Part) -> anyhow::Result<Scaling> {
    let mut measured = Scaling {
        curves: Vec::new(),
        row: None,
    };
    if part != Part::Cluster {
        for (threads, names) in [("1", ONE_THREAD), ("2", TWO_THREADS)] {
            measured
                .curves
                .extend(engine(programs, threads, runs, names)?);
        }
    }
    if part != Part::Engine {
        println!("\n== a cluster that grows ==");
        let start = Instant::now();
        let figures = programs.cluster(&["grown"])?;
        measured.curves.extend(cluster(&figures)?);
        let seconds = start.elapsed().as_secs_f64();
        measured.row = Some(rows::grown(&figures, seconds)?);
    }
    Ok(measured)
}

/// Inserts and queries on some threads. Other work on the machine only adds to what they cost, so the least counts.
fn engine(
    programs: &Programs,
    threads: &str,
    runs: usize,
    names: [&'static str; 2],
) -> anyhow::Result<[Curve; 2]> {
    println!("\n== the engine, threads: {threads} ==");
    let small = SMALL.map(|n| (n, runs));
    let large = LARGE.map(|n| (n, runs.div_ceil(2)));
    let mut curves = names.map(|name| Curve {
        name,
        points: Vec::new(),
    });
    for (text, runs) in small.into_iter().chain(large) {
        let n: f64 = text.parse().context("a size is a number")?;
        let mut least = [f64::MAX; 2];
        for _ in 0..runs {
            let figures = programs.engine(&["--n", text, "--threads", threads], "find_all_bulk")?;
            for (least, case) in least.iter_mut().zip(["insert_bulk", "find_all_bulk"]) {
                *least = least.min(1e9 / figures.of(case)?.number("per_second")?);
            }
        }
        for (curve, nanoseconds) in curves.iter_mut().zip(least) {
            println!("{}, n = {n}: {nanoseconds:.1} ns", curve.name);
            curve.points.push(Point { n, nanoseconds });
        }
    }
    Ok(curves)
}

/// What a cluster gave as it grew.
fn cluster(figures: &Figures) -> anyhow::Result<Vec<Curve>> {
    let curve = |(name, field)| {
        let points = figures.all_of("grown").map(|figure| {
            Ok(Point {
                n: figure.number("n")?,
                nanoseconds: figure.number(field)?,
            })
        });
        let points = points.collect::<anyhow::Result<_>>()?;
        Ok(Curve { name, points })
    };
    let fields = ["insert_ns", "find_ns", "restart_ns"];
    CLUSTER.into_iter().zip(fields).map(curve).collect()
}
