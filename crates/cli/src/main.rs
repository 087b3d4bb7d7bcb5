//! The `simshard` command.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::CompleteEnv;
use simshard_cli::{Cli, completion, exit};

fn main() -> ExitCode {
    // Where a shell asks for candidates, this answers and ends the process.
    CompleteEnv::with_factory(Cli::command)
        .var(completion::VARIABLE)
        .complete();
    match Cli::from_arguments().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
