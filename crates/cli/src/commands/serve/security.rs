//! What keeps strangers out of a router: the files of its certificates, and of tokens.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_router::{Security, Tls, TlsFiles, Tokens};
use simshard_runtime::causes::with_causes;

use crate::args::pem;
use crate::exit::UsageError;

/// What keeps strangers out of a router, in both roles that have one.
#[derive(Args, Clone, Debug, Default)]
pub struct SecurityArgs {
    /// The certificate by which clients know the router, a PEM file with those between it and its authority; clients then
    /// connect by https://. It is read again when it changes
    #[arg(long, value_name = "FILE", env = "SIMSHARD_TLS_CERT", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_TLS_KEY", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Certificates of the authorities of clients, a PEM file: only clients that have a certificate of theirs are served
    #[arg(long, value_name = "FILE", env = "SIMSHARD_TLS_CLIENT_CA", value_hint = ValueHint::FilePath)]
    pub tls_client_ca: Option<PathBuf>,
    /// Tokens of those who may use the router, and what each may do: a file that `simshard token new` makes entries for. It is
    /// read again when it changes
    #[arg(long, value_name = "FILE", env = "SIMSHARD_TOKENS", value_hint = ValueHint::FilePath)]
    pub tokens: Option<PathBuf>,
}

impl SecurityArgs {
    /// Reads the files, if there are any.
    ///
    /// # Errors
    /// If one is missing, or is of no use.
    pub(super) fn load(self) -> Result<Security, UsageError> {
        let tokens = self.tokens.as_deref().map(Tokens::load).transpose();
        let tokens = tokens.map_err(|error| UsageError(with_causes(&error)))?;
        let tls = self.tls()?;
        Ok(Security { tls, tokens })
    }

    fn tls(self) -> Result<Option<Tls>, UsageError> {
        let files = match (self.tls_cert, self.tls_key, self.tls_client_ca) {
            (Some(certificate), Some(key), client_authorities) => TlsFiles {
                certificate,
                key,
                client_authorities,
            },
            (None, None, None) => return Ok(None),
            (Some(_), None, _) => return Err(pem::missing("--tls-key", "--tls-cert")),
            (None, Some(_), _) => return Err(pem::missing("--tls-cert", "--tls-key")),
            (None, None, Some(_)) => return Err(pem::missing("--tls-cert", "--tls-client-ca")),
        };
        let tls = Tls::load(files);
        tls.map(Some)
            .map_err(|error| UsageError(with_causes(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_needs_another_one_names_its_flag() {
        let args = |given: [bool; 3]| {
            let [tls_cert, tls_key, tls_client_ca] =
                given.map(|given| given.then(|| PathBuf::from("/nowhere.pem")));
            SecurityArgs {
                tls_cert,
                tls_key,
                tls_client_ca,
                tokens: None,
            }
        };
        assert!(args([false; 3]).load().unwrap().tls.is_none());
        for (given, said) in [
            ([true, false, false], "--tls-key is missing"),
            ([false, true, true], "--tls-cert is missing"),
            ([false, false, true], "--tls-cert is missing"),
            ([true, true, false], "cannot read /nowhere.pem"),
        ] {
            let error = args(given).load().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
