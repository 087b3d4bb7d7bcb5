//! Connections to the nodes of a cluster: by TLS, with a certificate on both sides, or as they are.
//!
//! # Invariants
//! - CT1: with certificates of the cluster, no request leaves for a peer that does not show one of a node, and none for an
//!   address without TLS.

use std::convert::Infallible;
use std::future::pending;
use std::io;

use http::Uri;
use hyper_util::rt::TokioIo;
use simshard_proto::endpoint::limited;
use simshard_runtime::observed::Observed;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::expiring::Certificates;
use crate::followed::follow;
use crate::tls::Tls;

/// The port of an address that names none.
const HTTPS: u16 = 443;

/// How connections to nodes are made. Clones share the certificates.
#[derive(Clone, Debug)]
pub struct Dialer(Option<Tls>);

impl Dialer {
    /// Without certificates.
    pub const PLAIN: Self = Self(None);

    /// By TLS, with the certificates of the cluster, or as they are.
    #[must_use]
    pub const fn new(certificates: Option<Tls>) -> Self {
        Self(certificates)
    }

    /// How the address of a node begins that is reached so.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        match &self.0 {
            Some(_) => "https",
            None => "http",
        }
    }

    /// An endpoint with the limits set.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the address is no URL, or has TLS where this has not, or the other way round.
    pub fn endpoint(&self, address: &str) -> Result<Endpoint, Status> {
        let refused = |problem: &str| Status::invalid_argument(format!("{address} {problem}"));
        let plain = match (address.split_once("://"), &self.0) {
            (Some(("http", _)), None) => address.to_owned(),
            // The connector below begins TLS, and the transport must not.
            (Some(("https", rest)), Some(_)) => format!("http://{rest}"),
            (Some(("http", _)), Some(_)) => {
                return Err(refused(
                    "has no TLS, and this process has certificates of the cluster: start its node with --cluster-cert",
                ));
            }
            (Some(("https", _)), None) => {
                return Err(refused(
                    "has TLS: --cluster-cert, --cluster-key and --cluster-ca are missing",
                ));
            }
            (Some(_) | None, _) => {
                return Err(refused("is no address, such as http://10.0.0.1:7470"));
            }
        };
        let endpoint = Endpoint::from_shared(plain).map_err(|_| refused("is no URL"))?;
        Ok(limited(endpoint))
    }

    /// A channel that connects when it is first used.
    ///
    /// # Errors
    /// Those of [`Self::endpoint`].
    pub fn channel_to(&self, address: &str) -> Result<Channel, Status> {
        Ok(self.connect(&self.endpoint(address)?))
    }

    /// A channel to an endpoint of [`Self::endpoint`], that connects when it is first used.
    #[must_use]
    pub fn connect(&self, endpoint: &Endpoint) -> Channel {
        let Some(tls) = self.0.clone() else {
            return endpoint.connect_lazy();
        };
        endpoint.connect_with_connector_lazy(service_fn(move |to: Uri| {
            let tls = tls.clone();
            async move { Ok::<_, io::Error>(TokioIo::new(open(&tls, &to).await?)) }
        }))
    }

    /// Shows when the certificates end.
    pub fn show(&self, observed: &Observed) {
        Certificates::show(observed, self.0.as_ref());
    }

    /// Looks at the certificates again and again.
    pub async fn follow(&self) -> Infallible {
        match &self.0 {
            Some(tls) => follow(Some(tls.files())).await,
            None => pending().await,
        }
    }
}

/// Connects, and lets both sides show their certificates.
async fn open(tls: &Tls, to: &Uri) -> io::Result<TlsStream<TcpStream>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let host = to
        .host()
        .ok_or_else(|| invalid("the address has no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = to.port_u16().unwrap_or(HTTPS);
    let connector = tls.connector().ok_or_else(|| invalid("no authorities"))?;
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| invalid("the host is no name"))?;
    connector.connect(name, stream).await
}

#[cfg(test)]
mod tests;
