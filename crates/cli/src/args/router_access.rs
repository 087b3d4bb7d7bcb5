//! What a router with TLS or tokens asks of the commands that connect to it.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_client::Access;

use super::pem;
use crate::exit::UsageError;

/// TLS and a token, for a router that asks for them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct RouterAccessArgs {
    /// Certificates of the authorities that signed that of an https:// router, a PEM file [default: those of the system]
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CA", value_hint = ValueHint::FilePath)]
    pub ca: Option<PathBuf>,
    /// The certificate by which the router knows this command, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CERT", value_hint = ValueHint::FilePath)]
    pub cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_KEY", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// A file with the token by which the router knows this command
    #[arg(long, value_name = "FILE", env = "SIMSHARD_TOKEN_FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
}

impl RouterAccessArgs {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read, or one of two goes without the other.
    pub fn load(&self) -> Result<Access, UsageError> {
        Ok(Access {
            authorities: self.ca.as_deref().map(pem::read).transpose()?,
            identity: pem::identity(
                ("--cert", self.cert.as_deref()),
                ("--key", self.key.as_deref()),
            )?,
            token: self.token_file.as_deref().map(pem::read).transpose()?,
        })
    }
}
