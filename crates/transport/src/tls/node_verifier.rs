//! Which servers a process of a cluster takes for its nodes.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use crate::certified::{Owner, Party};

/// Takes those that show a certificate of a node, whatever their address: the authorities of a cluster sign for it alone, and
/// addresses change.
#[derive(Debug)]
pub(super) struct NodeVerifier {
    authorities: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl NodeVerifier {
    pub(super) fn new(authorities: Arc<RootCertStore>, provider: &CryptoProvider) -> Self {
        Self {
            authorities,
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

/// The certificate is valid, and of something else.
struct NotOfANode;

/// Errors of TLS show only this form of what they carry.
impl fmt::Debug for NotOfANode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NotOfANode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificate is not that of a node: it needs the URI simshard:node among its names (SAN)")
    }
}

impl std::error::Error for NotOfANode {}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.authorities,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        if Owner::of(end_entity).is_some_and(|owner| owner.party == Party::Node) {
            return Ok(ServerCertVerified::assertion());
        }
        let other = OtherError(Arc::new(NotOfANode));
        Err(CertificateError::Other(other).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
