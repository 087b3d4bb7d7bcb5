//! The argument of the commands that print tables.

use clap::Args;

/// How a table is printed.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct JsonArgs {
    /// Print JSON instead of a table, one object a line
    #[arg(long)]
    pub json: bool,
}
