//! `docs/scaling.md`: tables and pictures of cost against size.

use super::plot::short;
use super::{CLUSTER, Curve, ONE_THREAD, Point, TWO_THREADS};
use crate::bench::Machine;
use crate::bench::page::{section_of, taken, with_section};

/// The page, from the root.
pub(crate) const PAGE: &str = "docs/scaling.md";

/// What precedes the sections.
const HEAD: &str = "\
# Scaling

Written by `cargo xtask bench --scaling`. Each machine has a section for each level of its instructions, the newest
first, and the notes below them say what bends a curve. All costs are nanoseconds: time of the clock, divided by how
many were inserted, searched for or loaded. Fingerprints are random, corpora have 5 blocks and distance 3, and half the
queries have a match. A linear scan checks a sample of the answers.

- *engine*: `simshard bench engine`. All fingerprints are inserted at once, then 1M queries are searched for at once. Of
  several runs the least counts, as other work on the machine only adds to a cost.
- *cluster*: `simshard bench cluster --case grown`. Three nodes, a router and a client share the machine. A row has the
  mean cost of the inserts since the row above, by durable streams. Then nodes come to rest, and 2M queries are streamed.
- *cluster restart*: all nodes are killed and started at once. It takes until all of them serve, divided by the documents.
";

/// The page before, with what was measured now in the section of this machine and level. The other sections and the notes
/// stay.
pub(crate) fn page(before: &str, machine: &Machine, curves: &[Curve]) -> String {
    with_section(HEAD, before, machine, |_, _| {
        let title = machine.title();
        let (taken, date) = (taken(machine), &machine.date);
        let picture = picture(machine);
        let table = table(curves);
        format!(
            "{title}\n\n{taken}Measured last on {date}.\n\n![Cost against size]({picture})\n\n{table}"
        )
    })
}

/// What was measured now, and the other curves of this machine and level on the page before.
pub(crate) fn with_kept(before: &str, machine: &Machine, now: Vec<Curve>) -> Vec<Curve> {
    let mut curves = kept(&section_of(before, machine));
    curves.retain(|curve| now.iter().all(|other| other.name != curve.name));
    curves.extend(now);
    let names = [&ONE_THREAD[..], &TWO_THREADS, &CLUSTER].concat();
    curves.sort_by_key(|curve| names.iter().position(|name| *name == curve.name));
    curves
}

/// The curves of the table in a section.
fn kept(section: &str) -> Vec<Curve> {
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let mut rows = lines.map(|line| line.split('|').map(str::trim).skip(1));
    let Some(names) = rows.next() else {
        return Vec::new();
    };
    let names = names.skip(1).filter(|name| !name.is_empty());
    let rows: Vec<Vec<&str>> = rows.map(Iterator::collect).collect();
    let known = [&ONE_THREAD[..], &TWO_THREADS, &CLUSTER].concat();
    let curve = |(column, name): (usize, &str)| {
        let name = known.iter().find(|known| **known == name)?;
        let points = rows.iter().filter_map(|row| {
            Some(Point {
                n: long(row.first()?)?,
                nanoseconds: row.get(column)?.parse().ok()?,
            })
        });
        let points = points.collect();
        Some(Curve { name, points })
    };
    (1..).zip(names).filter_map(curve).collect()
}

/// The size that is written in short.
fn long(short: &str) -> Option<f64> {
    let unit = [('k', 1e3), ('M', 1e6)];
    let unit = unit
        .into_iter()
        .find(|(letter, _)| short.ends_with(*letter));
    let (letter, times) = unit?;
    let number: f64 = short.strip_suffix(letter)?.parse().ok()?;
    Some(number * times)
}

/// The picture of a machine and level, from the folder of the page.
pub(crate) fn picture(machine: &Machine) -> String {
    let title = machine.title().to_lowercase();
    let words = title.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("scaling/{}.svg", words.join("-"))
}

fn table(curves: &[Curve]) -> String {
    let names: String = curves
        .iter()
        .map(|curve| format!(" {} |", curve.name))
        .collect();
    let rule = "---|".repeat(curves.len());
    let mut sizes: Vec<f64> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.n))
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let row = |n: f64| {
        let cells: String = curves
            .iter()
            .map(
                |curve| match curve.points.iter().find(|point| point.n == n) {
                    Some(point) => format!(" {:.0} |", point.nanoseconds),
                    None => " – |".to_owned(),
                },
            )
            .collect();
        format!("| {} |{cells}\n", short(n))
    };
    let rows: String = sizes.into_iter().map(row).collect();
    format!("| n |{names}\n|---|{rule}\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::page::machine;

    fn curve(name: &'static str, points: &[(f64, f64)]) -> Curve {
        let point = |&(n, nanoseconds): &(f64, f64)| Point { n, nanoseconds };
        let points = points.iter().map(point).collect();
        Curve { name, points }
    }

    #[test]
    fn a_size_that_a_curve_lacks_has_a_dash() {
        let curves = [
            curve("a", &[(1e4, 10.4), (1e6, 20.0)]),
            curve("b", &[(1e6, 30.6)]),
        ];
        let expected = "| n | a | b |\n|---|---|---|\n| 10k | 10 | – |\n| 1M | 20 | 31 |\n";
        assert_eq!(table(&curves), expected);
    }

    #[test]
    fn curves_that_are_not_measured_again_stay() {
        let machine = machine("P", "2026-01-02");
        let [insert, query, _] = CLUSTER;
        let first = [
            curve(ONE_THREAD[0], &[(1e4, 10.0), (1e6, 20.0)]),
            curve(insert, &[(1e6, 30.0)]),
        ];
        let before = page("", &machine, &first);
        let now = vec![curve(query, &[(5e7, 1.0)]), curve(insert, &[(1e6, 40.0)])];
        let expected = [
            curve(ONE_THREAD[0], &[(1e4, 10.0), (1e6, 20.0)]),
            curve(insert, &[(1e6, 40.0)]),
            curve(query, &[(5e7, 1.0)]),
        ];
        assert_eq!(with_kept(&before, &machine, now), expected);
    }

    #[test]
    fn a_machine_replaces_its_own_section_only() {
        let first = page(
            "",
            &machine("P", "2026-01-02"),
            &[curve("a", &[(1e4, 1.0)])],
        );
        let both = page(
            &first,
            &machine("Q", "2026-01-03"),
            &[curve("a", &[(1e4, 2.0)])],
        );
        let noted = format!("{both}\nWhy it bends.\n");
        let again = page(
            &noted,
            &machine("P", "2026-01-04"),
            &[curve("a", &[(1e4, 3.0)])],
        );
        for there in [
            "| 10k | 2 |",
            "| 10k | 3 |",
            "Why it bends.",
            "](scaling/p-avx2.svg)",
        ] {
            assert!(again.contains(there), "{there}: {again}");
        }
        assert!(!again.contains("| 10k | 1 |"), "{again}");
    }
}
