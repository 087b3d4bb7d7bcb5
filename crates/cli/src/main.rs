//! The `simshard` command.

use std::process::ExitCode;

use simshard_cli::{Cli, exit};

fn main() -> ExitCode {
    match Cli::from_arguments().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
