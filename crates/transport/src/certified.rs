//! Who the owner of a certificate is: a URI among its other names (SAN) says it, such as `simshard:node`.

use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::tokens::Role;

/// How the URIs begin that count.
const SCHEME: &str = "simshard:";

/// What the owner of a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// A client of routers, or an operator, who also asks nodes.
    Client(Role),
    /// A router of the cluster.
    Router,
    /// A node of the cluster.
    Node,
}

impl Party {
    /// All there are, by their names.
    const ALL: [(&str, Self); 5] = [
        ("read", Self::Client(Role::Read)),
        ("write", Self::Client(Role::Write)),
        ("admin", Self::Client(Role::Admin)),
        ("router", Self::Router),
        ("node", Self::Node),
    ];

    /// What it is called in certificates and messages.
    pub(crate) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, party)| *party == self);
        found.map_or("unknown", |(name, _)| name)
    }
}

/// The owner of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) party: Party,
    /// What follows the party in the URI, after a slash.
    pub(crate) name: Option<Arc<str>>,
}

impl Owner {
    /// The owner of a certificate that an authority has signed. One that names no party, or more than one, is none's.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = EndEntityCert::try_from(certificate).ok()?;
        let mut owners = certificate.valid_uri_names().filter_map(Self::parse);
        owners.next().filter(|_| owners.next().is_none())
    }

    fn parse(uri: &str) -> Option<Self> {
        let owner = uri.strip_prefix(SCHEME)?;
        let (party, name) = match owner.split_once('/') {
            Some((party, name)) => (party, Some(name)),
            None => (owner, None),
        };
        let (_, party) = Party::ALL.iter().find(|(name, _)| *name == party)?;
        Some(Self {
            party: *party,
            name: name.filter(|name| !name.is_empty()).map(Arc::from),
        })
    }
}

/// The owner of the certificate that the peer of a connection has shown: unknown until the handshake is over. Clones share
/// it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(Arc<OnceLock<Option<Owner>>>);

impl Shown {
    /// The handshake is over, with this certificate of the peer.
    pub(crate) fn set(&self, certificate: Option<&CertificateDer<'_>>) {
        // A connection has one handshake.
        let _ = self.0.set(certificate.and_then(Owner::of));
    }

    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.0.get()?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn owner(uris: &[&str]) -> Option<Owner> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let uris = uris
            .iter()
            .map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names.extend(uris);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Owner::of(certificate.der())
    }

    #[test]
    fn one_uri_says_whose_a_certificate_is() {
        for (name, party) in Party::ALL {
            let of = |name: Option<&str>| Owner {
                party,
                name: name.map(Arc::from),
            };
            assert_eq!(party.name(), name);
            assert_eq!(owner(&[&format!("simshard:{name}")]), Some(of(None)));
            assert_eq!(owner(&[&format!("simshard:{name}/")]), Some(of(None)));
            let named = format!("simshard:{name}/n1/a");
            let others = ["https://other.example", &named, "spiffe://x/node"];
            assert_eq!(owner(&others), Some(of(Some("n1/a"))));
        }
    }

    #[test]
    fn without_such_a_uri_or_with_two_it_is_none_s() {
        for uris in [
            &[][..],
            &["simshard:"],
            &["simshard:nodes"],
            &["simshard:Node"],
            &["SIMSHARD:node"],
            &["xsimshard:node"],
            &["simshard://node"],
            &["simshard:node", "simshard:read"],
            &["simshard:read", "simshard:read"],
        ] {
            assert_eq!(owner(uris), None, "{uris:?}");
        }
    }
}
