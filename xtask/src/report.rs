//! The summary at the end: a row a step, then one plain line for people and scripts.

use std::fmt::Write;
use std::time::Duration;

/// The result of a step.
#[derive(Debug)]
pub(crate) struct StepOutcome {
    /// Checks that passed: the tests of the test runner, or 1 for any other step.
    pub(crate) passed: u64,
    /// Checks that failed, counted in the same way.
    pub(crate) failed: u64,
    /// Figures of interest, or the reason of the failure.
    pub(crate) note: String,
    /// What failed and why, a line each, where a step has several checks.
    pub(crate) failures: Vec<String>,
}

impl From<anyhow::Result<String>> for StepOutcome {
    /// The outcome of a step that is one check, with its note.
    fn from(result: anyhow::Result<String>) -> Self {
        match result {
            Ok(note) => Self {
                passed: 1,
                failed: 0,
                note,
                failures: Vec::new(),
            },
            Err(error) => Self {
                passed: 0,
                failed: 1,
                note: format!("{error:#}"),
                failures: Vec::new(),
            },
        }
    }
}

/// One row of the summary.
#[derive(Debug)]
pub(crate) struct SummaryRow {
    /// The step's name.
    pub(crate) name: String,
    /// How long it took.
    pub(crate) time: Duration,
    /// How long it kept a processor busy, where the system tells.
    pub(crate) processor: Option<Duration>,
    /// Its result.
    pub(crate) outcome: StepOutcome,
}

/// Whether nothing failed.
pub(crate) fn all_passed(rows: &[SummaryRow]) -> bool {
    rows.iter().all(|row| row.outcome.failed == 0)
}

/// The table, what failed of steps of several checks, and the closing line `N passed, N failed`.
pub(crate) fn summary(rows: &[SummaryRow]) -> String {
    let mut text = String::from("\n");
    let mut add = |name: &str, result: &str, time: &str, processor: &str, note: &str| {
        let line = format!("{name:<10}{result:<8}{time:>12}{processor:>14}  {note}");
        let _ = writeln!(text, "{}", line.trim_end());
    };
    add("step", "result", "time", "processor", "");
    for row in rows {
        let result = if row.outcome.failed == 0 {
            "ok"
        } else {
            "FAILED"
        };
        let (time, processor) = (shown(row.time), row.processor.map(shown));
        let processor = processor.unwrap_or_default();
        add(&row.name, result, &time, &processor, &row.outcome.note);
    }
    let time: Duration = rows.iter().map(|row| row.time).sum();
    let processor: Option<Duration> = rows.iter().map(|row| row.processor).sum();
    let processor = processor.map(shown).unwrap_or_default();
    add("all", "", &shown(time), &processor, "");
    let failures = rows.iter().flat_map(|row| &row.outcome.failures);
    for (number, failure) in failures.enumerate() {
        let gap = if number == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}FAILED {failure}");
    }
    let passed: u64 = rows.iter().map(|row| row.outcome.passed).sum();
    let failed: u64 = rows.iter().map(|row| row.outcome.failed).sum();
    let _ = write!(text, "\n{passed} passed, {failed} failed");
    text
}

/// A time as people say it.
pub(crate) fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        return format!("{:.1} s", time.as_secs_f64());
    }
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<SummaryRow> {
        let row = |name: &str, seconds, passed, failed, note: &str| SummaryRow {
            name: name.to_owned(),
            time: Duration::from_secs(seconds),
            processor: Some(Duration::from_secs(2 * seconds)),
            outcome: StepOutcome {
                passed,
                failed,
                note: note.to_owned(),
                failures: Vec::new(),
            },
        };
        vec![
            row("fmt", 2, 1, 0, ""),
            row("tests", 125, 40, 2, "40 passed, 2 failed"),
        ]
    }

    #[test]
    fn the_summary_has_a_row_a_step_and_ends_with_the_counts() {
        let expected = "
step      result          time     processor
fmt       ok             2.0 s         4.0 s
tests     FAILED    2 min 05 s    4 min 10 s  40 passed, 2 failed
all                 2 min 07 s    4 min 14 s

41 passed, 2 failed";
        assert_eq!(summary(&rows()), expected);
    }

    #[test]
    fn what_failed_is_told_below_the_table() {
        let mut rows = rows();
        rows[1].outcome.failures = vec!["one: why".to_owned(), "two: why".to_owned()];
        let summary = summary(&rows);
        let (_, end) = summary.split_once("\nall").unwrap();
        let (_, end) = end.split_once('\n').unwrap();
        let expected = "\nFAILED one: why\nFAILED two: why\n\n41 passed, 2 failed";
        assert_eq!(end, expected);
    }

    #[test]
    fn a_processor_time_that_is_not_known_is_left_out() {
        let mut rows = rows();
        rows[0].processor = None;
        let summary = summary(&rows);
        let lines: Vec<&str> = summary.lines().collect();
        assert_eq!(lines[2], "fmt       ok             2.0 s");
        assert_eq!(lines[4], "all                 2 min 07 s");
    }

    #[test]
    fn one_failed_check_fails_the_run() {
        let mut rows = rows();
        assert!(!all_passed(&rows));
        rows.pop();
        assert!(all_passed(&rows));
    }

    #[test]
    fn a_failed_step_keeps_its_whole_reason() {
        let error = anyhow::anyhow!("the cause").context("the step");
        let outcome = StepOutcome::from(Err(error));
        assert_eq!((outcome.passed, outcome.failed), (0, 1));
        assert_eq!(outcome.note, "the step: the cause");
    }
}
