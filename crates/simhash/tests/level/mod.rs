//! Runs the tests of a program at each level of this processor.
//!
//! A process has one level. So one test of the program starts the program again for each lower level, to run all
//! others. `SIMSHARD_CPU` names the level to it.

use std::env;
use std::process::Command;

use simshard_simhash::{level, levels, limit_level};

/// The variable by which the programs of this workspace take a lower level.
const LEVEL: &str = "SIMSHARD_CPU";

/// The variable that names what runs this program, where another processor emulates its own.
const EMULATOR: &str = "SIMSHARD_TEST_EMULATOR";

/// Takes the level that this process was started for. Every test begins with it: a test that does not, but runs before
/// another, makes that one fail.
pub(crate) fn take() {
    if let Some(asked) = env::var_os(LEVEL) {
        let asked = asked.to_str().expect("the name of a level");
        let taken = limit_level(asked);
        assert_eq!(taken, Ok(()), "{LEVEL}={asked}");
    }
}

/// Runs all tests of this program, but the one named `this`, at each lower level.
pub(crate) fn run_lower(this: &str) {
    if env::var_os(LEVEL).is_some() {
        // This process is one of those, or was told to run at one level alone.
        return;
    }
    let best = level();
    for level in levels().filter(|&level| level != best) {
        run(this, level);
    }
}

fn run(this: &str, level: &str) {
    let mut command = this_program();
    command.args(["--skip", this]).env(LEVEL, level);
    let output = command.output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{level}: {printed}{errors}");
    let passed = printed.split("test result: ok. ").nth(1);
    let none = passed.is_none_or(|passed| passed.starts_with("0 "));
    assert!(!none, "{level}: {printed}");
}

/// The command that starts this program again.
fn this_program() -> Command {
    let program = env::current_exe().expect("the path of this program");
    let Some(emulator) = env::var_os(EMULATOR) else {
        return Command::new(program);
    };
    let mut command = Command::new(emulator);
    command.arg(program);
    command
}
