//! The Rust tests, with all that can be built in, counted from the result lines of the test runner.

use std::process::Command;
use std::time::Instant;

use super::earlier;
use super::failures::Failures;
use super::room;
use crate::process;
use crate::report::{StepOutcome, shown};
use crate::workspace::Workspace;

pub(super) fn verify(workspace: &Workspace) -> StepOutcome {
    // Seen before what takes long, and again when all is compiled: that may be on the same disk.
    if let Err(error) = room::check() {
        return StepOutcome::from(Err(error));
    }
    let earlier = match workspace.is_long().then(|| earlier::program(workspace)) {
        Some(Err(error)) => return StepOutcome::from(Err(error)),
        earlier => earlier.and_then(Result::ok),
    };
    let start = Instant::now();
    let mut parts = [most(workspace), of_processes(workspace)].into_iter();
    let built = parts.try_for_each(|mut tests| process::run(tests.arg("--no-run")));
    if let Err(error) = built.and_then(|()| room::check()) {
        return StepOutcome::from(Err(error));
    }
    let compiled = start.elapsed();

    let mut of_processes = of_processes(workspace);
    of_processes.args(["--", "--test-threads", &at_once().to_string()]);
    of_processes.envs(earlier.map(|program| (earlier::VARIABLE, program)));
    let mut tally = Tally::default();
    let mut run = |mut tests: Command| {
        let status = process::run_reading(&mut tests, |line| tally.add(line))?;
        process::check(&tests, status)
    };
    let [most, of_processes] = [most(workspace), of_processes].map(&mut run);
    let mut outcome = tally.outcome(most.and(of_processes));
    outcome.note += &format!(", compiled in {}", shown(compiled));
    outcome
}

/// All tests but those of processes.
fn most(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    command
}

/// The tests of clusters of processes, with the features of the others: nothing is compiled twice.
fn of_processes(workspace: &Workspace) -> Command {
    let mut command = most(workspace);
    command.args(["--test", "processes"]);
    command
}

/// How many tests of processes run at once: they wait most of the time.
fn at_once() -> usize {
    let processors = std::thread::available_parallelism();
    2 * processors.map_or(1, usize::from) + 1
}

/// The sum of the result lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Tests that could do nothing here, and passed.
    idle: u64,
    failures: Failures,
}

/// What such a test prints.
const DID_NOTHING: &str = "did nothing: ";

impl Tally {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    pub(super) fn add(&mut self, line: &str) {
        self.idle += u64::from(line.starts_with(DID_NOTHING));
        self.failures.add(line);
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for count in counts.split("; ") {
            let Some((number, kind)) = count.split_once(' ') else {
                continue;
            };
            let number = number.parse().unwrap_or(0);
            match kind {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// The outcome, given how the runner ended. What fails without a failed test (a target
    /// that does not compile, a test program that is killed) counts as one failure.
    pub(super) fn outcome(self, ended: anyhow::Result<()>) -> StepOutcome {
        let mut note = format!("{} passed, {} failed", self.passed, self.failed);
        if self.ignored > 0 {
            note += &format!(", {} ignored", self.ignored);
        }
        if self.idle > 0 {
            note += &format!(", {} could do nothing here", self.idle);
        }
        let mut failed = self.failed;
        if let Err(error) = ended {
            failed = failed.max(1);
            note += &format!("; {error:#}");
        } else if self.passed == 0 {
            failed = failed.max(1);
            note += "; the test runner reported no test";
        }
        StepOutcome {
            passed: self.passed,
            failed,
            note,
            failures: self.failures.told(),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    const GOOD: &str = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s";
    const BAD: &str = "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s";

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.add(line);
        }
        tally
    }

    #[test]
    fn result_lines_add_up_and_others_do_not_count() {
        let sum = tally(&["running 9 tests", GOOD, "test a ... ok", BAD]);
        assert_eq!(
            sum,
            Tally {
                passed: 7,
                failed: 2,
                ignored: 1,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn failed_tests_are_the_failures_of_a_failed_run() {
        let outcome = tally(&[GOOD, BAD]).outcome(Err(anyhow!("exit status: 101")));
        assert_eq!((outcome.passed, outcome.failed), (7, 2));
        assert_eq!(
            outcome.note,
            "7 passed, 2 failed, 1 ignored; exit status: 101"
        );
    }

    #[test]
    fn a_run_that_fails_without_failed_tests_is_one_failure() {
        let outcome = tally(&[GOOD]).outcome(Err(anyhow!("does not compile")));
        assert_eq!((outcome.passed, outcome.failed), (3, 1));
    }

    #[test]
    fn tests_that_did_nothing_are_told() {
        let outcome = tally(&[GOOD, "did nothing: this is not root"]).outcome(Ok(()));
        assert_eq!(
            outcome.note,
            "3 passed, 0 failed, 1 ignored, 1 could do nothing here"
        );
    }

    #[test]
    fn a_run_without_tests_is_a_failure() {
        assert_eq!(tally(&[]).outcome(Ok(())).failed, 1);
        assert_eq!(tally(&[GOOD]).outcome(Ok(())).failed, 0);
    }
}
