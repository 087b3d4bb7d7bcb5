//! The `simshard` command.

use std::process::ExitCode;

use clap::Parser;
use simshard_cli::{Cli, exit};

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
