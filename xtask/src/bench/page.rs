//! `docs/benchmarks.md`: what was measured beside what was promised, and how it was taken.

use super::machine::Machine;
use super::rows::{Measured, Target, Unit, cases};

/// What precedes the sections, and the notes after them, which people write and every run keeps.
const HEAD: &str = "\
# Benchmarks

Written by `cargo xtask bench`, which builds the release binary, measures the rows and puts the
medians here, in about ten minutes. `--replicas` measures those of clusters that lose nodes or are reshaped
(`replicas-…`, `failover-…`, `reshape-…`), in about an hour. Each machine has a section for each level of its
instructions, the newest first; `--level avx2` measures a level below the machine's best one, in a section of its own. A
section is of one generation of processors, by family and model; those of before 2026-11-29 do not tell. *Target* is what the
project asks of itself on a machine with two cores of 2024 or later; where a row misses it, the notes say why, by the
row's name. *Took* is the time of one run, which rows that are measured together share. Of `bench engine`,
`bench batch` and `bench cluster` the answers behind every figure are checked: all of them at n = 100,000, before
anything is timed. The rows `cluster-…` measure nodes and a router that are processes of their own, as operators
start them, by a client on the same machine: what it takes is part of the figures. How costs grow with a corpus is on
[a page of its own](scaling.md).
";

/// The heads of a table.
const COLUMNS: &str = "\
| row | what | target | median | least to most | runs | took | on | against target | |
|---|---|---|---|---|---|---|---|---|---|
";

/// Where the notes begin: what people wrote below it is kept.
const NOTES: &str = "## Notes\n";

/// Before the title of a section.
const SECTION: &str = "\n## ";

/// The page before, with what was measured now: in the section of this machine and level, which comes first. Its other rows
/// stay, and so do the other sections and the notes.
pub(crate) fn page(before: &str, machine: &Machine, measured: &[Measured]) -> String {
    with_section(HEAD, before, machine, |same, notes| {
        section(machine, same, measured, notes)
    })
}

/// A page with this head: the section of this machine and level comes first, made of what it was and the notes. The other
/// sections stay, and so do the notes.
pub(super) fn with_section(
    head: &str,
    before: &str,
    machine: &Machine,
    section: impl FnOnce(&str, &str) -> String,
) -> String {
    let (sections, notes) = parts(before);
    let others = sections
        .into_iter()
        .filter(|section| !is_of(section, machine));
    let section = section(&section_of(before, machine), notes);
    let sections = std::iter::once(&*section).chain(others);
    let sections: String = sections
        .map(|section| format!("{SECTION}{}\n", section.trim_end()))
        .collect();
    format!("{head}{sections}\n{NOTES}{notes}")
}

/// The section of this machine and level; empty if there is none.
pub(super) fn section_of(page: &str, machine: &Machine) -> String {
    let sections = parts(page).0.into_iter();
    sections.filter(|section| is_of(section, machine)).collect()
}

fn is_of(section: &str, machine: &Machine) -> bool {
    section.lines().next() == Some(&*machine.title())
}

/// The sections of a page, each from its title on, and its notes.
fn parts(page: &str) -> (Vec<&str>, &str) {
    let (sections, notes) = page.split_once(NOTES).unwrap_or((page, ""));
    (sections.split(SECTION).skip(1).collect(), notes)
}

/// What this machine gave: before, and now.
fn section(machine: &Machine, before: &str, measured: &[Measured], notes: &str) -> String {
    let rows = cases().into_iter().flat_map(|case| case.rows);
    let table: String = rows
        .filter_map(|row| {
            let now = measured.iter().find(|one| one.row.name == row.name);
            now.map(|one| line(one, machine, notes))
                .or_else(|| Some(format!("{}\n", line_of(before, row.name)?)))
        })
        .collect();
    let title = machine.title();
    let taken = taken(machine);
    format!("{title}\n\n{taken}\n{COLUMNS}{table}")
}

/// The line of a row, the first in a text.
fn line_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("| `{name}` |");
    text.lines().find(|line| line.starts_with(&start))
}

/// How the last figures were taken: on what, and beside which other work.
pub(super) fn taken(machine: &Machine) -> String {
    let Machine {
        threads,
        memory_gib,
        system,
        compiler,
        load,
        ..
    } = machine;
    let load = load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    format!(
        "{threads} threads, {memory_gib} GiB, {system}, {compiler}.\n\
         Before the last run, and before its build, the machine's load average over a minute was {load}.\n"
    )
}

fn line(measured: &Measured, machine: &Machine, notes: &str) -> String {
    let row = &measured.row;
    let target = row.target(&machine.level);
    let median = measured.median();
    // Above 1 is better than promised, whichever way the bound points.
    let (sign, bound, ratio) = match target {
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
        "| `{}` | {} | {sign} {} | {} | {range} | {} | {:.0} s | {} | {against} | {} |\n",
        row.name,
        row.what,
        written(bound, row.unit),
        written(median, row.unit),
        measured.values.len(),
        measured.seconds,
        machine.date,
        verdict(measured, target, notes),
    )
}

