//! What etcd asks of a process that connects: TLS, and a user with a password.

use std::fmt;

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::key_value::KeyValueError;

/// How a process connects to etcd. By default without TLS, and as no user.
#[derive(Clone, Debug, Default)]
pub struct EtcdAccess {
    /// Certificates, where etcd has TLS.
    pub tls: Option<EtcdTls>,
    /// The user, where etcd has users.
    pub user: Option<EtcdUser>,
}

/// Certificates for connections to etcd, all in PEM.
#[derive(Clone)]
pub struct EtcdTls {
    /// Those of the authorities that signed the certificate of etcd.
    pub authorities: String,
    /// The certificate by which etcd knows this process, and its private key.
    pub identity: Option<(String, String)>,
}

/// A user of etcd.
#[derive(Clone)]
pub struct EtcdUser {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls").finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("EtcdUser");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl EtcdTls {
    /// For tonic, which would take a file without certificates for an empty list of them.
    pub(super) fn config(&self) -> Result<ClientTlsConfig, KeyValueError> {
        check_has(&self.authorities, "CERTIFICATE-----", "--metadata-ca")?;
        let authorities = Certificate::from_pem(&self.authorities);
        let config = ClientTlsConfig::new().ca_certificate(authorities);
        let Some((certificate, key)) = &self.identity else {
            return Ok(config);
        };
        check_has(certificate, "CERTIFICATE-----", "--metadata-cert")?;
        check_has(key, "PRIVATE KEY-----", "--metadata-key")?;
        Ok(config.identity(Identity::from_pem(certificate, key)))
    }
}

fn check_has(pem: &str, section: &str, of: &str) -> Result<(), KeyValueError> {
    if pem.contains(section) {
        return Ok(());
    }
    let reason = format!("the file of {of} has no `{section}`");
    Err(KeyValueError::BadCertificates { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let access = EtcdAccess {
            tls: Some(EtcdTls {
                authorities: "ca".to_owned(),
                identity: Some(("cert".to_owned(), "secret-key".to_owned())),
            }),
            user: Some(EtcdUser {
                name: "news".to_owned(),
                password: "secret-word".to_owned(),
            }),
        };
        let shown = format!("{access:?}");
        assert!(
            shown.contains("news") && !shown.contains("secret"),
            "{shown}"
        );
    }

    #[test]
    fn a_file_without_what_it_should_hold_is_refused_by_its_flag() {
        let tls = |authorities: &str, identity: Option<(&str, &str)>| EtcdTls {
            authorities: authorities.to_owned(),
            identity: identity.map(|(certificate, key)| (certificate.into(), key.into())),
        };
        let certificate = "-----BEGIN CERTIFICATE-----";
        let key = "-----BEGIN PRIVATE KEY-----";
        assert!(tls(certificate, None).config().is_ok());
        assert!(tls(certificate, Some((certificate, key))).config().is_ok());
        for (wrong, flag) in [
            (tls(key, None), "--metadata-ca"),
            (tls(certificate, Some((key, key))), "--metadata-cert"),
            (
                tls(certificate, Some((certificate, certificate))),
                "--metadata-key",
            ),
        ] {
            let error = wrong.config().unwrap_err().to_string();
            assert!(error.contains(flag), "{error}");
        }
    }
}
