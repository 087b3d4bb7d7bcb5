//! `simshard completions`: a script that lets a shell ask this program how to go on.

use std::io::{self, Write};

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::completion::VARIABLE;

/// Arguments of `completions`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "\
The script asks this program for each word: options, recipes, files, and the
names of corpora and nodes as the running cluster has them. --router or
SIMSHARD_ROUTER, and --metadata or SIMSHARD_METADATA, say where that is. Read
the script at each start of the shell, as another version may have another one.

For bash, in ~/.bashrc:
  source <(simshard completions bash)
For zsh, in ~/.zshrc:
  source <(simshard completions zsh)
For fish, in ~/.config/fish/config.fish:
  simshard completions fish | source")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the script for this program.
pub fn run(args: CompletionsArgs) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let shell = args.shell.to_string();
    let shell = shells
        .completer(&shell)
        .context("no script for this shell")?;
    let name = "simshard";
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, name, name, name, &mut script)?;
    Ok(io::stdout().write_all(&script)?)
}
