//! Whom a client trusts, and how it makes itself known.

use std::fmt;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::error::ClientError;

/// What a client needs beside the URL of a router that has TLS. By default it trusts the authorities of the system, and
/// does not make itself known.
#[derive(Clone, Default)]
pub struct Access {
    /// Certificates of the authorities that may have signed that of the router, in PEM; `None` for those of the system.
    pub authorities: Option<String>,
    /// The certificate by which the router knows this client, and its private key, in PEM.
    pub identity: Option<(String, String)>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    /// An endpoint for a URL that is what it seems: nothing in it is ignored, and nothing of the access is.
    pub(crate) fn endpoint(&self, url: &str) -> Result<Endpoint, ClientError> {
        let unusable = |problem: &str| ClientError::Url {
            url: url.to_owned(),
            problem: problem.to_owned(),
        };
        let endpoint =
            Endpoint::from_shared(url.to_owned()).map_err(|_| unusable("it is no URL at all"))?;
        let uri = endpoint.uri();
        let scheme = uri.scheme_str();
        if !matches!(scheme, Some("http" | "https")) {
            return Err(unusable(
                "it has to start with https://, or with http:// where there is no TLS",
            ));
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err(unusable("it has to end after the port"));
        }
        if scheme == Some("https") {
            return self.with_tls(endpoint);
        }
        if self.authorities.is_some() || self.identity.is_some() {
            return Err(unusable(
                "it has to start with https:// for certificates to be of use",
            ));
        }
        Ok(endpoint)
    }

    fn with_tls(&self, endpoint: Endpoint) -> Result<Endpoint, ClientError> {
        let mut tls = ClientTlsConfig::new();
        tls = match &self.authorities {
            None => tls.with_native_roots(),
            Some(authorities) => {
                check_has(authorities, "CERTIFICATE-----", "the authorities")?;
                tls.ca_certificate(Certificate::from_pem(authorities))
            }
        };
        if let Some((certificate, key)) = &self.identity {
            check_has(certificate, "CERTIFICATE-----", "the client's certificate")?;
            check_has(key, "PRIVATE KEY-----", "the client's key")?;
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        let with_tls = endpoint.tls_config(tls);
        with_tls.map_err(|error| ClientError::Certificates(error.into()))
    }
}

/// The transport takes a text without certificates for an empty list of them.
fn check_has(pem: &str, section: &str, what: &str) -> Result<(), ClientError> {
    if pem.contains(section) {
        return Ok(());
    }
    let problem = format!("{what} must be in PEM: there is no `{section}`");
    Err(ClientError::Certificates(problem.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_would_be_misread_are_refused() {
        for url in [
            "",
            "127.0.0.1:7460",
            "localhost:7460",
            "ftp://127.0.0.1:7460",
            "https://127.0.0.1:7460/corpora",
            "http://127.0.0.1:7460/corpora",
            "http://127.0.0.1:7460?x=1",
            "two words",
        ] {
            let error = Access::default().endpoint(url).unwrap_err();
            assert!(error.is_bad_request(), "{url}");
            assert!(
                error.to_string().contains("http://127.0.0.1:7460"),
                "{error}"
            );
        }
        for url in [
            "http://127.0.0.1:7460",
            "http://router:80/",
            "http://[::1]:7460",
        ] {
            Access::default().endpoint(url).unwrap();
        }
    }

    #[test]
    fn certificates_without_tls_or_of_something_else_are_refused() {
        let certificate = "-----BEGIN CERTIFICATE-----";
        let key = "-----BEGIN PRIVATE KEY-----";
        let access = |authorities: Option<&str>, identity: Option<(&str, &str)>| Access {
            authorities: authorities.map(str::to_owned),
            identity: identity.map(|(certificate, key)| (certificate.into(), key.into())),
        };
        let refused = |access: Access, url: &str| {
            let error = access.endpoint(url).unwrap_err();
            assert!(error.is_bad_request(), "{error:?}");
            format!("{error:?}")
        };
        let shown = refused(access(Some(certificate), None), "http://127.0.0.1:7460");
        assert!(shown.contains("https://"), "{shown}");
        for (wrong, what) in [
            (access(Some(key), None), "authorities"),
            (access(None, Some((key, key))), "certificate"),
            (access(None, Some((certificate, certificate))), "key"),
        ] {
            let shown = refused(wrong, "https://127.0.0.1:7460");
            assert!(shown.contains(what), "{shown}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let access = Access {
            authorities: None,
            identity: Some(("certificate".to_owned(), "secret".to_owned())),
        };
        assert!(!format!("{access:?}").contains("secret"));
    }
}
