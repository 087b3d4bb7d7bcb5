//! `docs/benchmarks.md`: what was measured beside what was promised, and how it was taken.

use super::machine::Machine;
use super::rows::{Measured, Target, Unit};

/// What precedes the table, and the notes after it, which people write and every run keeps.
const HEAD: &str = "\
# Benchmarks

Written by `cargo xtask bench`, which builds the release binary, measures every row and puts the
medians here. *Target* is what the project asks of itself on a machine with two cores of 2024 or
later; where a row misses it, the notes say why, by the row's name. Of `bench engine`, `bench batch` and
`bench cluster` the answers behind every figure are checked: all of them at n = 100,000, before anything
is timed. The rows `cluster-…` measure nodes and a router that are processes of their own, as operators
start them, by a client on the same machine: what it takes is part of the figures.
";

/// The heads of the table.
const COLUMNS: &str = "\
| row | what | target | median | least to most | runs | against target | |
|---|---|---|---|---|---|---|---|
";

/// Where the notes begin: what people wrote below it is kept.
pub(crate) const NOTES: &str = "## Notes\n";

/// The page, with the notes of the page before it.
pub(crate) fn page(machine: &Machine, measured: &[Measured], notes: &str) -> String {
    let table: String = measured.iter().map(|one| line(one, notes)).collect();
    let taken = taken(machine, measured);
    format!("{HEAD}\n{taken}\n{COLUMNS}{table}\n{NOTES}{notes}")
}

/// How the figures were taken: on what, how often, and beside which other work.
fn taken(machine: &Machine, measured: &[Measured]) -> String {
    let Machine {
        processor,
        threads,
        memory_gib,
        system,
        compiler,
        date,
        load,
    } = machine;
    let runs = || measured.iter().map(|one| one.values.len());
    let runs = match (runs().min().unwrap_or(0), runs().max().unwrap_or(0)) {
        (1, 1) => "once".to_owned(),
        (least, most) if least == most => format!("{most} times"),
        (least, most) => format!("{least} to {most} times"),
    };
    let load = load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    format!(
        "Measured on {date}: {processor}, {threads} threads, {memory_gib} GiB, {system}, {compiler}.\n\
         Each row was measured {runs}. Before the first of them, and before the build, the machine's load\n\
         average over a minute was {load}.\n"
    )
}

fn line(measured: &Measured, notes: &str) -> String {
    let row = &measured.row;
    let median = measured.median();
    // Above 1 is better than promised, whichever way the bound points.
    let (sign, bound, ratio) = match row.target {
        Target::AtLeast(bound) => ('≥', bound, median / bound),
        Target::AtMost(bound) => ('≤', bound, bound / median),
    };
    let against = match bound {
        // Nothing is a part of none.
        0.0 => "–".to_owned(),
        _ => format!("{ratio:.2} ×"),
    };
    // Of the range, one run has only the median.
    let range = match measured.values.len() {
        1 => "–".to_owned(),
        _ => {
            let least = measured.values.iter().copied().fold(f64::MAX, f64::min);
            let most = measured.values.iter().copied().fold(f64::MIN, f64::max);
            let (least, most) = (written(least, row.unit), written(most, row.unit));
            format!("{least} to {most}")
        }
    };
    format!(
        "| `{}` | {} | {sign} {} | {} | {range} | {} | {against} | {} |\n",
        row.name,
        row.what,
        written(bound, row.unit),
        written(median, row.unit),
        measured.values.len(),
        verdict(measured, notes),
    )
}

fn verdict(measured: &Measured, notes: &str) -> &'static str {
    let row = &measured.row;
    if row.target.is_met_by(measured.median()) {
        "met"
    } else if notes.contains(&format!("`{}`", row.name)) {
        "**missed**, see [notes](#notes)"
    } else {
        "**missed**, no note yet"
    }
}

fn written(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Millions => format!("{value:.2} M/s"),
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Milliseconds => format!("{value:.2} ms"),
        Unit::Seconds if value < 1.0 => format!("{value:.4} s"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Gigabytes => format!("{value:.3} GB"),
        Unit::Bytes => format!("{value:.1} bytes"),
        Unit::MegabytesASecond => format!("{value:.0} MB/s"),
        Unit::Count => format!("{value:.0}"),
        Unit::Times => format!("{value:.2} ×"),
    }
}

/// Rows that `simshard size` estimates by.
const ESTIMATED_BY: [&str; 5] = [
    "cluster-disk",
    "cluster-memory",
    "cluster-restart",
    "memory",
    "served-memory",
];

