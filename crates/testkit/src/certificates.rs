//! Certificates for a server and its clients, made for one test.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

/// What gets a certificate, and the URI in it.
const OWNERS: [(&str, &str); 3] = [
    ("server", "simshard:node"),
    ("router", "simshard:router"),
    ("client", "simshard:admin"),
];

/// PEM files of an authority, and of a server, a router and a client whose certificates it signed.
#[derive(Debug)]
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Those of an authority of their own. The server has this address.
    #[must_use]
    pub fn of_server(address: IpAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::write(folder.path(), address);
        Self { folder }
    }

    /// Writes such files into a folder: `ca.pem`, and `server.pem`, `server.key` and the like of `router` and `client`.
    pub fn write(folder: &Path, address: IpAddr) {
        let mut authority = params("authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = authority.self_signed(&key).expect("a certificate");
        write(folder, "ca.pem", &certificate.pem());
        let issuer = Issuer::new(authority, key);
        for (name, uri) in OWNERS {
            let key = KeyPair::generate().expect("a key");
            let mut params = params(name);
            let uri = SanType::URI(uri.try_into().expect("a URI"));
            params.subject_alt_names = vec![SanType::IpAddress(address), uri];
            let signed = params.signed_by(&key, &issuer);
            let certificate = signed.expect("a certificate");
            write(folder, &format!("{name}.pem"), &certificate.pem());
            write(folder, &format!("{name}.key"), &key.serialize_pem());
        }
    }

    /// The certificate of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The flags by which a process of a cluster has the certificate of one of them.
    #[must_use]
    pub fn cluster_args(&self, owner: &str) -> Vec<String> {
        let path = |file: &str| self.folder.path().join(file).display().to_string();
        let (certificate, key) = (format!("{owner}.pem"), format!("{owner}.key"));
        [
            ("--cluster-cert", path(&certificate)),
            ("--cluster-key", path(&key)),
            ("--cluster-ca", path("ca.pem")),
        ]
        .into_iter()
        .flat_map(|(flag, path)| [flag.to_owned(), path])
        .collect()
    }

    /// The folder of the files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The certificate of the client, and its key.
    #[must_use]
    pub fn client(&self) -> [PathBuf; 2] {
        ["client.pem", "client.key"].map(|file| self.folder.path().join(file))
    }

    /// The certificate of the server, and its key.
    pub(crate) fn server(&self) -> [PathBuf; 2] {
        ["server.pem", "server.key"].map(|file| self.folder.path().join(file))
    }
}

/// Those of a certificate of its own name: OpenSSL takes one with the name of its authority for signed by itself.
fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn write(folder: &Path, file: &str, text: &str) {
    fs::write(folder.join(file), text).expect("a file");
}
