//! `docs/benchmarks.md`: what was measured beside what was promised.

use std::fmt::Write;

use super::machine::Machine;
use super::rows::{Measured, Must, Unit};

/// What precedes the table, and the notes after it, which people write and every run keeps.
const HEAD: &str = "\
# Benchmarks

Written by `cargo xtask bench`, which builds the release binary, runs every row several times and
puts the medians here. *Must* is what the project asks of itself on a machine with two cores of
2024 or later; a row that is missed says so, and the notes say why. Of `bench engine` and `bench batch` the
answers behind every figure are checked: all of them at n = 100,000, before anything is timed.
";

/// Where the notes begin: what people wrote below it is kept.
pub(crate) const NOTES: &str = "## Notes\n";

/// The page, with the notes of the page before it.
pub(crate) fn page(machine: &Machine, measured: &[Measured], notes: &str) -> String {
    let mut page = HEAD.to_owned();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "\nMeasured on {}: {}, {} threads, {} GiB, {}, {}.\n",
        machine.date,
        machine.processor,
        machine.threads,
        machine.memory_gib,
        machine.system,
        machine.compiler
    );
    let _ = writeln!(
        page,
        "| what | must | median | least to most, runs | against must | |"
    );
    let _ = writeln!(page, "|---|---|---|---|---|---|");
    for one in measured {
        let _ = writeln!(page, "{}", line(one));
    }
    let _ = write!(page, "\n{NOTES}{notes}");
    page
}

fn line(measured: &Measured) -> String {
    let row = &measured.row;
    let (sign, bound) = match row.must {
        Must::AtLeast(bound) => ('≥', bound),
        Must::AtMost(bound) => ('≤', bound),
    };
    let median = measured.median();
    // Above 1 is better than promised, whichever way the bound points.
    let ratio = match row.must {
        Must::AtLeast(bound) => median / bound,
        Must::AtMost(bound) => bound / median,
    };
    let least = measured.values.iter().copied().fold(f64::MAX, f64::min);
    let most = measured.values.iter().copied().fold(f64::MIN, f64::max);
    let verdict = if row.must.is_met_by(median) {
        "met"
    } else {
        "**missed**"
    };
    format!(
        "| {} | {sign} {} | {} | {} to {}, {} | {ratio:.2} × | {verdict} |",
        row.what,
        written(bound, row.unit),
        written(median, row.unit),
        written(least, row.unit),
        written(most, row.unit),
        measured.values.len(),
    )
}

fn written(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Millions => format!("{value:.2} M/s"),
        Unit::Seconds if value < 1.0 => format!("{value:.4} s"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Gigabytes => format!("{value:.3} GB"),
        Unit::BytesAFingerprint => format!("{value:.1} bytes"),
        Unit::MegabytesASecond => format!("{value:.0} MB/s"),
        Unit::Times => format!("{value:.2} ×"),
    }
}

/// The notes of an earlier page.
pub(crate) fn notes_of(page: &str) -> &str {
    page.split_once(NOTES).map_or("", |(_, notes)| notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows;

    fn machine() -> Machine {
        Machine {
            processor: "P".to_owned(),
            threads: 2,
            memory_gib: 24,
            system: "S".to_owned(),
            compiler: "C".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    fn measured(value: f64) -> Measured {
        Measured {
            row: rows().remove(0),
            values: vec![value],
        }
    }

    #[test]
    fn a_missed_row_says_so() {
        assert!(line(&measured(5.0)).ends_with("| 1.00 × | met |"));
        assert!(line(&measured(4.0)).ends_with("| 0.80 × | **missed** |"));
    }

    #[test]
    fn the_notes_of_an_earlier_page_stay() {
        let first = page(&machine(), &[measured(5.0)], "\nWhy.\n");
        assert_eq!(notes_of(&first), "\nWhy.\n");
        let second = page(&machine(), &[measured(4.0)], notes_of(&first));
        assert_eq!(notes_of(&second), "\nWhy.\n");
        assert_eq!(notes_of("something else"), "");
    }
}
