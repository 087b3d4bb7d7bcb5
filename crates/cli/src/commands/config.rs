//! `simshard config check`: whether settings are right, before a process is started with them.

use clap::Subcommand;

use super::serve::{self, RoleCommand};
use crate::say::note;

/// The verbs of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check settings as `serve` does, and start nothing
    #[command(
        subcommand,
        after_help = "\
Give what you give to `serve node` or `serve router`: a file, flags, variables.
Keys that are not known are refused, as values out of their range are, and files
of certificates and tokens that are of no use. Nothing is bound, no directory is
opened, and etcd is not asked.

Examples:
  simshard config check node --config /etc/simshard/node.toml
  simshard config check router --config /etc/simshard/router.toml"
    )]
    Check(Box<RoleCommand>),
}

pub(crate) fn run(command: &ConfigCommand) -> anyhow::Result<()> {
    let ConfigCommand::Check(role) = command;
    let of = serve::check(role)?;
    note(format!("the settings of {of} are right"));
    Ok(())
}
