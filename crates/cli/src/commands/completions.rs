//! `simshard completions`: a completion script for a shell.

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::Cli;

/// Arguments of `completions`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "\
For bash:
simshard completions bash > ~/.local/share/bash-completion/completions/simshard")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Never; for the sake of the other commands.
pub fn run(args: CompletionsArgs) -> anyhow::Result<()> {
    generate(
        args.shell,
        &mut Cli::command(),
        "simshard",
        &mut io::stdout(),
    );
    Ok(())
}
