//! What the nodes of a cluster with certificates ask of the processes that connect to them.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_router::{Tls, TlsFiles};
use simshard_runtime::causes::with_causes;

use super::pem::missing;
use crate::exit::UsageError;

/// The certificate of this process, and whom it trusts. Nodes and routers, and commands that ask nodes, have all three, or
/// none of them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Certificates of the cluster")]
pub struct ClusterCertificateArgs {
    /// The certificate by which the processes of the cluster know this one, a PEM file: with the URI simshard:node,
    /// simshard:router or simshard:admin among its names (SAN). It is read again when it changes
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CLUSTER_CERT", value_hint = ValueHint::FilePath)]
    pub cluster_cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CLUSTER_KEY", value_hint = ValueHint::FilePath)]
    pub cluster_key: Option<PathBuf>,
    /// Certificates of the authorities that sign for the cluster alone, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_CLUSTER_CA", value_hint = ValueHint::FilePath)]
    pub cluster_ca: Option<PathBuf>,
}

impl ClusterCertificateArgs {
    /// Reads the files, if there are any.
    ///
    /// # Errors
    /// If one is missing, or is of no use.
    pub(crate) fn load(&self) -> Result<Option<Tls>, UsageError> {
        let files = match (&self.cluster_cert, &self.cluster_key, &self.cluster_ca) {
            (None, None, None) => return Ok(None),
            (Some(certificate), Some(key), Some(authorities)) => TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_authorities: Some(authorities.clone()),
            },
            (None, Some(_), _) => return Err(missing("--cluster-cert", "--cluster-key")),
            (None, None, Some(_)) => return Err(missing("--cluster-cert", "--cluster-ca")),
            (Some(_), None, _) => return Err(missing("--cluster-key", "--cluster-cert")),
            (Some(_), Some(_), None) => return Err(missing("--cluster-ca", "--cluster-cert")),
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
    fn each_file_needs_the_other_two() {
        let args = |given: [bool; 3]| {
            let [cluster_cert, cluster_key, cluster_ca] =
                given.map(|given| given.then(|| PathBuf::from("/nowhere.pem")));
            ClusterCertificateArgs {
                cluster_cert,
                cluster_key,
                cluster_ca,
            }
        };
        assert!(args([false; 3]).load().unwrap().is_none());
        for (given, said) in [
            ([true, false, false], "--cluster-key is missing"),
            ([false, true, false], "--cluster-cert is missing"),
            ([false, false, true], "--cluster-cert is missing"),
            ([true, true, false], "--cluster-ca is missing"),
            ([true, false, true], "--cluster-key is missing"),
            ([false, true, true], "--cluster-cert is missing"),
            ([true, true, true], "cannot read /nowhere.pem"),
        ] {
            let error = args(given).load().unwrap_err().to_string();
            assert!(error.starts_with(said), "{given:?}: {error}");
        }
    }
}
