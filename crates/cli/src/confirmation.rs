//! Asking before something is done that not all may want.

use std::io::IsTerminal;

use anyhow::{Context, bail};
use clap::Args;
use console::Term;

use crate::exit::UsageError;

/// Whether a command asks before it does what it says.
#[derive(Args, Debug)]
pub struct Confirmation {
    /// Do not ask, as a script needs it
    #[arg(long)]
    pub yes: bool,
}

impl Confirmation {
    /// Asks on the terminal whether to go on, unless that was said. Without a terminal it must have been.
    ///
    /// # Errors
    /// If the answer is another than yes, or there is none.
    pub(crate) fn ask(&self, question: &str) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        let terminal = Term::stderr();
        if !terminal.is_term() || !std::io::stdin().is_terminal() {
            let problem = format!("add --yes, as there is no terminal to answer on: {question}");
            return Err(UsageError(problem).into());
        }
        let asked = terminal.write_str(&format!("{question} [y/N] "));
        asked.context("cannot write <stderr>")?;
        let answer = terminal.read_line().context("cannot read <stdin>")?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => bail!("nothing was changed"),
        }
    }
}
