//! TLS for the connections of a server, and for those to the nodes of its cluster: certificates from PEM files, which may
//! be replaced while it serves.
//!
//! # Invariants
//! - TL1: a handshake that fails ends its connection alone. One that takes too long ends like a connection that never
//!   begins HTTP.
//! - TL2: a connection uses the certificates that the files held when it was made, a few seconds late. If they become
//!   unusable, those before them are used on.
//! - TL3: nothing older than TLS 1.3 is spoken. Where authorities for clients are named, a client without a certificate
//!   of theirs is refused.

mod expiry;
mod node_verifier;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::followed::{Followed, Source};
use expiry::end_of_chain;
use node_verifier::NodeVerifier;

/// The protocols of HTTP that a client may choose.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of a server's certificates, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate by which clients know the server, and those between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities of clients. With them, only clients with a certificate of theirs are served. Those of a cluster are
    /// the authorities of its nodes, too.
    pub client_authorities: Option<PathBuf>,
}

/// Why TLS cannot be served by some files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", file.display())]
    Unreadable {
        /// Its path.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file lacks what it should hold.
    #[error("{} holds no {what} in PEM", file.display())]
    Missing {
        /// Its path.
        file: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// What it holds is malformed.
    #[error("{} is no PEM file of certificates or of a key", file.display())]
    Malformed {
        /// Its path.
        file: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// The key and the certificate cannot be used.
    #[error("{} and {} cannot be used together", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The authorities of clients cannot be used.
    #[error("{} cannot be used as authorities of clients", file.display())]
    Authorities {
        /// Their file.
        file: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
}

/// What a server needs for TLS. Clones share it.
#[derive(Clone, Debug)]
pub struct Tls(Followed<TlsFiles>);

/// What is made of the files.
pub(super) struct Configs {
    server: Arc<ServerConfig>,
    /// For connections to nodes.
    client: Option<Arc<ClientConfig>>,
    /// When the first certificate of the chain ends.
    end: Option<UnixTime>,
}

/// A certificate, those between it and its authority, and its key.
type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The bytes of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authorities: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If TLS cannot be served by them.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        Followed::load(files).map(Self)
    }

    /// What the next connection of a client begins with.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.current().server))
    }

    /// What the next connection to a node begins with, if authorities are named.
    pub(super) fn connector(&self) -> Option<TlsConnector> {
        self.0.current().client.clone().map(TlsConnector::from)
    }

    /// Whether its peers have to show certificates.
    pub(super) fn asks_for_certificates(&self) -> bool {
        self.0.current().client.is_some()
    }

    /// When the first of its own certificates ends, if that can be told.
    pub(super) fn end(&self) -> Option<UnixTime> {
        self.0.current().end
    }

    /// The files, to be followed.
    pub(super) const fn files(&self) -> &Followed<TlsFiles> {
        &self.0
    }
}

impl Source for TlsFiles {
    const WHAT: &'static str = "certificates";
    type Contents = Contents;
    type Made = Configs;
    type Error = TlsError;

    fn read(&self) -> Result<Contents, TlsError> {
        let read = |file: &PathBuf| {
            fs::read(file).map_err(|source| TlsError::Unreadable {
                file: file.clone(),
                source,
            })
        };
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            client_authorities: self.client_authorities.as_ref().map(read).transpose()?,
        })
    }

    fn make(&self, contents: &Contents) -> Result<Configs, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let authorities = match (&self.client_authorities, &contents.client_authorities) {
            (Some(file), Some(pem)) => Some((file, Arc::new(authorities(file, pem)?))),
            (None, _) | (_, None) => None,
        };
        let chain = certificates(&self.certificate, &contents.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|source| malformed(&self.key, "private key", source))?;
        let client = authorities.as_ref().map(|(_, authorities)| {
            let pair = (chain.clone(), key.clone_key());
            self.client(&provider, authorities, pair)
        });
        Ok(Configs {
            end: end_of_chain(&chain),
            client: client.transpose()?,
            server: self.server(&provider, authorities, (chain, key))?,
        })
    }
}

impl TlsFiles {
    fn server(
        &self,
        provider: &Arc<CryptoProvider>,
        authorities: Option<(&PathBuf, Arc<RootCertStore>)>,
        (chain, key): Pair,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|source| self.unusable(source))?;
        let builder = match authorities {
            Some((file, authorities)) => {
                let provider = Arc::clone(provider);
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider);
                let verifier = verifier.build().map_err(|source| TlsError::Authorities {
                    file: file.clone(),
                    source,
                })?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|source| self.unusable(source))?;
        config.alpn_protocols = PROTOCOLS.map(Vec::from).to_vec();
        Ok(Arc::new(config))
    }

    fn client(
        &self,
        provider: &Arc<CryptoProvider>,
        authorities: &Arc<RootCertStore>,
        (chain, key): Pair,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let verifier = NodeVerifier::new(Arc::clone(authorities), provider);
        let config = ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|source| self.unusable(source))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(chain, key);
        let mut config = config.map_err(|source| self.unusable(source))?;
        config.alpn_protocols = vec![PROTOCOLS[0].to_vec()];
        Ok(Arc::new(config))
    }

    fn unusable(&self, source: rustls::Error) -> TlsError {
        TlsError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        }
    }
}

fn authorities(file: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates(file, pem)?);
    Ok(store)
}

fn certificates(file: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const WHAT: &str = "certificate";
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|source| malformed(file, WHAT, source))?;
    if found.is_empty() {
        let file = file.to_owned();
        return Err(TlsError::Missing { file, what: WHAT });
    }
    Ok(found)
}

fn malformed(file: &Path, what: &'static str, source: pem::Error) -> TlsError {
    let file = file.to_owned();
    if matches!(source, pem::Error::NoItemsFound) {
        return TlsError::Missing { file, what };
    }
    TlsError::Malformed { file, source }
}

#[cfg(test)]
mod tests;
