//! `simshard completions`: a completion script for a shell.

use std::io::{self, Write};

use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Arguments of `completions`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "\
For bash:
simshard completions bash > ~/.local/share/bash-completion/completions/simshard")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the script for this program.
pub fn run(args: CompletionsArgs, mut program: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut program, "simshard", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
