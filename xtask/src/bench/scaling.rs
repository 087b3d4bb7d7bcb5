//! What a query, an insert and a restarted document cost as a corpus grows: in one process, and in a cluster.

mod page;
mod plot;

use std::time::Instant;

use anyhow::Context;

use super::figures::{Figures, Programs};
use super::rows::{self, Measured, median};

pub(crate) use page::{PAGE, page, picture};
pub(crate) use plot::svg;

/// Sizes of the corpora in one process. The first ones take less than a second each.
const SMALL: [&str; 3] = ["10000", "100000", "1000000"];
const LARGE: [&str; 2] = ["10000000", "100000000"];

/// What one thing costs, by size.
pub(crate) struct Curve {
    name: &'static str,
    points: Vec<Point>,
}

/// The cost of one thing at a size.
#[derive(Clone, Copy)]
struct Point {
    n: f64,
    nanoseconds: f64,
}

/// All that one run gave.
pub(crate) struct Scaling {
    pub(crate) curves: Vec<Curve>,
    /// The row that the cluster gave.
    pub(crate) row: Measured,
}

/// Measures small corpora as many times as told, large ones half as many, and a cluster once.
pub(crate) fn measure(programs: &Programs, runs: usize) -> anyhow::Result<Scaling> {
    let one = ["engine insert, 1 thread", "engine query, 1 thread"];
    let two = ["engine insert, 2 threads", "engine query, 2 threads"];
    let mut curves = Vec::from(engine(programs, "1", runs, one)?);
    curves.extend(engine(programs, "2", runs, two)?);
    println!("\n== a cluster that grows ==");
    let start = Instant::now();
    let figures = programs.cluster(&["grown"])?;
    curves.extend(cluster(&figures)?);
    Ok(Scaling {
        row: rows::grown(&figures, start.elapsed().as_secs_f64())?,
        curves,
    })
}

/// Inserts and queries on some threads.
fn engine(
    programs: &Programs,
    threads: &str,
    runs: usize,
    names: [&'static str; 2],
) -> anyhow::Result<[Curve; 2]> {
    println!("\n== the engine, threads: {threads} ==");
    let small = SMALL.map(|n| (n, runs));
    let large = LARGE.map(|n| (n, runs.div_ceil(2)));
    let [mut inserts, mut queries] = names.map(|name| Curve {
        name,
        points: Vec::new(),
    });
    for (n, runs) in small.into_iter().chain(large) {
        let (mut insert, mut query) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let figures = programs.engine(&["--n", n, "--threads", threads], "find_all_bulk")?;
            let of = |case| figures.of(case)?.number("per_second");
            insert.push(1e9 / of("insert_bulk")?);
            query.push(1e9 / of("find_all_bulk")?);
        }
        let n: f64 = n.parse().context("a size is a number")?;
        for (curve, values) in [(&mut inserts, &insert), (&mut queries, &query)] {
            let nanoseconds = median(values);
            println!("{}, n = {n}: {nanoseconds:.1} ns", curve.name);
            curve.points.push(Point { n, nanoseconds });
        }
    }
    Ok([inserts, queries])
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
    let curves = [
        ("cluster insert", "insert_ns"),
        ("cluster query", "find_ns"),
        ("cluster restart, a document", "restart_ns"),
    ];
    curves.into_iter().map(curve).collect()
}
