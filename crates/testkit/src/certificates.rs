//! Certificates for a server and its clients, made for one test.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// PEM files of an authority, and of a server and a client whose certificates it signed.
#[derive(Debug)]
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Those of an authority of their own. The server has this address.
    #[must_use]
    pub fn of_server(address: IpAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut authority = params(Vec::new());
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = authority.self_signed(&key).expect("a certificate");
        write(folder.path(), "ca.pem", &certificate.pem());
        let issuer = Issuer::new(authority, key);
        for name in ["server", "client"] {
            let key = KeyPair::generate().expect("a key");
            let signed = params(vec![address.to_string()]).signed_by(&key, &issuer);
            let certificate = signed.expect("a certificate");
            write(folder.path(), &format!("{name}.pem"), &certificate.pem());
            write(folder.path(), &format!("{name}.key"), &key.serialize_pem());
        }
        Self { folder }
    }

    /// The certificate of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
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

fn params(names: Vec<String>) -> CertificateParams {
    CertificateParams::new(names).expect("names")
}

fn write(folder: &Path, file: &str, text: &str) {
    fs::write(folder.join(file), text).expect("a file");
}
