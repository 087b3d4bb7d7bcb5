//! The main job on real input: the program finds the near-duplicates among files of this
//! machine, over gRPC, and compares them with a linear scan.

use std::process::Command;

use anyhow::{Context, bail};

use super::scripts;
use crate::process;
use crate::workspace::Workspace;

/// A run that found no more pairs than this has shown little.
const FEW_PAIRS: u64 = 100;

pub(super) fn verify(workspace: &Workspace) -> anyhow::Result<String> {
    run(workspace, Command::new(scripts::program(workspace)?))
}

/// Runs the demo of a program that a command starts; returns its last line.
pub(super) fn run(workspace: &Workspace, mut command: Command) -> anyhow::Result<String> {
    workspace.at_root(&mut command).args(["demo", "--verify"]);
    let mut last = String::new();
    let status = process::run_reading(&mut command, |line| {
        if !line.is_empty() {
            line.clone_into(&mut last);
        }
    })?;
    process::check(&command, status)?;
    judge(&last)?;
    Ok(last)
}

/// Accepts only the last line of a demo that missed nothing and had enough to find.
fn judge(line: &str) -> anyhow::Result<()> {
    let count = line
        .strip_prefix("verified: ")
        .and_then(|rest| rest.strip_suffix(" pairs, 0 missed, 0 extra"))
        .with_context(|| {
            format!("the demo must end with `verified: N pairs, 0 missed, 0 extra`, not `{line}`")
        })?;
    let pairs: u64 = count
        .parse()
        .with_context(|| format!("no number of pairs in `{line}`"))?;
    if pairs <= FEW_PAIRS {
        bail!(
            "the demo found {pairs} pairs, too few to verify anything: more than {FEW_PAIRS} are needed"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_with_enough_pairs_and_nothing_wrong_passes() {
        judge("verified: 101 pairs, 0 missed, 0 extra").unwrap();
    }

    #[test]
    fn missed_extra_few_or_no_pairs_fail() {
        for line in [
            "",
            "done",
            "verified: 100 pairs, 0 missed, 0 extra",
            "verified: 5000 pairs, 1 missed, 0 extra",
            "verified: 5000 pairs, 0 missed, 2 extra",
            "verified: many pairs, 0 missed, 0 extra",
        ] {
            assert!(judge(line).is_err(), "{line}");
        }
    }
}
