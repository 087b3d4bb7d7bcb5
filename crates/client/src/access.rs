//! Whom a client trusts, and how it makes itself known.

use std::fmt;
use std::net::IpAddr;

use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use crate::error::ClientError;

/// What a client needs beside the URL of a router that has TLS. By default it trusts the authorities of the system, and
/// does not make itself known.
#[derive(Clone, Default)]
pub struct Access {
    /// Certificates of the authorities that may have signed that of the router, in PEM; `None` for those of the system.
    pub authorities: Option<String>,
    /// The certificate by which the router knows this client, and its private key, in PEM.
    pub identity: Option<(String, String)>,
    /// The token by which the router knows this client.
    pub token: Option<String>,
}

/// Puts the token of a client on each request.
#[derive(Clone, Debug)]
pub struct Bearer(Option<AsciiMetadataValue>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", value.clone());
        }
        Ok(request)
    }
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
        if self.token.is_some() && !uri.host().is_some_and(is_this_machine) {
            return Err(unusable(
                "it has to start with https://, as a token that is sent without TLS can be read on its way",
            ));
        }
        Ok(endpoint)
    }

    /// What puts the token on requests.
    pub(crate) fn bearer(&self) -> Result<Bearer, ClientError> {
        let Some(token) = &self.token else {
            return Ok(Bearer(None));
        };
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let value = AsciiMetadataValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| ClientError::Token)?;
        value.set_sensitive(true);
        Ok(Bearer(Some(value)))
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

/// Whether a host is this machine, without asking any name server.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
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
            token: None,
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
            token: Some("secret".to_owned()),
        };
        let bearer = access.bearer().unwrap();
        assert!(!format!("{access:?} {bearer:?}").contains("secret"));
    }

    #[test]
    fn a_token_goes_by_tls_or_to_this_machine() {
        let access = |token: &str| Access {
            token: Some(token.to_owned()),
            ..Access::default()
        };
        for fine in [
            "http://127.0.0.1:7460",
            "http://[::1]:7460",
            "http://localhost:7460",
            "https://router:7460",
        ] {
            access("t").endpoint(fine).unwrap();
        }
        for refused in [
            "http://router:7460",
            "http://10.0.0.1:7460",
            "http://127.0.0.1.example:7460",
        ] {
            let error = access("t").endpoint(refused).unwrap_err().to_string();
            assert!(error.contains("https://"), "{error}");
        }
        access("a\n").bearer().unwrap();
        for none in ["", "\n", "a\nb", "a b", "é"] {
            let error = access(none).bearer().unwrap_err();
            assert!(matches!(error, ClientError::Token) && error.is_bad_request());
        }
    }
}
