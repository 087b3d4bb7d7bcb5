//! What etcd asks of the commands that connect to it.

use std::env;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_cluster::{EtcdAccess, EtcdTls, EtcdUser};

use super::pem::{self, missing, read};
use crate::exit::UsageError;

/// The variable that holds the password. There is no such flag: all users of a machine see the flags of processes.
const PASSWORD: &str = "SIMSHARD_METADATA_PASSWORD";

/// TLS, and the user, for an etcd that asks for them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access to etcd")]
pub struct EtcdAccessArgs {
    /// Certificates of the authorities that signed that of etcd, a PEM file; connections to etcd then have TLS
    #[arg(long, value_name = "FILE", env = "SIMSHARD_METADATA_CA", value_hint = ValueHint::FilePath)]
    pub metadata_ca: Option<PathBuf>,
    /// The certificate by which etcd knows this process, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_METADATA_CERT", value_hint = ValueHint::FilePath)]
    pub metadata_cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "SIMSHARD_METADATA_KEY", value_hint = ValueHint::FilePath)]
    pub metadata_key: Option<PathBuf>,
    /// The user of etcd; its password is in a file, or in SIMSHARD_METADATA_PASSWORD
    #[arg(long, value_name = "USER", env = "SIMSHARD_METADATA_USER")]
    pub metadata_user: Option<String>,
    /// The file that holds the password
    #[arg(long, value_name = "FILE", env = "SIMSHARD_METADATA_PASSWORD_FILE", value_hint = ValueHint::FilePath)]
    pub metadata_password_file: Option<PathBuf>,
}

impl EtcdAccessArgs {
    /// These, and of others what is not given here.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            metadata_ca: self.metadata_ca.or(other.metadata_ca),
            metadata_cert: self.metadata_cert.or(other.metadata_cert),
            metadata_key: self.metadata_key.or(other.metadata_key),
            metadata_user: self.metadata_user.or(other.metadata_user),
            metadata_password_file: self.metadata_password_file.or(other.metadata_password_file),
        }
    }

    /// Reads the files, and the variable of the password.
    ///
    /// # Errors
    /// If a file cannot be read, or one of two goes without the other.
    pub fn load(&self) -> Result<EtcdAccess, UsageError> {
        let password = env::var(PASSWORD).ok();
        Ok(EtcdAccess {
            tls: self.tls()?,
            user: self.user(password)?,
        })
    }

    fn tls(&self) -> Result<Option<EtcdTls>, UsageError> {
        let identity = pem::identity(
            ("--metadata-cert", self.metadata_cert.as_deref()),
            ("--metadata-key", self.metadata_key.as_deref()),
        )?;
        match (&self.metadata_ca, identity) {
            (Some(authorities), identity) => Ok(Some(EtcdTls {
                authorities: read(authorities)?,
                identity,
            })),
            (None, Some(_)) => Err(missing("--metadata-ca", "--metadata-cert")),
            (None, None) => Ok(None),
        }
    }

    fn user(&self, password: Option<String>) -> Result<Option<EtcdUser>, UsageError> {
        let password = match &self.metadata_password_file {
            // An editor ends it with the end of a line.
            Some(file) => Some(read(file)?.trim_end_matches(['\r', '\n']).to_owned()),
            None => password,
        };
        match (self.metadata_user.clone(), password) {
            (Some(name), Some(password)) => Ok(Some(EtcdUser { name, password })),
            (Some(_), None) => {
                let password = format!("--metadata-password-file, or {PASSWORD},");
                Err(missing(&password, "--metadata-user"))
            }
            (None, Some(_)) => Err(missing("--metadata-user", "a password for etcd")),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_comes_from_a_file_or_the_environment_and_needs_a_user() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "from file\n").unwrap();
        let args = |user: Option<&str>, file: Option<&PathBuf>| EtcdAccessArgs {
            metadata_user: user.map(str::to_owned),
            metadata_password_file: file.cloned(),
            ..EtcdAccessArgs::default()
        };
        let password = |args: EtcdAccessArgs, variable: Option<&str>| {
            let user = args.user(variable.map(str::to_owned)).unwrap();
            user.map(|user| user.password)
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(password(args(None, None), None), None);
        assert_eq!(password(args(Some("u"), None), Some("word")), of("word"));
        let both = args(Some("u"), Some(&file));
        assert_eq!(password(both, Some("word")), of("from file"));
        let refused = |args: EtcdAccessArgs, variable: Option<&str>| {
            let refused = args.user(variable.map(str::to_owned)).unwrap_err();
            refused.to_string()
        };
        let error = refused(args(Some("u"), None), None);
        assert!(error.contains(PASSWORD), "{error}");
        let error = refused(args(None, None), Some("sesame"));
        assert!(
            error.contains("--metadata-user") && !error.contains("sesame"),
            "{error}"
        );
    }

    #[test]
    fn a_certificate_needs_its_key_and_an_authority() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pem");
        fs::write(&file, "pem").unwrap();
        let args = |given: [bool; 3]| {
            let [ca, cert, key] = given.map(|given| given.then(|| file.clone()));
            EtcdAccessArgs {
                metadata_ca: ca,
                metadata_cert: cert,
                metadata_key: key,
                ..EtcdAccessArgs::default()
            }
        };
        for fine in [[false; 3], [true; 3], [true, false, false]] {
            assert_eq!(args(fine).tls().unwrap().is_some(), fine[0]);
        }
        for (given, flag) in [
            ([true, true, false], "--metadata-key is"),
            ([true, false, true], "--metadata-cert is"),
            ([false, true, true], "--metadata-ca is"),
        ] {
            let error = args(given).tls().unwrap_err().to_string();
            assert!(error.starts_with(flag), "{error}");
        }
    }
}
