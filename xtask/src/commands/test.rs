//! `cargo xtask test`: everything CI runs, in one command.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::steps::{self, Step};
use crate::workspace::Workspace;

/// Verify everything that CI verifies. Installs the tools it lacks, saying so first; changes no
/// source file
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also run the long tests (sets SIMSHARD_LONG=1 for the Rust tests), and the step aarch64
    #[arg(long)]
    long: bool,
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP", value_enum)]
    only: Vec<Step>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::locate(arguments.long)?;
    Ok(steps::run(
        &workspace,
        &chosen(&arguments.only, arguments.long),
    ))
}

/// The wanted steps, each once, in the order in which they run.
fn chosen(only: &[Step], long: bool) -> Vec<Step> {
    let all = Step::value_variants().iter().copied();
    let runs = |step: &Step| match only {
        [] => long || !step.is_long(),
        _ => only.contains(step),
    };
    all.filter(runs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_run_unless_some_are_named() {
        assert_eq!(chosen(&[], true), Step::value_variants());
    }

    #[test]
    fn long_steps_run_when_tests_are_long_or_when_they_are_named() {
        assert!(!chosen(&[], false).contains(&Step::Aarch64));
        assert!(chosen(&[], false).contains(&Step::Js));
        assert_eq!(chosen(&[Step::Aarch64], false), [Step::Aarch64]);
    }

    #[test]
    fn named_steps_run_once_and_in_the_usual_order() {
        let named = [Step::Demo, Step::Fmt, Step::Demo];
        assert_eq!(chosen(&named, true), [Step::Fmt, Step::Demo]);
    }
}