fn verdict(measured: &Measured, target: Target, notes: &str) -> &'static str {
    let row = &measured.row;
    if target.is_met_by(measured.median()) {
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

/// The medians of these rows as JSON, each of the first section that has it; `None` if one has none.
pub(crate) fn constants(page: &str) -> Option<String> {
    let lines = ESTIMATED_BY.map(|name| {
        let median = line_of(page, name)?.split(" | ").nth(3)?;
        let value: f64 = median.split(' ').next()?.parse().ok()?;
        Some(format!("  \"{name}\": {value:?}"))
    });
    let lines: Option<Vec<String>> = lines.into_iter().collect();
    Some(format!("{{\n{}\n}}\n", lines?.join(",\n")))
}

/// A machine for tests.
#[cfg(test)]
pub(super) fn machine(processor: &str, date: &str) -> Machine {
    Machine {
        processor: processor.to_owned(),
        level: "avx2".to_owned(),
        is_limited: false,
        threads: 2,
        memory_gib: 24,
        system: "S".to_owned(),
        compiler: "C".to_owned(),
        date: date.to_owned(),
        load: Some(0.25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row `find-all`, of which at least 5 M/s are asked.
    fn measured(values: &[f64]) -> Measured {
        Measured {
            row: cases()[0].rows[0],
            values: values.to_vec(),
            seconds: 2.4,
        }
    }

    #[test]
    fn a_row_has_its_target_its_median_its_range_and_a_verdict() {
        let line = |values: &[f64]| line(&measured(values), &machine("P", "2026-01-02"), "");
        let met = line(&[6.0, 5.0, 9.0]);
        assert!(met.starts_with("| `find-all` | find_all bulk, "), "{met}");
        let figures = "| ≥ 5.00 M/s | 6.00 M/s | 5.00 M/s to 9.00 M/s | 3 | 2 s | 2026-01-02 | 1.20 × | met |\n";
        assert!(met.ends_with(figures), "{met}");
        let once = line(&[5.0]);
        assert!(once.ends_with("| 5.00 M/s | – | 1 | 2 s | 2026-01-02 | 1.00 × | met |\n"));
    }

    #[test]
    fn a_missed_row_says_whether_the_notes_explain_it() {
        let missed = |notes| line(&measured(&[4.0]), &machine("P", ""), notes);
        let explained = missed("\n`find-all`: the machine was busy.\n");
        assert!(explained.ends_with("| 0.80 × | **missed**, see [notes](#notes) |\n"));
        for notes in ["", "\n`find-all-50m`: the machine was busy.\n"] {
            assert!(missed(notes).ends_with("| 0.80 × | **missed**, no note yet |\n"));
        }
    }

    #[test]
    fn a_machine_replaces_its_own_rows_only_and_comes_first() {
        let first = page("", &machine("P", "2026-01-02"), &[measured(&[6.0])]);
        let notes = format!("{first}\nWhy.\n");
        let other = page(&notes, &machine("Q", "2026-01-03"), &[measured(&[7.0])]);
        let two = [Measured {
            row: cases()[0].rows[1],
            ..measured(&[8.0])
        }];
        let again = page(&other, &machine("P", "2026-01-04"), &two);
        let (sections, kept) = parts(&again);
        assert_eq!(kept, "\nWhy.\n");
        let titles: Vec<_> = sections
            .iter()
            .map(|one| one.lines().next().unwrap())
            .collect();
        assert_eq!(titles, ["P, avx2", "Q, avx2"]);
        let date = |name| line_of(sections[0], name).unwrap().contains("2026-01-04");
        assert!(date(two[0].row.name) && !date("find-all"));
        assert!(
            line_of(sections[1], "find-all")
                .unwrap()
                .contains("7.00 M/s")
        );
        assert_eq!(page(&again, &machine("P", "2026-01-04"), &two), again);
    }

    #[test]
    fn constants_are_the_newest_medians_of_rows_that_are_all_there() {
        let rows = || cases().into_iter().flat_map(|case| case.rows);
        let all = |value: f64| {
            rows().map(move |row| Measured {
                row,
                values: vec![value],
                seconds: 1.0,
            })
        };
        let every: Vec<_> = all(7.125).collect();
        let older = page("", &machine("P", ""), &every);
        let some: Vec<_> = all(8.0).filter(|one| one.row.name == "memory").collect();
        let page = page(&older, &machine("Q", ""), &some);
        let read: serde_json::Value = serde_json::from_str(&constants(&page).unwrap()).unwrap();
        assert_eq!(read["memory"], 8.0);
        assert_eq!(read["cluster-restart"], 7.12);
        assert_eq!(read.as_object().unwrap().len(), ESTIMATED_BY.len());
        assert_eq!(constants("| `memory` |"), None);
    }

    /// What the program estimates by is what the page says.
    #[test]
    fn the_constants_of_the_program_are_those_of_the_page() {
        let written = include_str!("../../../crates/cli/src/commands/size/measured.json");
        let page = include_str!("../../../docs/benchmarks.md");
        assert_eq!(constants(page).unwrap(), written);
    }
}