/// The medians of these rows as JSON; `None` if one was not measured.
pub(crate) fn constants(measured: &[Measured]) -> Option<String> {
    let lines = ESTIMATED_BY.map(|name| {
        let found = measured.iter().find(|one| one.row.name == name)?;
        // As many digits as the page has.
        let (value, unit) = (found.median(), found.row.unit);
        let digits = if unit == Unit::Bytes { 1 } else { 2 };
        Some(format!("  \"{name}\": {value:.digits$}"))
    });
    let lines: Option<Vec<String>> = lines.into_iter().collect();
    Some(format!("{{\n{}\n}}\n", lines?.join(",\n")))
}

/// The notes of an earlier page.
pub(crate) fn notes_of(page: &str) -> &str {
    page.split_once(NOTES).map_or("", |(_, notes)| notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cases;

    fn machine() -> Machine {
        Machine {
            processor: "P".to_owned(),
            threads: 2,
            memory_gib: 24,
            system: "S".to_owned(),
            compiler: "C".to_owned(),
            date: "2026-01-02".to_owned(),
            load: Some(0.25),
        }
    }

    /// The row `find-all`, of which at least 5 M/s are asked.
    fn measured(values: &[f64]) -> Measured {
        Measured {
            row: cases()[0].rows[0],
            values: values.to_vec(),
        }
    }

    #[test]
    fn a_row_has_its_target_its_median_its_range_and_a_verdict() {
        let met = line(&measured(&[6.0, 5.0, 9.0]), "");
        assert!(met.starts_with("| `find-all` | find_all bulk, "), "{met}");
        let figures = "| ≥ 5.00 M/s | 6.00 M/s | 5.00 M/s to 9.00 M/s | 3 | 1.20 × | met |\n";
        assert!(met.ends_with(figures), "{met}");
        let once = line(&measured(&[5.0]), "");
        assert!(once.ends_with("| 5.00 M/s | – | 1 | 1.00 × | met |\n"));
    }

    #[test]
    fn a_missed_row_says_whether_the_notes_explain_it() {
        let missed = |notes| line(&measured(&[4.0]), notes);
        let explained = missed("\n`find-all`: the machine was busy.\n");
        assert!(explained.ends_with("| 0.80 × | **missed**, see [notes](#notes) |\n"));
        for notes in ["", "\n`find-all-50m`: the machine was busy.\n"] {
            assert!(missed(notes).ends_with("| 0.80 × | **missed**, no note yet |\n"));
        }
    }

    #[test]
    fn the_page_says_how_its_figures_were_taken() {
        let text = |values: &[&[f64]]| {
            let measured: Vec<_> = values.iter().map(|values| measured(values)).collect();
            page(&machine(), &measured, "").replace('\n', " ")
        };
        let once = text(&[&[1.0], &[2.0]]);
        assert!(once.contains("Each row was measured once. "), "{once}");
        assert!(once.contains("load average over a minute was 0.25. "));
        assert!(text(&[&[1.0; 5]]).contains("was measured 5 times. "));
        assert!(text(&[&[1.0; 5], &[1.0; 3]]).contains("was measured 3 to 5 times. "));
    }

    #[test]
    fn constants_are_the_medians_of_rows_that_are_all_there() {
        let rows = || cases().into_iter().flat_map(|case| case.rows);
        let all: Vec<_> = rows()
            .map(|row| Measured {
                row,
                values: vec![7.125],
            })
            .collect();
        let constants = constants(&all).unwrap();
        let read: serde_json::Value = serde_json::from_str(&constants).unwrap();
        assert_eq!(read["memory"], 7.1);
        assert_eq!(read["cluster-restart"], 7.12);
        assert_eq!(read.as_object().unwrap().len(), ESTIMATED_BY.len());
        assert_eq!(super::constants(&all[..3]), None);
    }

    /// What the program estimates by is what the page says.
    #[test]
    fn the_constants_of_the_program_are_those_of_the_page() {
        let page = include_str!("../../../docs/benchmarks.md");
        let constants = include_str!("../../../crates/cli/src/commands/size/measured.json");
        let constants: serde_json::Value = serde_json::from_str(constants).unwrap();
        for name in ESTIMATED_BY {
            let line = page
                .lines()
                .find(|line| line.starts_with(&format!("| `{name}` |")));
            let line = line.unwrap_or_else(|| panic!("the page has no row {name}"));
            let median = line.split(" | ").nth(3).unwrap();
            let value = median.split(' ').next().unwrap().parse::<f64>().unwrap();
            assert_eq!(constants[name], value, "{name}");
        }
    }

    #[test]
    fn the_notes_of_an_earlier_page_stay() {
        let first = page(&machine(), &[measured(&[5.0])], "\nWhy.\n");
        assert_eq!(notes_of(&first), "\nWhy.\n");
        let second = page(&machine(), &[measured(&[4.0])], notes_of(&first));
        assert_eq!(notes_of(&second), "\nWhy.\n");
        assert_eq!(notes_of("something else"), "");
    }
}
