//! Another processor, emulated: the demo, and the tests of the crates that need nothing of a machine but memory and
//! files.

use std::process::Command;

use crate::cross::{self, Target};
use crate::process;
use crate::report::StepOutcome;
use crate::tools;
use crate::workspace::{LONG, Workspace};

use super::demo;
use super::rust_tests::Tally;

/// The crates whose tests run. Those of others wait for clocks and networks, for which an emulator is too slow.
const CRATES: [&str; 3] = ["simshard-simhash", "simshard-storage", "simshard-topology"];

/// By this variable, tests that start their program again learn what runs it.
const EMULATOR: &str = "SIMSHARD_TEST_EMULATOR";

pub(super) fn verify(workspace: &Workspace) -> StepOutcome {
    let mut tally = Tally::default();
    let ended = run(workspace, &mut tally);
    tally.outcome(ended)
}

fn run(workspace: &Workspace, tally: &mut Tally) -> anyhow::Result<()> {
    let target = Target::Aarch64;
    tools::standard_library(workspace, target.triple())?;
    let (compiler, emulator) = (tools::cross_compiler(workspace)?, tools::emulator()?);
    let mut build = cross::cargo(workspace, &compiler, target, "zigbuild");
    process::run(build.args(["--package", "simshard-cli", "--all-features"]))?;
    let program = workspace.target().join(target.triple());
    let mut simshard = Command::new(emulator);
    simshard.arg(program.join("debug/simshard"));
    demo::run(workspace, simshard)?;

    let mut tests = cross::cargo(workspace, &compiler, target, "test");
    tests.arg("--no-fail-fast");
    tests.args(CRATES.map(|name| format!("--package={name}")));
    tests.env(target.variable("RUNNER"), emulator);
    tests.env(EMULATOR, emulator);
    // A million cases of each fuzzer would take hours.
    tests.env_remove(LONG);
    let status = process::run_reading(&mut tests, |line| tally.add(line))?;
    process::check(&tests, status)
}
