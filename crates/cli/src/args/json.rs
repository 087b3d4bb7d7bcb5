//! The arguments that choose JSON: of the commands that print tables, and of those that change something.

use std::fmt::Display;

use clap::Args;
use serde_json::Value;

use crate::say::{note, print_json};

/// How a table is printed.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct JsonArgs {
    /// Print JSON instead of a table, one object a line
    #[arg(long)]
    pub json: bool,
}

/// How a command tells what it has changed.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutcomeArgs {
    /// Print what was done as JSON, an object on a line
    #[arg(long)]
    pub json: bool,
}

impl OutcomeArgs {
    /// Says what was done: to people, and to programs if they ask for it.
    pub(crate) fn tell(self, done: impl Display, object: &Value) -> anyhow::Result<()> {
        note(done);
        self.print(object)
    }

    /// Tells programs what was done, if they ask for it.
    pub(crate) fn print(self, object: &Value) -> anyhow::Result<()> {
        if self.json {
            print_json(object)?;
        }
        Ok(())
    }
}
